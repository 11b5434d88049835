//! An engine on a fresh store, with one tool that adds one.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::commands::{RunView, Source, Trigger};
use stepwell_engine::{Caller, Config, Engine, Kinds, StepCall, StepKind};
use stepwell_store::Store;
use stepwell_testing::Place;
use tokio::sync::Semaphore;

pub struct Rig {
    pub engine: Engine,
    pub caller: Caller,
    pub tools: Tools,
    pub place: Place,
}

/// `add` gives one more, `fail` fails, `hold` waits for a permit.
#[derive(Clone)]
pub struct Tools {
    calls: Arc<AtomicU64>,
    pub permits: Arc<Semaphore>,
    /// How many calls of `hold` wait now.
    pub holding: Arc<tokio::sync::watch::Sender<i64>>,
}

impl Tools {
    fn new() -> Tools {
        Tools {
            calls: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
            holding: Arc::new(tokio::sync::watch::Sender::new(0)),
        }
    }
}

/// Counts down however the call ends.
struct Held(Arc<tokio::sync::watch::Sender<i64>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let args = &call.input["args"];
        match call.input["tool"].as_str() {
            Some("add") => {
                let n = args["n"].as_i64().unwrap_or_default();
                Outcome::Success(Reply::body(json!({"n": n + 1, "key": call.idempotency_key})))
            }
            Some("hold") => {
                self.holding.send_modify(|n| *n += 1);
                let _held = Held(self.holding.clone());
                self.permits.acquire().await.unwrap().forget();
                Outcome::Success(Reply::body(json!("held")))
            }
            Some("panic") => panic!("a tool that breaks down"),
            _ => Outcome::Failure { failure: Failure::new("failed", "as asked"), reply: None },
        }
    }
}

impl Rig {
    pub async fn new() -> Rig {
        Rig::with(|config| config).await
    }

    pub async fn with(change: impl FnOnce(Config) -> Config) -> Rig {
        let place = Place::new();
        let tools = Tools::new();
        let engine = start(place.open().await.unwrap(), &tools, change).await;
        Rig { engine, caller: Caller::local("ann"), tools, place }
    }

    pub async fn on(place: Place, store: Arc<dyn Store>) -> Rig {
        let tools = Tools::new();
        let engine = start(store, &tools, |config| config).await;
        Rig { engine, caller: Caller::local("ann"), tools, place }
    }

    /// The engine stops at once, with what it was doing undone, and another takes over the store.
    pub async fn restarted_after_a_crash(self) -> Rig {
        self.engine.kill();
        self.restarted().await
    }

    /// Another engine takes over the store from one that has stopped.
    pub async fn restarted(self) -> Rig {
        let Rig { engine, caller, tools, place } = self;
        drop(engine);
        let store = loop {
            // The old engine's tasks let go of a directory when they have noticed.
            match place.open().await {
                Ok(store) => break store,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let engine = start(store, &tools, |config| config).await;
        Rig { engine, caller, tools, place }
    }

    pub fn calls(&self) -> u64 {
        self.tools.calls.load(Ordering::SeqCst)
    }

    pub async fn define(&self, text: &str) {
        let text = serde_json::from_str::<Value>(text).unwrap().to_string();
        self.engine.workflows(&self.caller).define(Source { text: &text, file: None }).await.unwrap();
    }

    pub async fn start(&self, workflow: &str, input: Value) -> String {
        self.engine.runs(&self.caller).trigger(Trigger::new(workflow, input)).await.unwrap().run
    }

    pub async fn ended(&self, run: &str) -> RunView {
        self.engine.runs(&self.caller).wait(run).await.unwrap();
        self.view(run).await
    }

    pub async fn view(&self, run: &str) -> RunView {
        self.engine.runs(&self.caller).get(run).await.unwrap()
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

async fn start(store: Arc<dyn Store>, tools: &Tools, change: impl FnOnce(Config) -> Config) -> Engine {
    let config = Config::new(Kinds::default().with("tool", tools.clone()));
    // Short, so that a node that is killed is soon given up where others could take over.
    let config = change(Config { lease: Duration::from_secs(1), ..config });
    Engine::start(store, config).await.unwrap()
}
