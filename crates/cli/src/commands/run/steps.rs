//! The state of a run's steps, derived from its facts: only what the progress display shows.

use std::collections::HashMap;
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
    /// The for_each whose item it belongs to; of several, the outermost.
    pub item_of: Option<Each>,
    pub doing: Doing,
}

/// A for_each of one of the followed runs, by its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Each {
    pub run: usize,
    pub path: String,
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
    /// Whether it belongs to an item of a for_each.
    pub in_item: bool,
}

#[derive(Default)]
pub struct Steps {
    /// In the order they were entered.
    pub active: Vec<Step>,
    /// Child runs that items of a for_each have started.
    children: HashMap<usize, Each>,
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
                let (child, item_of) = (doing == Doing::Child, self.item_of(run, step));
                let path = step.clone();
                self.active.push(Step { run, path, attempt: *attempt, since: at, child, item_of, doing });
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
                let in_item = self.item_of(run, step).is_some();
                let was = self.remove(run, step);
                let took = was.as_ref().map(|was| at.since(was.since));
                let note = match (failure, was.map(|was| was.doing)) {
                    (Some(failure), _) => failure.message.to_string(),
                    (None, Some(Doing::Scope { ended, count: Some(_), .. })) => items(ended),
                    (None, _) => String::new(),
                };
                return vec![Done {
                    path: step.clone(),
                    attempt: *attempt,
                    status: status.name(),
                    took,
                    note,
                    in_item,
                }];
            }
            Fact::Skipped { step, reason, .. } => {
                let (note, in_item) = (crate::describe::word(reason), self.item_of(run, step).is_some());
                return vec![Done { path: step.clone(), attempt: 0, status: "skipped", took: None, note, in_item }];
            }
            Fact::Ended { .. } => return self.cancel(run, at),
            Fact::Created { .. }
            | Fact::Scheduled { .. }
            | Fact::Due
            | Fact::Started { .. }
            | Fact::Kept { .. }
            | Fact::Approved { .. }
            | Fact::Changed { .. }
            | Fact::Escalated { .. }
            | Fact::Overridden { .. }
            | Fact::Retried { .. }
            | Fact::Adopted { .. } => {}
        }
        Vec::new()
    }

    /// A child run was started by an attempt of this step.
    pub fn child_of(&mut self, child: usize, run: usize, path: &str) {
        if let Some(each) = self.item_of(run, path) {
            self.children.insert(child, each);
        }
    }

    fn item_of(&self, run: usize, path: &str) -> Option<Each> {
        if let Some(each) = self.children.get(&run) {
            return Some(each.clone());
        }
        let around = |step: &&Step| {
            let inside = path.strip_prefix(step.path.as_str()).is_some_and(|rest| rest.starts_with('['));
            step.run == run && inside && matches!(step.doing, Doing::Scope { count: Some(_), .. })
        };
        let outermost = self.active.iter().filter(around).min_by_key(|step| step.path.len())?;
        Some(Each { run, path: outermost.path.clone() })
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
            in_item: step.item_of.is_some(),
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

fn items(count: u32) -> String {
    if count == 1 { "1 item".into() } else { format!("{count} items") }
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
    fn steps_of_items_belong_to_the_outermost_for_each() {
        let entered = |step: &str, wait: Value| {
            let mut fact = json!({"type": "entered", "step": step, "attempt": 1});
            fact.as_object_mut().unwrap().extend(wait.as_object().unwrap().clone());
            fact
        };
        let (scope, call) = (json!({"wait": "scope", "count": 2}), json!({"wait": "executor"}));
        let (mut steps, _) = feed(&[
            entered("all", scope.clone()),
            json!({"type": "opened", "step": "all", "index": 0}),
            entered("all[0].each", scope),
            entered("all[0].each[1].send", call.clone()),
            entered("allow", call.clone()),
        ]);
        let of: Vec<Option<&str>> =
            steps.active.iter().map(|step| step.item_of.as_ref().map(|each| each.path.as_str())).collect();
        assert_eq!(of, [None, Some("all"), Some("all"), None]);
        steps.child_of(1, 0, "all[0].each[1].send");
        let fact: StoredFact = serde_json::from_value(entered("inner", call)).unwrap();
        steps.apply(1, Time(9), &fact);
        assert_eq!(steps.active.last().unwrap().item_of, Some(Each { run: 0, path: "all".into() }));
        let end = json!({"type": "finished", "step": "all", "attempt": 1, "status": "success", "exit": "done"});
        let done = steps.apply(0, Time(9), &serde_json::from_value(end).unwrap());
        assert_eq!((done[0].note.as_str(), done[0].in_item), ("0 items", false));
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
