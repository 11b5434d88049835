//! Secrets and connections: their secret parts can be written but never read.

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
    OpenApiRouter::new()
        .routes(routes!(secrets))
        .routes(routes!(secret, put_secret, remove_secret))
        .routes(routes!(rotate))
        .routes(routes!(connections))
        .routes(routes!(connection, put_connection, remove_connection))
}

/// The secrets of the organisation, without their values
#[utoipa::path(get, path = "/api/v1/secrets", operation_id = "listSecrets", tag = "secrets", responses(
    (status = 200, description = "All secrets", body = Page<SecretView>), Problems))]
async fn secrets(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<SecretView>>> {
    let all = app.engine.secrets(&caller).list().await?;
    Ok(Reply(all.into_iter().map(SecretView::from).collect::<Vec<_>>().into()))
}

/// A secret, without its value
#[utoipa::path(get, path = "/api/v1/secrets/{secret}", operation_id = "getSecret", tag = "secrets",
    params(("secret" = String, Path, description = "Name of the secret")),
    responses((status = 200, description = "The secret, without its value", body = Data<SecretView>), Problems))]
async fn secret(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(secret): Path<String>,
) -> Answer<Reply<Data<SecretView>>> {
    Ok(Reply(Data { data: app.engine.secrets(&caller).get(&secret).await?.into() }))
}

/// Create a secret, or change its value or hosts; takes effect from the next step
#[utoipa::path(put, path = "/api/v1/secrets/{secret}", operation_id = "putSecret", tag = "secrets",
    params(("secret" = String, Path, description = "Name of the secret")), request_body = SecretRequest,
    responses((status = 200, description = "The stored secret, without its value", body = Data<SecretView>), Problems))]
async fn put_secret(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(secret): Path<String>,
    Json(request, ..): Json<SecretRequest>,
) -> Answer<Reply<Data<SecretView>>> {
    Ok(Reply(Data { data: app.engine.secrets(&caller).put(&secret, request.into()).await?.into() }))
}

/// Remove a secret
#[utoipa::path(delete, path = "/api/v1/secrets/{secret}", operation_id = "deleteSecret", tag = "secrets",
    params(("secret" = String, Path, description = "Name of the secret")),
    responses((status = 204, description = "Removed"), Problems))]
async fn remove_secret(State(app): State<App>, Auth(caller): Auth, Path(secret): Path<String>) -> Answer<StatusCode> {
    app.engine.secrets(&caller).remove(&secret).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Seal everything with the first of the server's master keys; for operators
#[utoipa::path(post, path = "/api/v1/master-key/rotate", operation_id = "rotateMasterKey", tag = "secrets", responses(
    (status = 200, description = "What was sealed again", body = Data<RotatedView>), Problems))]
async fn rotate(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<RotatedView>>> {
    Ok(Reply(Data { data: app.engine.secrets(&caller).rotate().await?.into() }))
}

/// The databases that query steps can use, without their URLs
#[utoipa::path(get, path = "/api/v1/connections", operation_id = "listConnections", tag = "secrets", responses(
    (status = 200, description = "All connections", body = Page<ConnectionView>), Problems))]
async fn connections(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<ConnectionView>>> {
    let all = app.engine.connections(&caller).list().await?;
    Ok(Reply(all.into_iter().map(ConnectionView::from).collect::<Vec<_>>().into()))
}

/// A connection, without its URL
#[utoipa::path(get, path = "/api/v1/connections/{connection}", operation_id = "getConnection", tag = "secrets",
    params(("connection" = String, Path, description = "Name of the connection")),
    responses((status = 200, description = "The connection, without its URL", body = Data<ConnectionView>), Problems))]
async fn connection(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(connection): Path<String>,
) -> Answer<Reply<Data<ConnectionView>>> {
    Ok(Reply(Data { data: app.engine.connections(&caller).get(&connection).await?.into() }))
}

/// Create or replace a connection; a SQLite file requires the right `operator`
#[utoipa::path(put, path = "/api/v1/connections/{connection}", operation_id = "putConnection", tag = "secrets",
    params(("connection" = String, Path, description = "Name of the connection")), request_body = ConnectionRequest,
    responses((status = 200, description = "The connection, without its URL", body = Data<ConnectionView>), Problems))]
async fn put_connection(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(connection): Path<String>,
    Json(request, ..): Json<ConnectionRequest>,
) -> Answer<Reply<Data<ConnectionView>>> {
    Ok(Reply(Data { data: app.engine.connections(&caller).put(&connection, request.into()).await?.into() }))
}

/// Remove a connection
#[utoipa::path(delete, path = "/api/v1/connections/{connection}", operation_id = "deleteConnection", tag = "secrets",
    params(("connection" = String, Path, description = "Name of the connection")),
    responses((status = 204, description = "Removed"), Problems))]
async fn remove_connection(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(connection): Path<String>,
) -> Answer<StatusCode> {
    app.engine.connections(&caller).remove(&connection).await?;
    Ok(StatusCode::NO_CONTENT)
}
