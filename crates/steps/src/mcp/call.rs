//! One call of a tool: looks it up, checks the arguments, sends the request and reads the response.

use super::absent::{Bounded, Wait, late};
use super::connect::{describe, http_client_error, truncated, unauthorized};
use super::deferred::{NextRequest, Note};
use super::message::UNREADABLE;
use super::progress::capabilities;
use super::upstream::{KnownTool, Link, Upstream};
use super::{Lookup, Upstreams, deferred, result};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
    ElicitationCapability, ErrorCode, FormElicitationCapability, RequestId, RequestMetaObject,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::{Failure, FailureKind, Outcome, Reply};
use stepwell_core::time::Time;
use stepwell_engine::upstream::Standing;
use stepwell_engine::{StepCall, Suspended};

/// The metadata key by which servers recognise a repeated call.
const IDEMPOTENCY_KEY: &str = "stepwell/idempotencyKey";

/// Why a request has no result.
pub enum RequestError {
    /// The request was not sent.
    Unsent(String),
    /// The request may have been sent, and its effect is unknown.
    Lost(String),
    /// A response came and cannot be read.
    Unreadable(String),
    /// The connection was ended because the server sent too much or did not read.
    OverLimit(String),
    /// The server refused the credentials, with this HTTP status.
    Unauthorized(String),
    /// The server returned an error.
    Rejected { code: i32, message: String },
}

/// How a call ends without a result.
pub enum CallEnd {
    Failed(Failure),
    Waiting(Box<Suspended>),
    /// There is no connection to this server, and nothing was sent.
    Unavailable(Arc<Upstream>, String),
}

impl CallEnd {
    fn bounded(self, call: &StepCall, now: Time) -> CallEnd {
        match self {
            CallEnd::Waiting(waits) => CallEnd::Waiting(Box::new(waits.bounded(call, now))),
            other => other,
        }
    }

    #[allow(clippy::result_large_err, reason = "the return type of the engine's trait")]
    fn ended(self) -> Result<Outcome, Suspended> {
        match self {
            CallEnd::Failed(failure) => Ok(failed(failure)),
            CallEnd::Waiting(waits) => Err(*waits),
            CallEnd::Unavailable(upstream, why) => Ok(failed(unavailable(upstream.name(), &why))),
        }
    }
}

impl From<Failure> for CallEnd {
    fn from(failure: Failure) -> CallEnd {
        CallEnd::Failed(failure)
    }
}

/// A call of a tool.
pub struct ToolCall<'a> {
    pub upstream: &'a Arc<Upstream>,
    pub known: &'a KnownTool,
    pub args: &'a Value,
    pub call: &'a StepCall,
    pub began: Time,
}

impl Upstreams {
    /// `None` if no server can have a tool of that name.
    pub(crate) async fn call(
        &self,
        name: &str,
        args: &Arc<Value>,
        call: &StepCall,
    ) -> Option<Result<Outcome, Suspended>> {
        let note = call.resumed.as_ref().and_then(|resumed| Note::read(&resumed.note));
        let now = self.context.clock.now();
        if let Some(note) = &note
            && note.is_late(call, now)
        {
            return Some(Ok(failed(late(call))));
        }
        let wait = Wait::new(call, now);
        loop {
            let (upstream, why) = match self.once(name, args, call, note.clone()).await? {
                Ok(outcome) => return Some(Ok(outcome)),
                Err(CallEnd::Unavailable(upstream, why)) => (upstream, why),
                Err(end) => return Some(end.ended()),
            };
            if let Some(note) = note {
                return Some(Err(note.later(None, None).bounded(call, self.context.clock.now())));
            }
            if upstream.denied() {
                return Some(Ok(failed(refused_credentials(upstream.name(), &why))));
            }
            if let Some(end) = wait.a_moment(self.context.clock.as_ref(), upstream.name(), &why).await {
                return Some(end);
            }
        }
    }

    /// Looks up the tool and makes the call, if the server is there.
    async fn once(
        &self,
        name: &str,
        args: &Arc<Value>,
        call: &StepCall,
        note: Option<Note>,
    ) -> Option<Result<Outcome, CallEnd>> {
        let (upstream, known) = match self.find(call.caller.org, name)? {
            Lookup::Tool(upstream, known) => (upstream, known),
            Lookup::Unavailable(upstream) | Lookup::Unlisted(upstream) => {
                let why = upstream.trouble();
                return Some(Err(CallEnd::Unavailable(upstream, why)));
            }
            Lookup::Held(upstream, why) => {
                let message = format!("`{name}` of {} was not called: {why}", upstream.name());
                return Some(Ok(failed(Failure::new("tool_held", message))));
            }
            Lookup::Removed(upstream) => {
                let message = format!("{} no longer offers `{name}`", upstream.name());
                let failure = Failure::new("unknown_tool", message);
                return Some(Ok(failed(Failure { may_have_happened: note.is_some(), ..failure })));
            }
        };
        let tool_call = ToolCall { upstream: &upstream, known: &known, args, call, began: self.context.clock.now() };
        Some(self.attempt(&tool_call, note).await.map_err(|end| end.bounded(call, self.context.clock.now())))
    }

