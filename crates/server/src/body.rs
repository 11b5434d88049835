//! Request bodies: limited in size and depth, and rejected with the location of the error.

use crate::app::App;
use crate::config::LongCallbacks;
use crate::error::Problem;
use crate::shares::{Capacity, Hold, Payer, Refused, Shares};
use crate::view::FaultView;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::json::{Measure, measure};
use stepwell_core::limits::MAX_READABLE_BODY;
use stepwell_engine::commands::CallBody;
use stepwell_engine::schema::OwnSchema;
use utoipa::ToSchema;

/// Memory for the bodies of concurrent requests and what is parsed from them.
const ROOM: u64 = 256 * 1024 * 1024;
/// The part of it that large users cannot take.
const RESERVE: u64 = ROOM / 8;
/// How long a body waits for memory.
const PATIENCE: Duration = Duration::from_secs(10);
/// Estimated memory of a parsed value, and of an object in addition. Lists grow by doubling.
const VALUE: usize = 2 * size_of::<Value>();
const OBJECT: usize = 512;
/// Maximum number of errors reported for one body.
const MOST_FAULTS: usize = 50;

/// The memory for bodies of at most `largest` bytes.
pub fn room(largest: u64) -> Arc<Shares> {
    let total = ROOM.max(largest.saturating_mul(8));
    Shares::new(Capacity { total, reserve: RESERVE, most: total })
}

/// The bytes of a body, up to the size limit, and their memory. The memory counts until this is dropped.
pub struct Raw {
    pub bytes: Bytes,
    hold: Hold,
}

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Raw, Problem> {
        let headers = request.headers();
        if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            let detail = "compressed bodies are not supported: remove Content-Encoding";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content-encoding", detail));
        }
        let most = usize::try_from(app.config.limits.body).unwrap_or(usize::MAX);
        let hold = app.bodies.enter(payer(&request));
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > app.config.limits.body) {
            return Err(too_large(most, ""));
        }
        let bytes = tokio::select! {
            biased;
            bytes = receive(request.into_body(), most, &hold) => bytes?,
            () = hold.reclaimed() => return Err(busy(Refused::Reclaimed)),
        };
        hold.settle().map_err(busy)?;
        Ok(Raw { bytes, hold })
    }
}

/// The organisation, once the caller is known.
fn payer(request: &Request) -> Payer {
    let known = request.extensions().get::<Payer>().cloned();
    known.unwrap_or_else(|| Payer::Address(crate::rates::peer(request.extensions())))
}

