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

use serde_json::{Value, json};
use std::time::Duration;
use stepwell_core::event::Outcome;
use stepwell_engine::StepCall;
use stepwell_steps::{Config, Egress, kinds};
use stepwell_testing::{failure, step_call, success};

/// Allows loopback and ignores the environment.
fn local() -> Config {
    let egress = Egress { allow_private: true };
    Config { egress, pushover_user: None, pushover_token: None, ..Config::default() }
}

fn call(input: Value) -> StepCall {
    StepCall { idempotency_key: "run_1/each[3].charge".into(), ..step_call("each[3].charge", input) }
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
