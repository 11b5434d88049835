//! Request bodies: limited in size and depth, and rejected with the location of the error.

use crate::app::App;
use crate::error::Problem;
use crate::view::FaultView;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_engine::schema::OwnSchema;
use tokio::sync::{Semaphore, SemaphorePermit};
use utoipa::ToSchema;

/// The bytes of a body, up to the size limit.
pub struct Raw(pub Bytes);

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Raw, Problem> {
        read(request, app).await.map(Raw)
    }
}

/// Memory for concurrent request bodies, in units of 64 kB. Parsed values may take ten times as much.
static ROOM: Semaphore = Semaphore::const_new(1_024);
const PIECE: u64 = 64 * 1024;
/// Maximum number of errors reported for one body.
const MOST_FAULTS: usize = 50;
/// How long a body waits for memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// A body and its share of the memory budget, released when dropped.
struct Held {
    bytes: Bytes,
    _room: SemaphorePermit<'static>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

async fn read(request: Request, app: &App) -> Result<Bytes, Problem> {
    let headers = request.headers();
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let detail = "compressed bodies are not supported: remove Content-Encoding";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-encoding", detail));
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let most = app.config.limits.body;
    let pieces = length.unwrap_or(most).min(most).div_ceil(PIECE).clamp(1, 1_024);
    let busy = || {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many large request bodies at the moment: try again")
    };
    let room = tokio::time::timeout(PATIENCE, ROOM.acquire_many(pieces as u32)).await;
    let room = room.map_err(|_| busy())?.map_err(|_| busy())?;
    let bytes = whole(request.into_body(), usize::try_from(most).unwrap_or(usize::MAX)).await?;
    Ok(Bytes::from_owner(Held { bytes, _room: room }))
}

async fn whole(body: Body, most: usize) -> Result<Bytes, Problem> {
    axum::body::to_bytes(body, most).await.map_err(|error| {
        // Other errors while reading are handled by the listener, or the client is gone.
        let detail = format!("the body is longer than {most} bytes, or was cut off: {error}");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
    })
}

/// A JSON body of a known shape. An empty body counts as an empty object.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned + ToSchema + 'static> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Json<T>, Problem> {
        let bytes = read(request, app).await?;
        let value = value(&bytes, app)?;
        if !value.is_object() {
            return Err(Problem::input("", "the body must be a JSON object"));
        }
        printable(&value)?;
        faults::<T>(&value)?;
        typed(value).map(Json)
    }
}

/// Rejects NUL characters, which not every store can hold.
pub fn printable(value: &Value) -> Result<(), Problem> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(Problem::input("", "strings must not contain NUL characters"))
        }
        Value::Array(list) => list.iter().try_for_each(printable),
        Value::Object(map) => map.values().try_for_each(printable),
        _ => Ok(()),
    }
}

/// Reports everything wrong with a body according to its schema in the OpenAPI description.
fn faults<T: ToSchema + 'static>(value: &Value) -> Result<(), Problem> {
    static KNOWN: Mutex<BTreeMap<TypeId, Option<Arc<Checker>>>> = Mutex::new(BTreeMap::new());
    let checker = {
        let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        known.entry(TypeId::of::<T>()).or_insert_with(|| checker::<T>().map(Arc::new)).clone()
    };
    let Some(checker) = checker else { return Ok(()) };
    let errors: Vec<FaultView> = match checker.secret {
        true => checker.schema.masked_faults(value).take(MOST_FAULTS).map(FaultView::from).collect(),
        false => checker.schema.faults(value).take(MOST_FAULTS).map(FaultView::from).collect(),
    };
    if errors.is_empty() {
        return Ok(());
    }
    let said = errors.iter().map(|fault| match fault.path.as_str() {
        "" => fault.message.clone(),
        path => format!("{path}: {}", fault.message),
    });
    let detail = said.collect::<Vec<_>>().join("; ");
    Err(Problem { errors, ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-input", detail) })
}

struct Checker {
    schema: OwnSchema,
    /// Part of the body is secret, so error messages do not repeat the input.
    secret: bool,
}

/// Returns `None` if there is no schema. Deserialisation then reports the first error.
fn checker<T: ToSchema>() -> Option<Checker> {
    let mut others = Vec::new();
    T::schemas(&mut others);
    let others: BTreeMap<String, _> = others.into_iter().collect();
    let mut schema = serde_json::to_value(T::schema()).ok()?;
    schema["components"] = serde_json::json!({ "schemas": others });
    let secret =
        schema["properties"].as_object().is_some_and(|fields| fields.values().any(|field| field["writeOnly"] == true));
    Some(Checker { schema: OwnSchema::compile(&schema).ok()?, secret })
}

/// Any JSON. An empty body counts as an empty object.
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
    shallow(&value, app)?;
    Ok(value)
}

/// Checks that the value is nested no deeper than allowed.
pub fn shallow(value: &Value, app: &App) -> Result<(), Problem> {
    let most = app.config.limits.depth.get() as usize;
    if depth(value) > most {
        let detail = format!("the body is nested more than {most} levels deep");
        return Err(Problem::bad_request("body-too-deep", detail));
    }
    Ok(())
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

/// Requires a part of a body to be an object. Serde would otherwise accept a list of the fields in order.
pub fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let fields = serde_json::Map::deserialize(deserializer)?;
    T::deserialize(Value::Object(fields)).map_err(serde::de::Error::custom)
}

/// Like `object`, for an optional part.
pub fn maybe_object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let fields = Option::<serde_json::Map<String, Value>>::deserialize(deserializer)?;
    let read = |fields| T::deserialize(Value::Object(fields)).map_err(serde::de::Error::custom);
    fields.map(read).transpose()
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

/// Converts the body of a webhook call to a value: JSON and forms are parsed, text stays text, anything else becomes
/// base64.
pub fn any(bytes: &Bytes, headers: &HeaderMap, app: &App) -> Result<Value, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.ends_with("+json") {
        return value(bytes, app);
    }
    let is_empty = bytes.iter().all(u8::is_ascii_whitespace);
    if is_empty {
        return value(bytes, app);
    }
    // By default, curl labels every body as a form, although many are JSON.
    if kind == "application/x-www-form-urlencoded"
        && bytes.trim_ascii_start().first().is_some_and(|first| matches!(first, b'{' | b'['))
        && let Ok(value) = value(bytes, app)
    {
        return Ok(value);
    }
    if kind == "application/x-www-form-urlencoded" {
        let bad = |error| Problem::bad_request("invalid-form", format!("the body is not a form: {error}"));
        let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(bytes).map_err(bad)?;
        return Ok(Value::Object(pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect()));
    }
    match std::str::from_utf8(bytes) {
        // Many senders omit the content type.
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
