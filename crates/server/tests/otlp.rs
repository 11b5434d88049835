//! Traces as a collector receives them, from a real engine on a fresh directory.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use async_trait::async_trait;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Json, Router, routing};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::commands::{Source, Trigger};
use stepwell_engine::trace::{hex, run_span, step_span, trace_id};
use stepwell_engine::{Caller, Config, Engine, Kinds, StepCall, StepKind};
use stepwell_server::config::{Otlp, Secret};
use stepwell_server::otlp::{Exporter, Intervals};
use stepwell_testing::TestStore;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// So long that a test which waits for it has failed.
const LONG: Duration = Duration::from_secs(30);

/// Keeps what it is sent, or answers with the status it is told to.
#[derive(Clone)]
struct Receiver {
    requests: Arc<watch::Sender<Vec<Value>>>,
    /// How often it was asked while it took nothing.
    turned_down: Arc<watch::Sender<u32>>,
    answer: Arc<watch::Sender<StatusCode>>,
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, Json(body): Json<Value>) -> StatusCode {
    assert_eq!(headers["authorization"], "Bearer abc");
    let answer = *receiver.answer.borrow();
    if answer.is_success() {
        receiver.requests.send_modify(|requests| requests.push(body));
    } else {
        receiver.turned_down.send_modify(|count| *count += 1);
    }
    answer
}

/// Steps whose tool is `fail` fail, those of `hold` never end.
struct Tools;

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        match call.input["tool"].as_str() {
            Some("hold") => std::future::pending().await,
            Some("fail") => {
                let failure = Failure { retryable: true, ..Failure::new("broken", "it broke") };
                Outcome::Failure { failure, reply: None }
            }
            _ => Outcome::Success(Reply::body(json!("done"))),
        }
    }
}

struct Harness {
    engine: Engine,
    caller: Caller,
    receiver: Receiver,
    stop: Arc<Notify>,
    exporter: Option<JoinHandle<()>>,
    otlp: Otlp,
    _place: TestStore,
}

const INTERVALS: Intervals = Intervals {
    linger: Duration::from_millis(5),
    poll: LONG,
    first_pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(20),
};

impl Harness {
    async fn new() -> Harness {
        let receiver = Receiver {
            requests: Arc::new(watch::Sender::new(Vec::new())),
            turned_down: Arc::new(watch::Sender::new(0)),
            answer: Arc::new(watch::Sender::new(StatusCode::OK)),
        };
        let router = Router::new().route("/otlp/v1/traces", routing::post(receive)).with_state(receiver.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/otlp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let headers = BTreeMap::from([("authorization".to_string(), Secret::new("Bearer abc"))]);
        let otlp = Otlp { endpoint, headers, service_name: "flows".into() };
        let place = TestStore::new();
        let store = place.open().await.unwrap();
        let engine = Engine::start(store, Config::new(Kinds::default().with("tool", Tools))).await.unwrap();
        let caller = Caller::local("ann");
        Harness { engine, caller, receiver, stop: Arc::default(), exporter: None, otlp, _place: place }
    }

    async fn export(mut self) -> Harness {
        let mut exporter = Exporter::new(&self.engine, &self.otlp, INTERVALS).await.unwrap();
        let stop = self.stop.clone();
        self.exporter = Some(tokio::spawn(async move { exporter.run(stop.notified()).await }));
        self
    }

    async fn define(&self, definition: Value) {
        let text = definition.to_string();
        self.engine.workflows(&self.caller).define(Source { text: &text, file: None }).await.unwrap();
    }

    async fn start(&self, workflow: &str) -> String {
        let trigger = Trigger::new(workflow, json!([1, 2]));
        self.engine.runs(&self.caller).trigger(trigger).await.unwrap().run
    }

    async fn run(&self, workflow: &str) -> String {
        let run = self.start(workflow).await;
        self.engine.runs(&self.caller).wait(&run).await.unwrap();
        run
    }

    /// All spans so far, once there are as many.
    async fn spans(&self, count: usize) -> Vec<Value> {
        let mut requests = self.receiver.requests.subscribe();
        let enough = |requests: &Vec<Value>| spans(requests).len() >= count;
        let found = tokio::time::timeout(LONG, requests.wait_for(enough)).await;
        let found = found.unwrap_or_else(|_| panic!("only {:#?}", spans(&self.receiver.requests.borrow()))).unwrap();
        spans(&found)
    }
}

fn spans(requests: &[Value]) -> Vec<Value> {
    let spans = requests.iter().flat_map(|request| request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array());
    spans.flatten().cloned().collect()
}

fn named<'s>(spans: &'s [Value], name: &str) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.map(|attribute| attribute["value"].clone()).unwrap_or_default()
}

fn nanos(span: &Value, which: &str) -> u64 {
    span[which].as_str().unwrap().parse().unwrap()
}

