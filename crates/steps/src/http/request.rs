//! Parses a resolved input into a request. Templates are already filled in, so the input may contain what the checks of
//! the definition could not foresee. Messages never show a value, because it may be or contain a secret.

use super::{Hosts, body};
use crate::text::{quoted, type_of};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::nearest::nearest;
use stepwell_engine::{Bound, HostGuard, sign_webhook};
use url::Url;

/// The supported methods. `CONNECT` and `TRACE` are for proxies and diagnosis.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Headers that are reserved for the client. Connections are shared, so a request that lied about its length could shift
/// other requests' responses. `Host` decides which site a shared address serves, and policies and secrets are checked
/// against the host of the URL.
const RESERVED: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A request that is ready to be sent.
pub struct Outgoing {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Vec<u8>>,
    /// Hosts it may go to, including redirects. `None`: any host within the egress rules.
    pub hosts: Option<Arc<Hosts>>,
    /// Secrets in it that are bound to hosts.
    pub bound: Arc<[Bound]>,
    /// Host policies for requests of steps.
    pub guard: Option<Arc<dyn HostGuard>>,
}

impl Outgoing {
    /// Parses `{url, method?, headers?, body?, form?}`.
    pub fn from_input(input: &Value, idempotency_key: &str) -> Result<Outgoing, Failure> {
        let url = url(input.get("url"))?;
        let method = method(input.get("method"))?;
        let mut headers = headers(input.get("headers"))?;
        let body = match (input.get("body"), input.get("form")) {
            (body, None | Some(Value::Null)) => body::encode(body, &mut headers)?,
            (None | Some(Value::Null), Some(form)) => Some(body::form(form, "form", &mut headers)?),
            (Some(_), Some(_)) => return Err(bad("a request has a `body` or a `form`, not both")),
        };
        if !headers.contains_key(IDEMPOTENCY_KEY) {
            let key =
                HeaderValue::from_str(idempotency_key).map_err(|_| bad("the idempotency key is not a valid header"))?;
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        Ok(Outgoing::new(method, url, headers, body))
    }

    /// A request without restrictions beyond the egress rules.
    pub fn new(method: Method, url: Url, headers: HeaderMap, body: Option<Vec<u8>>) -> Outgoing {
        Outgoing { method, url, headers, body, hosts: None, bound: Arc::default(), guard: None }
    }

    pub fn within(self, hosts: Arc<Hosts>) -> Outgoing {
        Outgoing { hosts: Some(hosts), ..self }
    }

    /// Sets the secrets in it that are bound to hosts.
    pub fn bound(self, bound: &Arc<[Bound]>) -> Outgoing {
        Outgoing { bound: bound.clone(), ..self }
    }

    /// Sets the policies that apply to it and its redirects.
    pub fn guarded(self, guard: &Option<Arc<dyn HostGuard>>) -> Outgoing {
        Outgoing { guard: guard.clone(), ..self }
    }

    /// Signs the request as in Standard Webhooks, unless the definition sets its own signature.
    pub fn signed(mut self, secret: Option<&str>, id: &str) -> Result<Outgoing, Failure> {
        let Some(secret) = secret.filter(|_| !self.headers.contains_key("webhook-signature")) else { return Ok(self) };
        let time = jiff::Timestamp::now().as_second().to_string();
        let signature = sign_webhook(secret, id, &time, self.body.as_deref().unwrap_or_default())
            .map_err(|why| Failure::new("bad_signing_secret", format!("the request cannot be signed: {why}")))?;
        for (name, value) in [("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)] {
            let value = HeaderValue::from_str(value).map_err(|_| bad("the signature is not a valid header"))?;
            self.headers.insert(HeaderName::from_static(name), value);
        }
        Ok(self)
    }

    /// Adds the run's trace context, unless the definition sets its own.
    pub fn traced(mut self, traceparent: Option<&str>) -> Outgoing {
        if let Some(Ok(value)) = traceparent.map(HeaderValue::from_str) {
            self.headers.entry(TRACEPARENT).or_insert(value);
        }
        self
    }
}

pub(super) fn bad(message: impl Into<String>) -> Failure {
    Failure::new("bad_request", message.into())
}

pub(super) fn url(given: Option<&Value>) -> Result<Url, Failure> {
    let text = match given {
        Some(Value::String(text)) => text.trim(),
        Some(other) => return Err(bad(format!("`url` must be text, but it is {}", type_of(other)))),
        None => return Err(bad("`url` is missing")),
    };
    let hint = "write an absolute URL such as https://example.com/api";
    let url = Url::parse(text).map_err(|why| bad(format!("`url` is not a URL: {why}; {hint}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`url` must begin with http:// or https://; {hint}")));
    }
    Ok(url)
}

/// Whether a request of this method may change something.
pub fn writes(method: &Method) -> bool {
    ![Method::GET, Method::HEAD].contains(method)
}

/// Whether the input of a request is certain to have a method that changes nothing.
pub fn is_read_only(input: &Value) -> bool {
    method(input.get("method")).is_ok_and(|method| !writes(&method))
}

fn method(given: Option<&Value>) -> Result<Method, Failure> {
    let text = match given {
        None | Some(Value::Null) => return Ok(Method::POST),
        Some(Value::String(text)) => text.trim().to_ascii_uppercase(),
        Some(other) => return Err(bad(format!("`method` must be text, but it is {}", type_of(other)))),
    };
    if METHODS.contains(&text.as_str())
        && let Ok(method) = Method::from_bytes(text.as_bytes())
    {
        return Ok(method);
    }
    Err(bad(match nearest(&text, METHODS) {
        Some(near) => format!("`method` is not an HTTP method; did you mean {near}?"),
        None => format!("`method` is not an HTTP method; known: {}", METHODS.join(", ")),
    }))
}

/// Parses headers. A null header is omitted, so that `{{… ?? null}}` can decide whether to send it.
fn headers(given: Option<&Value>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let fields = match given {
        None | Some(Value::Null) => return Ok(headers),
        Some(Value::Object(fields)) => fields,
        Some(other) => return Err(bad(format!("`headers` must be an object, but it is {}", type_of(other)))),
    };
    for (name, value) in fields {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad(format!("{} is not a valid header name", short_name(name))))?;
        if RESERVED.contains(&key.as_str()) {
            return Err(bad(format!("the header `{key}` is set by the HTTP client; remove it")));
        }
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.trim().to_owned(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return Err(bad(format!("the header `{key}` must be text, but it is {}", type_of(value))));
            }
        };
        let mut text = HeaderValue::from_bytes(text.as_bytes())
            .map_err(|_| bad(format!("the header `{key}` contains a line break or another control character")))?;
        // Kept out of the debug output of libraries.
        text.set_sensitive(true);
        headers.append(key, text);
    }
    Ok(headers)
}

