//! Runs: reading and listing them, and their log.

mod control;
mod start;
mod steps;

pub(super) use control::after;

use super::etag::tagged;
use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Params;
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use stepwell_engine::Caller;
use stepwell_engine::commands as engine;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(of_workflow))
        .routes(routes!(get_of_workflow))
        .routes(routes!(list))
        .routes(routes!(get, control::label))
        .routes(routes!(events))
        .merge(steps::router())
        .merge(start::router())
        .merge(control::router())
}

/// Runs of a workflow, newest first
#[utoipa::path(get, path = "/api/v1/workflows/{id}/runs", operation_id = "listRunsOfWorkflow", tag = "runs",
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
#[utoipa::path(get, path = "/api/v1/runs", operation_id = "listRuns", tag = "runs", params(RunFilters), responses(
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

/// A run with its steps, and what it waits for
///
/// Of a run with more than 1,000 steps, `tasks` has the first. Inputs and outputs of steps beyond 4 MB in all are left
/// out, and `is_omitted` says so. `GET /runs/{run}/steps` has all of them in pages.
#[utoipa::path(get, path = "/api/v1/runs/{run}", operation_id = "getRun", tag = "runs",
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
#[utoipa::path(get, path = "/api/v1/workflows/{id}/runs/{run}", operation_id = "getRunOfWorkflow", tag = "runs",
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

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct EventParams {
    /// Only events after this version of the run
    #[param(minimum = 0)]
    after: Option<i64>,
    /// Maximum number of entries; 200 by default
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

/// The log of a run, in order
///
/// `limit` counts commits, which may have several events. A page ends early if its events are many.
#[utoipa::path(get, path = "/api/v1/runs/{run}/events", operation_id = "listRunEvents", tag = "runs",
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
    let page = app.engine.runs(&caller).events(&run, after, limit).await?;
    let next = page.next.map(|version| version.to_string());
    Ok(Reply(Page { data: page.events.into_iter().map(|event| Event::new(&run, event)).collect(), next }))
}