fn tool(name: &str, needs: &[&str]) -> Value {
    json!({"tool": name, "needs": needs})
}

#[tokio::test]
async fn a_run_is_a_trace_and_an_attempt_is_a_span_of_it() {
    let harness = Harness::new().await.export().await;
    harness
        .define(json!({"name": "orders", "tasks": {"charge": tool("ok", &[]), "ship": tool("ok", &["charge"])}}))
        .await;
    let run = harness.run("orders").await;
    let spans = harness.spans(3).await;
    assert_eq!(spans.len(), 3, "{spans:#?}");
    let request = &harness.receiver.requests.borrow()[0];
    let resource = &request["resourceSpans"][0]["resource"];
    assert_eq!(*resource, json!({"attributes": [{"key": "service.name", "value": {"stringValue": "flows"}}]}));
    let root = named(&spans, "orders")[0];
    assert_eq!(root["traceId"], hex(&trace_id(&run)));
    assert_eq!(root["spanId"], hex(&run_span(&run)));
    assert_eq!((&root["parentSpanId"], &root["kind"]), (&Value::Null, &json!(1)));
    assert_eq!(attribute(root, "stepwell.run.status"), json!({"stringValue": "completed"}));
    for name in ["charge", "ship"] {
        let span = named(&spans, name)[0];
        assert_eq!(span["traceId"], root["traceId"]);
        assert_eq!(span["spanId"], hex(&step_span(&run, name, 1)));
        assert_eq!(span["parentSpanId"], root["spanId"]);
        assert_eq!(span["status"], json!({}));
        assert_eq!(attribute(span, "stepwell.run.id"), json!({"stringValue": run}));
        assert_eq!(attribute(span, "stepwell.workflow.name"), json!({"stringValue": "orders"}));
        assert_eq!(attribute(span, "stepwell.step.kind"), json!({"stringValue": "tool"}));
        assert_eq!(attribute(span, "stepwell.step.attempt"), json!({"intValue": "1"}));
        assert!(nanos(root, "startTimeUnixNano") <= nanos(span, "startTimeUnixNano"));
        assert!(nanos(span, "startTimeUnixNano") <= nanos(span, "endTimeUnixNano"));
        assert!(nanos(span, "endTimeUnixNano") <= nanos(root, "endTimeUnixNano"));
    }
}

#[tokio::test]
async fn every_attempt_that_failed_is_a_span_with_its_error() {
    let harness = Harness::new().await.export().await;
    let retry = json!({"attempts": 3, "backoff": "fixed", "delay": "1ms"});
    harness.define(json!({"name": "w", "tasks": {"call": {"tool": "fail", "retry": retry}}})).await;
    let run = harness.run("w").await;
    let spans = harness.spans(4).await;
    let attempts = named(&spans, "call");
    assert_eq!(attempts.len(), 3, "{spans:#?}");
    for (n, span) in attempts.into_iter().enumerate() {
        assert_eq!(span["spanId"], hex(&step_span(&run, "call", n as u32 + 1)));
        assert_eq!(span["status"], json!({"code": 2, "message": "it broke"}));
        assert_eq!(attribute(span, "error.type"), json!({"stringValue": "broken"}));
    }
    assert_eq!(named(&spans, "w")[0]["status"]["code"], 2);
}

#[tokio::test]
async fn what_a_cancellation_cut_off_is_a_span_too() {
    let harness = Harness::new().await.export().await;
    harness.define(json!({"name": "w", "tasks": {"stuck": tool("hold", &[]), "never": tool("ok", &["stuck"])}})).await;
    let run = harness.start("w").await;
    harness.engine.runs(&harness.caller).cancel(&run, None).await.unwrap();
    let spans = harness.spans(2).await;
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let stuck = named(&spans, "stuck")[0];
    assert_eq!(attribute(stuck, "stepwell.step.status"), json!({"stringValue": "cancelled"}));
    assert_eq!(named(&spans, "w")[0]["status"], json!({}));
}

#[tokio::test]
async fn items_of_a_loop_share_a_name_and_a_child_run_points_to_its_parent() {
    let harness = Harness::new().await.export().await;
    harness.define(json!({"name": "child", "tasks": {"inner": tool("ok", &[])}})).await;
    let body = json!({"call": tool("ok", &[])});
    let each = json!({"for_each": "{{trigger.body}}", "tasks": body});
    harness
        .define(json!({"name": "parent", "tasks": {"each": each, "sub": {"workflow": "child", "needs": ["each"]}}}))
        .await;
    let run = harness.run("parent").await;
    let spans = harness.spans(7).await;
    let items = named(&spans, "each.call");
    assert_eq!(items.len(), 2, "{spans:#?}");
    // They run side by side, and end in any order.
    let first = hex(&step_span(&run, "each[0].call", 1));
    assert!(items.iter().any(|item| item["spanId"] == first), "{spans:#?}");
    assert_eq!(attribute(items[0], "stepwell.step.kind"), json!({"stringValue": "tool"}));
    let child = named(&spans, "child")[0];
    assert_ne!(child["traceId"], hex(&trace_id(&run)));
    assert_eq!(child["links"][0]["traceId"], hex(&trace_id(&run)));
    assert_eq!(child["links"][0]["spanId"], hex(&step_span(&run, "sub", 1)));
}

