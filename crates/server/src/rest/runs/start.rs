//! Starting runs: of workflows, of earlier inputs, and test runs of unsaved definitions.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params, Raw};
use crate::error::Problem;
use crate::rest::incoming::shown_to_run;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::Caller;
use stepwell_engine::commands::{End, Source, Started, Trigger, When};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum time that a request waits for a run.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(trigger))
        .routes(routes!(rerun))
        .routes(routes!(test_run))
        .routes(routes!(discard))
}

/// Whether to wait for the end of a run.
#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WaitParams {
    /// How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same
    wait: Option<String>,
}

/// How long the caller wants to wait, from [`WaitParams`] or `Prefer`.
pub(super) struct Wait(pub(super) Option<Duration>);

impl FromRequestParts<App> for Wait {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Wait, Problem> {
        let Params(params) = Params::<WaitParams>::from_request_parts(parts, app).await?;
        wait(params.wait.as_deref(), &parts.headers).map(Wait)
    }
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct TriggerParams {
    /// How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same
    wait: Option<String>,
    /// Labels of the run: `name=value`, several separated by commas
    label: Option<String>,
    /// When the run begins, such as `2026-12-24T18:00:00+01:00`; until then it is `scheduled`
    at: Option<String>,
    /// How long after the request the run begins, such as `90m`; instead of `at`
    delay: Option<String>,
}

/// Start a run; the body is its input
///
/// 201 for a new run, 200 if the same `Idempotency-Key` and body have already started one (409 with a different body).
/// With `wait`: 200 with the finished run, or 202 with the running one when the time is up. With `at` or `delay` the run
/// is `scheduled` until that time, under the version of this request; it can be cancelled like any other.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/trigger", operation_id = "triggerWorkflow", tag = "runs",
    params(("id" = String, Path, description = "Id or name of the workflow"), TriggerParams,
        ("Idempotency-Key" = Option<String>, Header, description = "The same key with the same body starts only one run"),
        ("Prefer" = Option<String>, Header, description = "`wait=30` waits up to 30 seconds for the end")),
    request_body(content = Option<serde_json::Value>, description = "The run's input: any JSON"),
    responses(
        (status = 200, description = "Already started with this key, or finished in time", body = Data<Run>),
        (status = 201, description = "Started", body = Data<Triggered>),
        (status = 202, description = "Started, and not finished in time", body = Data<Run>), Problems))]
#[allow(clippy::too_many_arguments, reason = "each is a part of the request")]
async fn trigger(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Params(params): Params<TriggerParams>,
    headers: HeaderMap,
    raw: Raw,
) -> Answer<Response> {
    let wait = wait(params.wait.as_deref(), &headers)?;
    let key = match headers.get("idempotency-key") {
        Some(key) => Some(idempotency_key(key)?),
        None => None,
    };
    let labels = split_labels(params.label.as_deref())?;
    let input = raw.value(&app).await?;
    let when = When::parse(params.at.as_deref(), params.delay.as_deref())?;
    let request = Trigger { key, labels, when, headers: Some(shown_to_run(&headers)), ..Trigger::new(&id, input) };
    let Some(wait) = wait else {
        let started = app.engine.runs(&caller).trigger(request).await?;
        if started.repeated {
            return shown(&app, &caller, &started.run, StatusCode::OK).await;
        }
        let data = Triggered::new(&started, started.created.into());
        return Ok((StatusCode::CREATED, [location(&started.run)], Reply(Data { data })).into_response());
    };
    let (started, end) = app.engine.runs(&caller).trigger_and_watch(request).await?;
    // The memory of the body is not held while the run is waited for.
    drop(raw);
    reached(&app, end, wait).await;
    shown(&app, &caller, &started.run, StatusCode::ACCEPTED).await
}

