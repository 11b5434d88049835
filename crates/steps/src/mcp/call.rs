//! One call of a tool: found, checked, sent, and what came of it.

use super::book::capabilities;
use super::connect::{of_client, said, short};
use super::upstream::{Known, Link, Upstream};
use super::waits::{Note, Round};
use super::{Found, Upstreams, result, waits};
use jsonschema::Validator;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam, ClientRequest,
    ElicitationCapability, ErrorCode, FormElicitationCapability, RequestId, RequestMetaObject,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::{Failure, FailureKind, Outcome, Reply};
use stepwell_engine::upstream::Standing;
use stepwell_engine::{StepCall, Suspended};

/// Where servers find what tells a repetition.
const IDEMPOTENCY_KEY: &str = "stepwell/idempotencyKey";

/// Why a request has no result.
pub enum Trouble {
    /// It has not left.
    Unsent(String),
    /// It may have left, and nobody knows what became of it.
    Lost(String),
    /// The server has refused it.
    Said { code: i32, message: String },
}

/// How a call ends otherwise than with a result.
pub enum Stop {
    Fails(Failure),
    Suspended(Box<Suspended>),
    /// There is no connection, and nothing was sent.
    Away(String),
}

impl Stop {
    #[allow(clippy::result_large_err, reason = "what the engine asks for")]
    fn ended(self) -> Result<Outcome, Suspended> {
        match self {
            Stop::Fails(failure) => Ok(failed(failure)),
            Stop::Suspended(waits) => Err(*waits),
            Stop::Away(why) => Ok(failed(Failure::retryable("unavailable", why))),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Fails(failure)
    }
}

/// A tool that is being called.
pub struct Calling<'a> {
    pub upstream: &'a Upstream,
    pub known: &'a Known,
    pub args: &'a Value,
    pub call: &'a StepCall,
}

impl Upstreams {
    /// Nothing if no server has to do with that name.
    pub(crate) async fn call(
        &self,
        name: &str,
        args: &Arc<Value>,
        call: &StepCall,
    ) -> Option<Result<Outcome, Suspended>> {
        let org = call.caller.org;
        let mut found = self.find(org, name)?;
        let note = call.resumed.as_ref().and_then(|resumed| Note::read(&resumed.note));
        if let Found::Away(upstream) = &found {
            if let Err(why) = upstream.link().await {
                return Some(away(upstream, &why, note).ended());
            }
            found = self.find(org, name)?;
        }
        let (upstream, known) = match found {
            Found::Tool(upstream, known) => (upstream, known),
            Found::Away(upstream) => return Some(away(&upstream, "it has not said what it offers", note).ended()),
            Found::Gone(upstream) => {
                let message = format!("{} does not offer `{name}` any more", upstream.name());
                let failure = Failure::new("unknown_tool", message);
                return Some(Ok(failed(Failure { may_have_happened: note.is_some(), ..failure })));
            }
        };
        let calling = Calling { upstream: &upstream, known: &known, args, call };
        Some(match self.attempt(&calling, note.clone()).await {
            Ok(outcome) => Ok(outcome),
            Err(Stop::Away(why)) => away(&upstream, &why, note).ended(),
            Err(stop) => stop.ended(),
        })
    }

    async fn attempt(&self, calling: &Calling<'_>, note: Option<Note>) -> Result<Outcome, Stop> {
        match note {
            None => {
                self.check_accepted(calling).await?;
                calling.tool(Note::new(calling)).await
            }
            Some(note) => match note.go_on(calling)? {
                Round::Task(note) => waits::poll(calling, note).await,
                Round::Call(note) => {
                    self.check_accepted(calling).await?;
                    calling.tool(note).await
                }
            },
        }
    }

    async fn check_accepted(&self, calling: &Calling<'_>) -> Result<(), Failure> {
        let (upstream, offered) = (calling.upstream, &calling.known.offered);
        let mut standing = upstream.standing(offered);
        if standing != Standing::Accepted {
            // Another node may have been told since.
            let accepted = self.around.pins.accepted(calling.call.caller.org, upstream.name()).await;
            let unreadable = |error| Failure::retryable("unavailable", format!("the store cannot be read: {error}"));
            if let Some(accepted) = accepted.map_err(unreadable)? {
                upstream.accepts(accepted);
            }
            standing = upstream.standing(offered);
        }
        let (code, what) = match standing {
            Standing::Accepted => return Ok(()),
            Standing::Changed => ("tool_changed", "says or takes something else than what was accepted"),
            Standing::New => ("tool_new", "was not there when the server was first seen"),
        };
        let (server, tool) = (upstream.name(), &offered.tool);
        Err(Failure::new(
            code,
            format!(
                "`{}` was not called: it {what}. An administrator can look at it with `stepwell mcp-server list` and \
                 accept it with `stepwell mcp-server accept {server} {tool}`",
                offered.name
            ),
        ))
    }
}

