//! Workflows that are exposed as tools: their state, and accepting versions that agents defined.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Json;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(tools)).routes(routes!(catalogue)).routes(routes!(accept))
}

/// The workflows that are exposed as tools, by name
#[utoipa::path(get, path = "/api/v1/tools", tag = "workflows", responses(
    (status = 200, description = "All workflows that are exposed as tools", body = Page<WorkflowToolView>), Problems))]
async fn tools(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<WorkflowToolView>>> {
    let all = app.engine.workflows(&caller).tools().await?;
    Ok(Reply(all.into_iter().map(WorkflowToolView::from).collect::<Vec<_>>().into()))
}

/// The tools that steps may call here: built-in ones, and accepted ones of MCP servers
#[utoipa::path(get, path = "/api/v1/tools/catalogue", tag = "workflows", responses(
    (status = 200, description = "All tools, with those that this key may call marked", body = Page<CatalogueTool>),
    Problems))]
async fn catalogue(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<CatalogueTool>>> {
    let all = app.engine.mcp_servers(&caller).catalogue().await?;
    Ok(Reply(all.into_iter().map(CatalogueTool::from).collect::<Vec<_>>().into()))
}

/// Accept the newest version of a workflow as a tool that agents are offered
#[utoipa::path(post, path = "/api/v1/workflows/{id}/accept-tool", tag = "workflows",
    params(("id" = String, Path, description = "Name or id")), request_body = AcceptToolRequest,
    responses((status = 200, description = "The tool", body = Data<WorkflowToolView>), Problems))]
async fn accept(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(workflow): Path<String>,
    Json(request, ..): Json<AcceptToolRequest>,
) -> Answer<Reply<Data<WorkflowToolView>>> {
    Ok(Reply(Data { data: app.engine.workflows(&caller).accept_tool(&workflow, request.version).await?.into() }))
}