/// Quotes and truncates a name.
fn short_name(name: &str) -> String {
    quoted(&name.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: Value, expected: &str) {
        let Err(failure) = Outgoing::from_input(&input, "key") else { panic!("{input} was accepted") };
        assert_eq!((&*failure.code, failure.retryable), ("bad_request", false));
        assert!(failure.message.contains(expected), "{input}: {}", failure.message);
        assert!(!failure.message.contains("s3cret"), "{}", failure.message);
    }

    #[test]
    fn only_get_and_head_change_nothing() {
        let check = |input: Value, expected: bool| assert_eq!(is_read_only(&input), expected, "{input}");
        check(json!({"method": "GET"}), true);
        check(json!({"method": " head "}), true);
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "no", ""] {
            check(json!({"method": method}), false);
        }
        // Without a method it is a POST.
        check(json!({}), false);
        check(json!({"method": null}), false);
        check(json!({"method": ["GET"]}), false);
    }

    #[test]
    fn an_invalid_input_is_reported_without_its_values() {
        let url = "http://example.com";
        check(json!({}), "`url` is missing");
        check(json!({"url": 7}), "`url` must be text, but it is a number");
        check(json!({"url": "s3cret"}), "`url` is not a URL: relative URL without a base");
        check(json!({"url": "http://s3cret@:80/"}), "empty host");
        check(json!({"url": "s3cret:abc"}), "must begin with http://");
        check(json!({"url": url, "method": "s3cret"}), "known: GET, HEAD");
        check(json!({"url": url, "method": "PSOT"}), "did you mean POST?");
        check(json!({"url": url, "method": "CONNECT"}), "is not an HTTP method");
        check(json!({"url": url, "headers": ["s3cret"]}), "`headers` must be an object, but it is a list");
        check(json!({"url": url, "headers": {"a b": "s3cret"}}), "\"a b\" is not a valid header name");
        check(json!({"url": url, "headers": {"a\u{1}": "s3cret"}}), r#""a\u0001" is not a valid header name"#);
        check(json!({"url": url, "headers": {"X-A": "s3cret\r\nX-B: 1"}}), "`x-a` contains a line break");
        check(json!({"url": url, "headers": {"X-A": {"s3cret": 1}}}), "`x-a` must be text, but it is an object");
        check(json!({"url": url, "headers": {"Content-Length": "0"}}), "`content-length` is set by the HTTP client");
        check(json!({"url": url, "headers": {"Transfer-Encoding": "chunked"}}), "remove it");
        check(json!({"url": url, "headers": {"HOST": "s3cret"}}), "`host` is set by the HTTP client");
    }

    #[test]
    fn the_trace_context_is_added_unless_the_headers_set_one() {
        let check = |headers: Value, traceparent: Option<&str>, sent: Option<&str>| {
            let input = json!({"url": "http://x", "headers": headers});
            let outgoing = Outgoing::from_input(&input, "key").unwrap().traced(traceparent);
            let given = outgoing.headers.get(TRACEPARENT).map(|value| value.to_str().unwrap());
            assert_eq!(given, sent, "{input}");
            assert!(outgoing.headers.get_all(TRACEPARENT).iter().count() <= 1);
        };
        check(json!({}), Some("00-a-b-01"), Some("00-a-b-01"));
        check(json!({"Traceparent": "00-c-d-00"}), Some("00-a-b-01"), Some("00-c-d-00"));
        check(json!({}), None, None);
    }
}
