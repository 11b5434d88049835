//! Tools: async functions of the program that steps call by name.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::StepCall;
use stepwell_steps::Tool;

/// A call of a tool.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The arguments, checked against the tool's schema. Templates are resolved and secrets filled in: do not log them.
    pub args: Arc<Value>,
    /// Who started the run.
    pub user: String,
    /// The id of the run: `run_…`.
    pub run: String,
    /// The path of the step.
    pub step: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The same for all attempts of a step, so that a service can recognise a repeated call.
    pub idempotency_key: String,
}

/// Why a tool failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolError {
    code: String,
    message: String,
    retryable: bool,
}

impl ToolError {
    /// A failure that a repetition would not change. Conditions in definitions can read the code.
    pub fn new(code: &str, message: impl Into<String>) -> ToolError {
        ToolError { code: code.to_string(), message: message.into(), retryable: false }
    }

    /// A failure that may pass: the step is tried again as its definition says.
    pub fn retryable(code: &str, message: impl Into<String>) -> ToolError {
        ToolError { retryable: true, ..ToolError::new(code, message) }
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> ToolError {
        ToolError::new("tool_failed", error.to_string())
    }
}

/// What a tool is called, and what it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolSpec {
    pub(crate) name: String,
    description: String,
    schema: Value,
    idempotent: bool,
}

impl ToolSpec {
    /// A tool that takes any arguments.
    pub fn new(name: &str) -> ToolSpec {
        let schema = json!({"type": "object"});
        ToolSpec { name: name.to_string(), description: String::new(), schema, idempotent: false }
    }

    /// What it does, for people and agents.
    pub fn description(self, description: &str) -> ToolSpec {
        ToolSpec { description: description.to_string(), ..self }
    }

    /// The JSON Schema of its arguments. Before a call these are checked: names of properties, `required`, `type`, `enum`,
    /// `minimum`, `maximum` and `additionalProperties: false`.
    pub fn schema(self, schema: Value) -> ToolSpec {
        ToolSpec { schema, ..self }
    }

    /// Repeating a call of it is harmless.
    pub fn idempotent(self) -> ToolSpec {
        ToolSpec { idempotent: true, ..self }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

/// A function with its spec, as the engine calls it.
pub(crate) struct Registered {
    spec: stepwell_steps::ToolSpec,
    function: Box<dyn Fn(Call) -> Answer + Send + Sync>,
}

impl Registered {
    pub fn new<F, A>(spec: ToolSpec, function: F) -> Registered
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let ToolSpec { name, description, schema, idempotent } = spec;
        let spec = stepwell_steps::ToolSpec { name, description, input_schema: schema, idempotent };
        Registered { spec, function: Box::new(move |call| Box::pin(function(call))) }
    }
}

#[async_trait]
impl Tool for Registered {
    fn spec(&self) -> &stepwell_steps::ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Arc<Value>, context: &StepCall) -> Outcome {
        let call = Call {
            args,
            user: context.caller.name.to_string(),
            run: context.run.to_string(),
            step: context.path.clone(),
            attempt: context.attempt,
            idempotency_key: context.idempotency_key.clone(),
        };
        match (self.function)(call).await {
            Ok(body) => Outcome::Success(Reply::body(body)),
            Err(ToolError { code, message, retryable }) => {
                let failure = if retryable { Failure::retryable(&code, message) } else { Failure::new(&code, message) };
                Outcome::Failure { failure, reply: None }
            }
        }
    }
}
