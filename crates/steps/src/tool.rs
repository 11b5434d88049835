//! The `tool` kind: a call by name, with arguments that fit the tool's schema.
//!
//! [`Tools`] is the one way to call a tool, from a step as from elsewhere, so that no call goes unchecked.
//!
//! Not here: who may call what (the engine's grants and policies), and how tools of MCP servers are called (`mcp`).

mod arguments;

pub use arguments::integer;

use crate::mcp::Upstreams;
use arguments::Shape;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use stepwell_core::event::{Failure, Outcome};
use stepwell_core::nearest::nearest;
use stepwell_engine::{StepCall, StepKind, Suspended};

/// Names that a message lists when none is near to what was asked for.
const MAX_LISTED: usize = 20;

/// How a tool presents itself.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments. Of it are checked, before a call: the properties by name, `required`, `type`,
    /// `enum`, `minimum`, `maximum` and `additionalProperties: false`. A null for an optional property counts as none.
    pub input_schema: Value,
    /// A repeated call does no harm.
    pub idempotent: bool,
}

#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Makes one call with checked arguments; `ctx.input` is the arguments, too. The future may be dropped at any time.
    async fn call(&self, args: Arc<Value>, ctx: &StepCall) -> Outcome;
}

struct Entry {
    tool: Box<dyn Tool>,
    shape: Shape,
}

/// The tools that can be called here, by name.
#[derive(Default)]
pub struct Tools {
    entries: BTreeMap<String, Entry>,
}

impl Tools {
    pub fn with(mut self, tool: impl Tool + 'static) -> Tools {
        let shape = Shape::of(&tool.spec().input_schema);
        self.entries.insert(tool.spec().name.clone(), Entry { tool: Box::new(tool), shape });
        self
    }

    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.entries.get(name).map(|entry| &*entry.tool)
    }

    /// In the order of their names.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.values().map(|entry| entry.tool.spec())
    }

    /// Looks the tool up, checks the arguments and calls it.
    pub async fn call(&self, name: &str, args: Arc<Value>, ctx: &StepCall) -> Outcome {
        let Some(entry) = self.entries.get(name) else { return failed(self.unknown(name, &[])) };
        match entry.shape.check(&args) {
            Ok(()) => entry.tool.call(args, ctx).await,
            Err(why) => failed(Failure::new("bad_arguments", format!("`{name}` was not called: {why}"))),
        }
    }

    /// `others` can be called as well.
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
    /// Names of built-in tools that a server has taken.
    taken: Mutex<BTreeSet<String>>,
}

impl ToolKind {
    pub fn new(tools: Arc<Tools>, upstreams: Option<Arc<Upstreams>>) -> ToolKind {
        ToolKind { tools, upstreams, taken: Mutex::default() }
    }

    /// Whoever runs the server may not have meant it.
    fn tell_taken(&self, name: &str) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if self.tools.get(name).is_some() && taken.insert(name.to_owned()) {
            tracing::warn!(tool = name, "a tool of an MCP server is called in place of the built-in one");
        }
    }
}

#[async_trait]
impl StepKind for ToolKind {
    fn is_idempotent(&self, input: &Value) -> bool {
        let Some(name) = input.get("tool").and_then(Value::as_str) else { return false };
        match &self.upstreams {
            Some(upstreams) if upstreams.has(name) => upstreams.is_idempotent(name),
            Some(_) | None => self.tools.get(name).is_some_and(|tool| tool.spec().idempotent),
        }
    }

    async fn run(&self, call: StepCall) -> Outcome {
        let waits =
            |_| failed(Failure::new("cannot_wait", "the tool asks for more time or an answer; there is none here"));
        self.attempt(call).await.unwrap_or_else(waits)
    }

    async fn attempt(&self, mut call: StepCall) -> Result<Outcome, Suspended> {
        let Some(name) = call.input.get("tool").and_then(Value::as_str).map(str::to_owned) else {
            return Ok(failed(Failure::new("unknown_tool", "`tool` must be the name of a tool")));
        };
        let args = Arc::new(args(&mut call.input));
        call.input = Arc::clone(&args);
        if let Some(upstreams) = &self.upstreams {
            if let Some(outcome) = upstreams.call(&name, &args, &call).await {
                self.tell_taken(&name);
                return outcome;
            }
            if self.tools.get(&name).is_none() {
                return Ok(failed(self.tools.unknown(&name, &upstreams.names(call.caller.org))));
            }
        }
        Ok(self.tools.call(&name, args, &call).await)
    }
}

/// Moved out of the input where nobody else holds it, so that large arguments are not copied.
fn args(input: &mut Arc<Value>) -> Value {
    let args = match Arc::get_mut(input) {
        Some(input) => input.get_mut("args").map(Value::take),
        None => input.get("args").cloned(),
    };
    args.unwrap_or_else(|| json!({}))
}
