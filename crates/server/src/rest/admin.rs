//! Users, roles and keys.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Json;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use stepwell_engine::commands::{KeyChange, NewKey, NewUser, UserChange};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(me))
        .routes(routes!(users, create_user))
        .routes(routes!(user, change_user, disable_user))
        .routes(routes!(roles))
        .routes(routes!(put_role, remove_role))
        .routes(routes!(keys, create_key))
        .routes(routes!(change_key, revoke_key))
}

/// The authenticated caller and their rights
#[utoipa::path(get, path = "/api/v1/me", operation_id = "getCaller", tag = "people", responses(
    (status = 200, description = "The caller", body = Data<Me>), Problems))]
async fn me(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<Me>>> {
    let organisation = app.engine.organisations(&caller).usage().await?.organisation;
    Ok(Reply(Data { data: Me::new(&caller, organisation) }))
}

/// The users of the organisation
#[utoipa::path(get, path = "/api/v1/users", operation_id = "listUsers", tag = "people", responses(
    (status = 200, description = "All users", body = Page<UserView>), Problems))]
async fn users(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<UserView>>> {
    let all = app.engine.users(&caller).list().await?;
    Ok(Reply(all.into_iter().map(UserView::from).collect::<Vec<_>>().into()))
}

/// Create a user
#[utoipa::path(post, path = "/api/v1/users", operation_id = "createUser",
    tag = "people", request_body = NewUserRequest, responses(
    (status = 201, description = "Created", body = Data<UserView>), Problems))]
async fn create_user(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<NewUserRequest>,
) -> Answer<(StatusCode, Reply<Data<UserView>>)> {
    let NewUserRequest { name, roles, grants } = request;
    let user = app.engine.users(&caller).create(NewUser { name, roles, grants }).await?;
    Ok((StatusCode::CREATED, Reply(Data { data: user.into() })))
}

/// A user
#[utoipa::path(get, path = "/api/v1/users/{user}", operation_id = "getUser", tag = "people",
    params(("user" = String, Path, description = "Id or name")),
    responses((status = 200, description = "The user", body = Data<UserView>), Problems))]
async fn user(State(app): State<App>, Auth(caller): Auth, Path(user): Path<String>) -> Answer<Reply<Data<UserView>>> {
    Ok(Reply(Data { data: app.engine.users(&caller).get(&user).await?.into() }))
}

/// Change a user's roles or grants, or disable them; takes effect from the next step of their runs
#[utoipa::path(patch, path = "/api/v1/users/{user}", operation_id = "updateUser", tag = "people",
    params(("user" = String, Path, description = "Id or name")), request_body = UserChangeRequest,
    responses((status = 200, description = "Changed", body = Data<UserView>), Problems))]
async fn change_user(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(user): Path<String>,
    Json(request, ..): Json<UserChangeRequest>,
) -> Answer<Reply<Data<UserView>>> {
    let UserChangeRequest { roles, grants, disabled } = request;
    let changed = app.engine.users(&caller).change(&user, UserChange { roles, grants, disabled }).await?;
    Ok(Reply(Data { data: changed.into() }))
}

/// Disable a user permanently; their history is kept
#[utoipa::path(delete, path = "/api/v1/users/{user}", operation_id = "disableUser", tag = "people",
    params(("user" = String, Path, description = "Id or name")),
    responses((status = 204, description = "Disabled"), Problems))]
async fn disable_user(State(app): State<App>, Auth(caller): Auth, Path(user): Path<String>) -> Answer<StatusCode> {
    app.engine.users(&caller).disable(&user).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Roles: named sets of grants, built-in roles first
#[utoipa::path(get, path = "/api/v1/roles", operation_id = "listRoles", tag = "people", responses(
    (status = 200, description = "All roles", body = Page<RoleView>), Problems))]
async fn roles(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<RoleView>>> {
    let all = app.engine.roles(&caller).list().await?;
    Ok(Reply(all.into_iter().map(RoleView::from).collect::<Vec<_>>().into()))
}

/// Create or replace a role
#[utoipa::path(put, path = "/api/v1/roles/{role}", operation_id = "putRole", tag = "people",
    params(("role" = String, Path, description = "Name of the role")), request_body = RoleRequest,
    responses((status = 200, description = "The stored role", body = Data<RoleView>), Problems))]
async fn put_role(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(role): Path<String>,
    Json(request, ..): Json<RoleRequest>,
) -> Answer<Reply<Data<RoleView>>> {
    Ok(Reply(Data { data: app.engine.roles(&caller).put(&role, request.grants).await?.into() }))
}

/// Remove a role that no user has
#[utoipa::path(delete, path = "/api/v1/roles/{role}", operation_id = "deleteRole", tag = "people",
    params(("role" = String, Path, description = "Name of the role")),
    responses((status = 204, description = "Removed"), Problems))]
async fn remove_role(State(app): State<App>, Auth(caller): Auth, Path(role): Path<String>) -> Answer<StatusCode> {
    app.engine.roles(&caller).remove(&role).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// API keys: all keys of the organisation for administrators, your own otherwise
#[utoipa::path(get, path = "/api/v1/keys", operation_id = "listKeys", tag = "people", responses(
    (status = 200, description = "The keys", body = Page<KeyView>), Problems))]
async fn keys(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<KeyView>>> {
    let all = app.engine.keys(&caller).list().await?;
    Ok(Reply(all.into_iter().map(KeyView::from).collect::<Vec<_>>().into()))
}

/// Create an API key; the response is the only place that shows it
#[utoipa::path(post, path = "/api/v1/keys", operation_id = "createKey",
    tag = "people", request_body = NewKeyRequest, responses(
    (status = 201, description = "Created", body = Data<NewKeyView>), Problems))]
async fn create_key(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<NewKeyRequest>,
) -> Answer<(StatusCode, Reply<Data<NewKeyView>>)> {
    let NewKeyRequest { user, name, agent, grants, expires_at } = request;
    let new = NewKey { user, name, agent, grants, expires: expires_at.map(|at| at.0) };
    let (made, key) = app.engine.keys(&caller).create(new).await?;
    Ok((StatusCode::CREATED, Reply(Data { data: NewKeyView { key, is: made.into() } })))
}

/// Rename a key, pause it or resume it
#[utoipa::path(patch, path = "/api/v1/keys/{key}", operation_id = "updateKey", tag = "people",
    params(("key" = String, Path, description = "Id of the key")),
    request_body = KeyChangeRequest, responses((status = 200, description = "Changed", body = Data<KeyView>), Problems))]
async fn change_key(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(key): Path<String>,
    Json(request, ..): Json<KeyChangeRequest>,
) -> Answer<Reply<Data<KeyView>>> {
    let KeyChangeRequest { name, paused } = request;
    Ok(Reply(Data { data: app.engine.keys(&caller).change(&key, KeyChange { name, paused }).await?.into() }))
}

/// Revoke a key permanently
#[utoipa::path(delete, path = "/api/v1/keys/{key}", operation_id = "revokeKey", tag = "people",
    params(("key" = String, Path, description = "Id of the key")),
    responses((status = 204, description = "Revoked"), Problems))]
async fn revoke_key(State(app): State<App>, Auth(caller): Auth, Path(key): Path<String>) -> Answer<StatusCode> {
    app.engine.keys(&caller).revoke(&key).await?;
    Ok(StatusCode::NO_CONTENT)
}
