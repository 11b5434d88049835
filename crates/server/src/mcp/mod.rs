//! The MCP server: streamable HTTP at `/mcp`, thin over `engine::commands`.
//!
//! There are no sessions: every request is independent, so any node can serve it. A task is a run, which is durable.
//! `stepwell mcp` carries the same messages over standard input and output.
//!
//! | part | where |
//! | --- | --- |
//! | authentication, and the methods of the protocol | `mod.rs` |
//! | the tools and their schemas | `tools.rs`, `exposed.rs` (workflows), `proxied.rs` (tools of connected servers) |
//! | tool calls and their results | `call.rs`, `verbs.rs`, `plans.rs`, `runs.rs`, `text.rs`, `words.rs`, `bounds.rs` |
//! | runs as tasks, gates as elicitation requests | `tasks.rs`, `gates.rs`, `asked.rs` |
//! | resources, prompts, notifications | `resources.rs`, `prompts.rs`, `listen.rs` |
//! | how to write definitions | `help.rs` |

mod asked;
mod bounds;
mod call;
mod exposed;
mod gates;
mod help;
mod listen;
mod plans;
mod prompts;
mod proxied;
mod resources;
mod reviews;
mod runs;
mod tasks;
mod text;
mod tools;
mod verbs;
mod words;

use crate::app::App;
use crate::auth::{Auth, is_own_origin};
use crate::body::Raw;
use crate::error::Problem;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use rmcp::model::*;
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler};
use serde_json::Value;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stepwell_engine::Caller;
use tokio::time::timeout;

/// The server's instructions for clients.
const INSTRUCTIONS: &str = "Stepwell runs durable workflows: steps survive crashes, waits cost nothing, and people \
approve what needs approval. List workflows with workflow_list_definitions, start one with workflow_start and follow \
its run with workflow_wait. A run that waits for an approval continues once an approver has answered: do not start it \
again. Before you write a definition, read workflow_help; tools_list has the tools that its steps may call.";

/// Levels that a message may have beyond those of its arguments, which are checked again when they are known.
const ENVELOPE: usize = 32;
/// After this time the memory of a request is free for others.
const HANDLED_WITHIN: Duration = Duration::from_secs(1);

/// `/mcp`, for callers with a key.
pub fn router(app: &App) -> Router<App> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(usize::try_from(app.config.limits.body).unwrap_or(usize::MAX))
        // Hosts and origins are checked for all paths, before the key.
        .disable_allowed_hosts();
    let handler = Mcp { app: app.clone() };
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config);
    Router::new().route_service("/mcp", service).layer(middleware::from_fn_with_state(app.clone(), admit))
}

/// Authenticates the caller, and reads the body within its limits.
async fn admit(State(app): State<App>, request: Request, next: Next) -> Result<Response, Problem> {
    check_origin(request.headers(), &app)?;
    let (mut parts, body) = request.into_parts();
    let Auth(caller) = Auth::from_request_parts(&mut parts, &app).await?;
    parts.extensions.insert(caller);
    let raw = Raw::from_request(Request::from_parts(parts.clone(), body), &app).await?;
    raw.admit(&app, ENVELOPE).await?;
    let mut response = pin!(next.run(Request::from_parts(parts, Body::from(raw.bytes.clone()))));
    // A call that waits for a run does not keep the memory of its request from others.
    if let Ok(response) = timeout(HANDLED_WITHIN, response.as_mut()).await {
        return Ok(response);
    }
    drop(raw);
    Ok(response.await)
}

/// Programs send no origin. Pages of other origins are not trusted.
fn check_origin(headers: &HeaderMap, app: &App) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let named = app.config.cors.origins.iter().any(|known| origin == known.as_str());
    if named || is_own_origin(headers, &app.public_url) {
        return Ok(());
    }
    let detail = "pages of this origin are not allowed: add it to `cors.origins`";
    Err(Problem::new(StatusCode::FORBIDDEN, "cross-origin", detail))
}

/// Serves the protocol. Created for each request.
#[derive(Clone)]
struct Mcp {
    app: App,
}

type Context = RequestContext<RoleServer>;

/// Characters of what a client calls itself that are kept.
const MAX_CLIENT: usize = 100;

