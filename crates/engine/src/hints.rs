//! What nodes on one store tell each other. Rows are the truth and are looked at regularly: a hint only makes things prompt.

use crate::engine::{Happened, Inner};
use crate::runs::What;
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Hint, OrgId, RunId};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// Between two looks whether runs have ended that somebody waits for.
const PAUSE: Duration = Duration::from_millis(50);

impl Inner {
    pub fn tell(&self, hint: Hint) {
        if self.shared {
            self.store.tell(hint);
        }
    }

    /// This process has, or may have, moved the organisation's epoch on.
    pub fn epoch_moved(&self, org: OrgId) {
        self.epochs.forget(org);
        self.tell(Hint { orgs: vec![org], ..Hint::default() });
    }
}

/// Listens for as long as the engine runs, if there is anyone to listen to.
pub async fn listen(inner: Arc<Inner>) {
    let Some(mut hints) = inner.store.hear() else { return };
    let mut looked = Instant::now();
    let mut look: Option<Instant> = None;
    loop {
        let hint = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = tokio::time::sleep_until(look.unwrap_or(looked)), if look.is_some() => {
                ended(&inner).await;
                looked = Instant::now();
                look = None;
                continue;
            }
            hint = hints.recv() => hint,
        };
        match hint {
            Ok(hint) => heard(&inner, hint),
            Err(RecvError::Lagged(_)) => heard_too_much(&inner),
            Err(RecvError::Closed) => return,
        }
        look = look.or(Some(looked + PAUSE));
    }
}

fn heard(inner: &Arc<Inner>, hint: Hint) {
    hint.orgs.into_iter().for_each(|org| inner.epochs.forget(org));
    if hint.ready {
        inner.slots.left_elsewhere();
    }
    hint.runs.into_iter().for_each(|run| look_at(inner, run));
    // Nobody may be watching.
    let _ = inner.happened.send(Happened::Elsewhere);
}

/// What was missed may have been about anything.
fn heard_too_much(inner: &Arc<Inner>) {
    inner.epochs.forget_all();
    let mut runs: Vec<RunId> = inner.runs.executing().into_iter().map(|(run, _)| run).collect();
    runs.dedup();
    heard(inner, Hint { runs, orgs: Vec::new(), ready: true });
}

/// An attempt that executes here may count for nothing any more.
fn look_at(inner: &Arc<Inner>, run: RunId) {
    if !inner.runs.running(run).is_empty() {
        inner.send(run, What::Reconcile);
    }
}

/// Runs that somebody here waits for may have ended elsewhere.
pub async fn ended(inner: &Inner) {
    let awaited = inner.awaited();
    if awaited.is_empty() {
        return;
    }
    match inner.store.ended(&awaited).await {
        Ok(ended) => ended.into_iter().for_each(|run| inner.ended(run)),
        Err(error) => tracing::warn!(%error, "it cannot be looked whether runs have ended"),
    }
}
