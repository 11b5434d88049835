//! The `tool` kind: calls a tool by name with arguments that match its schema.
//!
//! Every call goes through [`Tools`], so no tool runs with unchecked arguments.
//!
//! Not here: authorisation (the engine's grants and policies) and calls to MCP servers (`mcp`).

mod arguments;

pub use arguments::integer;

use crate::mcp::Upstreams;
use arguments::ArgumentSchema;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome};
use stepwell_core::nearest::nearest;
use stepwell_core::plan::Abandon;
use stepwell_engine::{Missing, StepCall, StepKind, Suspended, ToolInfo};
use stepwell_store::OrgId;

/// How many names an `unknown_tool` message lists if none is close to the requested one.
const MAX_LISTED: usize = 20;

/// The built-in tools that change nothing outside of their run.
const READ_ONLY: [&str; 10] =
    ["base64_decode", "base64_encode", "echo", "fail", "hash_sha256", "json_parse", "log", "now", "random", "uuid"];

/// A tool's name, description and schema.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments. Checked before a call: property names, `required`, `type`, `enum`, `minimum`,
    /// `maximum` and `additionalProperties: false`. A null for an optional property counts as absent.
    pub input_schema: Value,
    /// Whether repeating a call is harmless.
    pub idempotent: bool,
}

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Whether a call has no side effects. A built-in tool that is not idempotent may have some.
    fn is_read_only(&self, _args: &Value) -> bool {
        self.spec().idempotent
    }

    /// Calls the tool with checked arguments, which are also `ctx.input`. The future may be dropped at any time.
    async fn call(&self, args: Arc<Value>, ctx: &StepCall) -> Outcome;
}

struct Entry {
    tool: Box<dyn Tool>,
    schema: ArgumentSchema,
}

/// The available tools, by name.
#[derive(Default)]
pub struct Tools {
    entries: BTreeMap<String, Entry>,
}

impl Tools {
    pub fn with(mut self, tool: impl Tool + 'static) -> Tools {
        let schema = ArgumentSchema::new(&tool.spec().input_schema);
        self.entries.insert(tool.spec().name.clone(), Entry { tool: Box::new(tool), schema });
        self
    }

    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.entries.get(name).map(|entry| &*entry.tool)
    }

    /// All specs, ordered by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.values().map(|entry| entry.tool.spec())
    }

    /// Looks up the tool, checks the arguments and calls it.
    pub async fn call(&self, name: &str, args: Arc<Value>, ctx: &StepCall) -> Outcome {
        let Some(entry) = self.entries.get(name) else { return failed(self.unknown(name, &[])) };
        match entry.schema.check(&args) {
            Ok(()) => entry.tool.call(args, ctx).await,
            Err(why) => failed(Failure::new("bad_arguments", format!("`{name}` was not called: {why}"))),
        }
    }

    /// The failure for an unknown name. `others` are names that can be called as well.
    fn unknown(&self, name: &str, others: &[String]) -> Failure {
        let names = || self.entries.keys().chain(others).map(String::as_str);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", names().take(MAX_LISTED).collect::<Vec<_>>().join(", ")),
        };
        let shown: String = name.chars().take(64).collect();
        Failure::new("unknown_tool", format!("there is no tool `{shown}`; {hint}"))
    }
}

pub(crate) fn failed(failure: Failure) -> Outcome {
    Outcome::Failure { failure, reply: None }
}

/// Input: `{tool, args}`.
pub struct ToolKind {
    tools: Arc<Tools>,
    upstreams: Option<Arc<Upstreams>>,
}

impl ToolKind {
    pub fn new(tools: Arc<Tools>, upstreams: Option<Arc<Upstreams>>) -> ToolKind {
        ToolKind { tools, upstreams }
    }
}

#[async_trait]
impl StepKind for ToolKind {
    fn is_idempotent(&self, input: &Value) -> bool {
        let Some(name) = input.get("tool").and_then(Value::as_str) else { return false };
        match (self.tools.get(name), &self.upstreams) {
            (Some(tool), _) => tool.spec().idempotent,
            (None, Some(upstreams)) => upstreams.has(name) && upstreams.is_idempotent(name),
            (None, None) => false,
        }
    }

    fn is_read_only(&self, input: &Value) -> bool {
        let Some(name) = input.get("tool").and_then(Value::as_str) else { return false };
        match (self.tools.get(name), &self.upstreams) {
            (Some(tool), _) => tool.is_read_only(input.get("args").unwrap_or(&Value::Null)),
            (None, Some(upstreams)) => upstreams.has(name) && upstreams.is_read_only(name),
            (None, None) => false,
        }
    }

    async fn missing(&self, _org: OrgId, known: &Value) -> Vec<Missing> {
        let Some(name) = known.get("tool").and_then(Value::as_str) else { return Vec::new() };
        let about = |message: String| Missing { field: "tool", message };
        let args = known.get("args").unwrap_or(&Value::Null);
        let fault = match self.tools.entries.get(name) {
            Some(entry) => entry.schema.check_known(args),
            None => match self.upstreams.as_ref().and_then(|upstreams| upstreams.schema(name)) {
                Some(schema) => ArgumentSchema::new(&schema).check_known(args),
                None => return vec![about(self.tools.unknown(name, &[]).message.to_string())],
            },
        };
        fault.err().map(|why| about(format!("`{name}` would not be called: {why}"))).into_iter().collect()
    }

    fn tools(&self) -> Vec<ToolInfo> {
        let info = |spec: &ToolSpec| ToolInfo {
            name: spec.name.clone(),
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
            read_only: READ_ONLY.contains(&&*spec.name),
        };
        self.tools.specs().map(info).collect()
    }

    async fn run(&self, call: StepCall) -> Outcome {
        let waits = |_| {
            failed(Failure::new("cannot_wait", "the tool needs to wait or asks for input, which this call cannot do"))
        };
        self.attempt(call).await.unwrap_or_else(waits)
    }

    async fn abandon(&self, mut call: StepCall, reason: Abandon) -> Result<(), String> {
        let args = args(&mut call.input);
        match &self.upstreams {
            Some(upstreams) => upstreams.abandon(&args, &call, reason).await,
            None => Ok(()),
        }
    }

    async fn attempt(&self, mut call: StepCall) -> Result<Outcome, Suspended> {
        let Some(name) = call.input.get("tool").and_then(Value::as_str).map(str::to_owned) else {
            return Ok(failed(Failure::new("unknown_tool", "`tool` must be the name of a tool")));
        };
        let args = Arc::new(args(&mut call.input));
        call.input = Arc::clone(&args);
        // A server's tool cannot take the name of a built-in one.
        if let Some(upstreams) = self.upstreams.as_ref().filter(|_| self.tools.get(&name).is_none()) {
            if let Some(outcome) = upstreams.call(&name, &args, &call).await {
                return outcome;
            }
            return Ok(failed(self.tools.unknown(&name, &upstreams.names(call.caller.org))));
        }
        Ok(self.tools.call(&name, args, &call).await)
    }
}

/// Takes the arguments out of the input. They are moved if nothing else holds the input, to avoid copying large values.
fn args(input: &mut Arc<Value>) -> Value {
    let args = match Arc::get_mut(input) {
        Some(input) => input.get_mut("args").map(Value::take),
        None => input.get("args").cloned(),
    };
    args.unwrap_or_else(|| json!({}))
}