/// Waits for the end of a run, or until the time is up or the server stops.
async fn reached(app: &App, end: End, wait: Duration) {
    tokio::select! {
        biased;
        _ = end.reached() => {}
        () = app.hub.stopping() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

/// The answer to a request that continued a run and may wait for its end: 200 with the finished run, or 202 when the
/// time is up.
pub(super) async fn awaited(app: &App, caller: &Caller, run: &str, wait: Duration) -> Answer<Response> {
    reached(app, app.engine.runs(caller).end(run).await?, wait).await;
    shown(app, caller, run, StatusCode::ACCEPTED).await
}

/// The answer to a request that started a run and may wait for its end.
async fn begun(app: &App, caller: &Caller, started: &Started, wait: Option<Duration>) -> Answer<Response> {
    if let Some(wait) = wait {
        return awaited(app, caller, &started.run, wait).await;
    }
    let data = Triggered::new(started, started.created.into());
    Ok((StatusCode::CREATED, [location(&started.run)], Reply(Data { data })).into_response())
}

/// The current state of the run: 200 if it has ended.
async fn shown(app: &App, caller: &Caller, run: &str, otherwise: StatusCode) -> Answer<Response> {
    let run = Run::from(app.engine.runs(caller).get_after_change(run).await?);
    let status = if run.finished_at.is_some() { StatusCode::OK } else { otherwise };
    let at = location(&run.id);
    Ok((status, [at], Reply(Data { data: run })).into_response())
}

fn location(run: &str) -> (axum::http::HeaderName, HeaderValue) {
    let path = HeaderValue::from_str(&format!("/api/v1/runs/{run}"));
    (LOCATION, path.unwrap_or(HeaderValue::from_static("/api/v1/runs")))
}

fn idempotency_key(value: &HeaderValue) -> Result<&str, Problem> {
    let text = value.to_str().ok().map(str::trim).filter(|text| !text.is_empty() && text.len() <= 255);
    text.ok_or_else(|| Problem::input("Idempotency-Key", "1 to 255 printable ASCII characters are required"))
}

/// How long to wait, if at all.
fn wait(asked: Option<&str>, headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let preferred = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferred =
        preferred.flat_map(|value| value.split([',', ';'])).filter_map(|part| part.trim().strip_prefix("wait="));
    let Some(text) = asked.or_else(|| preferred.next()) else { return Ok(None) };
    let seconds = text.parse::<f64>().ok().and_then(Millis::from_secs_f64);
    let length = seconds.or_else(|| Millis::parse(text));
    let length = length.ok_or_else(|| Problem::input("wait", format!("{text:?} is not a duration such as 30s")))?;
    Ok(Some(Duration::from_millis(length.0).min(LONGEST_WAIT)))
}

fn split_labels(text: Option<&str>) -> Result<BTreeMap<String, String>, Problem> {
    let parts = text.into_iter().flat_map(|text| text.split(',')).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let bad = || Problem::input("label", format!("{part:?} is not name=value"));
        part.split_once('=').map(|(name, value)| (name.to_string(), value.to_string())).ok_or_else(bad)
    };
    parts.map(pair).collect()
}

/// Start a new run with the same input
///
/// If there is a body, it replaces the input. With `wait`: 200 with the finished run, or 202 with the running one when
/// the time is up.
#[utoipa::path(post, path = "/api/v1/runs/{run}/rerun", operation_id = "rerunRun", tag = "runs",
    params(("run" = String, Path, description = "Id of the run"), WaitParams,
        ("Prefer" = Option<String>, Header, description = "`wait=30` waits up to 30 seconds for the end")),
    request_body(content = Option<serde_json::Value>, description = "A different input"),
    responses((status = 200, description = "Finished in time", body = Data<Run>),
        (status = 201, description = "Started", body = Data<Triggered>),
        (status = 202, description = "Started, and not finished in time", body = Data<Run>), Problems))]
async fn rerun(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Wait(wait): Wait,
    raw: Raw,
) -> Answer<Response> {
    let input = if raw.is_empty() { None } else { Some(raw.value(&app).await?) };
    let started = app.engine.runs(&caller).rerun(&run, input).await?;
    drop(raw);
    begun(&app, &caller, &started, wait).await
}

/// An unsaved definition and its input.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TestRequest {
    /// The definition: an object, or its text in JSON or YAML.
    #[schema(value_type = serde_json::Value)]
    definition: Value,
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    input: Value,
}

/// Run an unsaved definition, separately from real runs
///
/// The definition needs no name. With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
#[utoipa::path(post, path = "/api/v1/test-runs", operation_id = "startTestRun",
    tag = "runs", request_body = TestRequest,
    params(WaitParams, ("Prefer" = Option<String>, Header, description = "`wait=30` waits up to 30 seconds for the end")),
    responses((status = 200, description = "Finished in time", body = Data<Run>),
        (status = 201, description = "Started", body = Data<Triggered>),
        (status = 202, description = "Started, and not finished in time", body = Data<Run>), Problems))]
async fn test_run(
    State(app): State<App>,
    Auth(caller): Auth,
    Wait(wait): Wait,
    Json(request, raw): Json<TestRequest>,
) -> Answer<Response> {
    let text = match request.definition {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let input = if request.input.is_null() { serde_json::json!({}) } else { request.input };
    let started = app.engine.runs(&caller).test(Source { text: &text, file: None }, input).await?;
    drop(raw);
    begun(&app, &caller, &started, wait).await
}

/// Stop a test run and delete it
#[utoipa::path(delete, path = "/api/v1/test-runs/{run}", operation_id = "deleteTestRun", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 204, description = "Deleted"), Problems))]
async fn discard(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<StatusCode> {
    app.engine.runs(&caller).discard(&run).await?;
    Ok(StatusCode::NO_CONTENT)
}
