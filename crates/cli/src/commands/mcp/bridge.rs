//! Carries messages between standard input and output and a server.

use super::host::Host;
use super::question;
use crate::client::{Envelope, Parser};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_server::view::ProblemView;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The first revision without a handshake.
pub const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// How long a message is tried to be handed to a server that is not there.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts to listen for notices.
const PAUSE: Duration = Duration::from_secs(1);

/// How long answers are waited for after the last message.
const LAST: Duration = Duration::from_secs(1);

/// Of JSON-RPC: what is no message, and what could not be carried.
const PARSE_ERROR: i64 = -32_700;
const INTERNAL_ERROR: i64 = -32_603;

/// Clones are the same one.
#[derive(Clone)]
pub struct Bridge {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    /// What the handshake said, for clients that begin with one.
    shaken: Mutex<Option<Shaken>>,
    /// Requests under way, by their id.
    pending: Mutex<HashMap<String, Pending>>,
    /// Questions that were put to the client.
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    numbers: AtomicU64,
    /// Notices are being passed on.
    notified: AtomicBool,
}

struct Pending {
    task: AbortHandle,
    /// It ends when the client says so, and not by itself.
    listens: bool,
}

#[derive(Clone)]
struct Shaken {
    version: String,
    elicits: bool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Bridge {
    pub fn new(host: Host) -> Bridge {
        Bridge {
            inner: Arc::new(Inner {
                host,
                shaken: Mutex::default(),
                pending: Mutex::default(),
                asked: Mutex::default(),
                numbers: AtomicU64::new(1),
                notified: AtomicBool::new(false),
            }),
        }
    }

    /// Takes one message of the client.
    pub fn take(&self, line: &str) {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(error) => return self.say(&failure(&Value::Null, PARSE_ERROR, &format!("this is not JSON: {error}"))),
        };
        let method = message["method"].as_str().unwrap_or_default().to_string();
        match (method.as_str(), message.get("id")) {
            ("notifications/cancelled", _) => {
                let id = message["params"]["requestId"].to_string();
                if let Some(pending) = held(&self.inner.pending).remove(&id) {
                    pending.task.abort();
                }
            }
            ("notifications/initialized", _) => {
                if !self.inner.notified.swap(true, Ordering::Relaxed) {
                    tokio::spawn(self.clone().notices());
                }
            }
            ("", Some(id)) => {
                let waiting = id.as_str().and_then(|id| held(&self.inner.asked).remove(id));
                // Whoever asked may have given up.
                waiting.map(|waiting| waiting.send(message));
            }
            // No other notice means anything to a server without sessions.
            (_, None) => {}
            (_, Some(id)) => self.begin(id.to_string(), message),
        }
    }

    fn begin(&self, id: String, message: Value) {
        let (bridge, of) = (self.clone(), id.clone());
        let listens = message["method"] == "subscriptions/listen";
        // Nobody can end it before it is known.
        let mut pending = held(&self.inner.pending);
        let task = tokio::spawn(async move {
            bridge.request(message).await;
            held(&bridge.inner.pending).remove(&of);
        });
        pending.insert(id, Pending { task: task.abort_handle(), listens });
    }

    async fn request(&self, message: Value) {
        let shaken = held(&self.inner.shaken).clone();
        let modern = message["params"]["_meta"][VERSION].is_string();
        match (message["method"].as_str(), shaken) {
            (Some("initialize"), _) => self.shake(message).await,
            (Some("tools/call"), Some(shaken)) if shaken.elicits && !modern => {
                let answer = question::call(self, &message).await;
                self.say(&answer);
            }
            _ => self.pass(&message).await,
        }
    }

    /// The handshake. Over these lines the client can be told things unasked.
    async fn shake(&self, message: Value) {
        let mut answer = self.exchange(&message).await;
        if let Some(version) = answer["result"]["protocolVersion"].as_str() {
            let elicits = !message["params"]["capabilities"]["elicitation"].is_null();
            *held(&self.inner.shaken) = Some(Shaken { version: version.to_string(), elicits });
            answer["result"]["capabilities"]["tools"]["listChanged"] = true.into();
        }
        self.say(&answer);
    }

    /// Everything that is said to a message, as it comes.
    async fn pass(&self, message: &Value) {
        let mut answered = false;
        let result = self
            .carry(message, |said| {
                answered |= said.get("method").is_none();
                self.say(&said);
            })
            .await;
        if let Err(why) = result {
            self.say(&failure(&message["id"], INTERNAL_ERROR, &why));
        } else if !answered {
            self.say(&failure(&message["id"], INTERNAL_ERROR, "the server went away before it answered"));
        }
    }

