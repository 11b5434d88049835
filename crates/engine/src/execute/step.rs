//! The interface between the engine and step kinds: the data of a call, and its outcome.
//!
//! A kind does not know runs, graphs or other steps. The engine handles retries, timeouts and claims.

use super::secret_access::SecretAccess;
use crate::access::Actor;
use crate::run::HostGuard;
use crate::secrets::UsedSecrets;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Outcome;
use stepwell_core::plan::Abandon;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;
use tokio_util::sync::CancellationToken;

/// A tool that steps may call.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolInfo {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Whether it changes nothing.
    pub read_only: bool,
}

/// One kind of call: `http`, `tool`, … Shared by all steps of that kind.
#[async_trait]
pub trait StepKind: Send + Sync {
    /// Makes one attempt. The future is dropped at any await point when the attempt becomes obsolete.
    async fn run(&self, call: StepCall) -> Outcome;

    /// Like [`StepKind::run`], for kinds that may start long work or ask users a question.
    async fn attempt(&self, call: StepCall) -> Result<Outcome, Suspended> {
        Ok(self.run(call).await)
    }

    /// Tells the called service that a suspended attempt is no longer awaited. The call has the attempt's note. If
    /// the service is not there, the error says so, and this is tried again later.
    async fn abandon(&self, _call: StepCall, _reason: Abandon) -> Result<(), String> {
        Ok(())
    }

    /// Validates an input that a definition sets to a constant, as far as that is possible without executing it.
    async fn check(&self, _constant: &Value) -> Result<(), String> {
        Ok(())
    }

    /// Names what this installation does not have and an attempt with this input would need. What is not known before a
    /// run is null.
    async fn missing(&self, _org: OrgId, _known: &Value) -> Vec<Missing> {
        Vec::new()
    }

    /// The tools that are built into this kind.
    fn tools(&self) -> Vec<ToolInfo> {
        Vec::new()
    }

    /// Whether a call with this input is known to be idempotent.
    fn is_idempotent(&self, _input: &Value) -> bool {
        false
    }

    /// Whether a call with this input is known to have no side effects.
    fn is_read_only(&self, _input: &Value) -> bool {
        false
    }

    /// Whether the kind applies `call.timeout` itself, because the time does not start with the call.
    fn keeps_time(&self) -> bool {
        false
    }
}

/// Something that a step needs and this installation does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The field of the step's input that it is about.
    pub field: &'static str,
    pub message: String,
}

/// The data a step kind receives.
#[derive(Clone, Debug)]
pub struct StepCall {
    /// The run's public id: `run_…`.
    pub run: Arc<str>,
    pub path: String,
    pub attempt: u32,
    /// The same for all attempts of a step, so that a service can recognise a repeated call.
    pub idempotency_key: String,
    /// Templates are resolved and secrets filled in, so it must not be logged.
    pub input: Arc<Value>,
    pub caller: Principal,
    pub secrets: UsedSecrets,
    /// The W3C trace header for the called service, if runs are traced.
    pub traceparent: Option<String>,
    /// How long the attempt may take.
    pub timeout: Duration,
    /// How long everything may take that the call leads to, if the author set a timeout: questions, tasks, waiting.
    pub bound: Option<Duration>,
    /// Hosts that code of the workflow may call.
    pub allow_hosts: Vec<String>,
    /// Access to secrets that the step's code requests.
    pub secret_access: Arc<dyn SecretAccess>,
    /// Host policies, to be checked before each request.
    pub guard: Option<Arc<dyn HostGuard>>,
    /// The note of an earlier attempt that was suspended, with the answers.
    pub resumed: Option<Resumed>,
    /// Fires when the attempt is aborted, to stop external work (a child process, a query on a server).
    pub cancel: CancellationToken,
}

/// A suspended attempt. It holds no resources: the next attempt continues with the note, on any node.
#[derive(Clone, PartialEq, Debug)]
pub struct Suspended {
    pub note: Value,
    pub until: Until,
}

/// When a suspended attempt continues.
#[derive(Clone, PartialEq, Debug)]
pub enum Until {
    /// When a user has answered. The fields `message`, `form`, `server` and `tool` of `ask` are shown in the list of
    /// approvals. The answer approves nothing.
    Answered { ask: Value, timeout: Option<Millis> },
    /// After this time: the called service works on it. `status` is what it says about that.
    Later { pause: Duration, status: Option<String> },
    /// After this time: nothing was sent yet, because the called service is not there, for this reason.
    Available { pause: Duration, why: String },
}

/// The note of an earlier attempt, and the answers given since.
#[derive(Clone, PartialEq, Debug)]
pub struct Resumed {
    pub note: Arc<Value>,
    pub answers: Vec<Value>,
}

/// The identities that a run acts for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    pub org: OrgId,
    /// The user who started the run.
    pub name: Arc<str>,
    /// The actors whose rights limit the run, except for the author.
    pub actors: Vec<Actor>,
    /// The author of the workflow version.
    pub author: Actor,
}

/// The step kinds that this node can execute, by their name in definitions.
#[derive(Clone, Default)]
pub struct Kinds {
    kinds: BTreeMap<&'static str, Arc<dyn StepKind>>,
}

impl Kinds {
    pub fn with(mut self, name: &'static str, kind: impl StepKind + 'static) -> Kinds {
        self.kinds.insert(name, Arc::new(kind));
        self
    }

    /// Without this kind: definitions that use it are refused.
    pub fn without(mut self, name: &str) -> Kinds {
        self.kinds.remove(name);
        self
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn StepKind>> {
        self.kinds.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }
}
