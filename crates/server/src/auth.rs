//! Authentication: an API key in a header, or a browser's session cookie.
//!
//! Browsers send the cookie with requests from any page. A request that changes something and carries only a cookie
//! must therefore come from a page of this server, according to its `Origin`.

use crate::app::App;
use crate::error::Problem;
use crate::parameters;
use crate::rates::peer;
use crate::shares::Payer;
use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri};
use stepwell_engine::Caller;

pub const SESSION_COOKIE: &str = "stepwell_session";

/// The caller of a request.
pub struct Auth(pub Caller);

impl FromRequestParts<App> for Auth {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Auth, Problem> {
        let caller = caller(parts, app).await?;
        let who = caller.key.as_deref().unwrap_or(&caller.name);
        app.rates.ask(&format!("{}/{who}", caller.org.0)).map_err(Problem::too_many)?;
        parts.extensions.insert(Payer::Organisation(caller.org));
        parameters::check(parts)?;
        Ok(Auth(caller))
    }
}

async fn caller(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    let unauthorised = |detail: &str| Problem::new(StatusCode::UNAUTHORIZED, "unauthorised", detail);
    let found = if let Some(key) = api_key(&parts.headers)? {
        app.engine.identity().authenticate(key).await
    } else if let Some(session) = session(&parts.headers) {
        same_origin(parts, &app.public_url)?;
        app.engine.identity().session(session).await
    } else {
        return Err(unauthorised("an API key is required: `Authorization: Bearer sw_…`"));
    };
    found.map_err(|error| {
        let problem = Problem::from(error);
        // Only failed attempts count, so that guessing is slowed down and valid keys are not.
        match problem.status {
            StatusCode::UNAUTHORIZED => guessed(app, &parts.extensions).err().unwrap_or(problem),
            _ => problem,
        }
    })
}

/// Counts a wrong key, URL or link of an address, and slows down guessing.
pub fn guessed(app: &App, request: &Extensions) -> Result<(), Problem> {
    app.rates.wrong_key(peer(request)).map_err(Problem::too_many)
}

fn api_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let malformed = || {
        let detail = "the Authorization header is not `Bearer sw_…`";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorised", detail)
    };
    if let Some(value) = headers.get(AUTHORIZATION) {
        let text = value.to_str().map_err(|_| malformed())?;
        let (scheme, key) = text.split_once(' ').ok_or_else(malformed)?;
        return if scheme.eq_ignore_ascii_case("bearer") { Ok(Some(key.trim())) } else { Err(malformed()) };
    }
    headers.get("x-api-key").map(|value| value.to_str().map_err(|_| malformed())).transpose()
}

pub fn session(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == SESSION_COOKIE).map(|(_, value)| value)
}

/// Checks that a request that changes something was sent by a page of this server.
fn same_origin(parts: &Parts, public_url: &str) -> Result<(), Problem> {
    let safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let upgrade = parts.headers.contains_key("sec-websocket-key");
    if (safe && !upgrade) || is_own_origin(&parts.headers, public_url) {
        return Ok(());
    }
    let detail = "session cookies are accepted only from pages of this server; programs must send an API key";
    Err(Problem::new(StatusCode::FORBIDDEN, "cross-origin", detail))
}

/// Whether the page's origin is the requested host, or the server's public host behind a proxy.
pub fn is_own_origin(headers: &HeaderMap, public_url: &str) -> bool {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let Some(origin) = text(ORIGIN).and_then(|origin| origin.parse::<Uri>().ok()) else { return false };
    let public = public_url.parse::<Uri>().ok();
    let is_public =
        public.is_some_and(|public| public.scheme() == origin.scheme() && public.authority() == origin.authority());
    is_public || origin.authority().map(|authority| authority.as_str()) == text(HOST)
}
