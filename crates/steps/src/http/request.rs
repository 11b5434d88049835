//! A resolved input as a request. Templates are filled in by now, so anything may turn up here that the definition's
//! checks could not see. Messages never show a value: it may be, or hold, a secret.

use super::Hosts;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::nearest::nearest;
use stepwell_engine::{Bound, HostGuard, sign_webhook};
use url::Url;

/// The methods that can be asked for. `CONNECT` and `TRACE` are for proxies and diagnosis.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// How messages are framed on a connection is the client's: connections are shared, so a request that lied about its
/// length could shift the answers of others.
const FRAMING: [&str; 8] =
    ["connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A request that is ready to be sent.
pub struct Outgoing {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Vec<u8>>,
    /// Where it may go, redirects included; anywhere within the egress rules if nothing is said.
    pub hosts: Option<Arc<Hosts>>,
    /// Secrets in it that may be sent to some hosts only.
    pub bound: Arc<[Bound]>,
    /// Policies on hosts, for what steps request.
    pub guard: Option<Arc<dyn HostGuard>>,
}

impl Outgoing {
    /// Reads `{url, method?, headers?, body?}`.
    pub fn read(input: &Value, idempotency_key: &str) -> Result<Outgoing, Failure> {
        let url = url(input.get("url"))?;
        let method = method(input.get("method"))?;
        let mut headers = headers(input.get("headers"))?;
        let body = body(input.get("body"), &mut headers);
        if !headers.contains_key(IDEMPOTENCY_KEY) {
            let key = HeaderValue::from_str(idempotency_key).map_err(|_| bad("the idempotency key is not a header"))?;
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        Ok(Outgoing::new(method, url, headers, body))
    }

    /// To go anywhere within the egress rules.
    pub fn new(method: Method, url: Url, headers: HeaderMap, body: Option<Vec<u8>>) -> Outgoing {
        Outgoing { method, url, headers, body, hosts: None, bound: Arc::default(), guard: None }
    }

    pub fn within(self, hosts: Arc<Hosts>) -> Outgoing {
        Outgoing { hosts: Some(hosts), ..self }
    }

    /// Names the secrets in it that may be sent to some hosts only.
    pub fn bound(self, bound: &Arc<[Bound]>) -> Outgoing {
        Outgoing { bound: bound.clone(), ..self }
    }

    /// Names the policies that it and its redirects are held to.
    pub fn guarded(self, guard: &Option<Arc<dyn HostGuard>>) -> Outgoing {
        Outgoing { guard: guard.clone(), ..self }
    }

    /// Signs it as Standard Webhooks say, unless the definition has a signature of its own.
    pub fn signed(mut self, secret: Option<&str>, id: &str) -> Result<Outgoing, Failure> {
        let Some(secret) = secret.filter(|_| !self.headers.contains_key("webhook-signature")) else { return Ok(self) };
        let time = jiff::Timestamp::now().as_second().to_string();
        let signature = sign_webhook(secret, (id, &time), self.body.as_deref().unwrap_or_default())
            .map_err(|why| Failure::new("bad_signing_secret", format!("the request cannot be signed: {why}")))?;
        for (name, value) in [("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)] {
            let value = HeaderValue::from_str(value).map_err(|_| bad("the signature is not a header"))?;
            self.headers.insert(HeaderName::from_static(name), value);
        }
        Ok(self)
    }

    /// Makes what is called part of the run's trace, unless the definition says whose part it is.
    pub fn traced(mut self, traceparent: Option<&str>) -> Outgoing {
        if let Some(Ok(value)) = traceparent.map(HeaderValue::from_str) {
            self.headers.entry(TRACEPARENT).or_insert(value);
        }
        self
    }
}

fn bad(message: impl Into<String>) -> Failure {
    Failure::new("bad_request", message.into())
}

pub(super) fn url(given: Option<&Value>) -> Result<Url, Failure> {
    let text = match given {
        Some(Value::String(text)) => text.trim(),
        Some(other) => return Err(bad(format!("`url` must be text, but it is {}", kind(other)))),
        None => return Err(bad("`url` is missing")),
    };
    let hint = "write an absolute URL such as https://example.com/api";
    let url = Url::parse(text).map_err(|why| bad(format!("`url` is not a URL: {why}; {hint}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad(format!("`url` must begin with http:// or https://; {hint}")));
    }
    Ok(url)
}

fn method(given: Option<&Value>) -> Result<Method, Failure> {
    let text = match given {
        None | Some(Value::Null) => return Ok(Method::POST),
        Some(Value::String(text)) => text.trim().to_ascii_uppercase(),
        Some(other) => return Err(bad(format!("`method` must be text, but it is {}", kind(other)))),
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

/// A header that is null is left out, so that `{{… ?? null}}` can decide if there is one.
fn headers(given: Option<&Value>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let fields = match given {
        None | Some(Value::Null) => return Ok(headers),
        Some(Value::Object(fields)) => fields,
        Some(other) => return Err(bad(format!("`headers` must be an object, but it is {}", kind(other)))),
    };
    for (name, value) in fields {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| bad(format!("{} is not the name of a header", shortened(name))))?;
        if FRAMING.contains(&key.as_str()) {
            return Err(bad(format!("the header `{key}` is set by the connection itself; leave it out")));
        }
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.trim().to_owned(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return Err(bad(format!("the header `{key}` must be text, but it is {}", kind(value))));
            }
        };
        let mut text = HeaderValue::from_bytes(text.as_bytes())
            .map_err(|_| bad(format!("the header `{key}` holds a line break or another control character")))?;
        // Kept out of debug output of the libraries below.
        text.set_sensitive(true);
        headers.append(key, text);
    }
    Ok(headers)
}

/// Text goes out as it is, everything else as JSON; null is no body.
fn body(given: Option<&Value>, headers: &mut HeaderMap) -> Option<Vec<u8>> {
    let (bytes, content_type) = match given {
        None | Some(Value::Null) => return None,
        Some(Value::String(text)) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
        Some(other) => (other.to_string().into_bytes(), "application/json"),
    };
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    Some(bytes)
}

/// What a value is, for messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A name, quoted and bounded.
fn shortened(name: &str) -> String {
    format!("{:?}", name.chars().take(40).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: Value, expected: &str) {
        let Err(failure) = Outgoing::read(&input, "key") else { panic!("{input} was taken") };
        assert_eq!((&*failure.code, failure.retryable), ("bad_request", false));
        assert!(failure.message.contains(expected), "{input}: {}", failure.message);
        assert!(!failure.message.contains("s3cret"), "{}", failure.message);
    }

    #[test]
    fn what_templates_left_that_is_no_request_is_named_without_its_value() {
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
        check(json!({"url": url, "headers": {"a b": "s3cret"}}), "\"a b\" is not the name of a header");
        check(json!({"url": url, "headers": {"X-A": "s3cret\r\nX-B: 1"}}), "`x-a` holds a line break");
        check(json!({"url": url, "headers": {"X-A": {"s3cret": 1}}}), "`x-a` must be text, but it is an object");
        check(json!({"url": url, "headers": {"Content-Length": "0"}}), "`content-length` is set by the connection");
        check(json!({"url": url, "headers": {"Transfer-Encoding": "chunked"}}), "leave it out");
    }

    #[test]
    fn a_trace_goes_along_unless_the_headers_name_another() {
        let check = |headers: Value, traceparent: Option<&str>, sent: Option<&str>| {
            let input = json!({"url": "http://x", "headers": headers});
            let outgoing = Outgoing::read(&input, "key").unwrap().traced(traceparent);
            let given = outgoing.headers.get(TRACEPARENT).map(|value| value.to_str().unwrap());
            assert_eq!(given, sent, "{input}");
            assert!(outgoing.headers.get_all(TRACEPARENT).iter().count() <= 1);
        };
        check(json!({}), Some("00-a-b-01"), Some("00-a-b-01"));
        check(json!({"Traceparent": "00-c-d-00"}), Some("00-a-b-01"), Some("00-c-d-00"));
        check(json!({}), None, None);
    }

    #[test]
    fn a_body_says_what_it_is_unless_the_headers_do() {
        let check = |body: Value, headers: Value, sent: Option<&str>, content_type: Option<&str>| {
            let input = json!({"url": "http://x", "headers": headers, "body": body});
            let outgoing = Outgoing::read(&input, "key").unwrap();
            assert_eq!(outgoing.body.as_deref(), sent.map(str::as_bytes), "{input}");
            let given = outgoing.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap());
            assert_eq!(given, content_type, "{input}");
        };
        check(json!({"a": 1}), json!({}), Some(r#"{"a":1}"#), Some("application/json"));
        check(json!([1, "x"]), json!({}), Some(r#"[1,"x"]"#), Some("application/json"));
        check(json!(true), json!({}), Some("true"), Some("application/json"));
        check(json!("a=1"), json!({}), Some("a=1"), Some("text/plain; charset=utf-8"));
        check(json!("a=1"), json!({"CONTENT-type": "x/y"}), Some("a=1"), Some("x/y"));
        check(json!({"a": 1}), json!({"content-type": "x/y"}), Some(r#"{"a":1}"#), Some("x/y"));
        check(json!(null), json!({}), None, None);
    }
}
