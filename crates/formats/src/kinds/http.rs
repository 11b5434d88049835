//! HTTP steps: `url, method, headers, body, form`.

use super::{ParsedKind, Rules};
use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use crate::values::Input;
use stepwell_core::graph::{Call, Kind};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub fn http<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let mut input = Input::default();
    match fields.take("url") {
        None => draft.fault(&fields.place, Fault::new(code::MISSING_URL, "an HTTP step needs a `url`")),
        Some(field) => {
            if let Some(url) = draft.text(&field) {
                if let Err(why) = check_url(url) {
                    let fault =
                        Fault::new(code::BAD_URL, why).hint("write an absolute URL such as https://example.com/api");
                    draft.fault(&field.place, fault);
                }
                input.put("url", field);
            }
        }
    }
    input.constant("method", method(draft, fields));
    let headers = fields.take("headers");
    if let Some(field) = &headers {
        read_headers(draft, field);
    }
    let merged = rules.defaults.merged_headers(headers.as_ref().map(|field| field.node.to_json()));
    if let Some(merged) = merged {
        input.put_as("headers", headers, merged);
    }
    match (fields.take("body"), fields.take("form")) {
        (Some(_), Some(form)) => {
            let fault = Fault::new(code::NOT_ALLOWED, "a request has a `body` or a `form`, not both");
            draft.fault(&form.place, fault);
        }
        (Some(body), None) => input.put("body", body),
        (None, Some(form)) => {
            if !matches!(form.node.value, Value::Map(_) | Value::String(_)) {
                draft.wrong_type(&form, "an object");
            }
            input.put("form", form);
        }
        (None, None) => {}
    }
    let mut input = input.parse(draft, rules.grammar);
    input.encode_url("url");
    ParsedKind::of(Kind::Call { call: Call::Http, input })
}

/// Checks the names and types of headers.
pub fn read_headers<'d>(draft: &mut Draft<'d>, field: &Field<'d>) {
    let Some(headers) = Fields::of(field, draft) else { return };
    for (entry, value) in headers.into_entries() {
        let place = Place { span: entry.key_span.or(value.place.span), ..value.place.clone() };
        check_header_name(draft, &entry.key, &place);
        match &value.node.value {
            Value::String(text) if text.contains(['\r', '\n']) => {
                draft.fault(&value.place, Fault::new(code::BAD_VALUE, "a header cannot contain a line break"));
            }
            Value::String(_) | Value::Number(_) | Value::Bool(_) => {}
            _ => draft.wrong_type(&value, "text"),
        }
    }
}

fn method<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> &'static str {
    let Some(field) = fields.take("method") else { return "POST" };
    let Some(text) = draft.constant_text(&field) else { return "POST" };
    let upper = text.trim().to_ascii_uppercase();
    METHODS.into_iter().find(|method| *method == upper).unwrap_or_else(|| {
        let fault = Fault::new(code::BAD_METHOD, format!("{} is not an HTTP method", quoted(text)));
        let near = draft.near(&upper, METHODS);
        draft.fault(&field.place, fault.maybe_hint(near.or_else(|| Some(format!("known: {}", METHODS.join(", "))))));
        "POST"
    })
}

fn check_header_name(draft: &mut Draft<'_>, name: &str, place: &Place) {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        draft.fault(place, Fault::new(code::BAD_VALUE, format!("{} is not a header name", quoted(name))));
    }
}

/// Checks a URL that may contain templates, up to the first template.
fn check_url(url: &str) -> Result<(), String> {
    let text = url.trim();
    let known = text.split("{{").next().unwrap_or_default();
    let template = known.len() < text.len();
    match known.chars().find(|c| c.is_whitespace() || c.is_control()) {
        Some(odd) if odd.is_control() => {
            return Err(format!("the URL contains the control character U+{:04X}", odd as u32));
        }
        Some(_) => return Err("a URL cannot contain spaces".into()),
        None => {}
    }
    let lower = known.to_ascii_lowercase();
    let schemes = ["https://", "http://"];
    if template && schemes.iter().any(|scheme| scheme.starts_with(&lower)) {
        return Ok(());
    }
    let Some(rest) = schemes.iter().find_map(|scheme| lower.strip_prefix(scheme)) else {
        return Err(format!("{} is not an http or https URL", quoted(text)));
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if template && authority.len() == rest.len() {
        return Ok(());
    }
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match host_and_port.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) if host.parse::<std::net::Ipv6Addr>().is_ok() => (host, port.strip_prefix(':')),
        Some(_) => return Err("this is not an IPv6 address".into()),
        None => match host_and_port.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host_and_port, None),
        },
    };
    if host.is_empty() {
        return Err("the URL has no host".into());
    }
    if host.contains(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_' | ':' | '%'))
    {
        return Err(format!("{} is not a host", quoted(host)));
    }
    match port {
        Some(port) if !port.is_empty() && port.parse::<u16>().is_err() => {
            Err(format!("{} is not a port", quoted(port)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_character_in_a_url_is_reported() {
        assert_eq!(check_url("https://a b/"), Err("a URL cannot contain spaces".into()));
        assert_eq!(check_url("https://a\nb/"), Err("the URL contains the control character U+000A".into()));
        assert_eq!(check_url("https://a\u{7f}/"), Err("the URL contains the control character U+007F".into()));
    }

    #[test]
    fn the_constant_part_of_a_url_must_be_absolute() {
        let check = |url: &str, good: bool| assert_eq!(check_url(url).is_ok(), good, "{url}");
        for good in [
            "https://myapp.com/api/charge",
            "HTTP://localhost:8080",
            "http://[::1]:9/x",
            "https://user:pw@host/x?y=a b".trim_end_matches(" b"),
            "{{trigger.body.url}}",
            "http{{input.s}}://x",
            "https://{{input.host}}/x",
            "https://api.{{input.zone}}:{{input.port}}/x y",
            "https://example.com/{{input.path}}",
            "https://bücher.example/",
        ] {
            check(good, true);
        }
        for bad in [
            "",
            "example.com",
            "/api/{{input.id}}",
            "ftp://x",
            "ftp://{{input.host}}",
            "http:///x",
            "http://:80",
            "https://a b/",
            "http://host:port/",
            "http://host:99999/{{x}}",
            "http://[nope]/",
            "http://exa<mple/",
            "javascript:alert(1)",
        ] {
            check(bad, false);
        }
    }
}
