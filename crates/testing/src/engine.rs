//! An engine on a store, and the commands that suites repeat.

use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_engine::commands::{NewKey, NewPolicy, NewUser, RunView, Source, Trigger};
use stepwell_engine::{Caller, Config, Engine, PolicyEffect, PolicyMode};
use stepwell_store::Store;

/// Where virtual time starts: 2026-01-01T00:00:00Z.
pub const START: Time = Time(1_767_225_600_000);
/// The keys of the first users.
pub const ADMIN: &str = "sw_admin-of-the-default-organisation";
pub const AGENT: &str = "sw_agent-of-the-default-organisation";

/// An engine and a caller who may do everything. Suites wrap it and dereference to it.
#[derive(Clone)]
pub struct EngineHarness {
    pub engine: Engine,
    pub admin: Caller,
}

impl EngineHarness {
    /// Starts an engine for the caller of a command line, without users.
    pub async fn local(store: Arc<dyn Store>, config: Config) -> EngineHarness {
        EngineHarness { engine: Engine::start(store, config).await.unwrap(), admin: Caller::local("ann") }
    }

    /// Starts an engine on an empty store and creates the first users.
    pub async fn bootstrapped(store: Arc<dyn Store>, config: Config) -> EngineHarness {
        let engine = Engine::start(store, config).await.unwrap();
        assert!(engine.identity().bootstrap(ADMIN, AGENT).await.unwrap());
        let admin = engine.identity().authenticate(ADMIN).await.unwrap();
        EngineHarness { engine, admin }
    }

    /// Starts another engine for the same administrator.
    pub async fn another(&self, store: Arc<dyn Store>, config: Config) -> EngineHarness {
        EngineHarness { engine: Engine::start(store, config).await.unwrap(), admin: self.admin.clone() }
    }

    /// Defines a workflow and returns its id.
    pub async fn define_as(&self, caller: &Caller, document: &Value) -> String {
        let text = document.to_string();
        let defined = self.engine.workflows(caller).define(Source { text: &text, file: None }).await.unwrap();
        defined.compiled.row.workflow.clone()
    }

    pub async fn define_tasks(&self, name: &str, tasks: Value) {
        self.define_as(&self.admin, &json!({"name": name, "tasks": tasks})).await;
    }

    /// Starts a run and returns its id.
    pub async fn start_as(&self, caller: &Caller, workflow: &str, input: Value) -> String {
        self.engine.runs(caller).trigger(Trigger::new(workflow, input)).await.unwrap().run
    }

    pub async fn view(&self, run: &str) -> RunView {
        self.engine.runs(&self.admin).get(run).await.unwrap()
    }

    /// Waits for the end of a run.
    pub async fn ended(&self, run: &str) -> RunView {
        self.engine.runs(&self.admin).wait(run).await.unwrap();
        self.view(run).await
    }

    pub async fn new_user(&self, name: &str, roles: &[&str], grants: &[&str]) {
        let new = NewUser { name: name.into(), roles: list(roles), grants: list(grants) };
        self.engine.users(&self.admin).create(new).await.unwrap();
    }

    /// Creates a key: its id and the key itself.
    pub async fn new_key(&self, new: NewKey) -> (String, String) {
        let (key, secret) = self.engine.keys(&self.admin).create(new).await.unwrap();
        (key.id, secret)
    }

    /// The caller with this key.
    pub async fn with_key(&self, secret: &str) -> Caller {
        self.engine.identity().authenticate(secret).await.unwrap()
    }

    /// A user by a new key with all of the user's rights.
    pub async fn by_key(&self, user: &str) -> Caller {
        let new = NewKey { user: Some(user.into()), name: "a key".into(), ..NewKey::default() };
        self.with_key(&self.new_key(new).await.1).await
    }

    /// A user in the browser, with the rights of this moment.
    pub async fn person(&self, user: &str) -> Caller {
        let mut caller = self.by_key(user).await;
        caller.key = None;
        caller
    }
}

pub fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

/// A chain of calls: `hold ok` is a step `s0` that waits and then a step `s1`.
pub fn chain(name: &str, tools: &str) -> Value {
    let mut tasks = serde_json::Map::new();
    for (n, tool) in tools.split(' ').enumerate() {
        let needs: Vec<String> = n.checked_sub(1).map(|before| format!("s{before}")).into_iter().collect();
        tasks.insert(format!("s{n}"), json!({"tool": tool, "args": {"n": n}, "needs": needs}));
    }
    json!({"name": name, "tasks": tasks})
}

/// A policy with no limits. If it requires approval, one approval of any approver is enough.
pub fn policy(calls: &str, effect: PolicyEffect) -> NewPolicy {
    NewPolicy {
        calls: calls.into(),
        effect,
        approvers: Vec::new(),
        approvals: 1,
        allow_self: true,
        allow_changes: false,
        timeout: None,
        except: Vec::new(),
        when: None,
        mode: PolicyMode::Enforce,
        at_most_once: None,
        rate: None,
        reason: None,
    }
}
