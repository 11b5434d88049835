//! Classifies failures of requests: what went wrong, whether the effect may have happened, whether a retry makes sense.
//!
//! A URL may hold secrets in its query and its credentials. Messages show neither, and nothing here prints a
//! `reqwest::Error`, whose text contains the whole URL.

use super::Hosts;
use super::hosts;
use crate::egress::Refused;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use stepwell_core::event::{Failure, FailureKind};
use stepwell_core::limits;
use stepwell_core::time::Millis;
use stepwell_engine::{Bound, HostRules};
use url::Url;

/// A request and its redirects.
#[derive(Clone, Default)]
pub struct Trail {
    pub method: Method,
    pub url: Option<Url>,
    pub redirected: Option<Url>,
    /// Whether a server may have carried out the request before it redirected.
    pub maybe_done: bool,
    /// Hosts that redirects may lead to.
    pub hosts: Option<Arc<Hosts>>,
    /// Secrets in the request that are bound to hosts.
    pub bound: Arc<[Bound]>,
    /// The method of the request that is made now: a redirect may have changed it.
    pub current: Method,
    /// Policies on the hosts of redirects.
    pub rules: Option<Arc<dyn HostRules>>,
}

impl Trail {
    pub fn new(method: Method, url: Url) -> Trail {
        Trail { current: method.clone(), method, url: Some(url), ..Trail::default() }
    }

    /// The port of the request that is made now.
    pub fn port(&self) -> Option<u16> {
        self.redirected.as_ref().or(self.url.as_ref())?.port_or_known_default()
    }

    /// The bound secret that may not be sent to this URL; one that a redirect would carry along comes first.
    pub fn forbidden_secret(&self, url: &Url) -> Option<&Bound> {
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
        let refused = self.bound.iter().filter(|bound| !bound.allows(host, port));
        refused.min_by_key(|bound| bound.left_behind)
    }
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method)?;
        if let Some(url) = &self.url {
            write!(f, " {}", redacted(url))?;
        }
        match &self.redirected {
            Some(next) => write!(f, " (redirected to {})", redacted(next)),
            None => Ok(()),
        }
    }
}

/// Why a redirect was not followed, apart from the egress rules.
#[derive(Clone, Debug)]
pub enum RedirectRefused {
    TooMany,
    Scheme,
    Host,
    /// The secret that may not be sent there.
    Bound(String),
    /// The decision of the organisation's policies on that host.
    Policy(Failure),
}

impl fmt::Display for RedirectRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RedirectRefused::Bound(why) => why,
            RedirectRefused::Policy(failure) => &failure.message,
            RedirectRefused::TooMany => "there were more than 10 redirects; call the final URL directly",
            RedirectRefused::Scheme => "the redirect leads to a URL that is neither http nor https",
            RedirectRefused::Host => "the redirect leads to a host that is not in the workflow's `allow_hosts`",
        })
    }
}

impl Error for RedirectRefused {}

/// A URL without its query, fragment and credentials, for messages.
pub fn redacted(url: &Url) -> String {
    let mut text = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
    if let Some(port) = url.port() {
        text.push_str(&format!(":{port}"));
    }
    text.push_str(url.path());
    text
}

pub fn refused(trail: &Trail, why: &Refused) -> Failure {
    let failure = Failure::new("egress_refused", format!("{trail} was not sent: {why}"));
    Failure { may_have_happened: trail.maybe_done, ..failure }
}

pub fn host_refused(trail: &Trail) -> Failure {
    let host = trail.url.as_ref().and_then(Url::host_str).unwrap_or_default();
    Failure::new("host_refused", format!("{trail} was not sent: {}", hosts::refused(host)))
}

/// A bound secret may not be sent to the URL's host.
pub fn secret_bound(trail: &Trail, why: &str) -> Failure {
    Failure::new("secret_bound", format!("{trail} was not sent: {why}"))
}

pub fn denied_by_policy(trail: &Trail, why: Failure) -> Failure {
    Failure { message: format!("{trail} was not sent: {}", why.message).into(), ..why }
}

pub fn no_tls(trail: &Trail, why: &str) -> Failure {
    let hint = "install the system's root certificates (the package is often called ca-certificates)";
    Failure::new("tls_unavailable", format!("{trail} was not sent, because TLS could not be set up: {why}; {hint}"))
}

pub fn too_large(trail: &Trail) -> Failure {
    let most = limits::MAX_READABLE_BODY / 1024;
    Failure {
        may_have_happened: true,
        ..Failure::new("too_large", format!("{trail}: the response is longer than {most} KB"))
    }
}

