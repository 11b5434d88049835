//! Runs: start, read, list, cancel, retry, rerun; their log; and bulk operations.

use super::etag::tagged;
use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params, Raw};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{self as engine, Retry, Right, RunQuery, Source, Trigger};
use stepwell_engine::{Caller, Error};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum time that a request waits for a run.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(trigger))
        .routes(routes!(of_workflow))
        .routes(routes!(get_of_workflow))
        .routes(routes!(cancel_of_workflow))
        .routes(routes!(list))
        .routes(routes!(get, label))
        .routes(routes!(events))
        .routes(routes!(cancel))
        .routes(routes!(retry, retry_preview))
        .routes(routes!(rerun))
        .routes(routes!(release))
        .routes(routes!(erase))
        .routes(routes!(cancel_all))
        .routes(routes!(retry_all))
        .routes(routes!(test_run))
        .routes(routes!(discard))
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct TriggerParams {
    /// How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same
    wait: Option<String>,
    /// Labels of the run: `name=value`, several separated by commas
    label: Option<String>,
}

/// Start a run; the body is its input
///
/// 201 for a new run, 200 if the same `Idempotency-Key` and body have already started one (409 with a different body).
/// With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/trigger", tag = "runs",
    params(("id" = String, Path, description = "Id or name of the workflow"), TriggerParams,
        ("Idempotency-Key" = Option<String>, Header, description = "The same key with the same body starts only one run"),
        ("Prefer" = Option<String>, Header, description = "`wait=30` waits up to 30 seconds for the end")),
    request_body(content = Option<serde_json::Value>, description = "The run's input: any JSON"),
    responses(
        (status = 200, description = "Already started with this key, or finished in time", body = Data<RunWithId>),
        (status = 201, description = "Started", body = Data<Triggered>),
        (status = 202, description = "Started, and not finished in time", body = Data<RunWithId>), Problems))]
#[allow(clippy::too_many_arguments, reason = "each is a part of the request")]
async fn trigger(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Params(params): Params<TriggerParams>,
    headers: HeaderMap,
    raw: Raw,
) -> Answer<Response> {
    let wait = wait(&params, &headers)?;
    let key = match headers.get("idempotency-key") {
        Some(key) => Some(idempotency_key(key)?),
        None => None,
    };
    let labels = split_labels(params.label.as_deref())?;
    let input = raw.value(&app).await?;
    let request = Trigger { key, labels, ..Trigger::new(&id, input) };
    let Some(wait) = wait else {
        let started = app.engine.runs(&caller).trigger(request).await?;
        if started.repeated {
            return shown_with_id(&app, &caller, &started.run, StatusCode::OK).await;
        }
        let data = Triggered::new(&started, started.created.into());
        return Ok((StatusCode::CREATED, [location(&started.run)], Reply(Data { data })).into_response());
    };
    let (started, end) = app.engine.runs(&caller).trigger_and_watch(request).await?;
    // The memory of the body is not held while the run is waited for.
    drop(raw);
    tokio::select! {
        biased;
        _ = end.reached() => {}
        () = app.hub.stopping() => {}
        () = tokio::time::sleep(wait) => {}
    }
    shown_with_id(&app, &caller, &started.run, StatusCode::ACCEPTED).await
}

/// The current state of the run: 200 if it has ended.
async fn shown_with_id(app: &App, caller: &Caller, run: &str, otherwise: StatusCode) -> Answer<Response> {
    let run = Run::from(app.engine.runs(caller).get_after_change(run).await?);
    let status = if run.finished_at.is_some() { StatusCode::OK } else { otherwise };
    let at = location(&run.id);
    let data = RunWithId { run_id: run.id.clone(), run };
    Ok((status, [at], Reply(Data { data })).into_response())
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
fn wait(params: &TriggerParams, headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let preferred = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferred =
        preferred.flat_map(|value| value.split([',', ';'])).filter_map(|part| part.trim().strip_prefix("wait="));
    let text = match (&params.wait, preferred.next()) {
        (Some(wait), _) => wait.as_str(),
        (None, Some(wait)) => wait,
        (None, None) => return Ok(None),
    };
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

/// A run that also has its id under the name used by trigger responses.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
struct RunWithId {
    run_id: String,
    #[serde(flatten)]
    run: Run,
}

/// Runs of a workflow, newest first
#[utoipa::path(get, path = "/api/v1/workflows/{id}/runs", tag = "runs",
    params(("id" = String, Path, description = "Id or name of the workflow"), RunFilters),
    responses((status = 200, description = "A page of runs", body = Page<RunSummary>), Problems))]
