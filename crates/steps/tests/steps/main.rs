//! The kinds as the engine calls them, against real servers on loopback. No request leaves the machine, no test sleeps.

// In tests, a panic is the report.
#![allow(clippy::unwrap_used)]

mod egress;
mod faults;
mod http;
mod pushover;
mod redirects;
mod secrets;
mod server;
mod tools;

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::{AccessedSecret, Actor, Principal, SecretAccess, StepCall};
use stepwell_steps::{Config, Egress, kinds};
use stepwell_store::OrgId;
use tokio_util::sync::CancellationToken;

/// Allows loopback and ignores the environment.
fn local() -> Config {
    let egress = Egress { allow_private: true };
    Config { egress, pushover_user: None, pushover_token: None, ..Config::default() }
}

fn call(input: Value) -> StepCall {
    StepCall {
        run: "run_1".into(),
        path: "each[3].charge".into(),
        attempt: 1,
        idempotency_key: "run_1/each[3].charge".into(),
        input: Arc::new(input),
        caller: Principal { org: OrgId(1), name: "ada".into(), actors: vec![Actor::local()], author: Actor::local() },
        secrets: Default::default(),
        traceparent: None,
        timeout: Duration::from_secs(20),
        allow_hosts: Vec::new(),
        secret_access: Arc::new(NoSecrets),
        guard: None,
        resumed: None,
        cancel: CancellationToken::new(),
    }
}

/// These kinds use no secrets.
struct NoSecrets;

#[async_trait]
impl SecretAccess for NoSecrets {
    async fn secret(&self, name: &str) -> Result<AccessedSecret, Failure> {
        Err(Failure::new("unknown_secret", name))
    }

    fn mask(&self, _value: &mut Value) {}
}

async fn run(config: Config, kind: &str, input: Value) -> Outcome {
    let kinds = kinds(config);
    soon(kinds.get(kind).unwrap().run(call(input))).await
}

async fn http(input: Value) -> Outcome {
    run(local(), "http", input).await
}

async fn tool(name: &str, args: Value) -> Outcome {
    run(local(), "tool", json!({"tool": name, "args": args})).await
}

/// Turns a hang into a failure.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("this takes too long")
}

fn success(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Success(reply) => reply,
        Outcome::Failure { failure, .. } => panic!("{failure:?}"),
    }
}

fn failure(outcome: Outcome) -> (Failure, Option<Reply>) {
    match outcome {
        Outcome::Failure { failure, reply } => (failure, reply),
        Outcome::Success(reply) => panic!("{reply:?}"),
    }
}
