//! Writing changes of records, and deciding them anew when something they rest on was changed before they were written.

use crate::engine::Inner;
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Auth, Change, OrgId, Refused};

/// How often something is decided at the most.
const TRIES: u32 = 30;
/// Grows with every try, so that those who are in each other's way come apart.
const PAUSE: Duration = Duration::from_millis(2);

/// What a decision is made on: asked for before all that it looks at.
pub(super) async fn auth(inner: &Inner, org: OrgId) -> Result<Auth, Error> {
    Ok(Auth { org, epoch: inner.epoch(org).await? })
}

/// Decides, and again as often as somebody else was quicker.
pub(super) async fn settled<T, F>(decide: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for n in 1..TRIES {
        match decide().await {
            Err(Error::Changed(_)) => tokio::time::sleep(PAUSE * n).await,
            answer => return answer,
        }
    }
    decide().await
}

/// Applies a change. What is remembered of the organisation is forgotten if rights change with it, even if whoever asked
/// does not wait for the answer.
pub(super) async fn change(inner: &Arc<Inner>, change: Change, what: &'static str, name: &str) -> Result<(), Error> {
    let write = inner.clone();
    let done = tokio::spawn(async move {
        let org = change.grants_of;
        let done = write.store.change(change).await;
        if let Some(org) = org {
            write.epoch_moved(org);
        }
        done
    });
    let done = done.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
    done.map_err(|refused| match refused {
        Refused::Taken => Error::Exists { what, name: name.to_string() },
        _ => Error::Changed(what),
    })
}
