//! Signing a browser in and out.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::{Auth, SESSION_COOKIE, guessed, session};
use crate::body::Params;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use stepwell_core::time::Time;
use stepwell_engine::Error;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(link)).routes(routes!(sign_in)).routes(routes!(sign_out))
}

/// The user of a sign-in link.
#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct SignInQuery {
    /// A user by name or id; you, if omitted
    user: Option<String>,
}

/// Create a one-time link that signs a browser in as you, valid for a day; administrators can create links for others
#[utoipa::path(post, path = "/api/v1/sign-in-links", operation_id = "createSignInLink",
    tag = "people", params(SignInQuery), responses(
    (status = 201, description = "The link", body = Data<LinkView>), Problems))]
async fn link(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(query): Params<SignInQuery>,
) -> Answer<(StatusCode, Reply<Data<LinkView>>)> {
    let secret = app.engine.users(&caller).sign_in_link(query.user.as_deref()).await?;
    let url = format!("{}/sign-in/{secret}", app.public_url);
    Ok((StatusCode::CREATED, Reply(Data { data: LinkView { url } })))
}

/// Sign a browser in with a link; the link works once
#[utoipa::path(get, path = "/sign-in/{link}", operation_id = "signIn", tag = "people", security(()),
    params(("link" = String, Path, description = "The last part of the link")),
    responses((status = 303, description = "Signed in: redirects to the dashboard"), Problems))]
async fn sign_in(
    State(app): State<App>,
    method: Method,
    extensions: Extensions,
    Path(link): Path<String>,
) -> Answer<Response> {
    // A HEAD request, as sent for link previews, does not use up the link.
    if method == Method::HEAD {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (secret, expires) = match app.engine.identity().sign_in(&link).await {
        Err(Error::Unauthorised(why)) => {
            guessed(&app, &extensions)?;
            return Err(Error::Unauthorised(why).into());
        }
        signed_in => signed_in?,
    };
    let seconds = expires.since(now()).0 / 1_000;
    Ok(redirect(cookie(&app, &secret, seconds)))
}

/// Sign this browser out
#[utoipa::path(post, path = "/api/v1/sign-out", operation_id = "signOut", tag = "people",
    responses((status = 204, description = "Signed out"), Problems))]
async fn sign_out(State(app): State<App>, Auth(_caller): Auth, headers: HeaderMap) -> Answer<Response> {
    if let Some(secret) = session(&headers) {
        app.engine.identity().sign_out(secret).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie(&app, "", 0))]).into_response())
}

fn redirect(cookie: HeaderValue) -> Response {
    let headers = [
        (SET_COOKIE, cookie),
        (LOCATION, HeaderValue::from_static("/")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn cookie(app: &App, secret: &str, seconds: u64) -> HeaderValue {
    let secure = if app.public_url.starts_with("https://") { "; Secure" } else { "" };
    // Lax, so that a link in an email opens a signed-in page. Requests that change something are checked by origin.
    let text = format!("{SESSION_COOKIE}={secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

fn now() -> Time {
    stepwell_engine::Clock::now(&stepwell_engine::SystemClock)
}
