//! A definition on virtual time: every call succeeds without a result, every gate is approved.

use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::event::{Answer, Event, Outcome, Reply};
use stepwell_core::run::{Phase, RunStatus};
use stepwell_core::simulate::{Broken, World, someone};

/// A rehearsal of more events stops.
const MAX_EVENTS: usize = 2_000;

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rehearsal {
    /// How the run ended; `unfinished` if it took too many events.
    pub status: String,
    /// The steps that were called or asked, in order.
    pub steps: Vec<String>,
    /// The first error, or what went wrong.
    pub error: Option<String>,
}

pub fn rehearse(definition: &Definition) -> Rehearsal {
    let mut world = World::new(&definition.graph, 1, definition.max_duration);
    let mut steps = Vec::new();
    let played = play(&mut world, &mut steps);
    let status = match world.run.status.is_terminal() {
        true => world.run.status.name(),
        false => "unfinished",
    };
    let error = played.err().map(|broken| broken.to_string()).or_else(|| {
        let failed = world.run.steps(&definition.graph).find_map(|(at, state)| Some((at, state.failure()?)));
        let failed = failed.filter(|_| world.run.status == RunStatus::Failed);
        failed.map(|(at, failure)| format!("{}: {}", world.run.path(&definition.graph, at), failure.message))
    });
    Rehearsal { status: status.to_string(), steps, error }
}

fn play(world: &mut World<'_>, steps: &mut Vec<String>) -> Result<(), Broken> {
    let body = Arc::new(Value::Object(serde_json::Map::new()));
    let _ = world.feed(Event::Triggered { body, headers: None, query: None, by: someone(), queued: false })?;
    for _ in 0..MAX_EVENTS {
        if world.run.status.is_terminal() {
            break;
        }
        let success = || Outcome::Success(Reply::body(Value::Null));
        if let Some(&(at, attempt)) = world.running.iter().next() {
            steps.push(world.run.path(world.graph, at));
            let _ = world.report(at, attempt, success())?;
        } else if let Some(&(at, attempt)) = world.children.iter().next() {
            steps.push(world.run.path(world.graph, at));
            let _ = world.child_ended(at, attempt, success())?;
        } else if let Some(event) = next_answer(world, steps) {
            let _ = world.feed(event)?;
        } else if let Some(timer) = world.next_timer() {
            let _ = world.fire(timer)?;
        } else {
            break;
        }
    }
    Ok(())
}

/// The answer to the first step that waits for people or a call.
fn next_answer(world: &World<'_>, steps: &mut Vec<String>) -> Option<Event> {
    let at = world.waiting.iter().copied().next()?;
    let state = world.run.step(world.graph, at)?;
    steps.push(world.run.path(world.graph, at));
    let attempt = state.attempt;
    Some(match state.phase {
        Phase::Gate => {
            let answer = Answer { approve: true, by: someone(), comment: None, data: None, digest: None, input: None };
            Event::Answered { at, attempt, answer }
        }
        _ => Event::Delivered { at, body: Arc::new(Value::Null), truncated: false },
    })
}
