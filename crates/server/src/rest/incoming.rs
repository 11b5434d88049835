//! URLs that external services call: triggers of workflows (`/in/…`) and callbacks of waits (`/wh/…`). The URL itself
//! is the credential; no key is needed.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::guessed;
use crate::body::{Raw, pairs};
use crate::error::Problem;
use crate::shares::Payer;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{FromRequest, Path, RawQuery, Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::event::Ignored;
use stepwell_engine::{Error, Incoming};
use stepwell_store::OrgId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Headers with credentials, which workflows never see.
const PRIVATE: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];
/// Headers of API requests that are for the server itself.
const OWN: [&str; 2] = ["idempotency-key", "prefer"];

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(receive)).routes(routes!(callback, callback_page))
}

/// Start a workflow by calling its URL; any content type
#[utoipa::path(post, path = "/in/{token}", operation_id = "callTrigger", tag = "incoming", security(()),
    params(("token" = String, Path, description = "The last part of the URL")),
    request_body(content((serde_json::Value = "application/json"), (String = "text/plain"),
        (String = "application/octet-stream")), description = "The run's input"),
    responses(
        (status = 200, description = "The same event has already started a run", body = Data<Triggered>),
        (status = 202, description = "Accepted: the run is on disk", body = Data<Triggered>), Problems))]
async fn receive(
    State(app): State<App>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
    mut request: Request,
) -> Answer<(StatusCode, Reply<Data<Triggered>>)> {
    // The body is read only for a valid URL.
    let Some(org) = app.engine.inbound().hook_owner(&token).await? else {
        guessed(&app, request.extensions())?;
        return Err(Problem::not_found("there is no trigger at this URL"));
    };
    request.extensions_mut().insert(Payer::Organisation(org));
    app.rates.ask(&format!("in {}", stepwell_store::digest(&token))).map_err(Problem::too_many)?;
    let headers = request.headers().clone();
    let raw = Raw::from_request(request, &app).await?;
    let body = raw.any(&headers, &app).await?;
    let query = pairs(query.unwrap_or_default().as_bytes(), &app)?.into_iter().collect();
    let call = Incoming { headers: shown(&headers), query, raw: raw.bytes.to_vec(), body };
    let started = app.engine.inbound().receive(&token, call).await.map_err(outside)?;
    let status = if started.repeated { StatusCode::OK } else { StatusCode::ACCEPTED };
    let data = Triggered::new(&started, started.created.into());
    Ok((status, Reply(Data { data })))
}

/// The headers of a call as workflows see them: without credentials.
fn shown(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for name in headers.keys().filter(|name| !PRIVATE.contains(&name.as_str())) {
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        if !values.is_empty() {
            shown.insert(name.to_string(), values.join(", "));
        }
    }
    shown
}

/// The headers of an API request as the workflow that it starts sees them. The server's own headers are left out: the
/// names that schedules set, for example, must not be set by callers.
pub fn shown_to_run(headers: &HeaderMap) -> Value {
    let mut shown = shown(headers);
    shown.retain(|name, _| !OWN.contains(&name.as_str()) && !name.starts_with("x-stepwell-"));
    json!(shown)
}

/// Hides details about users and secrets from external callers.
fn outside(error: Error) -> Problem {
    match error {
        Error::Refused(_) | Error::Forbidden { .. } => {
            tracing::warn!(%error, "cannot accept a call to a workflow's URL");
            let detail = "the workflow cannot be started by calls at the moment; the server's log has the reason";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-startable", detail)
        }
        other => other.into(),
    }
}

/// The response to an accepted call.
#[derive(Serialize, ToSchema)]
struct Received {
    received: bool,
}

/// Deliver the call that a step waits for
///
/// A call that arrives before its step waits is stored. 409 if one was already delivered, 410 if the step or the run
/// has ended. A body of more than 256 KB is truncated, or refused with 413 (setting `limits.long_callbacks`).
#[utoipa::path(post, path = "/wh/{token}", operation_id = "deliverCallback", tag = "incoming", security(()),
    params(("token" = String, Path, description = "The last part of the URL")),
    request_body(content((serde_json::Value = "application/json"), (String = "text/plain"),
        (String = "application/octet-stream")), description = "The step's result"),
    responses(
        (status = 200, description = "Delivered", body = Data<Received>),
        (status = 410, description = "Too late", body = ProblemView, content_type = "application/problem+json"),
        Problems))]
async fn callback(
    State(app): State<App>,
    Path(token): Path<String>,
    mut request: Request,
) -> Answer<Reply<Data<Received>>> {
    let org = open(&app, &token, request.extensions()).await?;
    request.extensions_mut().insert(Payer::Organisation(org));
    let headers = request.headers().clone();
    let raw = Raw::from_request(request, &app).await?;
    let body = raw.callback(&headers, &app).await?;
    match app.engine.inbound().deliver_webhook(&token, body).await {
        Ok(()) => Ok(Reply(Data { data: Received { received: true } })),
        Err(error) => Err(late(error)),
    }
}

/// The organisation of a step that still waits for a call to this URL.
async fn open(app: &App, token: &str, request: &Extensions) -> Answer<OrgId> {
    match app.engine.inbound().callback_open(token).await {
        Err(Error::NotFound { .. }) => {
            guessed(app, request)?;
            Err(Problem::not_found("no step has ever waited for a call to this URL"))
        }
        opened => opened.map_err(late),
    }
}

/// Why a call was not delivered.
fn late(error: Error) -> Problem {
    let gone = |code, detail| Problem::new(StatusCode::GONE, code, detail);
    match error {
        Error::Conflict(Ignored::Repeated) => {
            Problem::new(StatusCode::CONFLICT, "repeated", "a call was already delivered to this URL")
        }
        Error::Conflict(Ignored::RunFinished) => {
            gone("run-finished", "the run has ended and no longer waits for this call")
        }
        Error::Conflict(Ignored::StepFinished | Ignored::UnknownStep) => {
            gone("step-finished", "the step has ended and no longer waits for this call")
        }
        other => other.into(),
    }
}

/// A page for people who open the URL in a browser; it delivers nothing
#[utoipa::path(get, path = "/wh/{token}", operation_id = "showCallbackPage", tag = "incoming", security(()),
    params(("token" = String, Path, description = "The last part of the URL")),
    responses((status = 200, description = "The purpose of the URL", body = String, content_type = "text/html"),
        (status = 410, description = "Too late", body = ProblemView, content_type = "application/problem+json"),
        Problems))]
async fn callback_page(State(app): State<App>, Path(token): Path<String>, request: Request) -> Answer<Response> {
    open(&app, &token, request.extensions()).await?;
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Stepwell</title>\
        <p>A workflow waits for a call to this address. Send it as a <code>POST</code>; \
        its body becomes the step's result.</p></html>";
    Ok(([(header::CACHE_CONTROL, "no-store")], Html(page)).into_response())
}
