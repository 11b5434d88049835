//! A server on loopback over a fresh directory, and clients of its streams.

use async_trait::async_trait;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::{Config, Kinds, StepCall, StepKind};
use stepwell_server::App;
use stepwell_server::listen::{Limits, serve};
use stepwell_server::live::{Hub, Settings};
use stepwell_store::Progress;
use stepwell_testing::{EngineHarness, TestStore, Tools};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// So long that a test which waits for it has failed.
pub const LONG: Duration = Duration::from_secs(120);
pub const SHORT: Duration = Duration::from_millis(50);

/// Nothing ends by itself.
pub fn patient() -> Settings {
    let (patience, recheck, silence, keep_alive) = (2 * LONG, 2 * LONG, 2 * LONG, 2 * LONG);
    Settings { patience, recheck, silence, keep_alive, ..Settings::new(100) }
}

/// `fail` fails with a message of the given length, every other tool returns its path.
struct Own(Tools);

#[async_trait]
impl StepKind for Own {
    async fn run(&self, call: StepCall) -> Outcome {
        if call.input["tool"] == "fail" {
            let length = call.input["args"]["length"].as_u64().unwrap_or(1);
            let failure = Failure::new("broken", "x".repeat(length as usize));
            return Outcome::Failure { failure, reply: None };
        }
        self.0.answer(&call).await;
        Outcome::Success(Reply::body(json!({"said": call.path})))
    }
}

pub struct Harness {
    inner: EngineHarness,
    pub store: Arc<dyn stepwell_store::Store>,
    pub hub: Arc<Hub>,
    pub address: SocketAddr,
    pub key: String,
    pub tools: Tools,
    stop: Arc<Notify>,
    pub server: tokio::task::JoinHandle<()>,
    _data: TestStore,
}

impl Deref for Harness {
    type Target = EngineHarness;

    fn deref(&self) -> &EngineHarness {
        &self.inner
    }
}

