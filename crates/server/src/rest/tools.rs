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
    OpenApiRouter::new().routes(routes!(tools)).routes(routes!(catalogue))
}

/// The workflows that are exposed as tools, by name
#[utoipa::path(get, path = "/api/v1/tools", operation_id = "listTools", tag = "tools", responses(
    (status = 200, description = "All workflows that are exposed as tools", body = Page<WorkflowToolView>), Problems))]
async fn tools(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<WorkflowToolView>>> {
    let all = app.engine.workflows(&caller).tools().await?;
    Ok(Reply(all.into_iter().map(WorkflowToolView::from).collect::<Vec<_>>().into()))
}

/// The tools that steps may call here: built-in ones, and accepted ones of MCP servers
#[utoipa::path(get, path = "/api/v1/tools/catalogue", operation_id = "listCatalogue", tag = "tools", responses(
    (status = 200, description = "All tools, with those that this key may call marked", body = Page<CatalogueTool>),
    Problems))]
async fn catalogue(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<CatalogueTool>>> {
    let all = app.engine.mcp_servers(&caller).catalogue().await?;
    Ok(Reply(all.into_iter().map(CatalogueTool::from).collect::<Vec<_>>().into()))
}
