//! MCP servers whose tools steps can call: their state, and accepting their tools. Servers can only be added in the
//! configuration, because adding one may start any program.

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
    OpenApiRouter::new().routes(routes!(servers)).routes(routes!(server)).routes(routes!(accept))
}

/// The MCP servers of the organisation as seen by this node, with their tools
#[utoipa::path(get, path = "/api/v1/mcp-servers", operation_id = "listMcpServers", tag = "tools", responses(
    (status = 200, description = "All MCP servers", body = Page<McpServerView>), Problems))]
async fn servers(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<McpServerView>>> {
    let all = app.engine.mcp_servers(&caller).list().await?;
    Ok(Reply(all.into_iter().map(McpServerView::from).collect::<Vec<_>>().into()))
}

/// An MCP server with its tools
#[utoipa::path(get, path = "/api/v1/mcp-servers/{server}", operation_id = "getMcpServer", tag = "tools",
    params(("server" = String, Path, description = "Its name in the configuration")),
    responses((status = 200, description = "The server", body = Data<McpServerView>), Problems))]
async fn server(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(server): Path<String>,
) -> Answer<Reply<Data<McpServerView>>> {
    Ok(Reply(Data { data: app.engine.mcp_servers(&caller).get(&server).await?.into() }))
}

/// Accept the tools that a server offers now; new and changed tools can be called from then on
#[utoipa::path(post, path = "/api/v1/mcp-servers/{server}/accept", operation_id = "acceptMcpTools",
    tag = "tools",
    params(("server" = String, Path, description = "Its name in the configuration")), request_body = AcceptRequest,
    responses((status = 200, description = "The server with the new state of its tools", body = Data<McpServerView>),
        Problems))]
async fn accept(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(server): Path<String>,
    Json(request, ..): Json<AcceptRequest>,
) -> Answer<Reply<Data<McpServerView>>> {
    let which: Vec<_> = request.tools.into_iter().map(Into::into).collect();
    Ok(Reply(Data { data: app.engine.mcp_servers(&caller).accept(&server, &which).await?.into() }))
}
