//! Nothing that waits for a time happens before it.

use std::collections::BTreeMap;
use stepwell_core::fact::{Fact, Reason, Wait};
use stepwell_core::run::{RunStatus, Status, StoredFact};
use stepwell_core::time::Time;

/// When what a run waits for is due, by step.
#[derive(Default)]
pub struct Timing {
    sleeps: BTreeMap<String, Time>,
    /// Until when waits, gates and children have time.
    waits: BTreeMap<String, Option<Time>>,
    pauses: BTreeMap<String, Time>,
    escalations: BTreeMap<String, Time>,
    expires: Option<Time>,
    /// When a scheduled run is due.
    begins: Option<Time>,
}

impl Timing {
    /// Takes the next fact; says what is wrong if it came early. Steps that someone woke have an excuse.
    pub fn hear(&mut self, now: Time, fact: &StoredFact, woken: &dyn Fn(&str) -> bool) -> Option<String> {
        let early = |due: Option<Time>| due.is_some_and(|due| now < due);
        let wrong = match fact {
            Fact::Started { expires, .. } | Fact::Retried { expires, .. } | Fact::Adopted { expires, .. } => {
                self.expires = Some(*expires);
                false
            }
            Fact::Entered { step, wait, .. } => {
                self.enter(step, *wait);
                false
            }
            Fact::Retrying { step, due, failure, .. } => {
                self.pauses.insert(step.clone(), *due);
                let given_up = self.waits.get(step).copied().flatten();
                &*failure.code == "timeout" && early(given_up)
            }
            Fact::Again { step, reason, until, .. } => {
                if self.waits.contains_key(step) {
                    self.waits.insert(step.clone(), *until);
                }
                let pause = self.pauses.remove(step);
                *reason == Reason::Retry && early(pause) && !woken(step)
            }
            Fact::Finished { step, status, failure, .. } => {
                let (sleep, wait) = (self.sleeps.remove(step), self.waits.remove(step).flatten());
                let expired = failure.as_ref().is_some_and(|failure| &*failure.code == "expired");
                let ran_out = *status == Status::Timeout || expired;
                (*status == Status::Success && early(sleep) && !woken(step)) || (ran_out && early(wait))
            }
            Fact::Escalated { step, .. } => early(self.escalations.remove(step)),
            Fact::Ended { status, .. } => *status == RunStatus::Timeout && early(self.expires),
            Fact::Held { step, until, .. } => {
                self.waits.insert(step.clone(), *until);
                false
            }
            Fact::Scheduled { due } => {
                self.begins = Some(*due);
                false
            }
            Fact::Due => early(self.begins),
            Fact::Created { .. }
            | Fact::Unsure { .. }
            | Fact::Opened { .. }
            | Fact::Closed { .. }
            | Fact::Skipped { .. }
            | Fact::Kept { .. }
            | Fact::Overridden { .. }
            | Fact::Changed { .. }
            | Fact::Approved { .. } => false,
        };
        wrong.then(|| "this came before its time".into())
    }

    fn enter(&mut self, step: &str, wait: Wait) {
        match wait {
            Wait::Sleep { until } => {
                self.sleeps.insert(step.into(), until);
            }
            Wait::Gate { until, escalate } => {
                self.waits.insert(step.into(), until);
                self.escalations.extend(escalate.map(|escalate| (step.into(), escalate)));
            }
            Wait::Webhook { until } | Wait::Child { until } => {
                self.waits.insert(step.into(), until);
            }
            Wait::Executor | Wait::Scope { .. } => {}
        }
    }
}