/// Classifies a request without a complete response.
pub fn from_error(trail: &Trail, error: &reqwest::Error) -> Failure {
    if let Some(why) = find::<Refused>(error) {
        return refused(trail, why);
    }
    if let Some(RedirectRefused::Policy(why)) = find(error) {
        let message = format!("{trail} was not completed: {}", why.message).into();
        return Failure { message, may_have_happened: trail.maybe_done, ..why.clone() };
    }
    if let Some(why) = find::<RedirectRefused>(error) {
        let code = match why {
            RedirectRefused::TooMany => "too_many_redirects",
            RedirectRefused::Scheme => "bad_redirect",
            RedirectRefused::Host => "host_refused",
            RedirectRefused::Bound(_) => "secret_bound",
            RedirectRefused::Policy(why) => &why.code,
        };
        let failure = Failure::new(code, format!("{trail} was not completed: {why}"));
        return Failure { may_have_happened: trail.maybe_done, ..failure };
    }
    let cause = cause(error);
    if error.is_builder() {
        return Failure::new("bad_request", format!("{trail} could not be built: {cause}"));
    }
    let (code, message, may_have_happened) = if error.is_connect() {
        ("connect_failed", format!("{trail}: connection failed: {cause}"), trail.maybe_done)
    } else {
        ("connection_lost", format!("{trail} may have arrived, but no complete response was received: {cause}"), true)
    };
    Failure { kind: FailureKind::Network, may_have_happened, ..Failure::retryable(code, message) }
}

/// Classifies a response that is not a success. After a 5xx it is unknown how far the server got; with any other status
/// the server states that it did not carry out the request.
pub fn from_status(trail: &Trail, status: StatusCode, retry_after: Option<Millis>) -> Failure {
    let retryable = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let message = format!("{trail} returned {}{reason}", status.as_u16());
    Failure {
        retryable,
        may_have_happened: status.is_server_error() || trail.maybe_done,
        retry_after: retry_after.filter(|_| retryable),
        ..Failure::new(&format!("http_{}", status.as_u16()), message)
    }
}

/// Parses `Retry-After`, given in seconds or as a date.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Millis> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows is above the limit anyway.
        Millis(text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000))
    } else {
        // Tolerate a wrong day of the week.
        let date = rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
        Millis(date.as_millisecond().saturating_sub(now.as_millisecond()).max(0) as u64)
    };
    Some(pause.min(limits::MAX_RETRY_AFTER))
}

/// The root cause, skipping reqwest's own errors, which repeat the URL.
pub fn cause(error: &reqwest::Error) -> String {
    let innermost = chain(error).filter(|error| !error.is::<reqwest::Error>()).last();
    innermost.map_or_else(|| "the request failed".to_owned(), |error| error.to_string())
}

fn find<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    chain(error).find_map(|error| error.downcast_ref())
}

fn chain<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first: &'a (dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error: &&'a (dyn Error + 'static)| (*error).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_url_hides_what_may_be_secret() {
        let check = |url: &str, expected: &str| assert_eq!(redacted(&Url::parse(url).unwrap()), expected);
        check("https://user:pw@example.com/a/b?key=s3cret#part", "https://example.com/a/b");
        check("http://[::1]:8080", "http://[::1]:8080/");
        check("https://example.com:443/x", "https://example.com/x");
    }

    #[test]
    fn retry_after_is_parsed_in_both_forms_and_bounded() {
        let now: Timestamp = "2026-02-22T10:00:00Z".parse().unwrap();
        let check = |text: &str, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            assert_eq!(retry_after(&headers, now).map(|pause| pause.0), expected, "{text}");
        };
        check("120", Some(120_000));
        check("0", Some(0));
        check("Sun, 22 Feb 2026 10:01:30 GMT", Some(90_000));
        check("Sun, 22 Feb 2026 09:00:00 GMT", Some(0));
        check("Fri, 31 Dec 2099 23:59:59 GMT", Some(limits::MAX_RETRY_AFTER.0));
        check("99999999999999999999999", Some(limits::MAX_RETRY_AFTER.0));
        for invalid in ["", "-1", "1.5", "soon", "Sun, 22 Feb"] {
            check(invalid, None);
        }
    }

    #[test]
    fn a_status_determines_retryability_and_whether_the_effect_may_have_happened() {
        let trail = Trail::new(Method::POST, Url::parse("https://a.example/x?key=s3cret").unwrap());
        for code in [300u16, 304, 400, 401, 404, 408, 409, 422, 425, 429, 500, 501, 503, 504, 599] {
            let status = StatusCode::from_u16(code).unwrap();
            let failure = from_status(&trail, status, Some(Millis::SECOND));
            let retryable = [408, 425, 429].contains(&code) || code >= 500;
            assert_eq!((failure.retryable, failure.may_have_happened), (retryable, code >= 500), "{code}");
            assert_eq!(failure.retry_after.is_some(), retryable, "{code}");
            assert_eq!(*failure.code, *format!("http_{code}"));
        }
        let failure = from_status(&trail, StatusCode::NOT_FOUND, None);
        assert_eq!(*failure.message, *"POST https://a.example/x returned 404 Not Found");
    }
}
