//! What the engine and the store count, as `/metrics` shows it. Alone in its process: there is one recorder.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stepwell_engine::commands::{Source, Trigger};
use stepwell_engine::{Caller, Config, Engine, Kinds};
use stepwell_server::metrics::{Endpoint, install};
use stepwell_store::Store;
use stepwell_store::sqlite::SqliteStore;
use stepwell_testing::Tools;
use tower::ServiceExt;

async fn scrape(router: &Router) -> String {
    let mut request = Request::get("/metrics").header("host", "localhost").body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 1))));
    let response = router.clone().oneshot(request).await.unwrap();
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn what_the_engine_and_the_store_do_is_counted() {
    let handle = install().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(directory.path()).unwrap());
    let router = Endpoint::new(handle, store.clone(), None).router();
    // No call of `hold` gets a permit.
    let config = Config { slots: 1, ..Config::new(Kinds::default().with("tool", Tools::default())) };
    let engine = Engine::start(store, config).await.unwrap();
    let caller = Caller::local("ann");
    let short = json!({"name": "short", "tasks": {"a": {"tool": "ok"}, "b": {"sleep": "10ms", "needs": ["a"]}}});
    let long = json!({"name": "long", "tasks": {"a": {"tool": "hold"}, "b": {"tool": "hold"}}});
    for definition in [short, long] {
        engine.workflows(&caller).define(Source { text: &definition.to_string(), file: None }).await.unwrap();
    }
    let run = engine.runs(&caller).trigger(Trigger::new("short", json!(null))).await.unwrap().run;
    engine.runs(&caller).wait(&run).await.unwrap();
    engine.runs(&caller).trigger(Trigger::new("long", json!(null))).await.unwrap();
    let expected = [
        "stepwell_runs_started_total 2",
        "stepwell_runs_ended_total{status=\"completed\"} 1",
        "stepwell_steps_started_total{kind=\"tool\"} 2",
        "stepwell_steps_ended_total{kind=\"tool\",outcome=\"success\"} 1",
        "stepwell_step_seconds_count{kind=\"tool\"} 1",
        "stepwell_steps_running 1",
        // One of two has the only slot.
        "stepwell_steps_ready 1",
        "stepwell_timer_late_seconds_count 1",
        "stepwell_commit_batch_size_count ",
        "stepwell_commit_seconds_count ",
    ];
    // A step begins a moment after its commit.
    let begun = async {
        loop {
            let text = scrape(&router).await;
            if text.contains("stepwell_steps_running 1") {
                return text;
            }
            tokio::task::yield_now().await;
        }
    };
    let text = tokio::time::timeout(Duration::from_secs(30), begun).await.expect("the step begins");
    for line in expected {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
