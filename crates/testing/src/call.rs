//! Calls as the engine makes them, for tests that run a step kind without an engine.

use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::{AccessedSecret, Actor, Principal, SecretAccess, StepCall};
use stepwell_store::OrgId;
use tokio_util::sync::CancellationToken;

/// The first attempt of a step of the run `run_1`, without secrets, policies or a trace.
pub fn step_call(path: &str, input: Value) -> StepCall {
    StepCall {
        run: "run_1".into(),
        path: path.into(),
        attempt: 1,
        idempotency_key: format!("run_1:{path}"),
        input: Arc::new(input),
        caller: Principal { org: OrgId(1), name: "ada".into(), actors: vec![Actor::local()], author: Actor::local() },
        secrets: Default::default(),
        traceparent: None,
        timeout: Duration::from_secs(20),
        bound: None,
        allow_hosts: Vec::new(),
        secret_access: Arc::new(NoSecrets),
        guard: None,
        resumed: None,
        cancel: CancellationToken::new(),
    }
}

/// Has no secrets.
struct NoSecrets;

#[async_trait]
impl SecretAccess for NoSecrets {
    async fn secret(&self, name: &str) -> Result<AccessedSecret, Failure> {
        Err(Failure::new("unknown_secret", name))
    }

    fn mask(&self, _value: &mut Value) {}
}

/// The reply of a call that must have succeeded.
#[track_caller]
pub fn success(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Success(reply) => reply,
        Outcome::Failure { failure, .. } => panic!("{failure:?}"),
    }
}

/// The failure of a call that must have failed, with its reply if there was one.
#[track_caller]
pub fn failure(outcome: Outcome) -> (Failure, Option<Reply>) {
    match outcome {
        Outcome::Failure { failure, reply } => (failure, reply),
        Outcome::Success(reply) => panic!("{reply:?}"),
    }
}