impl Calling<'_> {
    /// Calls the tool, with what an earlier round has left.
    async fn tool(&self, note: Note) -> Result<Outcome, Stop> {
        let args = self.checked()?;
        let link = self.upstream.link().await.map_err(Stop::Away)?;
        let mut params = CallToolRequestParams::new(self.known.offered.tool.clone());
        params.arguments = Some(args);
        params.input_responses = note.responses();
        params.request_state = note.state.clone();
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let (answer, log) = self.send(&link, request).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(Trouble::Unsent(why)) => return Err(Stop::Away(why)),
            Err(trouble) => return Ok(masked(&link, self.failure(trouble), log)),
        };
        match answer.get("resultType").and_then(Value::as_str) {
            Some("input_required") => Err(note.asks(self, &link, &answer)),
            Some("task") => Err(note.begins(self, &link, &answer)),
            _ => Ok(self.ended(&link, answer, log)),
        }
    }

    /// A result, wherever it came from.
    pub fn ended(&self, link: &Link, answer: Value, log: Option<Arc<Value>>) -> Outcome {
        masked(link, result::outcome(self.known, answer), log)
    }

    pub fn failure(&self, trouble: Trouble) -> Outcome {
        let server = self.upstream.name();
        failed(match trouble {
            Trouble::Unsent(why) => unavailable(server, &why),
            Trouble::Lost(why) => Failure {
                kind: FailureKind::Network,
                may_have_happened: true,
                ..Failure::retryable("connection_lost", format!("{server} was lost during the call: {why}"))
            },
            Trouble::Said { code, message } => {
                // These are said before anything is done.
                let refused = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_REQUEST];
                let may_have_happened = !refused.contains(&ErrorCode(code));
                let failure = Failure::new("mcp_error", format!("{server} answered with error {code}: {message}"));
                Failure { may_have_happened, ..failure }
            }
        })
    }

    /// The arguments as they are sent: a null for an optional one that takes none counts as not given.
    fn checked(&self) -> Result<serde_json::Map<String, Value>, Failure> {
        let name = &self.known.offered.name;
        let bad = |why: String| Failure::new("bad_arguments", format!("`{name}` was not called: {why}"));
        let Value::Object(args) = self.args else { return Err(bad("`args` must be an object".into())) };
        let Some(schema) = self.known.input() else { return Ok(args.clone()) };
        if schema.is_valid(self.args) {
            return Ok(args.clone());
        }
        let without: serde_json::Map<String, Value> = args
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let without = Value::Object(without);
        if !schema.is_valid(&without) {
            return Err(bad(faults(schema, self.args, "args")));
        }
        Ok(without.as_object().cloned().unwrap_or_default())
    }

    /// Sends a request and waits. Dropping the future tells the server that nobody does any more.
    pub async fn send(&self, link: &Link, request: ClientRequest) -> (Result<Value, Trouble>, Option<Arc<Value>>) {
        let options = PeerRequestOptions::no_options().with_meta(self.meta(link));
        let handle = match link.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => {
                self.upstream.doubt.notify_one();
                return (Err(Trouble::Unsent(said(&error))), None);
            }
        };
        let page = link.book.open(handle.progress_token.clone());
        let mut under_way = UnderWay { peer: &link.peer, id: Some(handle.id.clone()) };
        let answer = handle.await_response().await;
        under_way.id = None;
        let answer = answer.map_err(trouble).and_then(|answer| {
            serde_json::to_value(answer).map_err(|error| Trouble::Lost(format!("its answer cannot be read: {error}")))
        });
        if matches!(answer, Err(Trouble::Unsent(_) | Trouble::Lost(_))) {
            self.upstream.doubt.notify_one();
        }
        // What was said just before the answer is noted by tasks of their own.
        tokio::task::yield_now().await;
        (answer, page.close())
    }

    fn meta(&self, link: &Link) -> RequestMetaObject {
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(IDEMPOTENCY_KEY.into(), self.call.idempotency_key.as_str().into());
        if let Some(traceparent) = &self.call.traceparent {
            meta.set_traceparent(traceparent);
        }
        // Here a question ends the request, and somebody may answer it tomorrow. In older revisions it would be asked of a
        // connection that is held open meanwhile: to those servers nobody is here to ask.
        if link.modern {
            let mut capabilities = capabilities();
            let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(forms);
            meta.set_client_capabilities(capabilities);
        }
        meta
    }
}

/// A request that is waited for.
struct UnderWay<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let params = CancelledNotificationParam::new(Some(id), Some("nobody waits for it any more".into()));
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}

fn trouble(error: ServiceError) -> Trouble {
    match &error {
        ServiceError::McpError(error) => Trouble::Said { code: error.code.0, message: short(&error.message) },
        ServiceError::TransportSend(sending) if of_client(&*sending.error).is_some_and(reqwest::Error::is_connect) => {
            Trouble::Unsent(said(&error))
        }
        other => Trouble::Lost(said(other)),
    }
}

pub fn faults(schema: &Validator, value: &Value, root: &str) -> String {
    const MOST: usize = 5;
    let faults = schema.iter_errors(value).take(MOST);
    let told: Vec<String> = faults
        .map(|fault| {
            let path = fault.instance_path().to_string().replace('/', ".");
            format!("`{root}{path}`: {}", short(&fault.to_string()))
        })
        .collect();
    told.join("; ")
}

/// Without the secrets that the server was given, and with what it said meanwhile.
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

fn unavailable(server: &str, why: &str) -> Failure {
    let message = format!("the MCP server {server} cannot be reached: {why}");
    Failure { kind: FailureKind::Network, ..Failure::retryable("unavailable", message) }
}

/// What has begun goes on later; a call that has not can be made again.
fn away(upstream: &Upstream, why: &str, note: Option<Note>) -> Stop {
    match note {
        Some(note) => Stop::Suspended(note.later(None).into()),
        None => Stop::Fails(unavailable(upstream.name(), why)),
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failure { failure, reply: None }
}
