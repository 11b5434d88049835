//! Channels, preferences, and the delivery of notifications.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(channels, create_channel))
        .routes(routes!(remove_channel))
        .routes(routes!(test_channel))
        .routes(routes!(preferences, change_preferences))
        .routes(routes!(notifications))
}

/// Your channels, and those of the organisation
#[utoipa::path(get, path = "/api/v1/channels", operation_id = "listChannels", tag = "notifications", responses(
    (status = 200, description = "The channels, without their credentials", body = Page<ChannelView>), Problems))]
async fn channels(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<ChannelView>>> {
    let all = app.engine.channels(&caller).list().await?;
    Ok(Reply(all.into_iter().map(ChannelView::from).collect::<Vec<_>>().into()))
}

/// Create a channel; a webhook's secret is shown only in this response
#[utoipa::path(post, path = "/api/v1/channels", operation_id = "createChannel",
    tag = "notifications", request_body = NewChannelRequest, responses(
    (status = 201, description = "Created", body = Data<NewChannelView>), Problems))]
async fn create_channel(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<NewChannelRequest>,
) -> Answer<(StatusCode, Reply<Data<NewChannelView>>)> {
    let (channel, secret) = app.engine.channels(&caller).create(request.into()).await?;
    Ok((StatusCode::CREATED, Reply(Data { data: NewChannelView { is: channel.into(), secret } })))
}

/// Remove a channel; pending messages are dropped
#[utoipa::path(delete, path = "/api/v1/channels/{channel}", operation_id = "deleteChannel", tag = "notifications",
    params(("channel" = String, Path, description = "Id or name")),
    responses((status = 204, description = "Removed"), Problems))]
async fn remove_channel(State(app): State<App>, Auth(caller): Auth, Path(channel): Path<String>) -> Answer<StatusCode> {
    app.engine.channels(&caller).remove(&channel).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Send a message through a channel now
#[utoipa::path(post, path = "/api/v1/channels/{channel}/test", operation_id = "testChannel", tag = "notifications",
    params(("channel" = String, Path, description = "Id or name")),
    responses((status = 200, description = "Whether it was delivered", body = Data<TestView>), Problems))]
async fn test_channel(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(channel): Path<String>,
) -> Answer<Reply<Data<TestView>>> {
    Ok(Reply(Data { data: app.engine.channels(&caller).test(&channel).await?.into() }))
}

/// Which events you are notified of, and where
#[utoipa::path(get, path = "/api/v1/preferences", operation_id = "getPreferences", tag = "notifications", responses(
    (status = 200, description = "For browsers and each of your channels", body = Data<PreferencesView>), Problems))]
async fn preferences(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<PreferencesView>>> {
    Ok(Reply(Data { data: app.engine.channels(&caller).preferences().await?.into() }))
}

/// Change which events you are notified of; omitted fields are kept
#[utoipa::path(patch, path = "/api/v1/preferences", operation_id = "updatePreferences",
    tag = "notifications", request_body = PreferencesView, responses(
    (status = 200, description = "Changed", body = Data<PreferencesView>), Problems))]
async fn change_preferences(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<PreferencesView>,
) -> Answer<Reply<Data<PreferencesView>>> {
    Ok(Reply(Data { data: app.engine.channels(&caller).change_preferences(request.into()).await?.into() }))
}

/// Delivery of notifications, newest first: yours, or all of the organisation if you are an administrator
#[utoipa::path(get, path = "/api/v1/notifications", operation_id = "listNotifications",
    tag = "notifications", params(Paging), responses(
    (status = 200, description = "A page of notifications", body = Page<NotificationView>), Problems))]
async fn notifications(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(paging): Params<Paging>,
) -> Answer<Reply<Page<NotificationView>>> {
    let limit = paging.limit()?;
    let after = paging.cursor.as_deref().map(cursor).transpose()?;
    let (found, next) = app.engine.channels(&caller).notifications(after, limit).await?;
    let data = found.into_iter().map(NotificationView::from).collect();
    Ok(Reply(Page { data, next: next.map(|key| BASE64.encode(key)) }))
}

fn cursor(text: &str) -> Result<String, Problem> {
    let decoded = BASE64.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.ok_or_else(|| Problem::input("cursor", "this is not the `next` of an earlier page"))
}