/// Memory is taken as bytes arrive: a client that announces a body and sends nothing takes none.
async fn receive(body: Body, most: usize, hold: &Hold) -> Result<Bytes, Problem> {
    let mut body = body.into_data_stream();
    let mut bytes = BytesMut::new();
    while let Some(piece) = body.next().await {
        // Other errors while reading are handled by the listener, or the client is gone.
        let piece = piece.map_err(|error| too_large(most, &format!(", or was cut off: {error}")))?;
        if bytes.len() + piece.len() > most {
            return Err(too_large(most, ""));
        }
        hold.grow(piece.len() as u64, PATIENCE).await.map_err(busy)?;
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

fn too_large(most: usize, otherwise: &str) -> Problem {
    let detail = format!("the body is longer than {most} bytes{otherwise}");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
}

fn busy(refused: Refused) -> Problem {
    let detail = match refused {
        Refused::Full => "too many large request bodies at the moment: try again",
        Refused::Reclaimed => "the memory for this request body was needed by another organisation: try again",
    };
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail);
    Problem { retry_after: Some(Duration::from_secs(1)), ..problem }
}

impl Raw {
    /// Any JSON. An empty body counts as an empty object.
    pub async fn value(&self, app: &App) -> Result<Value, Problem> {
        if self.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        self.admit(app, 0).await?;
        json(&self.bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Checks what would be parsed from the body, before it is, and takes the memory for it. `wrapping` levels around
    /// the content do not count.
    pub async fn admit(&self, app: &App, wrapping: usize) -> Result<(), Problem> {
        let found = within(&self.bytes, app, wrapping)?;
        let weight = (found.values * VALUE + found.objects * OBJECT) as u64;
        // A limit that allows more must not make a body wait for what there never is.
        self.hold.grow(weight.min(ROOM / 4), PATIENCE).await.map_err(busy)
    }

    /// `None` if it is not JSON, or JSON beyond the limits.
    async fn maybe_json(&self, app: &App) -> Result<Option<Value>, Problem> {
        if within(&self.bytes, app, 0).is_err() {
            return Ok(None);
        }
        self.admit(app, 0).await?;
        Ok(serde_json::from_slice(&self.bytes).ok())
    }

    /// The body of a call to a wait's URL. More than can be read later is truncated, as in responses, or refused.
    pub async fn callback(&self, headers: &HeaderMap, app: &App) -> Result<CallBody, Problem> {
        if self.bytes.len() <= MAX_READABLE_BODY {
            return Ok(self.any(headers, app).await?.into());
        }
        if app.config.limits.long_callbacks == LongCallbacks::Refuse {
            return Err(too_large(MAX_READABLE_BODY, ""));
        }
        let kept = &self.bytes[..MAX_READABLE_BODY];
        let text = match std::str::from_utf8(kept) {
            // The text ends within a character, because of the limit.
            Err(error) if error.error_len().is_none() => std::str::from_utf8(&kept[..error.valid_up_to()]),
            text => text,
        };
        let value = text.map_or_else(|_| base64(kept), Value::from);
        Ok(CallBody { value, truncated: true })
    }

    /// The body of a webhook call as a value: JSON and forms are parsed, text stays text, anything else becomes base64.
    pub async fn any(&self, headers: &HeaderMap, app: &App) -> Result<Value, Problem> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind == "application/json" || kind.ends_with("+json") || self.is_empty() {
            return self.value(app).await;
        }
        let is_form = kind == "application/x-www-form-urlencoded";
        // By default, curl labels every body as a form, although many are JSON.
        if is_form
            && self.bytes.trim_ascii_start().first().is_some_and(|first| matches!(first, b'{' | b'['))
            && let Some(value) = self.maybe_json(app).await?
        {
            return Ok(value);
        }
        if is_form {
            let pairs = pairs(&self.bytes, app)?;
            return Ok(Value::Object(pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect()));
        }
        match std::str::from_utf8(&self.bytes) {
            // Many senders omit the content type.
            Ok(text) if kind.is_empty() => Ok(self.maybe_json(app).await?.unwrap_or_else(|| text.into())),
            Ok(text) if kind.starts_with("text/") || kind.ends_with("xml") || kind.ends_with("yaml") => Ok(text.into()),
            _ => Ok(base64(&self.bytes)),
        }
    }
}

fn base64(bytes: &[u8]) -> Value {
    use base64::Engine;
    Value::String(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// The fields of a form.
pub fn pairs(bytes: &[u8], app: &App) -> Result<Vec<(String, String)>, Problem> {
    let count = 1 + bytes.iter().filter(|byte| **byte == b'&').count();
    if count > app.config.limits.values.get() as usize {
        return Err(too_many_values(app));
    }
    // Any bytes are a form: what is not UTF-8 or not escaped correctly is read leniently, as browsers' forms are.
    Ok(form_urlencoded::parse(bytes).into_owned().collect())
}

/// Checks a JSON text against the limits before it is parsed.
pub fn within(text: &[u8], app: &App, wrapping: usize) -> Result<Measure, Problem> {
    let found = measure(text);
    let most = app.config.limits.depth.get() as usize;
    if found.depth > most + wrapping {
        return Err(too_deep(most));
    }
    if found.values > app.config.limits.values.get() as usize {
        return Err(too_many_values(app));
    }
    Ok(found)
}

fn too_deep(most: usize) -> Problem {
    Problem::bad_request("body-too-deep", format!("the body is nested more than {most} levels deep"))
}

fn too_many_values(app: &App) -> Problem {
    let detail = format!("the body has more than {} values: send less at a time", app.config.limits.values);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-many-values", detail)
}

/// A JSON body of a known shape, and its memory. An empty body counts as an empty object.
pub struct Json<T>(pub T, #[allow(dead_code, reason = "held for its memory")] pub Raw);

impl<T: DeserializeOwned + ToSchema + 'static> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Json<T>, Problem> {
        let raw = Raw::from_request(request, app).await?;
        let value = raw.value(app).await?;
        if !value.is_object() {
            return Err(Problem::input("", "the body must be a JSON object"));
        }
        printable(&value)?;
        faults::<T>(&value)?;
        typed(value).map(|value| Json(value, raw))
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

fn json(bytes: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let fault = FaultView {
            message: error.to_string(),
            line: u32::try_from(error.line()).ok(),
            column: u32::try_from(error.column()).ok(),
            ..FaultView::default()
        };
        let problem = Problem::bad_request("invalid-json", format!("the body is not JSON: {error}"));
        Problem { errors: vec![fault], ..problem }
    })
}

/// Checks that the value is nested no deeper than allowed.
pub fn shallow(value: &Value, app: &App) -> Result<(), Problem> {
    let most = app.config.limits.depth.get() as usize;
    if depth(value) > most { Err(too_deep(most)) } else { Ok(()) }
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
