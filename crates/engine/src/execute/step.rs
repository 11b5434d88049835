//! The seam between the engine and what steps do: what an executor is given, and what it gives back.
//!
//! A kind knows nothing of runs, graphs or other steps. Retries, timeouts of an attempt and claims are the engine's.

use super::host_guard::HostGuard;
use super::secret_access::SecretAccess;
use crate::access::Actor;
use crate::secrets::UsedSecrets;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Outcome;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;
use tokio_util::sync::CancellationToken;

/// One kind of call: `http`, `tool`, … Shared by all steps of that kind.
#[async_trait]
pub trait StepKind: Send + Sync {
    /// Makes one attempt. The future is dropped when the attempt no longer counts, whatever it is doing then.
    async fn run(&self, call: StepCall) -> Outcome;

    /// The same, for kinds that may begin something that takes its time or asks people.
    async fn attempt(&self, call: StepCall) -> Result<Outcome, Suspended> {
        Ok(self.run(call).await)
    }

    /// What is wrong with this part of its input, which a definition gives once and for all; as far as that can be told
    /// without carrying it out.
    async fn check(&self, _constant: &Value) -> Result<(), String> {
        Ok(())
    }

    /// Whether a call with this input can be made again without harm, as far as is known.
    fn is_idempotent(&self, _input: &Value) -> bool {
        false
    }

    /// Whether it ends an attempt after `call.timeout` itself, because the time does not begin with the call.
    fn keeps_time(&self) -> bool {
        false
    }
}

/// All that a step may see.
#[derive(Clone, Debug)]
pub struct StepCall {
    /// As the outside knows it: `run_…`.
    pub run: Arc<str>,
    pub path: String,
    pub attempt: u32,
    /// The same for every attempt of a step, so that a service can tell a repetition.
    pub idempotency_key: String,
    /// Templates are resolved and secrets filled in: not for logs.
    pub input: Arc<Value>,
    pub caller: Principal,
    pub secrets: UsedSecrets,
    /// For services that take part in a trace, if runs are traced.
    pub traceparent: Option<String>,
    /// How long the attempt may take.
    pub timeout: Duration,
    /// Hosts that code of the workflow may call.
    pub allow_hosts: Vec<String>,
    /// For secrets that its code asks for.
    pub secret_access: Arc<dyn SecretAccess>,
    /// What policies say of hosts: to be asked before every request that it makes.
    pub guard: Option<Arc<dyn HostGuard>>,
    /// What an earlier attempt left, if it had to wait.
    pub resumed: Option<Resumed>,
    /// Fires when the attempt is aborted, for what must be told (a child process, a query on a server).
    pub cancel: CancellationToken,
}

/// An attempt did its part and waits. Nothing is held meanwhile: the next attempt goes on with the note, on any node.
#[derive(Clone, PartialEq, Debug)]
pub struct Suspended {
    pub note: Value,
    pub until: Until,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Until {
    /// Somebody has answered. Of what is asked `message`, `form`, `server` and `tool` are shown among what waits for
    /// approval; the answer approves nothing.
    Answered {
        ask: Value,
        timeout: Option<Millis>,
    },
    Later(Duration),
}

/// What an earlier attempt left, and what people have answered since, as it came with their approvals.
#[derive(Clone, PartialEq, Debug)]
pub struct Resumed {
    pub note: Arc<Value>,
    pub answers: Vec<Value>,
}

/// In whose name a run acts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    pub org: OrgId,
    /// Whoever started it.
    pub name: Arc<str>,
    /// Everyone whose rights it is limited to, but for the author.
    pub actors: Vec<Actor>,
    /// Of the version it runs.
    pub author: Actor,
}

/// The kinds that can be executed here, by the name a definition uses.
#[derive(Clone, Default)]
pub struct Kinds {
    kinds: BTreeMap<&'static str, Arc<dyn StepKind>>,
}

impl Kinds {
    pub fn with(mut self, name: &'static str, kind: impl StepKind + 'static) -> Kinds {
        self.kinds.insert(name, Arc::new(kind));
        self
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn StepKind>> {
        self.kinds.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }
}
