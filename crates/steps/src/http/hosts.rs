//! The hosts that a workflow allows its code to call: `api.example.com`, `*.example.org`, `localhost:8080`.

use super::request;
use serde_json::Value;
use stepwell_core::event::Failure;
use url::Url;

pub struct Hosts {
    allowed: Vec<Pattern>,
}

struct Pattern {
    /// As in a URL; `.example.org` for a wildcard.
    host: String,
    subdomains: bool,
    /// `None` allows any port.
    port: Option<u16>,
}

impl Hosts {
    /// Parses the patterns. An invalid pattern allows nothing.
    pub fn new(patterns: &[String]) -> Hosts {
        Hosts { allowed: patterns.iter().filter_map(|text| Pattern::read(text)).collect() }
    }

    pub fn allow(&self, url: &Url) -> bool {
        let (Some(host), port) = (url.host_str(), url.port_or_known_default()) else { return false };
        self.allowed.iter().any(|pattern| {
            let named = if pattern.subdomains { host.ends_with(&pattern.host) } else { host == pattern.host };
            named && (pattern.port.is_none() || pattern.port == port)
        })
    }

    /// The host of a request, or an error if it is not allowed.
    pub fn host_of(&self, request: &Value) -> Result<String, Failure> {
        let url = request::url(request.get("url"))?;
        let host = url.host_str().unwrap_or_default();
        if self.allow(&url) { Ok(host.to_owned()) } else { Err(Failure::new("host_refused", refused(host))) }
    }
}

pub fn refused(host: &str) -> String {
    format!("{host} is not in the workflow's `allow_hosts`")
}

impl Pattern {
    fn read(text: &str) -> Option<Pattern> {
        let (subdomains, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        let (name, port) = match name.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port.parse().ok()?)),
            _ => (name, None),
        };
        let bracketed =
            if name.contains(':') && !name.starts_with('[') { format!("[{name}]") } else { name.to_owned() };
        let url = Url::parse(&format!("http://{bracketed}/")).ok()?;
        let host = url.host_str()?;
        Some(Pattern { host: if subdomains { format!(".{host}") } else { host.to_owned() }, subdomains, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_allowed_by_name_or_wildcard() {
        let check = |pattern: &str, url: &str, allowed: bool| {
            let hosts = Hosts::new(&[pattern.to_owned()]);
            assert_eq!(hosts.allow(&Url::parse(url).unwrap()), allowed, "{pattern} {url}");
        };
        check("api.example.com", "https://api.example.com/x", true);
        check("api.example.com", "https://API.example.com:8443/x", true);
        check("api.example.com", "https://xapi.example.com", false);
        check("api.example.com", "https://api.example.com.evil.org", false);
        check("api.example.com", "https://api.example.com@evil.org", false);
        check("*.example.com", "https://a.b.example.com", true);
        check("*.example.com", "https://example.com", false);
        check("*.example.com", "https://badexample.com", false);
        check("localhost:8080", "http://localhost:8080", true);
        check("localhost:8080", "http://localhost", false);
        check("localhost:80", "http://localhost", true);
        check("127.0.0.1", "http://2130706433/", true);
        check("::1", "http://[::1]:9/", true);
        check("[::1]:9", "http://[::1]:9/", true);
        check("[::1]:9", "http://[::1]:10/", false);
        check("b\u{fc}cher.example", "http://xn--bcher-kva.example/", true);
        check("*", "http://localhost", false);
    }

    #[test]
    fn a_request_to_another_host_is_refused_by_name() {
        let hosts = Hosts::new(&["api.example.com".to_owned()]);
        let refused = hosts.host_of(&serde_json::json!({"url": "https://example.com/x"})).unwrap_err();
        assert_eq!((&*refused.code, refused.retryable), ("host_refused", false));
        assert!(refused.message.contains("example.com"), "{refused:?}");
    }
}
