//! A response as a reply: status, headers, and as much of the body as can be read.

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Map, Value};
use std::sync::Arc;
use stepwell_core::event::Reply;
use stepwell_core::limits;

/// Nesting of a body that is kept as JSON; a deeper one is kept as text. Below the limit of payloads, because a body
/// is put inside others.
pub const MAX_BODY_DEPTH: usize = limits::MAX_PAYLOAD_DEPTH - 20;

/// An answer with its body as it came.
pub struct Text {
    pub status: u16,
    pub headers: Value,
    pub text: String,
}

/// Why there is no whole body.
pub enum Broken {
    Connection(reqwest::Error),
    TooLong,
}

pub async fn text(response: Response) -> Result<Text, Broken> {
    let status = response.status().as_u16();
    let headers = headers(response.headers());
    let (bytes, broken) = collect(response).await;
    match broken {
        Some(error) => Err(Broken::Connection(error)),
        None if bytes.len() > limits::MAX_READABLE_BODY => Err(Broken::TooLong),
        None => Ok(Text { status, headers, text: String::from_utf8_lossy(&bytes).into_owned() }),
    }
}

/// Reads the response to its end, or to the limit. A connection that breaks within the body gives the error beside what
/// had come by then.
pub async fn read(response: Response) -> (Reply, Option<reqwest::Error>) {
    let status_code = Some(response.status().as_u16());
    let headers = Some(Arc::new(headers(response.headers())));
    let json = says_json(response.headers());
    let (bytes, broken) = collect(response).await;
    let truncated = bytes.len() > limits::MAX_READABLE_BODY;
    let body = if truncated { Value::String(cut(&bytes)) } else { body(bytes, json) };
    (Reply { body: Arc::new(body), headers, status_code, truncated, log: None }, broken)
}

/// The body, or one byte more of it than is kept.
async fn collect(mut response: Response) -> (Vec<u8>, Option<reqwest::Error>) {
    let mut bytes = Vec::new();
    let mut broken = None;
    // Past the limit the response is dropped, which closes its connection: the rest is not downloaded.
    while bytes.len() <= limits::MAX_READABLE_BODY {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                // One byte more than is kept, which is how a longer body is told from one that just fits.
                let room = limits::MAX_READABLE_BODY + 1 - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Ok(None) => break,
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    (bytes, broken)
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
fn says_json(headers: &HeaderMap) -> bool {
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

/// The bytes that are kept of a longer body, as text that does not end within a character.
fn cut(bytes: &[u8]) -> String {
    let kept = &bytes[..limits::MAX_READABLE_BODY];
    let end = match std::str::from_utf8(kept) {
        // `None`: the bytes just stop too early, which is our doing.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => kept.len(),
    };
    String::from_utf8_lossy(&kept[..end]).into_owned()
}

/// Recurses only as deep as the parser did, which has a limit of its own.
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
    fn a_body_is_json_where_it_says_so_or_is_an_object_or_a_list() {
        let check = |text: &str, says_json: bool, expected: Value| {
            assert_eq!(body(text.as_bytes().to_vec(), says_json), expected, "{text}");
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
    fn json_is_kept_as_json_to_the_limit_of_its_depth_and_as_text_beyond() {
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
        assert_eq!(cut(&bytes), "a".repeat(kept - 1));
        // What was broken before stays marked as such.
        bytes[0] = 0xff;
        assert!(cut(&bytes).starts_with("\u{fffd}a"));
    }
}