async fn of_workflow(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Params(filters): Params<RunFilters>,
) -> Answer<Reply<Page<RunSummary>>> {
    page(&app, &caller, RunFilters { workflow: Some(id), ..filters }).await
}

/// Runs, newest first
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunFilters), responses(
    (status = 200, description = "A page of runs", body = Page<RunSummary>), Problems))]
async fn list(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(filters): Params<RunFilters>,
) -> Answer<Reply<Page<RunSummary>>> {
    page(&app, &caller, filters).await
}

async fn page(app: &App, caller: &Caller, filters: RunFilters) -> Answer<Reply<Page<RunSummary>>> {
    let query = engine::RunFilters::from(filters).query()?;
    Ok(Reply(app.engine.runs(caller).page(query).await?.into()))
}

/// A run with all its steps, and what it waits for
#[utoipa::path(get, path = "/api/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "The run", body = Data<Run>),
        (status = 304, description = "Unchanged since `If-None-Match`"), Problems))]
async fn get(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let view = Run::from(app.engine.runs(&caller).get(&run).await?);
    Ok(shown(view, &headers))
}

fn shown(run: Run, headers: &HeaderMap) -> Response {
    tagged(&Data { data: run }, headers)
}

/// A run of a workflow with all its steps
#[utoipa::path(get, path = "/api/v1/workflows/{id}/runs/{run}", tag = "runs",
    params(("id" = String, Path, description = "Id or name of the workflow"),
        ("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "The run", body = Data<Run>),
        (status = 304, description = "Unchanged since `If-None-Match`"), Problems))]
async fn get_of_workflow(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((id, run)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer<Response> {
    let view = Run::from(app.engine.runs(&caller).get(&run).await?);
    belongs(&view, &id)?;
    Ok(shown(view, &headers))
}

/// The workflow may have been deleted; the run still has its name.
fn belongs(run: &Run, workflow: &str) -> Result<(), Problem> {
    let not = || Problem::not_found(format!("there is no run {:?} of the workflow {workflow:?}", run.id));
    (run.workflow == workflow || run.workflow_id == workflow).then_some(()).ok_or_else(not)
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct CancelRequest {
    /// The reason, for the log.
    reason: Option<String>,
}

/// Cancel a run of a workflow
#[utoipa::path(post, path = "/api/v1/workflows/{id}/runs/{run}/cancel", tag = "runs",
    params(("id" = String, Path, description = "Id or name of the workflow"),
        ("run" = String, Path, description = "Id of the run")),
    request_body(content = Option<CancelRequest>),
    responses((status = 200, description = "Cancelled", body = Data<Run>), Problems))]
async fn cancel_of_workflow(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((id, run)): Path<(String, String)>,
    Json(request, ..): Json<CancelRequest>,
) -> Answer<Reply<Data<Run>>> {
    caller.check(Right::Run)?;
    belongs(&Run::from(app.engine.runs(&caller).get_after_change(&run).await?), &id)?;
    cancelled(&app, &caller, &run, request).await
}

/// Cancel a run: running steps are stopped, and no others start
#[utoipa::path(post, path = "/api/v1/runs/{run}/cancel", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")), request_body(content = Option<CancelRequest>),
    responses((status = 200, description = "Cancelled", body = Data<Run>), Problems))]
