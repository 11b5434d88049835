//! Workflows that are exposed as tools.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(tools))
}

/// The workflows that are exposed as tools, by name
#[utoipa::path(get, path = "/api/v1/tools", operation_id = "listTools", tag = "tools", responses(
    (status = 200, description = "All workflows that are exposed as tools", body = Page<WorkflowToolView>), Problems))]
async fn tools(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<WorkflowToolView>>> {
    let all = app.engine.workflows(&caller).tools().await?;
    Ok(Reply(all.into_iter().map(WorkflowToolView::from).collect::<Vec<_>>().into()))
}