    async fn attempt(&self, tool_call: &ToolCall<'_>, note: Option<Note>) -> Result<Outcome, CallEnd> {
        match note {
            None => {
                self.check_accepted(tool_call).await?;
                tool_call.tool(Note::new(tool_call)).await
            }
            Some(note) => match note.resume(tool_call).await? {
                NextRequest::Task(note) => deferred::poll(tool_call, note).await,
                NextRequest::Call(note) => {
                    self.check_accepted(tool_call).await?;
                    tool_call.tool(note).await
                }
            },
        }
    }

    async fn check_accepted(&self, tool_call: &ToolCall<'_>) -> Result<(), Failure> {
        let (upstream, offered) = (tool_call.upstream, &tool_call.known.offered);
        let mut standing = upstream.standing(offered);
        if standing != Standing::Accepted {
            // It may have been accepted on another node since.
            let accepted = self.context.pins.accepted(tool_call.call.caller.org, upstream.name()).await;
            let unreadable = |error| Failure::retryable("unavailable", format!("the store cannot be read: {error}"));
            if let Some(accepted) = accepted.map_err(unreadable)? {
                upstream.set_accepted(accepted);
            }
            standing = upstream.standing(offered);
        }
        let (code, what) = match standing {
            Standing::Accepted => return Ok(()),
            Standing::Changed => ("tool_changed", "its description or schema differs from the accepted one"),
            Standing::New => ("tool_new", "it was added after the server was first connected"),
        };
        let (server, tool) = (upstream.name(), &offered.tool);
        Err(Failure::new(
            code,
            format!(
                "`{}` was not called: {what}. An administrator can review it with `stepwell mcp-server list` and \
                 accept it with `stepwell mcp-server accept {server} {tool}`",
                offered.name
            ),
        ))
    }
}

impl ToolCall<'_> {
    pub fn link(&self) -> Result<Link, CallEnd> {
        self.upstream.current().ok_or_else(|| CallEnd::Unavailable(self.upstream.clone(), self.upstream.trouble()))
    }

    /// Calls the tool, continuing with the state of an earlier round.
    async fn tool(&self, note: Note) -> Result<Outcome, CallEnd> {
        let args = self.checked().await?;
        let link = self.link()?;
        let mut params = CallToolRequestParams::new(self.known.offered.tool.clone());
        params.arguments = Some(args);
        params.input_responses = note.responses();
        params.request_state = note.state.clone();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (response, log) = self.send(&link, request).await;
        let response = match response {
            Ok(response) => response,
            Err(RequestError::Unsent(why)) => return Err(CallEnd::Unavailable(self.upstream.clone(), why)),
            Err(error) => return Ok(masked(&link, self.failure(error), log)),
        };
        match response.get("resultType").and_then(Value::as_str) {
            Some("input_required") => Err(note.postpone(self, &link, &response).await),
            Some("task") => Err(note.start_task(self, &link, &response)),
            _ => Ok(self.ended(&link, response, log).await),
        }
    }

    /// Turns a result into an outcome, whether it came from a call or a task.
    pub async fn ended(&self, link: &Link, response: Value, log: Option<Arc<Value>>) -> Outcome {
        masked(link, result::outcome(self.known, response).await, log)
    }

    pub fn failure(&self, error: RequestError) -> Outcome {
        let server = self.upstream.name();
        failed(match error {
            RequestError::Unsent(why) => unavailable(server, &why),
            RequestError::Lost(why) => Failure {
                kind: FailureKind::Network,
                may_have_happened: true,
                ..Failure::retryable(
                    "connection_lost",
                    format!("the connection to {server} was lost during the call: {why}"),
                )
            },
            RequestError::Unreadable(why) => {
                let message = format!("{server} sent a response that cannot be read: {why}");
                Failure { may_have_happened: true, ..Failure::new("bad_result", message) }
            }
            RequestError::OverLimit(why) => over_limit(server, &why),
            RequestError::Unauthorized(why) => refused_credentials(server, &why),
            RequestError::Rejected { code, message } => {
                // Servers return these before they carry out anything.
                let refused = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_REQUEST];
                let may_have_happened = !refused.contains(&ErrorCode(code));
                let failure = Failure::new("mcp_error", format!("{server} returned error {code}: {message}"));
                Failure { may_have_happened, ..failure }
            }
        })
    }

    /// The checked arguments. If null is not a valid value, nulls are omitted.
    async fn checked(&self) -> Result<serde_json::Map<String, Value>, Failure> {
        let name = &self.known.offered.name;
        let bad = |why: String| Failure::new("bad_arguments", format!("`{name}` was not called: {why}"));
        let Value::Object(args) = self.args else { return Err(bad("`args` must be an object".into())) };
        let Some(faults) = self.known.bad_input(self.args).await else { return Ok(args.clone()) };
        let without: serde_json::Map<String, Value> = args
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let without = Value::Object(without);
        if self.known.bad_input(&without).await.is_some() {
            return Err(bad(faults));
        }
        Ok(without.as_object().cloned().unwrap_or_default())
    }

    pub async fn send(&self, link: &Link, request: ClientRequest) -> (Result<Value, RequestError>, Option<Arc<Value>>) {
        Sender { upstream: self.upstream, call: self.call }.send(link, request).await
    }
}