async fn cancel(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Json(request, ..): Json<CancelRequest>,
) -> Answer<Reply<Data<Run>>> {
    cancelled(&app, &caller, &run, request).await
}

async fn cancelled(app: &App, caller: &Caller, run: &str, request: CancelRequest) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(caller).cancel(run, request.reason.as_deref()).await;
    after(app, caller, run, done).await
}

/// The current state of the run. A conflict also reports its current status.
pub(super) async fn after(app: &App, caller: &Caller, run: &str, done: Result<(), Error>) -> Answer<Reply<Data<Run>>> {
    match done {
        Ok(()) => Ok(Reply(Data { data: app.engine.runs(caller).get_after_change(run).await?.into() })),
        Err(error @ Error::Conflict(_)) => {
            let now = app.engine.runs(caller).get_after_change(run).await?.status;
            Err(Problem::from(error).now(now))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct RetryRequest {
    /// Continue under the newest version of the workflow instead of the run's own.
    newest: bool,
}

impl RetryRequest {
    fn retry(&self) -> Retry {
        if self.newest { Retry::Newest } else { Retry::SameVersion }
    }
}

/// Retry a run that failed, timed out or was cancelled: steps that did not succeed run again
#[utoipa::path(post, path = "/api/v1/runs/{run}/retry", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")), request_body(content = Option<RetryRequest>),
    responses((status = 200, description = "The run continues", body = Data<Run>), Problems))]
async fn retry(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Json(request, ..): Json<RetryRequest>,
) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(&caller).retry(&run, request.retry()).await;
    after(&app, &caller, &run, done).await
}

/// What a retry under the newest version would keep.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
struct RetryPreview {
    /// Steps whose results are kept.
    stands: Vec<String>,
    /// Steps that would run again.
    again: Vec<String>,
}

/// Which steps a retry under the newest version would keep, and which would run again
#[utoipa::path(get, path = "/api/v1/runs/{run}/retry", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "The preview", body = Data<RetryPreview>), Problems))]
async fn retry_preview(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
) -> Answer<Reply<Data<RetryPreview>>> {
    let standing = app.engine.runs(&caller).retry_preview(&run).await?;
    Ok(Reply(Data { data: RetryPreview { stands: standing.stands, again: standing.again } }))
}

/// Release a run from quarantine: it is driven again
#[utoipa::path(post, path = "/api/v1/runs/{run}/release", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "Released", body = Data<Run>), Problems))]
async fn release(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(&caller).release(&run).await;
    after(&app, &caller, &run, done).await
}

/// Start a new run with the same input
///
/// If there is a body, it replaces the input.
#[utoipa::path(post, path = "/api/v1/runs/{run}/rerun", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    request_body(content = Option<serde_json::Value>, description = "A different input"),
    responses((status = 201, description = "Started", body = Data<Triggered>), Problems))]
async fn rerun(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>, raw: Raw) -> Answer<Response> {
    let input = if raw.is_empty() { None } else { Some(raw.value(&app).await?) };
    let started = app.engine.runs(&caller).rerun(&run, input).await?;
    let data = Triggered::new(&started, started.created.into());
    Ok((StatusCode::CREATED, [location(&started.run)], Reply(Data { data })).into_response())
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct EventParams {
    /// Only events after this version of the run
    #[param(minimum = 0)]
    after: Option<i64>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

/// The log of a run, in order
#[utoipa::path(get, path = "/api/v1/runs/{run}/events", tag = "runs",
    params(("run" = String, Path, description = "Id of the run"), EventParams),
    responses((status = 200, description = "A page of events", body = Page<Event>), Problems))]
