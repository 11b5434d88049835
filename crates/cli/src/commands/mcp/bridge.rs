//! Forwards messages between standard input and output and a server.

use super::elicitation;
use super::host::Host;
use crate::client::{McpHeaders, Parser};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_client::reqwest::header::CONTENT_TYPE;
use stepwell_server::view::ProblemView;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The first revision without a handshake.
pub const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// How long to retry a message while no server is available.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Delay between two subscriptions to notifications.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long to wait for responses after the last message.
const DRAIN: Duration = Duration::from_secs(1);

/// JSON-RPC error codes: an invalid message, and one that could not be forwarded.
const PARSE_ERROR: i64 = -32_700;
const INTERNAL_ERROR: i64 = -32_603;

/// Clones share one state.
#[derive(Clone)]
pub struct Bridge {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    /// The result of the handshake, for clients that start with one.
    handshake: Mutex<Option<Handshake>>,
    /// Pending requests by id.
    pending: Mutex<HashMap<String, Pending>>,
    /// Open questions to the client.
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    next_id: AtomicU64,
    /// Whether notifications are being forwarded.
    notifying: AtomicBool,
}

struct Pending {
    task: AbortHandle,
    /// A subscription, which ends only when the client cancels it.
    listens: bool,
}

#[derive(Clone)]
struct Handshake {
    version: String,
    elicits: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Bridge {
    pub fn new(host: Host) -> Bridge {
        Bridge {
            inner: Arc::new(Inner {
                host,
                handshake: Mutex::default(),
                pending: Mutex::default(),
                asked: Mutex::default(),
                next_id: AtomicU64::new(1),
                notifying: AtomicBool::new(false),
            }),
        }
    }

    /// Handles one message from the client.
    pub fn take(&self, line: &str) {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) => {
                return self.write(&failure(&Value::Null, PARSE_ERROR, &format!("this is not JSON: {error}")));
            }
        };
        let method = message["method"].as_str().unwrap_or_default().to_string();
        match (method.as_str(), message.get("id")) {
            ("notifications/cancelled", _) => {
                let id = message["params"]["requestId"].to_string();
                if let Some(pending) = lock(&self.inner.pending).remove(&id) {
                    pending.task.abort();
                }
            }
            ("notifications/initialized", _) => {
                if !self.inner.notifying.swap(true, Ordering::Relaxed) {
                    tokio::spawn(self.clone().forward_notifications());
                }
            }
            ("", Some(id)) => {
                let waiting = id.as_str().and_then(|id| lock(&self.inner.asked).remove(id));
                // The receiver may have given up.
                waiting.map(|waiting| waiting.send(message));
            }
            // No other notification means anything to a sessionless server.
            (_, None) => {}
            (_, Some(id)) => self.begin(id.to_string(), message),
        }
    }

    fn begin(&self, id: String, message: Value) {
        let (bridge, of) = (self.clone(), id.clone());
        let listens = message["method"] == "subscriptions/listen";
        // Holding the lock ensures that the task is registered before it can remove itself.
        let mut pending = lock(&self.inner.pending);
        let task = tokio::spawn(async move {
            bridge.request(message).await;
            lock(&bridge.inner.pending).remove(&of);
        });
        pending.insert(id, Pending { task: task.abort_handle(), listens });
    }

    async fn request(&self, message: Value) {
        let handshake = lock(&self.inner.handshake).clone();
        let modern = message["params"]["_meta"][VERSION].is_string();
        match (message["method"].as_str(), handshake) {
            (Some("initialize"), _) => self.initialize(message).await,
            (Some("tools/call"), Some(handshake)) if handshake.elicits && !modern => {
                let answer = elicitation::call(self, &message).await;
                self.write(&answer);
            }
            _ => self.forward(&message).await,
        }
    }

    /// The handshake. Unlike sessionless HTTP, this connection can send unsolicited notifications.
    async fn initialize(&self, message: Value) {
        let mut answer = self.exchange(&message).await;
        if let Some(version) = answer["result"]["protocolVersion"].as_str() {
            let elicits = !message["params"]["capabilities"]["elicitation"].is_null();
            *lock(&self.inner.handshake) = Some(Handshake { version: version.to_string(), elicits });
            answer["result"]["capabilities"]["tools"]["listChanged"] = true.into();
        }
        self.write(&answer);
    }

    /// Forwards a message and streams all its responses to the client.
    async fn forward(&self, message: &Value) {
        let mut answered = false;
        let result = self
            .transmit(message, |response| {
                answered |= response.get("method").is_none();
                self.write(&response);
            })
            .await;
        if let Err(why) = result {
            self.write(&failure(&message["id"], INTERNAL_ERROR, &why));
        } else if !answered {
            self.write(&failure(&message["id"], INTERNAL_ERROR, "the server went away before it answered"));
        }
    }

    /// Sends a message and returns its response.
    pub async fn exchange(&self, message: &Value) -> Value {
        let mut answer = None;
        let result = self
            .transmit(message, |response| {
                if response.get("method").is_none() {
                    answer = Some(response);
                }
            })
            .await;
        let why = match result {
            Ok(()) => "the server went away before it answered".to_string(),
            Err(why) => why,
        };
        answer.unwrap_or_else(|| failure(&message["id"], INTERNAL_ERROR, &why))
    }

    /// Sends a message to the server and passes every message of the response to `each`. Retries only if the message
    /// was not sent.
    async fn transmit(&self, message: &Value, mut each: impl FnMut(Value)) -> Result<(), String> {
        let head = self.head(message);
        let begun = tokio::time::Instant::now();
        let mut response = loop {
            let client = self.inner.host.client().await.map_err(|error| format!("{error:#}"))?;
            match client.send_mcp(&head, message).await {
                Ok(response) => break response,
                Err(error) => {
                    self.inner.host.lost(&client).await;
                    if !error.is_connect() {
                        return Err(
                            "the connection broke: check whether the request took effect before you retry it".into()
                        );
                    }
                    if begun.elapsed() > TIMEOUT {
                        return Err("no server answers".into());
                    }
                }
            }
        };
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let mut parser = Parser::default();
            // A truncated stream shows as a missing response.
            while let Ok(Some(bytes)) = response.chunk().await {
                parser.push(&bytes);
                while let Some(frame) = parser.next() {
                    serde_json::from_str(&frame.data).into_iter().for_each(&mut each);
                }
            }
            return Ok(());
        }
        let (status, is_problem) = (response.status(), kind.starts_with("application/problem+json"));
        let text = response.text().await.map_err(|_| "the response was cut off".to_string())?;
        if is_problem {
            let problem = serde_json::from_str::<ProblemView>(&text).unwrap_or_default();
            return Err(format!("{} [{}]", problem.detail, problem.code));
        }
        match serde_json::from_str(&text) {
            Ok(response) => each(response),
            Err(_) => return Err(format!("the server answered {status}: is it a stepwell server?")),
        }
        Ok(())
    }

    fn head(&self, message: &Value) -> McpHeaders {
        let params = &message["params"];
        let own = params["_meta"][VERSION].as_str().map(str::to_string);
        let version = own.or_else(|| lock(&self.inner.handshake).clone().map(|handshake| handshake.version));
        let method = message["method"].as_str().unwrap_or_default();
        let version = version.filter(|_| method != "initialize");
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params["uri"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
            _ => None,
        };
        McpHeaders { version, method: method.to_string(), name: name.map(str::to_string) }
    }

    /// Asks the client a question and waits for the answer.
    pub async fn ask(&self, request: &Value) -> Option<Value> {
        let id = self.next_id();
        let (send, answer) = oneshot::channel();
        lock(&self.inner.asked).insert(id.clone(), send);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": request["method"], "params": request["params"]});
        self.write(&message);
        let answer = answer.await.ok()?;
        answer.get("result").cloned()
    }

    /// An id for a message of the bridge.
    pub fn next_id(&self) -> String {
        format!("stepwell-{}", self.inner.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Forwards notifications of changed tools to a client that cannot subscribe to them.
    async fn forward_notifications(self) {
        let message = json!({"jsonrpc": "2.0", "id": self.next_id(), "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": true}, "_meta": meta(json!({}))}});
        let mut lost = false;
        loop {
            let each = |notification: Value| match notification["method"].as_str() {
                Some("notifications/tools/list_changed") => self.write(&tools_changed()),
                // Tools may have changed while the subscription was down.
                Some("notifications/subscriptions/acknowledged") if lost => self.write(&tools_changed()),
                _ => {}
            };
            let _ = self.transmit(&message, each).await;
            lost = true;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Writes a message to the client.
    fn write(&self, message: &Value) {
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{message}").and_then(|()| out.flush()).is_err() {
            // The client is gone.
            std::process::exit(0);
        }
    }

    /// Waits briefly for pending responses, then stops the server of this process, if there is one.
    pub async fn end(&self) {
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < DRAIN && lock(&self.inner.pending).values().any(|pending| !pending.listens) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for (_, pending) in lock(&self.inner.pending).drain() {
            pending.task.abort();
        }
        self.inner.host.end().await;
    }
}

/// The client metadata in every request of the newest revision.
pub fn meta(capabilities: Value) -> Value {
    json!({VERSION: MODERN, "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "stepwell-mcp", "version": env!("CARGO_PKG_VERSION")}})
}

fn tools_changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
