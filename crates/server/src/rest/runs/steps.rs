//! The steps of a run, in pages.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Params;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use stepwell_engine::commands::StepQuery;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(steps)).routes(routes!(status))
}

/// Filters for the steps of a run.
#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct StepFilters {
    /// One status, or several separated by commas: pending, running, sleeping, waiting, success, failed, …
    status: Option<String>,
    /// What the path begins with: `each[3].` for the steps of an item
    prefix: Option<String>,
    /// Maximum number of entries; 100 by default
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

impl From<StepFilters> for StepQuery {
    fn from(filters: StepFilters) -> StepQuery {
        let statuses = filters.status.as_deref().into_iter().flat_map(|status| status.split(',')).map(str::trim);
        StepQuery {
            status: statuses.filter(|status| !status.is_empty()).map(Into::into).collect(),
            path: None,
            prefix: filters.prefix,
            after: filters.cursor,
            limit: 0,
        }
    }
}

/// A step of a run, with its path.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
struct StepOfRun {
    /// Such as `each[3].charge`.
    path: String,
    #[serde(flatten)]
    step: Step,
}

/// The steps of a run in the order of the definition, in pages
///
/// A page ends early if the inputs and outputs of its steps are more than 4 MB.
#[utoipa::path(get, path = "/api/v1/runs/{run}/steps", operation_id = "listSteps", tag = "runs",
    params(("run" = String, Path, description = "Id of the run"), StepFilters),
    responses((status = 200, description = "A page of steps", body = Page<StepOfRun>), Problems))]
async fn steps(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(run): Path<String>,
    Params(filters): Params<StepFilters>,
) -> Answer<Reply<Page<StepOfRun>>> {
    let limit = page_size(filters.limit, 100)? as usize;
    let page = app.engine.runs(&caller).steps(&run, &StepQuery { limit, ..filters.into() }).await?;
    let shown = |step| {
        let (path, step) = Step::with_path(&run, step);
        StepOfRun { path, step }
    };
    Ok(Reply(Page { data: page.steps.into_iter().map(shown).collect(), next: page.next }))
}

/// The state of a run as canvases and widgets read it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RunState {
    /// Id of the run.
    #[serde(rename = "instanceID")]
    instance_id: String,
    #[schema(value_type = RunStatus)]
    status: String,
    /// The results of steps by their `outputVariable` and, in `nodes`, by path; the run's `input`, `output` and `error`.
    #[schema(value_type = serde_json::Value)]
    context_data: serde_json::Value,
}

/// The state of a run in one object, as the socket sends it with `workflow_status_update`
#[utoipa::path(get, path = "/api/v1/runs/{run}/status", operation_id = "getRunState", tag = "runs",
    params(("run" = String, Path, description = "Id of the run")),
    responses((status = 200, description = "Its state", body = Data<RunState>), Problems))]
async fn status(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<Reply<Data<RunState>>> {
    let view = app.engine.runs(&caller).get(&run).await?;
    let data = RunState {
        instance_id: view.id.to_string(),
        status: view.status.to_string(),
        context_data: crate::live::context(&view),
    };
    Ok(Reply(Data { data }))
}
