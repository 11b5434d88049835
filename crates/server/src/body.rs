//! Bodies of requests: bounded in length and depth, and refused with the place of the fault.

use crate::app::App;
use crate::error::Problem;
use crate::view::FaultView;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use jsonschema::Validator;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use utoipa::ToSchema;

/// The bytes of a body, as many as are allowed.
pub struct Raw(pub Bytes);

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Raw, Problem> {
        read(request, app).await.map(Raw)
    }
}

/// Bytes of bodies that are held at a time, in pieces of 64 kB: what is made of them may take ten times as much.
static ROOM: Semaphore = Semaphore::const_new(1_024);
const PIECE: u64 = 64 * 1024;
/// Faults of a body that are told at the most.
const MOST_FAULTS: usize = 50;
/// How long a body waits for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// A body and the room it takes, until nobody needs it any more.
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
        let detail = "bodies are read as they are: leave Content-Encoding out";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-encoding", detail));
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let most = app.config.limits.body;
    let pieces = length.unwrap_or(most).min(most).div_ceil(PIECE).clamp(1, 1_024);
    let busy = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many large bodies at once: try again");
    let room = tokio::time::timeout(PATIENCE, ROOM.acquire_many(pieces as u32)).await;
    let room = room.map_err(|_| busy())?.map_err(|_| busy())?;
    let bytes = whole(request.into_body(), usize::try_from(most).unwrap_or(usize::MAX)).await?;
    Ok(Bytes::from_owner(Held { bytes, _room: room }))
}

async fn whole(body: Body, most: usize) -> Result<Bytes, Problem> {
    axum::body::to_bytes(body, most).await.map_err(|error| {
        // What else can go wrong while it comes in is answered by the listener, or by nobody.
        let detail = format!("the body is longer than {most} bytes, or broke off: {error}");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
    })
}

/// A JSON body of a known shape. An empty one is an empty object.
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

/// Names with a NUL character in them cannot be kept by every store, and mean nothing to anybody.
pub fn printable(value: &Value) -> Result<(), Problem> {
    match value {
        Value::String(text) if text.contains('\0') => Err(Problem::input("", "there is a NUL character in a text")),
        Value::Array(list) => list.iter().try_for_each(printable),
        Value::Object(map) => map.values().try_for_each(printable),
        _ => Ok(()),
    }
}

/// Everything that is wrong with a body, by the schema that the API's description has for it.
fn faults<T: ToSchema + 'static>(value: &Value) -> Result<(), Problem> {
    static KNOWN: Mutex<BTreeMap<TypeId, Option<Arc<Checker>>>> = Mutex::new(BTreeMap::new());
    let checker = {
        let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        known.entry(TypeId::of::<T>()).or_insert_with(|| checker::<T>().map(Arc::new)).clone()
    };
    let Some(checker) = checker else { return Ok(()) };
    let faults = checker.is.iter_errors(value).map(|fault| FaultView {
        path: fault.instance_path().to_string().trim_start_matches('/').replace('/', "."),
        message: if checker.secret { fault.masked_with("this").to_string() } else { fault.to_string() },
        ..FaultView::default()
    });
    let errors: Vec<FaultView> = faults.take(MOST_FAULTS).collect();
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
    is: Validator,
    /// Part of the body is never shown, so messages do not repeat what was sent.
    secret: bool,
}

/// `None` if there is none to be made: then the first fault is told, by whoever reads the body.
fn checker<T: ToSchema>() -> Option<Checker> {
    let mut others = Vec::new();
    T::schemas(&mut others);
    let others: BTreeMap<String, _> = others.into_iter().collect();
    let mut schema = serde_json::to_value(T::schema()).ok()?;
    schema["components"] = serde_json::json!({ "schemas": others });
    let secret =
        schema["properties"].as_object().is_some_and(|fields| fields.values().any(|field| field["writeOnly"] == true));
    Some(Checker { is: jsonschema::validator_for(&schema).ok()?, secret })
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
    shallow(&value, app)?;
    Ok(value)
}

/// Whether it is nested no deeper than is allowed.
pub fn shallow(value: &Value, app: &App) -> Result<(), Problem> {
    let most = app.config.limits.depth.get() as usize;
    if depth(value) > most {
        let detail = format!("the body is nested more than {most} deep");
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

/// A part of a body that must be an object: a list would be taken for its fields in their order.
pub fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let fields = serde_json::Map::deserialize(deserializer)?;
    T::deserialize(Value::Object(fields)).map_err(serde::de::Error::custom)
}

/// The same, if it is there.
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

/// What a call that starts a workflow brought, as a value: JSON and forms are read, text is text, the rest is base64.
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
    // What curl calls a form, unless it is told otherwise, is often JSON.
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
