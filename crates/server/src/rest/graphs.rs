//! The graphs of workflows and of runs, for drawing.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Params;
use crate::view::{Data, GraphView};
use axum::Json as Reply;
use axum::extract::{Path, State};
use serde::Deserialize;
use stepwell_core::outline::outline;
use stepwell_engine::Compiled;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(of_workflow)).routes(routes!(of_run))
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Which {
    /// The newest version if omitted
    version: Option<u32>,
}

/// The graph of a workflow, for any dialect
#[utoipa::path(get, path = "/api/v1/workflows/{id}/graph", operation_id = "getWorkflowGraph", tag = "workflows",
    params(("id" = String, Path, description = "Id or name"), Which), responses(
        (status = 200, description = "Its steps and edges", body = Data<GraphView>), Problems))]
async fn of_workflow(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Params(which): Params<Which>,
) -> Answer<Reply<Data<GraphView>>> {
    let compiled = match which.version {
        Some(version) => app.engine.workflows(&caller).version(&id, version).await?,
        None => app.engine.workflows(&caller).get(&id).await?,
    };
    Ok(shown(&compiled))
}

/// The graph of a run's version
#[utoipa::path(get, path = "/api/v1/runs/{run}/graph", operation_id = "getRunGraph",
    tag = "runs", params(("run" = String, Path, description = "Id of the run")), responses(
    (status = 200, description = "Its steps and edges", body = Data<GraphView>), Problems))]
async fn of_run(State(app): State<App>, Auth(caller): Auth, Path(run): Path<String>) -> Answer<Reply<Data<GraphView>>> {
    Ok(shown(&*app.engine.runs(&caller).definition(&run).await?))
}

fn shown(compiled: &Compiled) -> Reply<Data<GraphView>> {
    Reply(Data { data: GraphView::new(outline(&compiled.definition), compiled.row.version) })
}
