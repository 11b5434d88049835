//! Conditional responses: the entity tag of a view, and 304 for a client that already has it.

use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// A response whose `ETag` is the digest of its body; 304 without a body if `If-None-Match` names that tag.
pub fn tagged(data: &impl Serialize, headers: &HeaderMap) -> Response {
    let body = serde_json::to_string(data).expect("views have text keys only");
    let tag = format!("\"{}\"", &stepwell_store::digest(&body)[..32]);
    let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let known = known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag));
    let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes");
    if known {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(ETAG, tag), (CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
