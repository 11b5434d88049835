//! Steps with random outcomes, and a ledger of their executions. The ledger stands for the called services: no
//! crash undoes it.

use crate::rules;
use crate::sim::Sim;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, FailureKind, Outcome, Reply};
use stepwell_core::time::Time;
use stepwell_engine::{StepCall, StepKind};
use tokio_util::sync::CancellationToken;

/// One attempt of one step, by the run's public id, path and attempt.
pub type Attempt = (String, String, u32);

#[derive(Clone, Debug)]
pub struct Execution {
    pub key: String,
    pub began: Time,
    /// When it ended, and its result if there was one.
    pub ended: Option<Time>,
    pub said: Option<Result<Value, String>>,
}

#[derive(Default)]
pub struct Ledger {
    pub executions: BTreeMap<Attempt, Execution>,
    /// The same in the order in which they began.
    pub order: Vec<Attempt>,
    /// Callback URLs that calls were given.
    pub callbacks: Vec<String>,
    /// Executions of `hold` that wait now, and the most there were.
    pub holding: usize,
    pub most_holding: usize,
    /// How often a person said that an `at_most_once` call is to be made again.
    pub asked_again: BTreeMap<(String, String), u64>,
}

pub struct Steps {
    pub sim: Arc<Sim>,
    pub life: CancellationToken,
}

/// Notes the end of an execution however it ends.
struct Running {
    sim: Arc<Sim>,
    attempt: Attempt,
    holds: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = self.sim.now();
        let mut ledger = self.sim.ledger();
        if self.holds {
            ledger.holding -= 1;
        }
        if let Some(execution) = ledger.executions.get_mut(&self.attempt) {
            execution.ended.get_or_insert(now);
        }
    }
}

#[derive(Clone, Copy)]
enum Plan {
    Succeed,
    FailForNow,
    FailForGood,
    Unsure,
    Panic,
    Never,
}

impl Steps {
    fn plan(&self, tool: &str) -> (Plan, u64) {
        let mut chance = self.sim.chance();
        let time = match chance.below(20) {
            0..8 => 0,
            8..17 => chance.between(1, 300),
            _ => chance.between(300, 2_500),
        };
        let plan = match tool {
            "sure" => Plan::Succeed,
            "fail" => Plan::FailForNow,
            "never" => Plan::Never,
            _ if !chance.one_in(self.sim.mood.failures) => Plan::Succeed,
            _ => match chance.below(12) {
                0..6 => Plan::FailForNow,
                6..9 => Plan::FailForGood,
                9 => Plan::Unsure,
                10 => Plan::Panic,
                _ => Plan::Never,
            },
        };
        (plan, time)
    }

    fn begin(&self, call: &StepCall) -> Running {
        let attempt: Attempt = (call.run.to_string(), call.path.clone(), call.attempt);
        let sim = &self.sim;
        if !sim.past().was_dispatched(&attempt) {
            sim.breaks(format!("{attempt:?} is executed, and nothing on disk says that it should be"));
        }
        if let Some(why) = rules::forbids(sim, call) {
            sim.breaks(format!("{attempt:?}: {why}"));
        }
        let holds = call.input["tool"] == "hold";
        let execution = Execution { key: call.idempotency_key.clone(), began: sim.now(), ended: None, said: None };
        let mut ledger = sim.ledger();
        ledger.order.push(attempt.clone());
        let before = ledger.executions.insert(attempt.clone(), execution);
        ledger.holding += usize::from(holds);
        ledger.most_holding = ledger.most_holding.max(ledger.holding);
        let callback = call.input["args"]["callback"].as_str().or(call.input["body"]["callback"].as_str());
        ledger.callbacks.extend(callback.map(String::from));
        drop(ledger);
        if let Some(before) = before {
            sim.breaks(format!("{attempt:?} is executed twice; the first time: {before:?}"));
        }
        Running { sim: sim.clone(), attempt, holds }
    }
}

#[async_trait]
impl StepKind for Steps {
    async fn run(&self, call: StepCall) -> Outcome {
        if self.life.is_cancelled() {
            return pending().await;
        }
        let running = self.begin(&call);
        let tool = call.input["tool"].as_str().unwrap_or("http").to_string();
        if running.holds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Outcome::Success(Reply::default());
        }
        let (plan, time) = self.plan(&tool);
        if time > 0 {
            tokio::time::sleep(Duration::from_millis(time)).await;
        }
        if self.life.is_cancelled() || matches!(plan, Plan::Never) {
            return pending().await;
        }
        let n = self.sim.number();
        let state = if self.sim.chance().one_in(3) { "more" } else { "done" };
        let outcome = match plan {
            Plan::Succeed => Outcome::Success(Reply::body(json!({"n": n, "state": state}))),
            Plan::FailForGood => failed(Failure::new("broke", "it broke")),
            Plan::FailForNow => {
                failed(Failure { kind: FailureKind::Network, ..Failure::retryable("failed", "it failed") })
            }
            Plan::Unsure => {
                failed(Failure { may_have_happened: true, ..Failure::retryable("reset", "the line went dead") })
            }
            // Without the hook that would print it.
            Plan::Panic => std::panic::resume_unwind(Box::new("a step that breaks down")),
            Plan::Never => return pending().await,
        };
        let said = match &outcome {
            Outcome::Success(reply) => Ok((*reply.body).clone()),
            Outcome::Failure { failure, .. } => Err(failure.code.to_string()),
        };
        if let Some(execution) = self.sim.ledger().executions.get_mut(&running.attempt) {
            execution.said = Some(said);
        }
        outcome
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failure { failure, reply: None }
}
