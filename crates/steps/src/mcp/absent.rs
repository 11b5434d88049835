//! Calls whose server is not there: they wait for it without using up an attempt, in place for a moment and then
//! suspended, so that they hold no slot. Also the time that an author gave to a call in all.

use super::call::{failed, unavailable};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_core::time::{Millis, Time};
use stepwell_engine::{Clock, StepCall, Suspended, Until};

/// How long a call waits in place before it is suspended.
const IN_PLACE: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(100);
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// A call that waits for its server.
pub struct Wait {
    /// When the first attempt began to wait.
    since: Time,
    /// When this attempt did.
    here: Time,
    in_place: Millis,
    limit: Millis,
}

impl Wait {
    pub fn new(call: &StepCall, now: Time) -> Wait {
        let noted = call.resumed.as_ref().and_then(|resumed| resumed.note.get("waiting_since")?.as_i64());
        let since = noted.map_or(now, Time).min(now);
        // The attempt itself must not run out of time: that would count as a call that may have been made.
        let in_place = IN_PLACE.min(call.timeout.mul_f64(0.9));
        Wait { since, here: now, in_place: millis(in_place), limit: millis(call.bound.unwrap_or(call.timeout)) }
    }

    /// Waits for a moment. Returns how the attempt ends once it has waited long enough.
    pub async fn a_moment(&self, clock: &dyn Clock, server: &str, why: &str) -> Option<Result<Outcome, Suspended>> {
        let waited = clock.now().since(self.since);
        let left = minus(self.limit, waited);
        if left.is_zero() {
            return Some(Ok(failed(unavailable(server, &format!("{why}; the step waited {waited} for it")))));
        }
        let here = minus(self.in_place, clock.now().since(self.here));
        if here.is_zero() {
            let pause = (duration(waited) / 2).clamp(MIN_PAUSE, MAX_PAUSE).min(left);
            let why = format!("waiting for the MCP server {server}: {why}");
            return Some(Err(Suspended { note: self.note(), until: Until::Available { pause, why } }));
        }
        // Any of several servers may become ready, so their states are looked at instead of awaited.
        tokio::time::sleep(LOOK.min(here).min(left)).await;
        None
    }

    fn note(&self) -> Value {
        json!({"waiting_since": self.since.0})
    }
}

/// Ends the wait of a suspended call at the time that its author gave to it.
pub trait Bounded {
    fn bounded(self, call: &StepCall, now: Time) -> Self;
}

impl Bounded for Suspended {
    fn bounded(mut self, call: &StepCall, now: Time) -> Suspended {
        let began = self.note.get("began").and_then(Value::as_i64).map(Time);
        let (Some(began), Some(bound)) = (began, call.bound) else { return self };
        let left = minus(millis(bound), now.since(began)).max(Duration::from_millis(1));
        match &mut self.until {
            Until::Answered { timeout, .. } => *timeout = Some(timeout.unwrap_or(Millis::MAX).min(millis(left))),
            Until::Later { pause, .. } | Until::Available { pause, .. } => *pause = (*pause).min(left),
        }
        self
    }
}

/// The failure of a call that began long ago. The server is told by the engine.
pub fn late(call: &StepCall) -> Failure {
    Failure::timeout(millis(call.bound.unwrap_or(call.timeout)))
}

pub fn millis(length: Duration) -> Millis {
    Millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

fn minus(length: Millis, less: Millis) -> Duration {
    duration(Millis(length.0.saturating_sub(less.0)))
}

fn duration(length: Millis) -> Duration {
    Duration::from_millis(length.0)
}
