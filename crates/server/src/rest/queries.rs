//! Saved queries.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Json;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(queries)).routes(routes!(query, put_query, remove_query))
}

/// The saved queries of the organisation
#[utoipa::path(get, path = "/api/v1/queries", operation_id = "listQueries", tag = "queries", responses(
    (status = 200, description = "All saved queries", body = Page<QueryView>), Problems))]
async fn queries(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<QueryView>>> {
    let all = app.engine.queries(&caller).list().await?;
    Ok(Reply(all.into_iter().map(QueryView::from).collect::<Vec<_>>().into()))
}

/// A saved query
#[utoipa::path(get, path = "/api/v1/queries/{query}", operation_id = "getQuery", tag = "queries",
    params(("query" = String, Path, description = "Name of the query")),
    responses((status = 200, description = "The query", body = Data<QueryView>), Problems))]
async fn query(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(query): Path<String>,
) -> Answer<Reply<Data<QueryView>>> {
    Ok(Reply(Data { data: app.engine.queries(&caller).get(&query).await?.into() }))
}

/// Create or replace a saved query; takes effect from the next step
#[utoipa::path(put, path = "/api/v1/queries/{query}", operation_id = "putQuery", tag = "queries",
    params(("query" = String, Path, description = "Name of the query")), request_body = QueryRequest,
    responses((status = 200, description = "The stored query", body = Data<QueryView>), Problems))]
async fn put_query(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(query): Path<String>,
    Json(request, ..): Json<QueryRequest>,
) -> Answer<Reply<Data<QueryView>>> {
    Ok(Reply(Data { data: app.engine.queries(&caller).put(&query, request.into()).await?.into() }))
}

/// Remove a saved query
#[utoipa::path(delete, path = "/api/v1/queries/{query}", operation_id = "deleteQuery", tag = "queries",
    params(("query" = String, Path, description = "Name of the query")),
    responses((status = 204, description = "Removed"), Problems))]
async fn remove_query(State(app): State<App>, Auth(caller): Auth, Path(query): Path<String>) -> Answer<StatusCode> {
    app.engine.queries(&caller).remove(&query).await?;
    Ok(StatusCode::NO_CONTENT)
}