impl Harness {
    pub async fn new(settings: Settings) -> Harness {
        let (data, tools) = (TestStore::new(), Tools::default());
        let store = data.open().await.unwrap();
        let config = Config::new(Kinds::default().with("tool", Own(tools.clone())));
        let inner = EngineHarness::local(store.clone(), config).await;
        let engine = &inner.engine;
        let (key, agent) = (engine.identity().new_secret(), engine.identity().new_secret());
        assert!(engine.identity().bootstrap(&key, &agent).await.unwrap());
        let hub = Hub::with(engine.clone(), settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = App::new(engine.clone(), Arc::default(), &format!("http://{address}"), hub.clone());
        let limits = Limits { connections: 1_000, header_timeout: LONG, body_timeout: LONG, drain: LONG };
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let router = stepwell_server::router(app);
        let server = tokio::spawn(async move { serve(listener, router, limits, stopped.notified()).await });
        Harness { inner, store, hub, address, key, tools, stop, server, _data: data }
    }

    pub async fn define(&self, name: &str, tasks: Value) {
        self.define_tasks(name, tasks).await;
    }

    /// Three steps in a row.
    pub async fn chain(&self) {
        let step = |needs: &[&str]| json!({"tool": "echo", "needs": needs});
        self.define("chain", json!({"a": step(&[]), "b": step(&["a"]), "c": step(&["b"])})).await;
    }

    /// One step that waits to be released, and one after it.
    pub async fn holding(&self) {
        let tasks = json!({
            "wait": {"tool": "hold"},
            "then": {"tool": "echo", "needs": ["wait"]},
        });
        self.define("holding", tasks).await;
    }

    pub async fn start(&self, workflow: &str) -> String {
        self.start_as(&self.admin, workflow, json!({"n": 1})).await
    }

    pub async fn run(&self, workflow: &str) -> String {
        let run = self.start(workflow).await;
        timeout(LONG, self.engine.runs(&self.admin).wait(&run)).await.unwrap().unwrap();
        run
    }

    /// Runs to their end, several at a time.
    pub async fn run_many(&self, workflow: &str, count: usize) {
        let runs = futures_util::stream::iter(0..count).map(|_| self.run(workflow));
        runs.buffer_unordered(16).count().await;
    }

    /// Every event that is in the log: run, version, number.
    pub async fn log(&self) -> Vec<(String, i64, usize)> {
        let rows = self.engine.log().feed(&Progress::default(), 1_000_000).await.unwrap();
        let events = rows.iter().flat_map(|row| {
            let facts: Vec<Value> = serde_json::from_str(&row.log.row.facts).unwrap();
            (0..facts.len()).map(|n| (row.public.clone(), row.log.version.0, n))
        });
        events.collect()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn get(&self, path: &str, key: &str, last: Option<&str>) -> reqwest::Response {
        stepwell_store::tls::install();
        let mut request = reqwest::Client::new().get(self.url(path)).bearer_auth(key);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        request.send().await.unwrap()
    }

    pub async fn stream(&self, path: &str, last: Option<&str>) -> Sse {
        let response = self.get(path, &self.key, last).await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Sse { response, text: String::new(), id: last.unwrap_or_default().to_string() }
    }

    /// Waits until as many streams are open.
    pub async fn streams(&self, count: u32) {
        let there = async {
            while self.hub.streams() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, there).await.unwrap_or_else(|_| panic!("{} streams are open", self.hub.streams()));
    }

    pub async fn socket(&self, key: &str) -> Socket {
        let mut request = format!("ws://{}/api/v1/ws", self.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        Socket(socket)
    }

    /// The listener's stop, without the hub's.
    pub fn stop_listening(&self) {
        self.stop.notify_one();
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Frame {
    pub id: String,
    pub event: String,
    pub data: Value,
}

impl Frame {
    /// Run, version, number.
    pub fn event(&self) -> (String, i64, usize) {
        let number = self.id.split_once('.').unwrap().1.parse().unwrap();
        (self.data["run_id"].as_str().unwrap().to_string(), self.data["version"].as_i64().unwrap(), number)
    }
}

/// A reader of server-sent events.
pub struct Sse {
    response: reqwest::Response,
    text: String,
    /// The last one.
    pub id: String,
}

impl Sse {
    /// The next event; none if the stream is over.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let frame = parse(&block);
                if !frame.id.is_empty() {
                    self.id.clone_from(&frame.id);
                }
                if !frame.event.is_empty() {
                    return Some(frame);
                }
                continue;
            }
            let chunk = timeout(LONG, self.response.chunk()).await.expect("something comes").ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Everything to the end.
    pub async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// Reads until a line of any sort begins so.
    pub async fn until(&mut self, line: &str) {
        while !self.text.lines().any(|is| is.starts_with(line)) {
            let chunk = timeout(LONG, self.response.chunk()).await.expect("something comes").unwrap().unwrap();
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

/// All whole events in a text.
pub fn frames(text: &str) -> Vec<Frame> {
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    whole.split("\n\n").map(parse).filter(|frame| !frame.event.is_empty()).collect()
}

fn parse(block: &str) -> Frame {
    let mut frame = Frame::default();
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => frame.id = id.into(),
            Some(("event", event)) => frame.event = event.into(),
            Some(("data", data)) => frame.data = serde_json::from_str(data).unwrap(),
            _ => {}
        }
    }
    frame
}

pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn send(&mut self, message: impl ToString) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    pub async fn send_binary(&mut self, bytes: &'static [u8]) {
        self.0.send(Message::binary(bytes)).await.unwrap();
    }

    pub async fn join(&mut self, run: &str) {
        self.send(json!({"event": "workflow_run_join", "data": {"runId": run}})).await;
    }

    pub async fn leave(&mut self, run: &str) {
        self.send(json!({"type": "workflow_run_leave", "runId": run})).await;
    }

    /// The next message that is not about the connection; none if that is over.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match timeout(LONG, self.0.next()).await.expect("something comes")?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Messages in short, until the run has this status.
    pub async fn until(&mut self, status: &str) -> VecDeque<String> {
        let mut seen = VecDeque::new();
        loop {
            let message = self.next().await.expect("the socket is open");
            seen.push_back(short(&message));
            if message["event"] == "workflow_status_update" && message["data"]["status"] == status {
                return seen;
            }
        }
    }
}

/// `a=running`, or the status of the run, or the code of an error.
pub fn short(message: &Value) -> String {
    let data = &message["data"];
    let status = data["status"].as_str().unwrap_or_default();
    match message["event"].as_str() {
        Some("workflow_node_update") => format!("{}={status}", data["nodeID"].as_str().unwrap()),
        Some("workflow_status_update") => status.into(),
        _ => format!("{} {}", message["event"], data["code"]).replace('"', ""),
    }
}
