//! The state of a run's steps, derived from its facts: only what the progress display shows.

use stepwell_core::fact::{Fact, Wait};
use stepwell_core::run::StoredFact;
use stepwell_core::time::Time;

/// Prefix of implicit loops, which paths are shown without.
const LOOP: &str = "loop:";

/// An active step.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Index of the followed run.
    pub run: usize,
    pub path: String,
    pub attempt: u32,
    /// When the step was entered, regardless of the attempt.
    pub since: Time,
    /// Whether a child run does the work.
    pub child: bool,
    pub doing: Doing,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Doing {
    Running,
    Sleeping {
        until: Time,
    },
    Pausing {
        until: Time,
        why: String,
    },
    Call,
    Approval,
    Verdict,
    Child,
    /// A loop or for_each: iterations begun, ended and in total.
    Scope {
        begun: u32,
        ended: u32,
        count: Option<u32>,
    },
}

/// A step that ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    pub path: String,
    pub attempt: u32,
    pub status: &'static str,
    pub took: Option<stepwell_core::time::Millis>,
    pub note: String,
}

#[derive(Default)]
pub struct Steps {
    /// In the order they were entered.
    pub active: Vec<Step>,
}

impl Steps {
    /// Applies the next fact of a run and returns the steps that it ended.
    pub fn apply(&mut self, run: usize, at: Time, fact: &StoredFact) -> Vec<Done> {
        match fact {
            Fact::Entered { step, attempt, wait, .. } => {
                let doing = match *wait {
                    Wait::Executor => Doing::Running,
                    Wait::Sleep { until } => Doing::Sleeping { until },
                    Wait::Webhook { .. } => Doing::Call,
                    Wait::Gate { .. } => Doing::Approval,
                    Wait::Child { .. } => Doing::Child,
                    Wait::Scope { count } => Doing::Scope { begun: 0, ended: 0, count },
                };
                let child = doing == Doing::Child;
                self.active.push(Step { run, path: step.clone(), attempt: *attempt, since: at, child, doing });
            }
            Fact::Retrying { step, due, failure, .. } => {
                self.update(run, step, |s| s.doing = Doing::Pausing { until: *due, why: failure.message.to_string() });
            }
            Fact::Held { step, .. } => self.update(run, step, |s| s.doing = Doing::Approval),
            Fact::Again { step, attempt, .. } => self.update(run, step, |s| {
                s.attempt = *attempt;
                s.doing = if s.child { Doing::Child } else { Doing::Running };
            }),
            Fact::Unsure { step, .. } => self.update(run, step, |s| s.doing = Doing::Verdict),
            Fact::Opened { step, .. } => self.update(run, step, |s| s.count(1, 0)),
            Fact::Closed { step, .. } => self.update(run, step, |s| s.count(0, 1)),
            Fact::Finished { step, attempt, status, failure, .. } => {
                let note = failure.as_ref().map(|failure| failure.message.to_string()).unwrap_or_default();
                let was = self.remove(run, step);
                let took = was.map(|was| at.since(was.since));
                return vec![Done { path: step.clone(), attempt: *attempt, status: status.name(), took, note }];
            }
            Fact::Skipped { step, reason, .. } => {
                let note = crate::describe::word(reason);
                return vec![Done { path: step.clone(), attempt: 0, status: "skipped", took: None, note }];
            }
            Fact::Ended { .. } => return self.cancel(run, at),
            Fact::Created { .. }
            | Fact::Started { .. }
            | Fact::Kept { .. }
            | Fact::Approved { .. }
            | Fact::Escalated { .. }
            | Fact::Overridden { .. }
            | Fact::Retried { .. }
            | Fact::Adopted { .. } => {}
        }
        Vec::new()
    }

    fn update(&mut self, run: usize, path: &str, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.active.iter_mut().find(|step| step.run == run && step.path == path) {
            change(step);
        }
    }

    fn remove(&mut self, run: usize, path: &str) -> Option<Step> {
        let position = self.active.iter().position(|step| step.run == run && step.path == path)?;
        Some(self.active.remove(position))
    }

    /// The run has ended: active steps are cancelled.
    fn cancel(&mut self, run: usize, at: Time) -> Vec<Done> {
        let (over, others): (Vec<Step>, Vec<Step>) = self.active.drain(..).partition(|step| step.run == run);
        self.active = others;
        let done = |step: Step| Done {
            took: Some(at.since(step.since)),
            path: step.path,
            attempt: step.attempt,
            status: "cancelled",
            note: String::new(),
        };
        over.into_iter().map(done).collect()
    }
}

impl Step {
    fn count(&mut self, more_begun: u32, more_ended: u32) {
        if let Doing::Scope { begun, ended, .. } = &mut self.doing {
            *begun += more_begun;
            *ended += more_ended;
        }
    }
}

/// A path as an author would write it.
pub fn shown(path: &str) -> String {
    path.replace(LOOP, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn feed(facts: &[Value]) -> (Steps, Vec<String>) {
        let mut steps = Steps::default();
        let mut ended = Vec::new();
        for (n, fact) in facts.iter().enumerate() {
            let fact: StoredFact = serde_json::from_value(fact.clone()).unwrap();
            let done = steps.apply(0, Time(1_000 * n as i64), &fact);
            ended.extend(done.into_iter().map(|done| {
                let took = done.took.map(|took| took.to_string()).unwrap_or_default();
                format!("{} {} {took}", done.path, done.status)
            }));
        }
        (steps, ended)
    }

    #[test]
    fn a_step_is_followed_over_its_attempts_to_its_end() {
        let failure = json!({"kind": "error", "code": "x", "message": "no"});
        let facts = [
            json!({"type": "entered", "step": "a", "attempt": 1, "wait": "executor"}),
            json!({"type": "retrying", "step": "a", "attempt": 1, "due": 5, "failure": failure}),
            json!({"type": "again", "step": "a", "attempt": 2, "reason": "retry"}),
            json!({"type": "finished", "step": "a", "attempt": 2, "status": "success", "exit": "success"}),
        ];
        let (steps, _) = feed(&facts[..2]);
        assert_eq!(steps.active[0].doing, Doing::Pausing { until: Time(5), why: "no".into() });
        let (steps, _) = feed(&facts[..3]);
        assert_eq!((steps.active[0].attempt, &steps.active[0].doing), (2, &Doing::Running));
        let (steps, ended) = feed(&facts);
        assert!(steps.active.is_empty());
        assert_eq!(ended, ["a success 3s"]);
    }

    #[test]
    fn the_end_of_a_run_cancels_what_is_under_way() {
        let (steps, ended) = feed(&[
            json!({"type": "entered", "step": "nap", "attempt": 1, "wait": "sleep", "until": 99}),
            json!({"type": "ended", "status": "cancelled"}),
        ]);
        assert!(steps.active.is_empty());
        assert_eq!(ended, ["nap cancelled 1s"]);
    }
}