    /// The answer to a message.
    pub async fn exchange(&self, message: &Value) -> Value {
        let mut answer = None;
        let result = self
            .carry(message, |said| {
                if said.get("method").is_none() {
                    answer = Some(said);
                }
            })
            .await;
        let why = match result {
            Ok(()) => "the server went away before it answered".to_string(),
            Err(why) => why,
        };
        answer.unwrap_or_else(|| failure(&message["id"], INTERNAL_ERROR, &why))
    }

    /// Carries a message to the server, and every message of its answer to `each`. One that did not leave is tried again.
    async fn carry(&self, message: &Value, mut each: impl FnMut(Value)) -> Result<(), String> {
        let head = self.head(message);
        let begun = tokio::time::Instant::now();
        let mut response = loop {
            let client = self.inner.host.client().await.map_err(|error| format!("{error:#}"))?;
            match client.message(&head, message).await {
                Ok(response) => break response,
                Err(error) => {
                    self.inner.host.lost(&client).await;
                    if !error.is_connect() {
                        return Err("the connection broke: look whether it was done before you ask again".into());
                    }
                    if begun.elapsed() > PATIENCE {
                        return Err("no server answers".into());
                    }
                }
            }
        };
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            let mut parser = Parser::default();
            // Where it breaks off, whoever waits for more notices.
            while let Ok(Some(bytes)) = response.chunk().await {
                parser.push(&bytes);
                while let Some(frame) = parser.next() {
                    serde_json::from_str(&frame.data).into_iter().for_each(&mut each);
                }
            }
            return Ok(());
        }
        let (status, is_problem) = (response.status(), kind.starts_with("application/problem+json"));
        let text = response.text().await.map_err(|_| "the answer broke off".to_string())?;
        if is_problem {
            let problem = serde_json::from_str::<ProblemView>(&text).unwrap_or_default();
            return Err(format!("{} [{}]", problem.detail, problem.code));
        }
        match serde_json::from_str(&text) {
            Ok(said) => each(said),
            Err(_) => return Err(format!("the server answers {status}: is it a stepwell server?")),
        }
        Ok(())
    }

    fn head(&self, message: &Value) -> Envelope {
        let params = &message["params"];
        let own = params["_meta"][VERSION].as_str().map(str::to_string);
        let version = own.or_else(|| held(&self.inner.shaken).clone().map(|shaken| shaken.version));
        let method = message["method"].as_str().unwrap_or_default();
        let version = version.filter(|_| method != "initialize");
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params["uri"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
            _ => None,
        };
        Envelope { version, method: method.to_string(), name: name.map(str::to_string) }
    }

    /// Puts a question to the client and waits for the answer.
    pub async fn ask(&self, request: &Value) -> Option<Value> {
        let id = self.number();
        let (send, answer) = oneshot::channel();
        held(&self.inner.asked).insert(id.clone(), send);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": request["method"], "params": request["params"]});
        self.say(&message);
        let answer = answer.await.ok()?;
        answer.get("result").cloned()
    }

    /// An id for a message of our own.
    pub fn number(&self) -> String {
        format!("stepwell-{}", self.inner.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// Passes notices of changed tools on to a client that cannot ask for them, for as long as it is there.
    async fn notices(self) {
        let message = json!({"jsonrpc": "2.0", "id": self.number(), "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": true}, "_meta": meta(json!({}))}});
        let mut lost = false;
        loop {
            let told = |said: Value| match said["method"].as_str() {
                Some("notifications/tools/list_changed") => self.say(&tools_changed()),
                // What changed while nobody listened is not known.
                Some("notifications/subscriptions/acknowledged") if lost => self.say(&tools_changed()),
                _ => {}
            };
            let _ = self.carry(&message, told).await;
            lost = true;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Says something to the client.
    fn say(&self, message: &Value) {
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{message}").and_then(|()| out.flush()).is_err() {
            // Nobody listens any more.
            std::process::exit(0);
        }
    }

    /// What is under way has a moment to be answered; then the server of this process ends, if there is one.
    pub async fn end(&self) {
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < LAST && held(&self.inner.pending).values().any(|pending| !pending.listens) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for (_, pending) in held(&self.inner.pending).drain() {
            pending.task.abort();
        }
        self.inner.host.end().await;
    }
}

/// What every request of the newest revision says of its client.
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
