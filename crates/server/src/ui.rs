//! The dashboard: files built from `ui/` and embedded in the binary, or a placeholder page if it was built without
//! them.
//!
//! Nothing is compressed at run time: `npm run build` replaces what can be compressed with its gzip form. For a client
//! that does not accept gzip the file is decompressed.

use std::borrow::Cow;
use std::io::Read;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Files;

const INDEX: &str = "index.html";
/// The reference of the API.
const REFERENCE: &str = "docs.html";
/// Served if the binary has no dashboard.
const FIRST: &str = include_str!("rest/first.html");

/// Only scripts and resources of this server are allowed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Paths of the dashboard's pages. All serve the same document, which routes on the client.
const PAGES: [&str; 7] =
    ["/", "/workflows", "/workflows/{*rest}", "/runs", "/runs/{*rest}", "/approvals", "/signed-out"];

pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let pages = PAGES.into_iter().chain(["/settings", "/settings/{*rest}"]);
    let router = pages.fold(Router::new(), |router, path| router.route(path, get(page)));
    router
        .route(
            "/assets/{*name}",
            get(async |Path(name): Path<String>, headers| asset(&format!("assets/{name}"), headers)),
        )
        .route("/favicon.svg", get(async |headers| asset("favicon.svg", headers)))
}

async fn page(headers: HeaderMap) -> Response {
    document(INDEX, headers, || ([(CONTENT_TYPE, "text/html; charset=utf-8")], FIRST).into_response())
}

/// `GET /docs`: the reference of the API, or another page if the binary has none.
pub fn reference(headers: HeaderMap, otherwise: fn() -> Response) -> Response {
    document(REFERENCE, headers, otherwise)
}

fn document(name: &str, headers: HeaderMap, otherwise: impl FnOnce() -> Response) -> Response {
    let mut response = match chosen(name, &headers) {
        Some(found) => answer(name, found, &headers),
        None => otherwise(),
    };
    let policy = HeaderName::from_static("content-security-policy");
    response.headers_mut().insert(policy, HeaderValue::from_static(POLICY));
    response
}

fn asset(name: &str, headers: HeaderMap) -> Response {
    match chosen(name, &headers) {
        Some(found) => answer(name, found, &headers),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

struct Chosen {
    data: Cow<'static, [u8]>,
    hash: [u8; 32],
    encoding: Option<&'static str>,
}

/// The form of a file that the client accepts.
fn chosen(name: &str, headers: &HeaderMap) -> Option<Chosen> {
    if let Some(file) = Files::get(name) {
        return Some(Chosen { hash: file.metadata.sha256_hash(), data: file.data, encoding: None });
    }
    let file = Files::get(&format!("{name}.gz"))?;
    let hash = file.metadata.sha256_hash();
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|accepted| accepted.to_str().ok()).unwrap_or_default();
    if accepts(accepted, "gzip") {
        return Some(Chosen { data: file.data, hash, encoding: Some("gzip") });
    }
    let mut plain = Vec::new();
    GzDecoder::new(file.data.as_ref()).read_to_end(&mut plain).ok()?;
    Some(Chosen { data: plain.into(), hash, encoding: None })
}

/// Whether `Accept-Encoding` allows an encoding: listed, and not with a weight of zero.
fn accepts(accepted: &str, encoding: &str) -> bool {
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok()).unwrap_or(1.0);
        name.trim().eq_ignore_ascii_case(encoding) && weight > 0.0
    })
}

fn answer(name: &str, found: Chosen, headers: &HeaderMap) -> Response {
    let form = found.encoding.unwrap_or("plain");
    let hash = found.hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
    let tag = format!("\"{hash}-{form}\"");
    let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let known = known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag));
    // Asset names contain a content hash. The page lists them, so it is always revalidated.
    let keep = if name.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Body::from(found.data).into_response(),
    };
    let is = response.headers_mut();
    is.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    is.insert(VARY, HeaderValue::from_static("accept-encoding"));
    is.insert(CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        is.insert(ETAG, tag);
    }
    if let Some(encoding) = found.encoding.filter(|_| !known) {
        is.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_accepted_if_it_is_named_and_not_refused() {
        assert!(accepts("gzip, deflate, br", "br"));
        assert!(accepts("gzip;q=0.5, BR;q=1.0", "br"));
        assert!(!accepts("br;q=0, gzip", "br"));
        assert!(!accepts("", "gzip"));
    }

    #[test]
    fn every_file_of_the_build_has_a_type() {
        for name in Files::iter() {
            assert_ne!(kind(name.trim_end_matches(".gz")), "application/octet-stream", "{name}");
        }
    }
}