/// The authenticated caller, with what its client calls itself.
fn caller(context: &Context) -> Result<Caller, ErrorData> {
    let caller = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    let caller = caller.cloned().ok_or_else(|| ErrorData::internal_error("the request has no caller", None))?;
    let Some(client) = context.client_info() else { return Ok(caller) };
    let named = format!("{} {}", client.name, client.version);
    let shown: String = named.chars().filter(|c| !c.is_control()).take(MAX_CLIENT).collect();
    Ok(caller.with_client(shown))
}

/// The capabilities of the client of this request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Client {
    /// It supports runs as tasks.
    tasks: bool,
    /// It can ask its user.
    elicits: bool,
    /// It can be asked in the answer of a call, and has no other way.
    asks: bool,
}

impl Client {
    fn of(context: &Context) -> Client {
        let can = context.client_capabilities().unwrap_or_default();
        let (tasks, elicits) = (can.supports_tasks(), can.elicitation.is_some());
        // Older revisions do not repeat calls.
        let repeats = context.protocol_version().is_some_and(|version| !version.has_initialize());
        Client { tasks, elicits, asks: elicits && !tasks && repeats }
    }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_tasks()
            .build();
        let own = Implementation::new("stepwell", env!("CARGO_PKG_VERSION")).with_title("Stepwell");
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    /// Clients that use `initialize` predate tasks, and without a session the server cannot send them notifications.
    async fn initialize(&self, request: InitializeRequestParams, _: Context) -> Result<InitializeResult, ErrorData> {
        let mut info = self.negotiate_initialize(&request)?;
        info.capabilities.extensions = None;
        info.capabilities.tools.get_or_insert_default().list_changed = None;
        info.capabilities.resources.get_or_insert_default().subscribe = None;
        Ok(info)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = caller(&context)?;
        let tools = tools::all(&self.app, &caller).await.map_err(failed)?;
        // The list depends on the key.
        Ok(ListToolsResult::with_all_items(tools).with_cache_scope(CacheScope::Private).with_ttl_ms(0))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let caller = caller(&context)?;
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let call = call::Call { app: &self.app, caller: &caller, client: Client::of(&context) };
        match request.request_state {
            Some(run) => {
                let answered = call.answered(&run, request.input_responses.unwrap_or_default()).await;
                Ok(answered.unwrap_or_else(|problem| text::refusal(&problem).into()))
            }
            None => call.tool(&request.name, arguments).await,
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = resources::list(&self.app, &caller(&context)?).await.map_err(failed)?;
        Ok(ListResourcesResult::with_all_items(resources).with_cache_scope(CacheScope::Private).with_ttl_ms(0))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(&self.app, &caller(&context)?, &request.uri).await?;
        let result = ReadResourceResult::new(vec![contents]).with_cache_scope(CacheScope::Private).with_ttl_ms(0);
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: Context) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&request.name, &request.arguments.unwrap_or_default())?.into())
    }

    async fn get_task(&self, request: GetTaskParams, context: Context) -> Result<GetTaskResult, ErrorData> {
        let caller = caller(&context)?;
        tasks::get(&self.app, &caller, &request.task_id, Client::of(&context)).await.map_err(failed)
    }

    async fn update_task(&self, request: UpdateTaskParams, context: Context) -> Result<(), ErrorData> {
        let caller = caller(&context)?;
        tasks::update(&self.app, &caller, &request.task_id, request.input_responses).await.map_err(failed)
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: Context) -> Result<(), ErrorData> {
        tasks::cancel(&self.app, &caller(&context)?, &request.task_id).await.map_err(failed)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(listen::accepted(requested))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = caller(subscription.request_context())?;
        listen::run(&self.app, caller, &subscription).await.map_err(failed)
    }
}

/// An error of the protocol, for requests other than tool calls.
fn failed(problem: impl Into<Problem>) -> ErrorData {
    let problem = problem.into();
    let code = match problem.status {
        StatusCode::NOT_FOUND | StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => ErrorCode::INVALID_PARAMS,
        StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => ErrorCode::INTERNAL_ERROR,
        _ => ErrorCode::INVALID_REQUEST,
    };
    ErrorData::new(code, text::problem(&problem), Some(serde_json::json!({"code": problem.code})))
}
