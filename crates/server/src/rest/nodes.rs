//! The processes that execute steps.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::view::*;
use axum::Json as Shown;
use axum::extract::State;
use stepwell_engine::{Error, Right};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(nodes))
}

/// The nodes that are alive: processes that execute steps on the same data
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes", responses(
    (status = 200, description = "All of them", body = Page<NodeView>), Problems))]
async fn nodes(State(app): State<App>, Auth(caller): Auth) -> Answer<Shown<Page<NodeView>>> {
    caller.check(Right::Read)?;
    let nodes = app.engine.store().nodes().await.map_err(Error::from)?;
    Ok(Shown(nodes.into_iter().map(NodeView::from).collect::<Vec<_>>().into()))
}
