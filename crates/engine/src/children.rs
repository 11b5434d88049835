//! Child runs. A parent's wish to start or cancel one is a notice written with its own commit, so that it survives a crash;
//! a child's end is mail to its parent in the child's own commit.

use crate::commands::{ChildOf, start_child};
use crate::engine::Inner;
use crate::error::Error;
use crate::keys::{ChildTask, child_key, child_named};
use crate::runs::{Live, What};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::{Event, Failure, Outcome, Reply};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, RunStatus};
use stepwell_store::{Mail, Parent, RunId, Stale, StoredMail};

/// The scope of unique keys under which children are found by their parent's step.
pub const SCOPE: &str = "child";

/// The key of a child within [`SCOPE`].
pub fn unique(parent: RunId, path: &str, attempt: u32) -> String {
    format!("{}:{attempt}:{path}", parent.0)
}

/// What a child tells its parent at its end.
#[derive(Serialize, Deserialize)]
struct Farewell {
    run: Arc<str>,
    status: RunStatus,
    #[serde(default)]
    output: Arc<Value>,
    #[serde(default)]
    failure: Option<Failure>,
}

pub fn farewell(live: &Live, parent: &Parent) -> Mail {
    let output = live.run.output.and_then(|output| live.run.values.payload(output));
    let body = Farewell {
        run: live.run.id.clone(),
        status: live.run.status,
        output: output.map(|payload| payload.value.clone()).unwrap_or_default(),
        failure: live.run.failure.clone(),
    };
    let body = serde_json::to_string(&body).expect("plain structs with text keys always serialise");
    Mail { to: parent.run, key: child_key(ChildTask::Start, &parent.path, parent.attempt), body }
}

/// The event a child's mail is to its parent. `None` if there is no such step (any more).
pub fn ended(live: &Live, mail: &StoredMail) -> Option<Event> {
    let (_, path, attempt) = child_named(&mail.key)?;
    let at = live.run.find(&live.compiled.definition.graph, path)?;
    let told: Farewell = serde_json::from_str(&mail.body).ok()?;
    let reply = Reply { body: told.output, ..Reply::default() };
    let outcome = if told.status == RunStatus::Completed {
        Outcome::Success(reply)
    } else {
        let why = told.failure.map(|failure| format!(": {}", failure.message)).unwrap_or_default();
        let message = format!("the child run {} ended as {}{why}", told.run, told.status.name());
        Outcome::Failure { failure: Failure::retryable("child_failed", message), reply: Some(reply) }
    };
    Some(Event::ChildEnded { at, attempt, outcome })
}

/// Carries out notices of a run in their order. A notice is removed when it is done, and tried again later if it is not.
pub async fn see_to(inner: &Arc<Inner>, live: &Live, keys: Vec<String>) {
    let mut done = Vec::new();
    for key in keys {
        let result = match child_named(&key) {
            Some((ChildTask::Start, path, attempt)) => start(inner, live, path, attempt).await,
            Some((ChildTask::Cancel, path, attempt)) => cancel(inner, live, path, attempt).await,
            None => Ok(()),
        };
        match result {
            Ok(()) => done.push((live.id, key)),
            Err(error @ (Error::Unavailable(_) | Error::Broken(_))) => {
                tracing::warn!(run = %live.run.id, %key, %error, "a child run cannot be reached for now");
            }
            // It will never start: the parent's step has failed.
            Err(error) => {
                let failure = Failure::new("child_not_started", error.to_string());
                let outcome = Outcome::Failure { failure, reply: None };
                inner.send(live.id, What::Childless { notice: key, outcome });
            }
        }
    }
    if !done.is_empty()
        && let Err(error) = inner.store.forget(Stale { notices: done, ..Stale::default() }).await
    {
        tracing::warn!(%error, "notices that are done cannot be removed");
    }
}

async fn start(inner: &Arc<Inner>, live: &Live, path: &str, attempt: u32) -> Result<(), Error> {
    let graph = &live.compiled.definition.graph;
    let waiting = live.run.find(graph, path).and_then(|at| {
        let state = live.run.step(graph, at)?;
        let Kind::Child { workflow, .. } = &graph.step(at.step).def.kind else { return None };
        (state.phase == Phase::Child && state.attempt == attempt).then_some((workflow.clone(), state.input))
    });
    let Some((workflow, input)) = waiting else { return Ok(()) };
    let input = input.and_then(|input| live.run.values.payload(input));
    let child = ChildOf {
        parent: live,
        path,
        attempt,
        workflow: &workflow,
        input: input.map(|payload| payload.value.clone()).unwrap_or_default(),
    };
    start_child(inner, child).await
}

async fn cancel(inner: &Arc<Inner>, live: &Live, path: &str, attempt: u32) -> Result<(), Error> {
    let Some(child) = inner.store.keyed(SCOPE, &unique(live.id, path, attempt)).await? else { return Ok(()) };
    let reason: Arc<str> = format!("its parent run {} no longer waits for it", live.run.id).into();
    match inner.ask(child, What::Cancel { by: live.run.by.clone(), reason: Some(reason) }).await {
        // It ended by itself, or is long gone.
        Ok(()) | Err(Error::Conflict(_) | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
