//! Addresses that outsiders call: triggers of workflows (`/in/…`) and callbacks of waits (`/wh/…`). Who knows the address
//! needs no key.

use super::{Answer, Problems};
use crate::app::App;
use crate::body::{Raw, any};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{ConnectInfo, FromRequest, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use std::net::SocketAddr;
use stepwell_core::event::Ignored;
use stepwell_engine::{Error, Incoming};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Headers that prove who somebody is: workflows never see them.
const PRIVATE: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(receive)).routes(routes!(callback, callback_page))
}

/// Start a workflow by calling its address; any content type
#[utoipa::path(post, path = "/in/{token}", tag = "incoming", security(()),
    params(("token" = String, Path, description = "What the address ends with")),
    request_body(content((serde_json::Value = "application/json"), (String = "text/plain"),
        (String = "application/octet-stream")), description = "The run's input"),
    responses(
        (status = 200, description = "The same event started a run before", body = Data<Triggered>),
        (status = 202, description = "Taken: the run is on disk", body = Data<Triggered>), Problems))]
async fn receive(
    State(app): State<App>,
    Path(token): Path<String>,
    request: Request,
) -> Answer<(StatusCode, Reply<Data<Triggered>>)> {
    // Nothing is read for those who do not know an address.
    if !app.engine.inbound().hook_known(&token).await? {
        guessed(&app, &request)?;
        return Err(Problem::not_found("there is no trigger at this address"));
    }
    app.rates.ask(&format!("in {}", stepwell_store::digest(&token))).map_err(Problem::too_many)?;
    let headers = request.headers().clone();
    let Raw(raw) = Raw::from_request(request, &app).await?;
    let body = any(&raw, &headers, &app)?;
    let shown = headers.iter().filter(|(name, _)| !PRIVATE.contains(&name.as_str()));
    let shown = shown.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_string())));
    let call = Incoming { headers: shown.collect(), raw: raw.to_vec(), body };
    drop(raw);
    let started = app.engine.inbound().receive(&token, call).await.map_err(outside)?;
    let status = if started.repeated { StatusCode::OK } else { StatusCode::ACCEPTED };
    let data = Triggered::new(&started, started.created.into());
    Ok((status, Reply(Data { data })))
}

/// Who guesses addresses is slowed down.
pub(super) fn guessed(app: &App, request: &Request) -> Result<(), Problem> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip().to_string());
    app.rates.wrong_key(&peer.unwrap_or_default()).map_err(Problem::too_many)
}

/// Those who call from outside are not told of our users and secrets.
fn outside(error: Error) -> Problem {
    match error {
        Error::Refused(_) | Error::Forbidden { .. } => {
            tracing::warn!(%error, "a call to a workflow's address could not be taken");
            let detail = "the workflow cannot be started by calls at the moment; its owners can see why in the log";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-startable", detail)
        }
        other => other.into(),
    }
}

/// That a call was taken.
#[derive(Serialize, ToSchema)]
struct Received {
    received: bool,
}

/// Deliver the call that a step waits for
///
/// A call that comes before its step is kept. 409 if one was delivered already, 410 if the step or the run is over.
#[utoipa::path(post, path = "/wh/{token}", tag = "incoming", security(()),
    params(("token" = String, Path, description = "What the address ends with")),
    request_body(content((serde_json::Value = "application/json"), (String = "text/plain"),
        (String = "application/octet-stream")), description = "What the step's result will be"),
    responses(
        (status = 200, description = "Delivered", body = Data<Received>),
        (status = 410, description = "Too late", body = ProblemView, content_type = "application/problem+json"),
        Problems))]
async fn callback(
    State(app): State<App>,
    Path(token): Path<String>,
    request: Request,
) -> Answer<Reply<Data<Received>>> {
    match app.engine.inbound().callback_open(&token).await {
        Ok(()) => {}
        Err(Error::NotFound { .. }) => {
            guessed(&app, &request)?;
            return Err(Problem::not_found("nothing ever waited for a call to this address"));
        }
        Err(error) => return Err(late(error)),
    }
    let headers = request.headers().clone();
    let Raw(raw) = Raw::from_request(request, &app).await?;
    let body = any(&raw, &headers, &app)?;
    drop(raw);
    match app.engine.inbound().deliver_webhook(&token, body).await {
        Ok(()) => Ok(Reply(Data { data: Received { received: true } })),
        Err(error) => Err(late(error)),
    }
}

/// Why a call counts for nothing.
fn late(error: Error) -> Problem {
    let gone = |code, detail| Problem::new(StatusCode::GONE, code, detail);
    match error {
        Error::Conflict(Ignored::Repeated) => {
            Problem::new(StatusCode::CONFLICT, "repeated", "a call was delivered to this address already")
        }
        Error::Conflict(Ignored::RunFinished) => {
            gone("run-finished", "the run is over: nothing waits for this call any more")
        }
        Error::Conflict(Ignored::StepFinished | Ignored::UnknownStep) => {
            gone("step-finished", "the step is over: nothing waits for this call any more")
        }
        other => other.into(),
    }
}

/// A page for people who open the address in a browser: it delivers nothing
#[utoipa::path(get, path = "/wh/{token}", tag = "incoming", security(()),
    params(("token" = String, Path, description = "What the address ends with")),
    responses((status = 200, description = "What the address is for", body = String, content_type = "text/html"),
        (status = 410, description = "Too late", body = ProblemView, content_type = "application/problem+json"),
        Problems))]
async fn callback_page(State(app): State<App>, Path(token): Path<String>) -> Answer<Response> {
    app.engine.inbound().callback_open(&token).await.map_err(late)?;
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Stepwell</title>\
        <p>A workflow waits for a call to this address. Send it as a <code>POST</code>; \
        its body becomes the step's result.</p></html>";
    Ok(([(header::CACHE_CONTROL, "no-store")], Html(page)).into_response())
}
