//! Controlling runs: cancel, retry, release, label, erase; one run or many.

use super::start::{Wait, WaitParams, awaited};
use super::{Answer, Problems, belongs};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_engine::commands::{self as engine, Retry, Right, RunQuery};
use stepwell_engine::{Caller, Error};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(cancel_of_workflow))
        .routes(routes!(cancel))
        .routes(routes!(retry, retry_preview))
        .routes(routes!(release))
        .routes(routes!(erase))
        .routes(routes!(cancel_all))
        .routes(routes!(retry_all))
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct CancelRequest {
    /// The reason, for the log.
    reason: Option<String>,
}

/// Cancel a run of a workflow
#[utoipa::path(post, path = "/api/v1/workflows/{id}/runs/{run}/cancel", operation_id = "cancelRunOfWorkflow",
    tag = "runs",
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
#[utoipa::path(post, path = "/api/v1/runs/{run}/cancel", operation_id = "cancelRun", tag = "runs",
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
pub(in crate::rest) async fn after(
    app: &App,
    caller: &Caller,
    run: &str,
    done: Result<(), Error>,
) -> Answer<Reply<Data<Run>>> {
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
///
/// With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
#[utoipa::path(post, path = "/api/v1/runs/{run}/retry", operation_id = "retryRun", tag = "runs",
    params(("run" = String, Path, description = "Id of the run"), WaitParams,
        ("Prefer" = Option<String>, Header, description = "`wait=30` waits up to 30 seconds for the end")),
    request_body(content = Option<RetryRequest>),
    responses((status = 200, description = "The run continues, or finished in time", body = Data<Run>),
        (status = 202, description = "The run continues, and did not finish in time", body = Data<Run>), Problems))]
async fn retry(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Wait(wait): Wait,
    Json(request, ..): Json<RetryRequest>,
) -> Answer<Response> {
    let done = app.engine.runs(&caller).retry(&run, request.retry()).await;
    match wait.filter(|_| done.is_ok()) {
        Some(wait) => awaited(&app, &caller, &run, wait).await,
        None => after(&app, &caller, &run, done).await.map(IntoResponse::into_response),
    }
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct PreviewParams {
    /// Under the newest version of the workflow instead of the run's own
    newest: Option<bool>,
}

/// What a retry would keep.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
struct RetryPreview {
    /// Steps whose results are kept.
    stands: Vec<String>,
    /// Steps that would run again; those inside a loop that is only continued, by path.
    again: Vec<String>,
}

/// Which steps a retry would keep, and which would run again
#[utoipa::path(get, path = "/api/v1/runs/{run}/retry", operation_id = "previewRetry", tag = "runs",
    params(("run" = String, Path, description = "Id of the run"), PreviewParams),
    responses((status = 200, description = "The preview", body = Data<RetryPreview>), Problems))]
async fn retry_preview(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Params(params): Params<PreviewParams>,
) -> Answer<Reply<Data<RetryPreview>>> {
    let retry = RetryRequest { newest: params.newest.unwrap_or(false) }.retry();
    let standing = app.engine.runs(&caller).retry_preview(&run, retry).await?;
    Ok(Reply(Data { data: RetryPreview { stands: standing.stands, again: standing.again } }))
}

/// Release a run from quarantine: it is driven again
#[utoipa::path(post, path = "/api/v1/runs/{run}/release", operation_id = "releaseRun", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "Released", body = Data<Run>), Problems))]
async fn release(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(&caller).release(&run).await;
    after(&app, &caller, &run, done).await
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LabelRequest {
    /// Replaces all labels.
    labels: BTreeMap<String, String>,
}

/// Replace the labels of a run
#[utoipa::path(patch, path = "/api/v1/runs/{run}", operation_id = "labelRun", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    request_body = LabelRequest, responses((status = 200, description = "Labelled", body = Data<Run>), Problems))]
pub(super) async fn label(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Json(request, ..): Json<LabelRequest>,
) -> Answer<Reply<Data<Run>>> {
    let done = app.engine.runs(&caller).label(&run, &request.labels).await;
    after(&app, &caller, &run, done).await
}

/// Erase all payloads of a finished run; its log and the digests remain
#[utoipa::path(post, path = "/api/v1/runs/{run}/erase", operation_id = "eraseRun", tag = "runs",
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
#[utoipa::path(post, path = "/api/v1/runs/cancel", operation_id = "cancelRuns",
    tag = "runs", request_body = BulkRequest,
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
#[utoipa::path(post, path = "/api/v1/runs/retry", operation_id = "retryRuns", tag = "runs", request_body = BulkRequest,
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
