//! Evaluates the code of javascript steps in a worker process, as a server does. It has no secrets, and its requests are
//! refused: a test that needs a response fakes the step.

use anyhow::Context;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::definition::Definition;
use stepwell_core::event::{Failure, Outcome};
use stepwell_core::graph::Call;
use stepwell_core::simulate::play::Evaluate;
use stepwell_core::time::Millis;
use stepwell_engine::{AccessedSecret, Actor, Checked, HostGuard, HostRules, Kinds, Principal, SecretAccess, StepCall};
use stepwell_store::OrgId;

pub struct Code {
    runtime: tokio::runtime::Runtime,
    kinds: Kinds,
}

impl Code {
    pub fn new() -> anyhow::Result<Code> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime of javascript steps")?;
        let kinds = stepwell_steps::kinds(stepwell_steps::Config::default());
        Ok(Code { runtime, kinds })
    }

    /// Evaluates the code of one definition.
    pub fn of<'c>(&'c self, definition: &'c Definition) -> CodeOf<'c> {
        CodeOf { code: self, definition }
    }

    fn evaluate(&self, path: &str, input: Value, timeout: Millis, allow_hosts: &[String]) -> Outcome {
        let call = StepCall {
            run: "run_test".into(),
            path: path.into(),
            attempt: 1,
            idempotency_key: format!("run_test:{path}"),
            input: Arc::new(input),
            caller: Principal {
                org: OrgId(1),
                name: "test".into(),
                actors: vec![Actor::local()],
                author: Actor::local(),
            },
            secrets: Default::default(),
            traceparent: None,
            timeout: Duration::from_millis(timeout.0),
            bound: None,
            allow_hosts: allow_hosts.to_vec(),
            secret_access: Arc::new(Nothing),
            guard: Some(Arc::new(Nothing)),
            resumed: None,
            cancel: Default::default(),
        };
        match self.kinds.get(Call::Javascript.name()) {
            Some(kind) => self.runtime.block_on(kind.run(call)),
            None => Outcome::Failure { failure: Failure::new("unavailable", "code cannot be run here"), reply: None },
        }
    }

    /// Refuses an input that the workflow's `input_schema` does not allow.
    pub fn check_input(&self, definition: &Definition, input: &Value) -> Result<(), String> {
        let checked = Checked::new(definition.clone(), "");
        let input = Arc::new(input.clone());
        self.runtime.block_on(checked.check_input(&input)).map_err(|error| error.to_string())
    }
}

/// The code of a definition, which may name hosts.
pub struct CodeOf<'c> {
    code: &'c Code,
    definition: &'c Definition,
}

impl Evaluate for CodeOf<'_> {
    fn evaluate(&self, path: &str, input: Value, timeout: Millis) -> Outcome {
        self.code.evaluate(path, input, timeout, &self.definition.allow_hosts)
    }
}

/// Gives no secrets and lets no request out.
struct Nothing;

#[async_trait]
impl SecretAccess for Nothing {
    async fn secret(&self, name: &str) -> Result<AccessedSecret, Failure> {
        Err(Failure::new("unknown_secret", format!("a test has no secret {name}: fake the step instead")))
    }

    fn mask(&self, _value: &mut Value) {}
}

#[async_trait]
impl HostGuard for Nothing {
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure> {
        Err(Failure::new("not_in_tests", "code makes no requests in a test: fake the step instead"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_secrets_nor_requests_are_there_in_a_test() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let secret = runtime.block_on(Nothing.secret("KEY")).err().unwrap();
        let request = runtime.block_on(Nothing.rules()).err().unwrap();
        assert_eq!((&*secret.code, &*request.code), ("unknown_secret", "not_in_tests"));
    }
}
