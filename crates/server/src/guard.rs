//! Middleware for every request: request id, log entry, host check, and error responses in one format.

use crate::app::App;
use crate::error::{Problem, REQUEST_ID};
use crate::view::ProblemView;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::time::Instant;

/// Maximum length of a plain-text error from a library that is used as the detail of a problem.
const MAX_PLAIN: usize = 4_096;

/// Assigns the request id, logs the request, and turns every error response into a problem.
pub async fn trace_request(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(|id| is_plain(id));
    let id = id.map_or_else(|| app.engine.request_id(), str::to_string);
    let method = request.method().clone();
    // Some paths contain secrets, so the log has only the route pattern.
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_string();
    let is_api = route.starts_with("/api/");
    let begun = Instant::now();
    let response = if request.uri().path_and_query().is_some_and(|asked| asked.as_str().contains("%00")) {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "paths must not contain NUL characters").into_response()
    } else {
        next.run(request).await
    };
    let status = response.status();
    let took = begun.elapsed();
    let failed = (status.is_client_error() || status.is_server_error()) && !is_page(&response);
    let mut response = if failed { as_problem(response, &id).await } else { response };
    if status.is_server_error() {
        tracing::error!(%method, %route, status = status.as_u16(), request = %id, ?took, "request failed");
    } else {
        tracing::debug!(%method, %route, status = status.as_u16(), request = %id, ?took, "request handled");
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    if is_api && !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    for (name, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// HTML pages explain the error themselves.
fn is_page(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Whether an id sent by a client is safe to log.
fn is_plain(id: &str) -> bool {
    (1..=100).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Rewrites an error response as a problem with the request id.
async fn as_problem(response: Response, id: &str) -> Response {
    // MCP has its own error format.
    if response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let view = match parts.extensions.remove::<ProblemView>() {
        Some(view) => view,
        None => {
            let bytes = axum::body::to_bytes(body, MAX_PLAIN).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let detail = if text.is_empty() { parts.status.to_string() } else { text };
            let problem = Problem::new(parts.status, code(parts.status), detail).into_response();
            let (made, _) = problem.into_parts();
            made.extensions.get::<ProblemView>().cloned().unwrap_or_default()
        }
    };
    let view = ProblemView { request_id: Some(id.to_string()), ..view };
    let body = serde_json::to_vec(&view).expect("a problem has text keys only");
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body))
}

fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "not-found",
        StatusCode::METHOD_NOT_ALLOWED => "method-not-allowed",
        StatusCode::REQUEST_TIMEOUT => "request-timeout",
        StatusCode::PAYLOAD_TOO_LARGE => "body-too-large",
        status if status.is_client_error() => "bad-request",
        _ => "internal",
    }
}

/// Protects against DNS rebinding: only requests for the server's own host names are answered. Health probes may use
/// any name.
pub async fn own_host(State(app): State<App>, request: Request, next: Next) -> Response {
    let probe = matches!(request.uri().path(), "/healthz" | "/readyz");
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    if probe || host.is_some_and(|host| app.config.accepts_host(host)) {
        return next.run(request).await;
    }
    let detail = "the server does not accept this host name: add it to `hosts`, or set `public_url`";
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host", detail).into_response()
}
