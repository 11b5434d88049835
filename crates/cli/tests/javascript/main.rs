//! Javascript steps: the meaning of code, its isolation, its limits, and its processes. The workers are those of
//! the real binary.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod bombs;
mod escapes;
mod fetches;
mod meaning;
mod served;
mod workers;

use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome};
use stepwell_engine::{AccessedSecret, Bound, Kinds, SecretAccess, StepCall};
use stepwell_steps::javascript::WORKER;
use stepwell_steps::{Config, Egress, kinds};
use stepwell_testing::{failure, step_call, success};

fn javascript(workers: usize) -> Kinds {
    javascript_of(Path::new(env!("CARGO_BIN_EXE_stepwell")), workers)
}

fn javascript_of(program: &Path, workers: usize) -> Kinds {
    let worker = vec![program.as_os_str().to_owned(), WORKER.into()];
    let javascript =
        stepwell_steps::javascript::Config { worker, workers, ..stepwell_steps::javascript::Config::default() };
    kinds(Config { egress: Egress { allow_private: true }, javascript, ..Config::default() })
}

/// A step's code with its context, as the engine would call it.
fn call(code: &str, ctx: Value) -> StepCall {
    StepCall { secret_access: Arc::new(Keyring), ..step_call("calculate", json!({"code": code, "ctx": ctx})) }
}

async fn run(kinds: &Kinds, call: StepCall) -> Outcome {
    kinds.get("javascript").unwrap().run(call).await
}

/// The code on a worker of its own.
async fn alone(code: &str) -> Outcome {
    run(&javascript(1), call(code, json!({}))).await
}

/// One secret, for one host.
struct Keyring;

const SECRET: &str = "s3cret-value";

#[async_trait]
impl SecretAccess for Keyring {
    async fn secret(&self, name: &str) -> Result<AccessedSecret, Failure> {
        match name {
            "KEY" => {
                let bound = Bound { secret: name.into(), hosts: ["127.0.0.1".to_string()].into(), left_behind: false };
                Ok(AccessedSecret { value: SECRET.into(), bound: Some(bound) })
            }
            _ => Err(Failure::new("unknown_secret", format!("there is no secret named {name}"))),
        }
    }

    fn mask(&self, value: &mut Value) {
        let text = value.to_string().replace(SECRET, "{{secrets.KEY}}");
        *value = serde_json::from_str(&text).unwrap();
    }
}
