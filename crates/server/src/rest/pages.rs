//! Pages and probes that need no key: health, the OpenAPI description and the reference, the schemas of definitions.

use crate::app::App;
use crate::description::CODES;
use crate::error::Problem;
use crate::ui;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use std::sync::LazyLock;
use std::time::Duration;
use stepwell_formats::schema::{Which, schema};

/// Timeout of a probe: they come every few seconds.
const PATIENCE: Duration = Duration::from_secs(2);

const STYLE: &str = include_str!("reference.css");
const APPROVE: &str = include_str!("links/page.css");
const APPROVE_SCRIPT: &str = include_str!("links/page.js");

/// Only scripts and resources of this server are allowed.
pub(super) const POLICY: (HeaderName, &str) = (
    HeaderName::from_static("content-security-policy"),
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'",
);

pub fn router() -> Router<App> {
    let description = Bytes::from(crate::description().to_string());
    let described = move || async move { ([(CONTENT_TYPE, "application/json")], description) };
    Router::new()
        .route("/openapi.json", get(described))
        .route("/schema/{file}", get(definition_schema))
        .route("/docs", get(async |headers| ui::reference(headers, errors)))
        .route("/docs/errors", get(async || errors()))
        .route("/docs/approve.css", get(async || ([(CONTENT_TYPE, "text/css; charset=utf-8")], APPROVE)))
        .route("/docs/approve.js", get(async || ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], APPROVE_SCRIPT)))
        .route("/docs/reference.css", get(async || ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)))
        .route("/healthz", get(async || ([(CACHE_CONTROL, "no-store")], "ok\n")))
        .route("/readyz", get(ready))
}

/// `GET /docs/errors`: all codes with what they mean. Responses link to them.
fn errors() -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        let codes = CODES.iter().map(|(code, about)| {
            format!("<dt id=\"{code}\"><code>{code}</code></dt>\n<dd>{}</dd>\n", html_escaped(about))
        });
        include_str!("errors.html").replace("{codes}", &codes.collect::<String>())
    });
    ([POLICY], Html(PAGE.as_str())).into_response()
}

fn html_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `GET /schema/{all,tasks,flow,graph}.json`: the JSON Schema of definitions, for editors. Any page may read it.
async fn definition_schema(Path(file): Path<String>) -> Result<impl IntoResponse, Problem> {
    static TEXTS: LazyLock<Vec<(String, Bytes)>> = LazyLock::new(|| {
        let text = |which| Bytes::from(schema(which).to_string());
        Which::NAMES.iter().map(|(name, which)| (format!("{name}.json"), text(*which))).collect()
    });
    let found = TEXTS.iter().find(|(name, _)| *name == file).map(|(_, text)| text.clone());
    let why = || "the schemas are all.json, tasks.json, flow.json and graph.json".to_owned();
    let text = found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "not-found", why()))?;
    Ok((
        [
            (CONTENT_TYPE, "application/schema+json"),
            (CACHE_CONTROL, "public, max-age=3600"),
            (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        ],
        text,
    ))
}

/// 200 when the server is ready: the store responds, all background tasks run, and the server is not stopping.
async fn ready(State(app): State<App>) -> Result<impl IntoResponse, Problem> {
    let unready = |why: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", why);
    if app.engine.is_draining() {
        return Err(unready("the server is stopping".into()));
    }
    let gone = app.engine.gone_tasks();
    if !gone.is_empty() {
        let why =
            format!("background tasks keep panicking ({}): see the log, then restart the server", gone.join(", "));
        return Err(unready(why));
    }
    // A database behind a broken network may take minutes to time out.
    let answer = tokio::time::timeout(PATIENCE, app.engine.log().progress()).await;
    let silent = |_| unready(format!("the store did not respond within {} s", PATIENCE.as_secs()));
    answer.map_err(silent)?.map_err(|error| unready(error.to_string()))?;
    Ok(([(CACHE_CONTROL, "no-store")], "ready\n"))
}
