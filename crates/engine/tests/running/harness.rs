//! An engine on a fresh store, with one tool that adds one.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Outcome, Reply};
use stepwell_engine::commands::RunView;
use stepwell_engine::{Config, Kinds, StepCall, StepKind};
use stepwell_store::Store;
use stepwell_testing::{EngineHarness, TestStore, Tools};

pub struct Harness {
    inner: EngineHarness,
    pub tools: Tools,
    pub place: TestStore,
}

impl Deref for Harness {
    type Target = EngineHarness;

    fn deref(&self) -> &EngineHarness {
        &self.inner
    }
}

/// `add` returns one more, `panic` panics.
struct Own(Tools);

#[async_trait]
impl StepKind for Own {
    async fn run(&self, call: StepCall) -> Outcome {
        self.0.record(&call);
        match call.input["tool"].as_str() {
            Some("add") => {
                let n = call.input["args"]["n"].as_i64().unwrap_or_default();
                Outcome::Success(Reply::body(json!({"n": n + 1, "key": call.idempotency_key})))
            }
            Some("panic") => panic!("a tool that breaks down"),
            _ => self.0.answer(&call).await,
        }
    }
}

impl Harness {
    pub async fn new() -> Harness {
        Harness::with(|config| config).await
    }

    pub async fn with(change: impl FnOnce(Config) -> Config) -> Harness {
        let (place, tools) = (TestStore::new(), Tools::default());
        let inner = start(place.open().await.unwrap(), &tools, change).await;
        Harness { inner, tools, place }
    }

    pub async fn on(place: TestStore, store: Arc<dyn Store>) -> Harness {
        let tools = Tools::default();
        let inner = start(store, &tools, |config| config).await;
        Harness { inner, tools, place }
    }

    /// Stops the engine at once, with its work unfinished, and opens another on the store.
    pub async fn restarted_after_a_crash(self) -> Harness {
        self.engine.kill();
        self.restarted().await
    }

    /// Another engine takes over the store from one that has stopped.
    pub async fn restarted(self) -> Harness {
        let Harness { inner, tools, place } = self;
        drop(inner);
        let store = loop {
            // The old engine's tasks let go of a directory when they have noticed.
            match place.open().await {
                Ok(store) => break store,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let inner = start(store, &tools, |config| config).await;
        Harness { inner, tools, place }
    }

    pub fn calls(&self) -> u64 {
        self.tools.count() as u64
    }

    pub async fn define(&self, text: &str) {
        self.define_as(&self.admin, &serde_json::from_str(text).unwrap()).await;
    }

    pub async fn start(&self, workflow: &str, input: Value) -> String {
        self.start_as(&self.admin, workflow, input).await
    }

    pub async fn run(&self, workflow: &str, input: Value) -> RunView {
        let run = self.start(workflow, input).await;
        self.ended(&run).await
    }

    /// Looks at the run after each commit until it is as wanted.
    pub async fn until(&self, run: &str, wanted: impl Fn(&RunView) -> bool) -> RunView {
        let mut commits = self.engine.activity();
        loop {
            let view = self.view(run).await;
            if wanted(&view) {
                return view;
            }
            commits.recv().await.unwrap();
        }
    }
}

async fn start(store: Arc<dyn Store>, tools: &Tools, change: impl FnOnce(Config) -> Config) -> EngineHarness {
    let config = Config::new(Kinds::default().with("tool", Own(tools.clone())));
    // Short, so that a node that is killed is soon given up where others could take over.
    EngineHarness::local(store, change(Config { lease: Duration::from_secs(1), ..config })).await
}
