//! Turns a response into a reply: status, headers and as much of the body as is readable.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
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
    /// The bytes in base64, if they are not text.
    pub base64: Option<String>,
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
        None => {
            let (text, base64) = match String::from_utf8(bytes) {
                Ok(text) => (text, None),
                Err(error) => {
                    let bytes = error.as_bytes();
                    (String::from_utf8_lossy(bytes).into_owned(), Some(BASE64.encode(bytes)))
                }
            };
            Ok(TextResponse { status, headers, text, base64 })
        }
    }
}

/// Reads the response to its end or to the limit. If the connection breaks within the body, returns the error with the
/// part that had arrived.
pub async fn read_reply(response: Response) -> (Reply, Option<reqwest::Error>) {
    let status_code = Some(response.status().as_u16());
    let headers = Some(Arc::new(headers(response.headers())));
    let kind = content_type(response.headers());
    let (bytes, error) = collect(response).await;
    let truncated = bytes.len() > limits::MAX_READABLE_BODY;
    let body = if truncated { truncated_body(&bytes, &kind) } else { body(bytes, &kind) };
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

/// The content type in lower case, without parameters.
fn content_type(headers: &HeaderMap) -> String {
    let given = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    given.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_owned()
}

/// `application/json`, `text/json`, `application/problem+json`, …
fn is_json(kind: &str) -> bool {
    matches!(kind, "application/json" | "text/json") || kind.ends_with("+json")
}

/// Whether bodies of this type are never text, so that the form of the value does not depend on the bytes.
fn is_binary(kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    matches!(family, "image" | "audio" | "video" | "font") && !kind.ends_with("+xml")
        || matches!(kind, "application/pdf" | "application/zip" | "application/gzip")
}

/// Whether the type says that the body is text, so that it stays readable even if some bytes are not UTF-8.
fn is_text(kind: &str) -> bool {
    is_json(kind) || kind.starts_with("text/") || kind.ends_with("xml") || kind.ends_with("yaml")
}

/// Bytes that are not UTF-8.
fn undecoded(bytes: &[u8], kind: &str) -> String {
    if is_text(kind) { String::from_utf8_lossy(bytes).into_owned() } else { BASE64.encode(bytes) }
}

/// JSON as its value, text as text, anything else in base64, as in webhook calls.
fn body(bytes: Vec<u8>, kind: &str) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) if is_binary(kind) => return Value::String(BASE64.encode(text)),
        Ok(text) => text,
        Err(error) => return Value::String(undecoded(error.as_bytes(), kind)),
    };
    let looks_like_json = || text.trim_ascii_start().starts_with(['{', '[']);
    if (is_json(kind) || looks_like_json())
        && let Ok(value) = serde_json::from_str::<Value>(&text)
        && !deeper_than(&value, MAX_BODY_DEPTH)
    {
        return value;
    }
    Value::String(text)
}

/// The readable part of a longer body. Text does not end within a character.
fn truncated_body(bytes: &[u8], kind: &str) -> Value {
    let kept = &bytes[..limits::MAX_READABLE_BODY];
    let text = match std::str::from_utf8(kept) {
        Ok(text) => Some(text),
        // `None`: the input ends within a character, because of our limit.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&kept[..error.valid_up_to()]).ok(),
        Err(_) => None,
    };
    Value::String(match text {
        Some(_) if is_binary(kind) => BASE64.encode(kept),
        Some(text) => text.to_owned(),
        None => undecoded(kept, kind),
    })
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
            let kind = if is_json { "application/json" } else { "text/plain" };
            assert_eq!(body(text.as_bytes().to_vec(), kind), expected, "{text}");
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
        assert!(body(at.into_bytes(), "application/json").is_array());
        for levels in [MAX_BODY_DEPTH + 1, 127, 128, 100_000] {
            assert_eq!(body(nested(levels).into_bytes(), "text/json"), Value::String(nested(levels)));
        }
    }

    #[test]
    fn a_body_that_is_not_text_is_in_base64() {
        let png = [0x89, b'P', b'N', b'G', 0];
        for kind in ["image/png", "application/octet-stream", "application/x-own", ""] {
            assert_eq!(body(png.to_vec(), kind), json!("iVBORwA="), "{kind}");
        }
        assert_eq!(body(b"caf\xe9".to_vec(), "text/plain"), json!("caf\u{fffd}"));
        // What is declared as binary is, whatever its bytes are.
        assert_eq!(body(b"GIF89a".to_vec(), "image/gif"), json!("R0lGODlh"));
        assert_eq!(body(b"[1]".to_vec(), "application/pdf"), json!("WzFd"));
        assert_eq!(body(b"<svg/>".to_vec(), "image/svg+xml"), json!("<svg/>"));
        assert_eq!(body(b"plain".to_vec(), "application/octet-stream"), json!("plain"));
    }

    #[test]
    fn a_long_text_is_not_cut_within_a_character() {
        let kept = limits::MAX_READABLE_BODY;
        let mut bytes = vec![b'a'; kept - 1];
        bytes.extend("é…".as_bytes());
        assert_eq!(truncated_body(&bytes, "text/plain"), json!("a".repeat(kept - 1)));
        assert_eq!(truncated_body(&bytes, "image/png"), json!(BASE64.encode(&bytes[..kept])));
        // Bytes that were invalid before the cut stay marked.
        bytes[0] = 0xff;
        assert!(truncated_body(&bytes, "text/plain").as_str().unwrap().starts_with("\u{fffd}a"));
        assert_eq!(truncated_body(&bytes, ""), json!(BASE64.encode(&bytes[..kept])));
    }
}