/// What requests of a call are sent with.
pub struct Sender<'a> {
    pub upstream: &'a Upstream,
    pub call: &'a StepCall,
}

impl Sender<'_> {
    /// Sends a request and waits for its response. Dropping the future sends a cancellation to the server.
    pub async fn send(&self, link: &Link, request: ClientRequest) -> (Result<Value, RequestError>, Option<Arc<Value>>) {
        let options = PeerRequestOptions::no_options().with_meta(self.meta(link));
        let handle = match link.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => {
                self.upstream.suspect.notify_one();
                return (Err(RequestError::Unsent(describe(&error))), None);
            }
        };
        let progress = link.progress.open(handle.progress_token.clone());
        let mut cancel = CancelOnDrop { peer: &link.peer, id: Some(handle.id.clone()) };
        let response = handle.await_response().await;
        cancel.id = None;
        let response = response.map_err(|failed| error(link, failed)).and_then(|response| {
            serde_json::to_value(response)
                .map_err(|error| RequestError::Lost(format!("its response cannot be read: {error}")))
        });
        if matches!(response, Err(RequestError::Unsent(_) | RequestError::Lost(_))) {
            self.upstream.suspect.notify_one();
        }
        // Separate tasks record the notifications that came just before the response.
        tokio::task::yield_now().await;
        (response, progress.close())
    }

    fn meta(&self, link: &Link) -> RequestMetaObject {
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(IDEMPOTENCY_KEY.into(), self.call.idempotency_key.as_str().into());
        if let Some(traceparent) = &self.call.traceparent {
            meta.set_traceparent(traceparent);
        }
        // In this revision a question ends the request, and a user may answer it later. In older revisions the
        // connection would have to stay open meanwhile, so those servers are not offered elicitation.
        if link.modern {
            let mut capabilities = capabilities();
            let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(forms);
            meta.set_client_capabilities(capabilities);
        }
        meta
    }
}

/// Cancels a pending request on drop.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let params = CancelledNotificationParam::new(Some(id), Some("the caller no longer waits for it".into()));
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}

fn error(link: &Link, error: ServiceError) -> RequestError {
    if let Some(why) = link.verdict.why() {
        return RequestError::OverLimit(why.to_owned());
    }
    match &error {
        ServiceError::McpError(error) if error.code == UNREADABLE => {
            RequestError::Unreadable(truncated(&error.message))
        }
        ServiceError::McpError(error) => {
            RequestError::Rejected { code: error.code.0, message: truncated(&error.message) }
        }
        ServiceError::TransportSend(sending) if let Some(why) = unauthorized(&*sending.error) => {
            RequestError::Unauthorized(why)
        }
        ServiceError::TransportSend(sending)
            if http_client_error(&*sending.error).is_some_and(reqwest::Error::is_connect) =>
        {
            RequestError::Unsent(describe(&error))
        }
        other => RequestError::Lost(describe(other)),
    }
}

/// Adds the call's log and masks the secrets in the server's configuration.
fn masked(link: &Link, outcome: Outcome, log: Option<Arc<Value>>) -> Outcome {
    let outcome = match outcome {
        Outcome::Success(reply) => Outcome::Success(Reply { log, ..reply }),
        Outcome::Failure { failure, reply: Some(reply) } => {
            Outcome::Failure { failure, reply: Some(Reply { log, ..reply }) }
        }
        Outcome::Failure { failure, reply: None } => {
            let reply = log.map(|log| Reply { log: Some(log), ..Reply::default() });
            Outcome::Failure { failure, reply }
        }
    };
    link.mask.outcome(outcome)
}

/// The failure of a call during which the server exceeded a limit. Not retried, because it would do so again.
pub fn over_limit(server: &str, why: &str) -> Failure {
    let message = format!("{server} was disconnected during the call: {why}");
    Failure { may_have_happened: true, ..Failure::new("server_over_limit", message) }
}

/// Not retried: the credentials are wrong until somebody changes them.
fn refused_credentials(server: &str, why: &str) -> Failure {
    let message = format!("{server} refused the credentials ({why}): check its headers in the configuration");
    Failure::new("unauthorized", message)
}

pub fn unavailable(server: &str, why: &str) -> Failure {
    let message = format!("the MCP server {server} cannot be reached: {why}");
    Failure { kind: FailureKind::Network, ..Failure::retryable("unavailable", message) }
}

pub fn failed(failure: Failure) -> Outcome {
    Outcome::Failure { failure, reply: None }
}
