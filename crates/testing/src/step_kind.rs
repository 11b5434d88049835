//! A step kind for tests: tools that succeed, fail or wait for a permit, and a record of the calls.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::{StepCall, StepKind};
use stepwell_store::OrgId;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// `hold` waits for a permit, `fail` fails, `nap` takes a millisecond, every other tool returns its arguments.
///
/// A suite with tools of its own wraps this kind: it calls [`Tools::record`] and passes the rest to [`Tools::answer`].
#[derive(Clone)]
pub struct Tools {
    /// One permit ends one call of `hold`.
    pub permits: Arc<Semaphore>,
    /// The number of calls of `hold` that wait now.
    pub holding: Arc<watch::Sender<i64>>,
    most_held: Arc<AtomicI64>,
    calls: Arc<Mutex<Vec<ToolCall>>>,
}

/// A recorded call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    pub at: Instant,
    pub org: OrgId,
    pub run: String,
    /// The step that called.
    pub path: String,
    pub args: Value,
}

impl Default for Tools {
    fn default() -> Tools {
        Tools {
            permits: Arc::new(Semaphore::new(0)),
            holding: Arc::new(watch::Sender::new(0)),
            most_held: Arc::default(),
            calls: Arc::default(),
        }
    }
}

impl Tools {
    pub fn record(&self, call: &StepCall) {
        let (run, path, args) = (call.run.to_string(), call.path.clone(), call.input["args"].clone());
        let call = ToolCall { at: Instant::now(), org: call.caller.org, run, path, args };
        self.calls.lock().unwrap().push(call);
    }

    /// Performs a call without recording it.
    pub async fn answer(&self, call: &StepCall) -> Outcome {
        match call.input["tool"].as_str() {
            Some("fail") => Outcome::Failure { failure: Failure::new("failed", "as asked"), reply: None },
            Some("nap") => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Outcome::Success(Reply::body(json!(null)))
            }
            Some("hold") => {
                let _held = Held::new(&self.holding, &self.most_held);
                self.permits.acquire().await.unwrap().forget();
                Outcome::Success(Reply::body(json!("held")))
            }
            _ => Outcome::Success(Reply::body(call.input["args"].clone())),
        }
    }

    /// The recorded calls, in order.
    pub fn calls(&self) -> Vec<ToolCall> {
        self.calls.lock().unwrap().clone()
    }

    /// The number of recorded calls.
    pub fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// The steps that called, in order.
    pub fn called(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|call| call.path.clone()).collect()
    }

    /// The most calls of `hold` that waited at the same time.
    pub fn most_held(&self) -> i64 {
        self.most_held.load(Ordering::Relaxed)
    }

    /// Waits until exactly this many calls of `hold` wait.
    pub async fn until_holding(&self, many: i64) {
        self.holding.subscribe().wait_for(|n| *n == many).await.unwrap();
    }
}

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        self.record(&call);
        self.answer(&call).await
    }
}

/// Counts a held call until it is dropped: the engine may drop a call at any await point.
struct Held(Arc<watch::Sender<i64>>);

impl Held {
    fn new(holding: &Arc<watch::Sender<i64>>, most: &AtomicI64) -> Held {
        holding.send_modify(|n| {
            *n += 1;
            most.fetch_max(*n, Ordering::Relaxed);
        });
        Held(holding.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}
