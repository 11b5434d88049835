//! Two engines on one store in memory, as two nodes on one database would be, on virtual time.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::event::{Outcome, Reply};
use stepwell_core::time::Time;
use stepwell_engine::commands::{NewKey, NewPolicy, NewUser, RunView, Source, Trigger};
use stepwell_engine::{Caller, Config, Engine, Kinds, PolicyEffect, StepCall, StepKind, TokioClock};
use stepwell_store::memory::MemoryStore;
use stepwell_store::{NodeId, RunId, Store};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

pub const START: Time = Time(1_767_225_600_000);
/// Less than any look or beat takes to come: what happens within it was told, not found.
pub const AT_ONCE: Duration = Duration::from_millis(200);
pub const LEASE: Duration = Duration::from_secs(10);

/// `hold` waits for a permit of its node and then says which that is; everything else says so at once.
#[derive(Clone)]
pub struct Tools {
    node: &'static str,
    pub permits: Arc<Semaphore>,
    pub holding: Arc<watch::Sender<i64>>,
    /// On all nodes together, now and at the most.
    all: Arc<watch::Sender<(i64, i64)>>,
    pub calls: Arc<Mutex<Vec<String>>>,
}

struct Held(Tools);

impl Held {
    fn new(tools: &Tools) -> Held {
        tools.holding.send_modify(|n| *n += 1);
        tools.all.send_modify(|(n, most)| {
            *n += 1;
            *most = (*most).max(*n);
        });
        Held(tools.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.holding.send_modify(|n| *n -= 1);
        self.0.all.send_modify(|(n, _)| *n -= 1);
    }
}

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        self.calls.lock().unwrap().push(call.path.clone());
        if call.input["tool"] == "hold" {
            let _held = Held::new(self);
            self.permits.acquire().await.unwrap().forget();
        }
        Outcome::Success(Reply::body(json!(self.node)))
    }
}

pub struct Node {
    pub engine: Engine,
    pub tools: Tools,
}

impl Node {
    pub async fn start(&self, caller: &Caller, workflow: &str) -> String {
        self.engine.runs(caller).trigger(Trigger::new(workflow, json!({}))).await.unwrap().run
    }

    pub async fn until_holding(&self, many: i64) {
        self.tools.holding.subscribe().wait_for(|n| *n == many).await.unwrap();
    }

    pub async fn ended(&self, caller: &Caller, run: &str) -> RunView {
        self.engine.runs(caller).wait(run).await.unwrap();
        self.engine.runs(caller).get(run).await.unwrap()
    }
}

pub struct Rig {
    pub store: MemoryStore,
    pub admin: Caller,
    clock: TokioClock,
    all: Arc<watch::Sender<(i64, i64)>>,
}

impl Rig {
    pub fn new() -> Rig {
        let (store, clock) = (MemoryStore::shared(), TokioClock::starting_at(START));
        Rig { store, admin: Caller::local("ann"), clock, all: Arc::new(watch::Sender::new((0, 0))) }
    }

    pub async fn node(&self, name: &'static str) -> Node {
        self.node_on(name, self.store.clone(), |config| config).await
    }

    pub async fn node_on(&self, name: &'static str, store: MemoryStore, change: impl FnOnce(Config) -> Config) -> Node {
        let tools = Tools {
            node: name,
            permits: Arc::new(Semaphore::new(0)),
            holding: Arc::new(watch::Sender::new(0)),
            all: self.all.clone(),
            calls: Arc::default(),
        };
        let config = Config {
            node_name: name.into(),
            clock: Arc::new(self.clock),
            ..Config::new(Kinds::default().with("tool", tools.clone()))
        };
        let engine = Engine::start(Arc::new(store), change(config)).await.unwrap();
        Node { engine, tools }
    }

    /// The id that a node has now.
    pub async fn id(&self, node: &Node, name: &str) -> NodeId {
        let nodes = node.engine.nodes(&self.admin).await.unwrap();
        nodes.into_iter().find(|row| row.node.name == name).unwrap().node.id
    }

    pub async fn until_all_holding(&self, many: i64) {
        self.all.subscribe().wait_for(|(n, _)| *n == many).await.unwrap();
    }

    /// How many steps were held at a time at the most.
    pub fn most_holding(&self) -> i64 {
        self.all.borrow().1
    }

    pub async fn run(&self, public: &str) -> RunId {
        self.store.find_run(public).await.unwrap().unwrap()
    }

    pub async fn policy(&self, node: &Node, policy: NewPolicy) {
        node.engine.policies(&self.admin).put("policy", policy).await.unwrap();
    }

    /// Someone with these grants.
    pub async fn user(&self, node: &Node, name: &str, grants: &[&str]) -> Caller {
        let grants = grants.iter().map(|grant| grant.to_string()).collect();
        let new = NewUser { name: name.into(), roles: vec![], grants };
        node.engine.users(&self.admin).create(new).await.unwrap();
        let key = NewKey { user: Some(name.into()), name: "a key".into(), ..NewKey::default() };
        let (_, secret) = node.engine.keys(&self.admin).create(key).await.unwrap();
        node.engine.identity().authenticate(&secret).await.unwrap()
    }
}

pub async fn define(node: &Node, caller: &Caller, document: Value) {
    let text = document.to_string();
    node.engine.workflows(caller).define(Source { text: &text, file: None }).await.unwrap();
}

/// A policy that by itself stops nothing.
pub fn allow(calls: &str) -> NewPolicy {
    NewPolicy {
        calls: calls.into(),
        effect: PolicyEffect::Allow,
        approvers: Vec::new(),
        approvals: 1,
        allow_self: true,
        timeout: None,
        at_most_once: None,
        rate: None,
        reason: None,
    }
}

/// A chain of calls: `hold ok` is a step `s0` that waits and then a step `s1`.
pub fn chain(name: &str, tools: &str) -> Value {
    let mut tasks = serde_json::Map::new();
    for (n, tool) in tools.split(' ').enumerate() {
        let needs: Vec<String> = n.checked_sub(1).map(|before| format!("s{before}")).into_iter().collect();
        tasks.insert(format!("s{n}"), json!({"tool": tool, "needs": needs}));
    }
    json!({"name": name, "tasks": tasks})
}

/// What happened took no time: nobody waited for a look.
pub fn was_prompt(since: Instant) {
    assert!(since.elapsed() <= AT_ONCE, "it took {:?}", since.elapsed());
}
