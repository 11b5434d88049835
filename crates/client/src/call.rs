//! A request to the API, before it has a server and a key.

use crate::Error;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::time::Duration;

/// Attempts of a call that may be repeated, the first included.
pub const ATTEMPTS: u32 = 5;
/// Bounds of the pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest `Retry-After` that is respected.
const LONGEST_ADVICE: Duration = Duration::from_secs(60);
/// No call waits for a run, so an answer that takes longer means that something is wrong.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A request to the API: `Call::post(&["runs", run, "release"])` is `POST /api/v1/runs/{run}/release`.
///
/// The client has methods for common operations; this is for all others.
#[derive(Clone)]
pub struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: Vec<&'a str>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Body>,
    pub(crate) attempts: u32,
    pub(crate) timeout: Duration,
}

#[derive(Clone)]
pub(crate) enum Body {
    Json(String),
    /// JSON or YAML as the author wrote it.
    Text(String),
}

impl<'a> Call<'a> {
    fn new(method: Method, path: &[&'a str]) -> Call<'a> {
        let (query, headers) = (Vec::new(), HeaderMap::new());
        Call { method, path: path.to_vec(), query, headers, body: None, attempts: 1, timeout: TIMEOUT }
    }

    /// Reads something.
    pub fn get(path: &[&'a str]) -> Call<'a> {
        Call::new(Method::GET, path)
    }

    /// Creates or does something.
    pub fn post(path: &[&'a str]) -> Call<'a> {
        Call::new(Method::POST, path)
    }

    /// Replaces something.
    pub fn put(path: &[&'a str]) -> Call<'a> {
        Call::new(Method::PUT, path)
    }

    /// Changes a part of something.
    pub fn patch(path: &[&'a str]) -> Call<'a> {
        Call::new(Method::PATCH, path)
    }

    /// Removes something.
    pub fn delete(path: &[&'a str]) -> Call<'a> {
        Call::new(Method::DELETE, path)
    }

    /// Adds a parameter, if it has a value.
    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Call<'a> {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Adds a header, if it has a value. The name is in lower case.
    pub fn header(mut self, name: &'static str, value: Option<&str>) -> Result<Call<'a>, Error> {
        if let Some(value) = value {
            let odd = |_| Error::Invalid(format!("{value:?} cannot be sent as {name}"));
            self.headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).map_err(odd)?);
        }
        Ok(self)
    }

    /// Sends JSON.
    pub fn json(mut self, body: Value) -> Call<'a> {
        self.body = Some(Body::Json(body.to_string()));
        self
    }

    /// Sends a definition in JSON or YAML.
    pub fn text(mut self, body: &str) -> Call<'a> {
        self.body = Some(Body::Text(body.to_string()));
        self
    }

    /// Repeats the call after a lost connection or a temporary problem, up to this many attempts in all. Only for calls
    /// that have the same effect when they are repeated.
    pub fn attempts(mut self, attempts: u32) -> Call<'a> {
        self.attempts = attempts;
        self
    }

    /// How long the server may take beyond the usual 60 seconds.
    pub(crate) fn patience(mut self, more: Duration) -> Call<'a> {
        self.timeout = TIMEOUT + more;
        self
    }
}

/// How long to wait after this attempt, counted from 1.
pub(crate) fn pause(attempt: u32, error: &Error) -> Duration {
    match error {
        Error::Problem(problem) if problem.retry_after.is_some() => {
            problem.retry_after.unwrap_or_default().min(LONGEST_ADVICE)
        }
        _ => (FIRST_PAUSE * 2u32.saturating_pow(attempt.min(8))).min(LONGEST_PAUSE),
    }
}
