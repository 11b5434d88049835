//! Two engines on one store, as two nodes on one database would be, on virtual time.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Outcome, Reply};
use stepwell_engine::commands::{NewPolicy, RunView};
use stepwell_engine::{Caller, Config, Kinds, PolicyEffect, StepCall, StepKind, TokioClock};
use stepwell_store::{NodeId, RunId, Store};
use stepwell_testing::{EngineHarness, VirtualStore, policy};
pub use stepwell_testing::{START, chain};
use tokio::sync::watch;
use tokio::time::Instant;

/// Less than any look or beat takes to come: what happens within it was told, not found.
pub const AT_ONCE: Duration = Duration::from_millis(200);
pub const LEASE: Duration = Duration::from_secs(10);

/// Every tool returns the name of its node, `hold` after it got a permit of that node.
#[derive(Clone)]
pub struct Tools {
    node: &'static str,
    own: stepwell_testing::Tools,
    /// The calls of `hold` that wait on all nodes together, now and at most.
    all: Arc<watch::Sender<(i64, i64)>>,
}

struct Held(Arc<watch::Sender<(i64, i64)>>);

impl Held {
    fn new(all: &Arc<watch::Sender<(i64, i64)>>) -> Held {
        all.send_modify(|(n, most)| {
            *n += 1;
            *most = (*most).max(*n);
        });
        Held(all.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|(n, _)| *n -= 1);
    }
}

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        self.own.record(&call);
        if call.input["tool"] == "hold" {
            let _held = Held::new(&self.all);
            self.own.answer(&call).await;
        }
        Outcome::Success(Reply::body(json!(self.node)))
    }
}

pub struct Node {
    inner: EngineHarness,
    pub tools: stepwell_testing::Tools,
}

impl Deref for Node {
    type Target = EngineHarness;

    fn deref(&self) -> &EngineHarness {
        &self.inner
    }
}

impl Node {
    pub async fn start(&self, caller: &Caller, workflow: &str) -> String {
        self.start_as(caller, workflow, json!({})).await
    }

    pub async fn until_holding(&self, many: i64) {
        self.tools.until_holding(many).await;
    }

    pub async fn ended(&self, caller: &Caller, run: &str) -> RunView {
        self.engine.runs(caller).wait(run).await.unwrap();
        self.engine.runs(caller).get(run).await.unwrap()
    }
}

pub struct Harness {
    pub store: VirtualStore,
    pub admin: Caller,
    clock: TokioClock,
    all: Arc<watch::Sender<(i64, i64)>>,
}

impl Harness {
    pub fn new() -> Harness {
        let (store, clock) =
            (VirtualStore::shared().leased(std::time::Duration::from_secs(3_600)), TokioClock::starting_at(START));
        Harness { store, admin: Caller::local("ann"), clock, all: Arc::new(watch::Sender::new((0, 0))) }
    }

    pub async fn node(&self, name: &'static str) -> Node {
        self.node_on(name, self.store.clone(), |config| config).await
    }

    pub async fn node_on(
        &self,
        name: &'static str,
        store: VirtualStore,
        change: impl FnOnce(Config) -> Config,
    ) -> Node {
        let tools = stepwell_testing::Tools::default();
        let kind = Tools { node: name, own: tools.clone(), all: self.all.clone() };
        let config = Config {
            node_name: name.into(),
            clock: Arc::new(self.clock),
            ..Config::new(Kinds::default().with("tool", kind))
        };
        Node { inner: EngineHarness::local(Arc::new(store), change(config)).await, tools }
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

    /// A user with these grants, by a key.
    pub async fn user(&self, node: &Node, name: &str, grants: &[&str]) -> Caller {
        node.new_user(name, &[], grants).await;
        node.by_key(name).await
    }
}

pub async fn define(node: &Node, caller: &Caller, document: Value) {
    node.define_as(caller, &document).await;
}

/// A policy that by itself stops nothing.
pub fn allow(calls: &str) -> NewPolicy {
    policy(calls, PolicyEffect::Allow)
}

/// What happened took no time: no one waited for a look.
pub fn was_prompt(since: Instant) {
    assert!(since.elapsed() <= AT_ONCE, "it took {:?}", since.elapsed());
}
