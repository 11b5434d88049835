//! Suspended calls that are over: their run ended, their time was up, or a question was denied. The called service is
//! told, so that it does not work or wait for nothing.
//!
//! The notice is a row of the commit that ended the step, so it survives a crash. It is handled at once, and again by
//! upkeep until the service was told or is given up.

use super::dispatch::{principal, step_call};
use super::secret_access::CallSecrets;
use super::{Executor, Resumed};
use crate::error::Error;
use crate::records;
use crate::run::{Live, drive};
use crate::secrets::Reveal;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use stepwell_core::graph::Kind;
use stepwell_core::plan::{Abandon, Effect, Transition};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::ValueId;
use stepwell_store::{Notice, RunId, Stale, WorkKey};

/// The beginning of the keys of these notices.
const PREFIX: &str = "abandon:";
/// How long a service that is not there is tried.
const GIVE_UP: Millis = Millis::from_secs(3_600);
const TIMEOUT: Duration = Duration::from_secs(60);

/// The body of a notice. Payloads are named by number: they stay with the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Abandoned {
    path: String,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<ValueId>,
    note: ValueId,
    denied: bool,
    /// When the call was abandoned.
    since: Time,
}

/// Whether a notice is about an abandoned call.
pub fn is_abandoned(key: &str) -> bool {
    key.starts_with(PREFIX)
}

impl Abandoned {
    /// The notices of a transition.
    pub fn notices(live: &Live, transition: &Transition, now: Time) -> Vec<Notice> {
        let notice = |effect: &Effect| {
            let Effect::Abandon { at, attempt, note, reason } = effect else { return None };
            let graph = &live.compiled.definition.graph;
            let state = live.run.step(graph, *at)?;
            let (path, attempt) = (live.run.path(graph, *at), *attempt);
            let denied = *reason == Abandon::Denied;
            let key = format!("{PREFIX}{attempt}:{path}");
            let body = Abandoned { path, attempt, input: state.input, note: *note, denied, since: now };
            Some(Notice { key, body: records::json(&body), due: now })
        };
        transition.effects.iter().filter_map(notice).collect()
    }
}

impl Executor {
    /// Handles notices in a background task.
    pub fn abandon(self: &Arc<Executor>, run: RunId, notices: Vec<Notice>) {
        let executor = self.clone();
        tokio::spawn(async move { executor.abandon_all(run, notices).await });
    }

    async fn abandon_all(self: &Arc<Executor>, run: RunId, notices: Vec<Notice>) {
        for Notice { key, body, .. } in notices {
            let marked = (run, key.clone());
            if !self.abandoning.lock().unwrap_or_else(PoisonError::into_inner).insert(marked.clone()) {
                continue;
            }
            let told = self.tell(run, &body).await;
            self.abandoning.lock().unwrap_or_else(PoisonError::into_inner).remove(&marked);
            if let Err(why) = told {
                tracing::warn!(run = run.0, %key, %why, "cannot tell a service that its work is not needed; will retry");
                continue;
            }
            let done = Stale { notices: vec![(run, key)], ..Stale::default() };
            if let Err(error) = self.cluster.store.forget(done).await {
                tracing::warn!(run = run.0, %error, "cannot remove the notice about an abandoned call");
            }
        }
    }

    /// Ok if there is nothing left to do.
    async fn tell(self: &Arc<Executor>, run: RunId, body: &str) -> Result<(), String> {
        let Ok(abandoned) = serde_json::from_str::<Abandoned>(body) else {
            tracing::error!(run = run.0, "dropping a notice that cannot be read");
            return Ok(());
        };
        let told = async {
            match drive::load(&self.runner, run).await {
                Ok(Some(live)) => self.tell_about(&live, &abandoned).await,
                Ok(None) => Ok(()),
                Err(error @ Error::Unavailable(_)) => Err(error.to_string()),
                // The run cannot be read, now or later.
                Err(_) => Ok(()),
            }
        };
        let told = tokio::time::timeout(TIMEOUT, told).await;
        let told = told.unwrap_or_else(|_| Err(format!("no answer within {} s", TIMEOUT.as_secs())));
        match told {
            Err(why) if self.cluster.clock.now().since(abandoned.since) > GIVE_UP => {
                tracing::warn!(run = run.0, step = abandoned.path, %why, "giving up: a service was not told");
                Ok(())
            }
            told => told,
        }
    }

    async fn tell_about(self: &Arc<Executor>, live: &Live, abandoned: &Abandoned) -> Result<(), String> {
        let graph = &live.compiled.definition.graph;
        let Some(at) = live.run.find(graph, &abandoned.path) else { return Ok(()) };
        let Kind::Call { call, .. } = &graph.step(at.step).def.kind else { return Ok(()) };
        let Some(kind) = self.kinds.get(call.name()) else { return Ok(()) };
        let payload = |id: ValueId| live.run.values.payload(id).cloned();
        let (Some(note), input) = (payload(abandoned.note), abandoned.input.and_then(payload)) else { return Ok(()) };
        let key = WorkKey { path: abandoned.path.clone(), attempt: abandoned.attempt };
        let secrets = Arc::new(CallSecrets::new(self, &principal(live)));
        let mut step_call = step_call(self, live, &key, secrets);
        let reveal = Reveal { org: live.org, kind: call.name(), named: &live.compiled.secrets, mask: None };
        // A secret that is gone leaves a task that can still be cancelled.
        if let Some(input) = input
            && let Ok((input, used)) = self.secrets.reveal(reveal, &input).await
        {
            (step_call.input, step_call.secrets) = (input, used);
        }
        step_call.resumed = Some(Resumed { note: note.value, answers: Vec::new() });
        kind.abandon(step_call, if abandoned.denied { Abandon::Denied } else { Abandon::Over }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_a_notice_does_not_change() {
        let stored = r#"{"path":"a[1].b","attempt":2,"input":3,"note":4,"denied":true,"since":5}"#;
        let abandoned: Abandoned = serde_json::from_str(stored).unwrap();
        assert_eq!(records::json(&abandoned), stored);
        let shortest = r#"{"path":"a","attempt":1,"note":4,"denied":false,"since":5}"#;
        assert_eq!(records::json(&serde_json::from_str::<Abandoned>(shortest).unwrap()), shortest);
    }
}
