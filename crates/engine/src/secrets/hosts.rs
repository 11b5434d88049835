//! Hosts: the normalised form in which they are compared, and patterns of the hosts that a secret may be sent to
//! (`api.example.com`, `*.example.org`, each with or without a port).

use std::fmt;
use std::sync::Arc;
use url::Url;

/// The most patterns of one secret.
pub const MOST_HOSTS: usize = 100;
const MAX_HOST: usize = 253;

/// The host of a URL in the form that is compared with patterns: lower case, as passed to the resolver, and without a
/// trailing dot.
pub fn host_name(url: &Url) -> Option<String> {
    Some(url.host_str()?.trim_end_matches('.').to_lowercase())
}

/// The same for a text that a client would accept as a URL.
pub fn host_of(text: &str) -> Option<String> {
    host_name(&Url::parse(text.trim()).ok()?)
}

/// Normalises a pattern of a policy (`api.example.com`, `*.example.org`) to the same form.
pub fn host_pattern(text: &str) -> Result<String, String> {
    let shown: String = text.chars().take(60).collect();
    let invalid = || format!("{shown:?} is not a host; write api.example.com or *.example.org, without https://");
    let name = text.trim().trim_end_matches('.');
    if let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::Ipv6Addr>() {
        return Ok(format!("[{address}]"));
    }
    if name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        return Err(format!("{shown:?} names a port; a policy applies to all ports of a host: remove the port"));
    }
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"/\\@:?#%[]<>^|".contains(c);
    if !name.chars().all(plain) {
        return Err(invalid());
    }
    if !name.contains('*') {
        return host_of(&format!("http://{name}/")).filter(|name| !name.is_empty()).ok_or_else(invalid);
    }
    // A label with a star must be ASCII. Only whole labels can be converted from another script.
    let labels = name.split('.').map(|label| match label {
        "" => None,
        star if star.contains('*') => star.is_ascii().then(|| star.to_ascii_lowercase()),
        label => host_of(&format!("http://{label}.x/")).and_then(|name| Some(name.strip_suffix(".x")?.to_string())),
    });
    labels.collect::<Option<Vec<String>>>().map(|labels| labels.join(".")).ok_or_else(invalid)
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Host {
    /// Lower case. For `*.example.org`, the part after the star.
    name: String,
    /// Whether the pattern is for subdomains.
    subdomains: bool,
    port: Option<u16>,
}

/// Checks the syntax of a pattern. The error says how to fix it.
pub fn check_host(text: &str) -> Result<(), String> {
    host(text).map(|_| ()).ok_or_else(|| {
        let shown: String = text.chars().take(60).collect();
        format!("{shown:?} is not a host; write api.example.com, *.example.org or 10.0.0.1:8443, without https://")
    })
}

fn host(text: &str) -> Option<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(address) => {
            let (name, rest) = address.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (format!("[{name}]"), rest)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (text[..end].to_string(), &text[end..])
        }
    };
    let port = match port.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None if port.is_empty() => None,
        None => return None,
    };
    let subdomains = name.starts_with("*.");
    let name = if subdomains { name[1..].to_string() } else { name };
    let valid = name.starts_with('[') || name.strip_prefix('.').unwrap_or(&name).split('.').all(is_label);
    (valid && (subdomains || !name.starts_with('.')) && name.len() <= MAX_HOST).then(|| Host {
        name: name.to_ascii_lowercase(),
        subdomains,
        port,
    })
}

/// Whether this is a part of a host name between dots. A list of hosts (`evil.com,a.example.org`) is no host name.
fn is_label(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

impl Host {
    fn matches(&self, name: &str, port: Option<u16>) -> bool {
        let named = if self.subdomains {
            name.strip_suffix(&self.name).is_some_and(|rest| rest.split('.').all(is_label))
        } else {
            name == self.name
        };
        named && (self.port.is_none() || self.port == port)
    }
}

/// A secret of a call that may only be sent to certain hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bound {
    pub secret: Arc<str>,
    /// Patterns, as written.
    pub hosts: Arc<[String]>,
    /// Whether the secret is only in headers that a redirect to another host drops.
    pub left_behind: bool,
}

impl Bound {
    /// Whether the secret may be sent to this host.
    pub fn allows(&self, name: &str, port: Option<u16>) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        self.hosts.iter().filter_map(|text| host(text)).any(|host| host.matches(&name, port))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the secret {} may be sent only to {}", self.secret, self.hosts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_name_however_it_is_written() {
        for url in [
            "https://internal.example.com/x",
            "https://INTERNAL.example.com:8443/",
            "http://internal.example.com./",
            "http://internal.example.com..",
            "\u{a0}https://user:pw@internal.example.com/\u{2003}",
            "\thttps:\\\\internal\u{3002}example.com",
        ] {
            assert_eq!(host_of(url).as_deref(), Some("internal.example.com"), "{url:?}");
        }
        assert_eq!(host_of("http://B\u{dc}CHER.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(host_of("http://2130706433/").as_deref(), Some("127.0.0.1"));
        assert_eq!(host_of("internal.example.com"), None);
    }

    #[test]
    fn a_pattern_of_a_policy_is_normalised() {
        for (written, expected) in [
            ("API.example.com", "api.example.com"),
            (" api.example.com. ", "api.example.com"),
            ("*", "*"),
            ("*.B\u{fc}cher.example", "*.xn--bcher-kva.example"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("API-*.Example.com", "api-*.example.com"),
            ("10.0.*", "10.0.*"),
            ("0x7f.1", "127.0.0.1"),
            ("::1", "[::1]"),
            ("[0:0::1]", "[::1]"),
        ] {
            assert_eq!(host_pattern(written).as_deref(), Ok(expected), "{written}");
        }
        for wrong in ["api.example.com:8443", "https://a.b", "a.b/c", "a b", "a@b", "", ".", "a..*", "*b\u{fc}.example"]
        {
            assert!(host_pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_matches_a_host_or_its_subdomains() {
        let check = |pattern: &str, name: &str, port: u16, expected: bool| {
            let bound = Bound { secret: "KEY".into(), hosts: vec![pattern.to_string()].into(), left_behind: false };
            assert_eq!(bound.allows(name, Some(port)), expected, "{pattern} {name}:{port}");
        };
        check("api.example.com", "api.example.com", 443, true);
        check("API.example.com", "api.Example.com.", 443, true);
        check("api.example.com", "api.example.com.evil.com", 443, false);
        check("api.example.com", "xapi.example.com", 443, false);
        check("*.example.org", "a.example.org", 80, true);
        check("*.example.org", "a.b.example.org", 80, true);
        check("*.example.org", "example.org", 80, false);
        check("*.example.org", "evilexample.org", 80, false);
        check("*.example.org", "evil.com,a.example.org", 80, false);
        check("*.example.org", "evil.com/a.example.org", 80, false);
        check("api.example.com:8443", "api.example.com", 8443, true);
        check("api.example.com:8443", "api.example.com", 443, false);
        check("127.0.0.1", "127.0.0.1", 1, true);
        check("[::1]:80", "[::1]", 80, true);
    }

    #[test]
    fn an_invalid_host_is_refused() {
        for good in ["a", "a.b", "*.b", "10.0.0.1:8443", "[::1]", "[::1]:80", "x_y.example"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for bad in
            ["", "*", "*.", "https://a.b", "a.b/c", "a..b", ".b", "a.*.b", "a:x", "a:", "[::1", "::1", "a b", "a@b"]
        {
            assert!(check_host(bad).is_err(), "{bad}");
        }
    }
}