#[tokio::test]
async fn history_is_not_sent_but_what_began_in_it_has_its_right_start() {
    let harness = Harness::new().await;
    harness.define(json!({"name": "old", "tasks": {"a": tool("ok", &[])}})).await;
    harness.define(json!({"name": "long", "tasks": {"stuck": tool("hold", &[])}})).await;
    harness.run("old").await;
    let run = harness.start("long").await;
    let begun = harness.engine.runs(&harness.caller).get(&run).await.unwrap().tasks[0].started_at.unwrap();
    let harness = harness.export().await;
    harness.engine.runs(&harness.caller).cancel(&run, None).await.unwrap();
    let spans = harness.spans(2).await;
    assert!(spans.iter().all(|span| span["traceId"] == hex(&trace_id(&run))), "{spans:#?}");
    let stuck = named(&spans, "stuck")[0];
    assert_eq!(nanos(stuck, "startTimeUnixNano"), begun.0 as u64 * 1_000_000);
}

#[tokio::test]
async fn a_collector_that_is_down_gets_everything_when_it_is_back_and_the_engine_does_not_wait() {
    let harness = Harness::new().await.export().await;
    harness.receiver.answer.send_replace(StatusCode::SERVICE_UNAVAILABLE);
    harness.define(json!({"name": "w", "tasks": {"a": tool("ok", &[])}})).await;
    for _ in 0..20 {
        harness.run("w").await;
    }
    let mut tried = harness.receiver.turned_down.subscribe();
    tokio::time::timeout(LONG, tried.wait_for(|count| *count >= 3)).await.expect("several tries").unwrap();
    assert!(harness.receiver.requests.borrow().is_empty());
    harness.receiver.answer.send_replace(StatusCode::OK);
    let spans = harness.spans(40).await;
    assert_eq!((named(&spans, "w").len(), named(&spans, "a").len()), (20, 20));
}

#[tokio::test]
async fn spans_that_a_collector_refuses_for_good_are_not_sent_for_ever() {
    let harness = Harness::new().await.export().await;
    harness.receiver.answer.send_replace(StatusCode::BAD_REQUEST);
    harness.define(json!({"name": "bad", "tasks": {"a": tool("ok", &[])}})).await;
    harness.define(json!({"name": "good", "tasks": {"b": tool("ok", &[])}})).await;
    harness.run("bad").await;
    let mut refused = harness.receiver.turned_down.subscribe();
    tokio::time::timeout(LONG, refused.wait_for(|count| *count >= 1)).await.expect("a try").unwrap();
    harness.receiver.answer.send_replace(StatusCode::OK);
    harness.run("good").await;
    let mut requests = harness.receiver.requests.subscribe();
    let ended = |requests: &Vec<Value>| !named(&spans(requests), "good").is_empty();
    tokio::time::timeout(LONG, requests.wait_for(ended)).await.expect("the spans that follow").unwrap();
}

#[tokio::test]
async fn what_is_left_at_the_end_is_still_sent() {
    let mut harness = Harness::new().await;
    let intervals = Intervals { linger: LONG, ..INTERVALS };
    let mut exporter = Exporter::new(&harness.engine, &harness.otlp, intervals).await.unwrap();
    let stop = harness.stop.clone();
    harness.exporter = Some(tokio::spawn(async move { exporter.run(stop.notified()).await }));
    harness.define(json!({"name": "w", "tasks": {"a": tool("ok", &[])}})).await;
    harness.run("w").await;
    harness.engine.shutdown(LONG).await;
    assert!(harness.receiver.requests.borrow().is_empty(), "it would have lingered");
    harness.stop.notify_one();
    tokio::time::timeout(LONG, harness.exporter.take().unwrap()).await.expect("the exporter ends").unwrap();
    assert_eq!(spans(&harness.receiver.requests.borrow()).len(), 2);
}

#[tokio::test]
async fn a_missing_collector_does_not_delay_the_end() {
    let mut harness = Harness::new().await;
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    harness.otlp.endpoint = format!("http://{dead}");
    let harness = harness.export().await;
    harness.define(json!({"name": "w", "tasks": {"a": tool("ok", &[])}})).await;
    harness.run("w").await;
    harness.stop.notify_one();
    tokio::time::timeout(LONG, harness.exporter.unwrap()).await.expect("the exporter ends").unwrap();
}
