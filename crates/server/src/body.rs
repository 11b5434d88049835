//! Bodies of requests: bounded in length and depth, and refused with the place of the fault.

use crate::app::App;
use crate::error::Problem;
use crate::view::FaultView;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The bytes of a body, as many as are allowed.
pub struct Raw(pub Bytes);

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Raw, Problem> {
        read(request.into_body(), app).await.map(Raw)
    }
}

async fn read(body: Body, app: &App) -> Result<Bytes, Problem> {
    let most = usize::try_from(app.config.limits.body).unwrap_or(usize::MAX);
    axum::body::to_bytes(body, most).await.map_err(|error| {
        // What else can go wrong while it comes in is answered by the listener, or by nobody.
        let detail = format!("the body is longer than {most} bytes, or broke off: {error}");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
    })
}

/// A JSON body of a known shape. An empty one is an empty object.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Json<T>, Problem> {
        let bytes = read(request.into_body(), app).await?;
        typed(value(&bytes, app)?).map(Json)
    }
}

/// Any JSON; an empty body is an empty object.
pub fn value(bytes: &[u8], app: &App) -> Result<Value, Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let fault = FaultView {
            message: error.to_string(),
            line: u32::try_from(error.line()).ok(),
            column: u32::try_from(error.column()).ok(),
            ..FaultView::default()
        };
        let problem = Problem::bad_request("invalid-json", format!("the body is not JSON: {error}"));
        Problem { errors: vec![fault], ..problem }
    })?;
    let most = app.config.limits.depth.get() as usize;
    if depth(&value) > most {
        let detail = format!("the body is nested more than {most} deep");
        return Err(Problem::bad_request("body-too-deep", detail));
    }
    Ok(value)
}

fn depth(value: &Value) -> usize {
    let (mut deepest, mut todo) = (0, vec![(value, 1)]);
    while let Some((value, depth)) = todo.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(list) => todo.extend(list.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => todo.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    deepest
}

pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        Problem::input(if path == "." { "" } else { &path }, error.inner().to_string())
    })
}

/// Query parameters of a known shape.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Params<T>, Problem> {
        let query = Query::<T>::try_from_uri(&parts.uri);
        query.map(|Query(params)| Params(params)).map_err(|error| Problem::input("query", error.body_text()))
    }
}

/// What a call that starts a workflow brought, as a value: JSON and forms are read, text is text, the rest is base64.
pub fn any(bytes: &Bytes, headers: &HeaderMap, app: &App) -> Result<Value, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.ends_with("+json") {
        return value(bytes, app);
    }
    if kind == "application/x-www-form-urlencoded" {
        let bad = |error| Problem::bad_request("invalid-form", format!("the body is not a form: {error}"));
        let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(bytes).map_err(bad)?;
        return Ok(Value::Object(pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect()));
    }
    match std::str::from_utf8(bytes) {
        // Many senders do not say what they send.
        Ok(text) if kind.is_empty() => {
            Ok(serde_json::from_str(text).ok().filter(|value| depth(value) <= 100).unwrap_or_else(|| text.into()))
        }
        Ok(text) if kind.starts_with("text/") || kind.ends_with("xml") || kind.ends_with("yaml") => Ok(text.into()),
        _ => {
            use base64::Engine;
            Ok(Value::String(base64::engine::general_purpose::STANDARD.encode(bytes)))
        }
    }
}