async fn events(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Params(params): Params<EventParams>,
) -> Answer<Reply<Page<Event>>> {
    let bad = || Problem::input("cursor", "this is not the `next` of an earlier page");
    let after = match &params.cursor {
        Some(cursor) => cursor.parse().map_err(|_| bad())?,
        None => params.after.unwrap_or_default(),
    };
    let limit = page_size(params.limit, 200)?;
    let events = app.engine.runs(&caller).events(&run, after, limit).await?;
    let last = events.last().map(|event| event.version);
    let rows = events.iter().map(|event| event.version).collect::<std::collections::BTreeSet<_>>().len();
    let next = last.filter(|_| rows == limit as usize).map(|version| version.to_string());
    Ok(Reply(Page { data: events.into_iter().map(|event| Event::new(&run, event)).collect(), next }))
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LabelRequest {
    /// Replaces all labels.
    labels: BTreeMap<String, String>,
}

/// Replace the labels of a run
#[utoipa::path(patch, path = "/api/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    request_body = LabelRequest, responses((status = 200, description = "Labelled", body = Data<Run>), Problems))]
async fn label(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Json(request, ..): Json<LabelRequest>,
) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(&caller).label(&run, &request.labels).await;
    after(&app, &caller, &run, done).await
}

/// Erase all payloads of a finished run; its log and the digests remain
#[utoipa::path(post, path = "/api/v1/runs/{run}/erase", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "Erased", body = Data<Run>), Problems))]
async fn erase(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(&caller).erase(&run).await;
    after(&app, &caller, &run, done).await
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BulkRequest {
    /// The runs, by the same filters as lists. `{}` matches all runs.
    #[serde(deserialize_with = "crate::body::object")]
    filter: RunFilters,
    #[serde(default)]
    reason: Option<String>,
    /// For retries: continue under the newest version.
    #[serde(default)]
    newest: bool,
}

/// A filter for all matching runs, not for a page.
fn all_of(filter: RunFilters) -> Result<RunQuery, Problem> {
    if filter.limit.is_some() || filter.cursor.is_some() {
        return Err(Problem::input(
            "filter",
            "limit and cursor are only for lists: a bulk operation covers all matching runs",
        ));
    }
    Ok(engine::RunFilters::from(filter).query()?)
}

/// Cancel every matching run that has not ended, up to 10,000
#[utoipa::path(post, path = "/api/v1/runs/cancel", tag = "runs", request_body = BulkRequest,
    responses((status = 200, description = "The result for each run", body = Data<BulkResult>), Problems))]
async fn cancel_all(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<BulkRequest>,
) -> Answer<Reply<Data<BulkResult>>> {
    let bulk = app.engine.runs(&caller).cancel_all(all_of(request.filter)?, request.reason.as_deref()).await?;
    Ok(Reply(Data { data: bulk.into() }))
}

/// Retry every matching run that did not complete, up to 10,000
#[utoipa::path(post, path = "/api/v1/runs/retry", tag = "runs", request_body = BulkRequest,
    responses((status = 200, description = "The result for each run", body = Data<BulkResult>), Problems))]
async fn retry_all(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<BulkRequest>,
) -> Answer<Reply<Data<BulkResult>>> {
    let retry = RetryRequest { newest: request.newest }.retry();
    let bulk = app.engine.runs(&caller).retry_all(all_of(request.filter)?, retry).await?;
    Ok(Reply(Data { data: bulk.into() }))
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
#[utoipa::path(post, path = "/api/v1/test-runs", tag = "runs", request_body = TestRequest,
    responses((status = 201, description = "Started", body = Data<Triggered>), Problems))]
async fn test_run(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<TestRequest>,
) -> Answer<Response> {
    let text = match request.definition {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let input = if request.input.is_null() { serde_json::json!({}) } else { request.input };
    let started = app.engine.runs(&caller).test(Source { text: &text, file: None }, input).await?;
    let data = Triggered::new(&started, started.created.into());
    Ok((StatusCode::CREATED, [location(&started.run)], Reply(Data { data })).into_response())
}

/// Stop a test run and delete it
#[utoipa::path(delete, path = "/api/v1/test-runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 204, description = "Deleted"), Problems))]
async fn discard(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<StatusCode> {
    app.engine.runs(&caller).discard(&run).await?;
    Ok(StatusCode::NO_CONTENT)
}
