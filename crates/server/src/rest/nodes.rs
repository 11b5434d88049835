//! The processes that execute steps.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(nodes))
}

/// The live nodes: processes that execute steps on the same data
#[utoipa::path(get, path = "/api/v1/nodes", operation_id = "listNodes", tag = "nodes", responses(
    (status = 200, description = "All nodes", body = Page<NodeView>), Problems))]
async fn nodes(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<NodeView>>> {
    let nodes = app.engine.nodes(&caller).await?;
    Ok(Reply(nodes.into_iter().map(NodeView::from).collect::<Vec<_>>().into()))
}
