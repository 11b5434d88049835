//! An engine on a store in memory, with an administrator, other people, and tools that the test controls.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::time::Time;
use stepwell_engine::commands::{NewKey, NewUser, RunView, Source, Started, Trigger, UserChange};
use stepwell_engine::{Caller, Config, Engine, Error, Kinds, SecretSource, StepCall, StepKind, TokioClock};
use stepwell_store::memory::MemoryStore;
use stepwell_store::{AuditFilter, AuditRow, OrgId, RunFilter, RunRow, Store};
use tokio::sync::{Semaphore, watch};

/// 2026-01-01T00:00:00Z.
pub const START: Time = Time(1_767_225_600_000);
pub const ADMIN: &str = "sw_admin-of-the-default-organisation";
pub const AGENT: &str = "sw_agent-of-the-default-organisation";

/// `ok` gives its arguments back, `fail` fails, `hold` waits for a permit, `nap` takes a moment.
#[derive(Clone)]
pub struct Tools {
    /// Who called, in order: organisation, run and step.
    pub calls: Arc<Mutex<Vec<(OrgId, String, String)>>>,
    pub permits: Arc<Semaphore>,
    pub holding: Arc<watch::Sender<i64>>,
}

struct Held(Arc<watch::Sender<i64>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        self.calls.lock().unwrap().push((call.caller.org, call.run.to_string(), call.path.clone()));
        match call.input["tool"].as_str() {
            Some("fail") => Outcome::Failure { failure: Failure::new("failed", "as asked"), reply: None },
            Some("nap") => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Outcome::Success(Reply::body(json!(null)))
            }
            Some("hold") => {
                self.holding.send_modify(|n| *n += 1);
                let _held = Held(self.holding.clone());
                self.permits.acquire().await.unwrap().forget();
                Outcome::Success(Reply::body(json!("held")))
            }
            _ => Outcome::Success(Reply::body(call.input["args"].clone())),
        }
    }
}

/// Every organisation has one secret.
struct OneSecret;

#[async_trait]
impl SecretSource for OneSecret {
    async fn secret(&self, _org: OrgId, name: &str) -> Option<String> {
        (name == "HOOK").then(|| "secret".to_string())
    }
}

pub struct Rig {
    pub engine: Engine,
    pub store: MemoryStore,
    pub tools: Tools,
    pub admin: Caller,
    clock: TokioClock,
}

impl Rig {
    pub async fn new() -> Rig {
        Rig::with(|config| config).await
    }

    pub async fn with(change: impl FnOnce(Config) -> Config) -> Rig {
        let tools = Tools {
            calls: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
            holding: Arc::new(watch::Sender::new(0)),
        };
        let (store, clock) = (MemoryStore::default(), TokioClock::starting_at(START));
        let engine = Engine::start(Arc::new(store.clone()), change(config(&tools, clock))).await.unwrap();
        assert!(engine.identity().bootstrap(ADMIN, AGENT).await.unwrap());
        let admin = engine.identity().authenticate(ADMIN).await.unwrap();
        Rig { engine, store, tools, admin, clock }
    }

    /// Another engine on the same store, as another process would be after this one's.
    pub async fn another(&self) -> Engine {
        Engine::start(Arc::new(self.store.clone()), config(&self.tools, self.clock)).await.unwrap()
    }

    /// Someone with these grants, in person.
    pub async fn user(&self, name: &str, grants: &[&str]) -> Caller {
        let grants = list(grants);
        self.engine.users(&self.admin).create(NewUser { name: name.into(), roles: vec![], grants }).await.unwrap();
        self.person(name).await
    }

    /// Someone's browser, as of now.
    pub async fn person(&self, name: &str) -> Caller {
        let key = self.key(name, None).await.1;
        let mut caller = self.engine.identity().authenticate(&key).await.unwrap();
        caller.key = None;
        caller
    }

    /// A key of someone, by its id and by itself.
    pub async fn key(&self, user: &str, grants: Option<&[&str]>) -> (String, String) {
        let new =
            NewKey { user: Some(user.into()), name: "a key".into(), grants: grants.map(list), ..NewKey::default() };
        let (key, secret) = self.engine.keys(&self.admin).create(new).await.unwrap();
        (key.id, secret)
    }

    pub async fn grant(&self, user: &str, grants: &[&str]) {
        let to = UserChange { grants: Some(list(grants)), ..UserChange::default() };
        self.engine.users(&self.admin).change(user, to).await.unwrap();
    }

    pub async fn define(&self, caller: &Caller, document: Value) -> String {
        let text = document.to_string();
        let defined = self.engine.workflows(caller).define(Source { text: &text, file: None }).await.unwrap();
        defined.compiled.row.workflow.clone()
    }

    pub async fn try_define(&self, caller: &Caller, document: Value) -> Result<bool, Error> {
        let text = document.to_string();
        self.engine.workflows(caller).define(Source { text: &text, file: None }).await.map(|defined| defined.changed)
    }

    pub async fn try_start(&self, caller: &Caller, workflow: &str) -> Result<Started, Error> {
        self.engine.runs(caller).trigger(Trigger::new(workflow, json!({}))).await
    }

    pub async fn start(&self, caller: &Caller, workflow: &str) -> String {
        self.try_start(caller, workflow).await.unwrap().run
    }

    pub async fn ended(&self, run: &str) -> RunView {
        self.engine.runs(&self.admin).wait(run).await.unwrap();
        self.view(run).await
    }

    pub async fn view(&self, run: &str) -> RunView {
        self.engine.runs(&self.admin).get(run).await.unwrap()
    }

    pub async fn until_holding(&self, many: i64) {
        self.tools.holding.subscribe().wait_for(|n| *n == many).await.unwrap();
    }

    /// Lets virtual time pass, with all that happens in it.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Oldest first.
    pub async fn runs(&self) -> Vec<RunRow> {
        let mut rows = self.store.runs(RunFilter::all(OrgId(1), 10_000)).await.unwrap();
        rows.reverse();
        rows
    }

    pub async fn trail(&self, org: OrgId) -> Vec<AuditRow> {
        use stepwell_store::Registry;
        let filter = AuditFilter { org, by: None, action: None, target: None, before: None, limit: 10_000 };
        let mut rows = self.store.audit(filter).await.unwrap();
        rows.reverse();
        rows
    }

    pub fn called(&self) -> usize {
        self.tools.calls.lock().unwrap().len()
    }
}

fn config(tools: &Tools, clock: TokioClock) -> Config {
    Config {
        clock: Arc::new(clock),
        secrets: Arc::new(OneSecret),
        ..Config::new(Kinds::default().with("tool", tools.clone()))
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

/// The chain with more beside it.
pub fn with(mut document: Value, name: &str, value: Value) -> Value {
    document[name] = value;
    document
}

/// The code of the first failed step.
pub fn failure(view: &RunView) -> Option<String> {
    let failed = view.tasks.iter().find_map(|task| task.error.as_ref());
    failed.and_then(|error| error["code"].as_str()).map(str::to_string)
}
