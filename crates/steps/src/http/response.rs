//! Turns a response into a reply: status, headers and as much of the body as is readable.

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Map, Value};
use std::sync::Arc;
use stepwell_core::event::Reply;
use stepwell_core::limits;

/// Maximum nesting of a body that is kept as JSON; a deeper one is kept as text. Below the limit for payloads, because
/// bodies are embedded in other values.
pub const MAX_BODY_DEPTH: usize = limits::MAX_PAYLOAD_DEPTH - 20;

/// A response with its body as text.
pub struct TextResponse {
    pub status: u16,
    pub headers: Value,
    pub text: String,
}

/// Why the body is incomplete.
pub enum BodyError {
    Connection(reqwest::Error),
    TooLarge,
}

pub async fn read_text(response: Response) -> Result<TextResponse, BodyError> {
    let status = response.status().as_u16();
    let headers = headers(response.headers());
    let (bytes, error) = collect(response).await;
    match error {
        Some(error) => Err(BodyError::Connection(error)),
        None if bytes.len() > limits::MAX_READABLE_BODY => Err(BodyError::TooLarge),
        None => Ok(TextResponse { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() }),
    }
}

/// Reads the response to its end or to the limit. If the connection breaks within the body, returns the error with the
/// part that had arrived.
pub async fn read_reply(response: Response) -> (Reply, Option<reqwest::Error>) {
    let status_code = Some(response.status().as_u16());
    let headers = Some(Arc::new(headers(response.headers())));
    let json = is_json(response.headers());
    let (bytes, error) = collect(response).await;
    let truncated = bytes.len() > limits::MAX_READABLE_BODY;
    let body = if truncated { Value::String(truncated_text(&bytes)) } else { body(bytes, json) };
    (Reply { body: Arc::new(body), headers, status_code, truncated, log: None }, error)
}

/// Reads the body, up to one byte more than is kept.
async fn collect(mut response: Response) -> (Vec<u8>, Option<reqwest::Error>) {
    let mut bytes = Vec::new();
    let mut failure = None;
    // Past the limit the response is dropped, which closes its connection, so the rest is not downloaded.
    while bytes.len() <= limits::MAX_READABLE_BODY {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                // The extra byte distinguishes a longer body from one that just fits.
                let room = limits::MAX_READABLE_BODY + 1 - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(None) => break,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    (bytes, failure)
}

fn headers(given: &HeaderMap) -> Value {
    let mut headers = Map::with_capacity(given.keys_len());
    for name in given.keys() {
        let values: Vec<_> =
            given.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        headers.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    Value::Object(headers)
}

/// `application/json`, `text/json`, `application/problem+json; charset=utf-8`, …
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let given = given.as_deref().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    matches!(essence, "application/json" | "text/json") || essence.ends_with("+json")
}

fn body(bytes: Vec<u8>, json: bool) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Value::String(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    };
    let looks_like_json = || text.trim_ascii_start().starts_with(['{', '[']);
    if (json || looks_like_json())
        && let Ok(value) = serde_json::from_str::<Value>(&text)
        && !deeper_than(&value, MAX_BODY_DEPTH)
    {
        return value;
    }
    Value::String(text)
}

/// The readable part of a longer body, as text that does not end within a character.
fn truncated_text(bytes: &[u8]) -> String {
    let kept = &bytes[..limits::MAX_READABLE_BODY];
    let end = match std::str::from_utf8(kept) {
        // `None`: the input ends within a character, because of our limit.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => kept.len(),
    };
    String::from_utf8_lossy(&kept[..end]).into_owned()
}

/// Recurses only as deep as the parser did, which has its own limit.
pub fn deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| deeper_than(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| deeper_than(field, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_is_json_by_content_type_or_if_it_is_an_object_or_a_list() {
        let check = |text: &str, is_json: bool, expected: Value| {
            assert_eq!(body(text.as_bytes().to_vec(), is_json), expected, "{text}");
        };
        check("", true, Value::Null);
        check("7", true, json!(7));
        check("7", false, json!("7"));
        check("\"x\"", true, json!("x"));
        check("true", false, json!("true"));
        check(" {\"a\": [1]}", false, json!({"a": [1]}));
        check("[1]", false, json!([1]));
        check("[1", true, json!("[1"));
        check("{not json}", false, json!("{not json}"));
        check("<p>", true, json!("<p>"));
    }

    #[test]
    fn json_within_the_depth_limit_stays_json_and_deeper_json_becomes_text() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let at = nested(MAX_BODY_DEPTH);
        assert!(body(at.into_bytes(), true).is_array());
        for levels in [MAX_BODY_DEPTH + 1, 127, 128, 100_000] {
            assert_eq!(body(nested(levels).into_bytes(), true), Value::String(nested(levels)));
        }
    }

    #[test]
    fn a_long_text_is_not_cut_within_a_character() {
        let kept = limits::MAX_READABLE_BODY;
        let mut bytes = vec![b'a'; kept - 1];
        bytes.extend("é…".as_bytes());
        assert_eq!(truncated_text(&bytes), "a".repeat(kept - 1));
        // Bytes that were invalid before the cut stay marked.
        bytes[0] = 0xff;
        assert!(truncated_text(&bytes).starts_with("\u{fffd}a"));
    }
}
