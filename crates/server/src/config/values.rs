//! Single configuration values: their syntax, and the hints for fixing them.

use super::fields::{Wrong, needed};
use super::{DatabaseUrl, Encryption, Level, LogFormat, LongCallbacks, Secret, host_of};
use axum::http::uri::Uri;
use serde_json::Value;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use stepwell_core::nearest::nearest;
use stepwell_core::time::Millis;

/// Maximum length of a name.
const LABEL: usize = 100;
/// Minimum length of a key: 128 bits in hexadecimal digits.
const KEY: usize = 32;

pub fn text(value: &Value) -> Result<String, Wrong> {
    let text = value.as_str().ok_or_else(|| needed("text", value))?;
    if text.trim().is_empty() { Err("this may not be empty; leave it out instead".into()) } else { Ok(text.into()) }
}

pub fn flag(value: &Value) -> Result<bool, Wrong> {
    value.as_bool().ok_or_else(|| match value.as_str() {
        Some("yes" | "on" | "Yes" | "On") => "true or false is needed here; write true".into(),
        Some("no" | "off" | "No" | "Off") => "true or false is needed here; write false".into(),
        _ => needed("true or false", value),
    })
}

/// A flag in an environment variable.
pub fn word_flag(value: &Value) -> Result<bool, Wrong> {
    choice(value, &[("true", true), ("false", false)])
}

pub fn positive(value: &Value) -> Result<NonZeroU32, Wrong> {
    let wanted = format!("a whole number from 1 to {}", u32::MAX);
    match value {
        Value::Number(number) => {
            let number = number.as_u64().and_then(|number| u32::try_from(number).ok()).and_then(NonZeroU32::new);
            number.ok_or_else(|| format!("{wanted} is needed here"))
        }
        other => Err(needed(&wanted, other)),
    }
}

/// An integer, or `unlimited`.
pub fn small(value: &Value) -> Result<u8, Wrong> {
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok()).filter(|number| *number > 0);
    number.ok_or_else(|| needed("a number from 1 to 255", value))
}

pub fn limit(value: &Value) -> Result<Option<u64>, Wrong> {
    match value {
        Value::String(text) if text == "unlimited" => Ok(None),
        Value::Number(number) if number.as_u64().is_some() => Ok(number.as_u64()),
        _ => Err("a whole number is needed here, or the word unlimited".into()),
    }
}

pub fn length(value: &Value) -> Result<Millis, Wrong> {
    let found = match value {
        Value::Number(number) => number.as_f64().and_then(Millis::from_secs_f64),
        Value::String(text) => Millis::parse(text),
        other => return Err(needed("a length of time", other)),
    };
    found.ok_or_else(|| "this is not a length of time; write 500ms, 30s or 5m, or a number of seconds".into())
}

pub fn positive_length(value: &Value) -> Result<Millis, Wrong> {
    let found = length(value)?;
    if found == Millis(0) { Err("this must be longer than zero; write 500ms, 30s or 5m".into()) } else { Ok(found) }
}

/// With a shorter lease, a brief pause would cost a node all its work. With a longer one, failover takes too long.
pub fn lease(value: &Value) -> Result<Millis, Wrong> {
    let found = length(value)?;
    let fits = (Millis(500)..=Millis::from_secs(600)).contains(&found);
    if fits { Ok(found) } else { Err("a length of time from 500ms to 10m is needed here; the usual is 10s".into()) }
}

/// A display name.
pub fn label(value: &Value) -> Result<String, Wrong> {
    let text = text(value)?;
    if text.chars().count() > LABEL || text.chars().any(char::is_control) {
        return Err(format!("at most {LABEL} printable characters are allowed here"));
    }
    Ok(text)
}

/// Errors do not repeat a database URL, because it may contain a password.
pub fn database(value: &Value) -> Result<DatabaseUrl, Wrong> {
    let text = text(value)?;
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(DatabaseUrl(text)),
        _ => Err("this is not the URL of a PostgreSQL database; write one such as postgres://user@host/name".into()),
    }
}

/// A key chosen by an operator. Only its length can be checked.
pub fn key(value: &Value) -> Result<Secret, Wrong> {
    let text = text(value)?;
    let long = text.chars().count() >= KEY;
    if long && text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(Secret::new(text));
    }
    Err(format!(
        "at least {KEY} letters and digits without spaces are needed here, such as `openssl rand -hex 32` makes"
    ))
}

/// A size in bytes: a number, or a number with a unit. Units are powers of 1024.
pub fn size(value: &Value) -> Result<u64, Wrong> {
    let found = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => bytes(text),
        other => return Err(needed("a size", other)),
    };
    found.filter(|&bytes| bytes > 0).ok_or_else(|| "this is not a size; write 512KB, 10MB or a number of bytes".into())
}

/// A size, or `unlimited`.
pub fn size_limit(value: &Value) -> Result<Option<u64>, Wrong> {
    match value {
        Value::String(text) if text == "unlimited" => Ok(None),
        other => size(other).map(Some),
    }
}

fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1u64 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

pub fn address(value: &Value) -> Result<SocketAddr, Wrong> {
    let text = text(value)?;
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text,
    };
    let hint = "an address and a port are needed here; write 127.0.0.1:7070, or [::1]:7070";
    numbers.parse().map_err(|_| hint.into())
}

/// A URL that paths can be appended to.
pub fn url(value: &Value) -> Result<String, Wrong> {
    let text = text(value)?;
    let url = text.parse::<Uri>().ok().filter(|url| matches!(url.scheme_str(), Some("http" | "https")));
    let url = url.ok_or("this is not a URL; write one that begins with https:// or http://")?;
    let host = url.authority().and_then(|authority| host_of(authority.as_str()));
    if host.is_none() {
        return Err("a URL with a host and without a name or password is needed here".into());
    }
    if url.query().is_some() || text.contains('#') {
        return Err("paths are added to this URL; write it without `?` and `#`".into());
    }
    Ok(text.trim_end_matches('/').into())
}

pub fn collector(value: &Value) -> Result<String, Wrong> {
    let url = url(value)?;
    if url.ends_with("/v1/traces") { Err("/v1/traces is added to this; leave it out".into()) } else { Ok(url) }
}

/// An origin, as browsers send it.
pub fn origin(value: &Value) -> Result<String, Wrong> {
    let url = url(value).map_err(|_| "this is not an origin; write one such as https://app.example.com")?;
    let path = url.splitn(3, '/').nth(2).is_some_and(|rest| rest.contains('/'));
    if path { Err("an origin has no path; write scheme, host and port only".into()) } else { Ok(url.to_lowercase()) }
}

/// A host name for the `Host` header. The port is ignored.
pub fn host(value: &Value) -> Result<String, Wrong> {
    host_of(&text(value)?).ok_or_else(|| "this is not the name of a host; write one such as flows.example.com".into())
}

pub fn secret(value: &Value) -> Result<Secret, Wrong> {
    text(value).map(Secret::new)
}

pub fn port(value: &Value) -> Result<u16, Wrong> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|&port| port > 0);
    number.ok_or_else(|| "a port from 1 to 65535 is needed here".into())
}

pub fn encryption(value: &Value) -> Result<Encryption, Wrong> {
    choice(value, &[("starttls", Encryption::StartTls), ("tls", Encryption::Tls), ("none", Encryption::None)])
}

/// A sender address, optionally with a display name.
pub fn mailbox(value: &Value) -> Result<String, Wrong> {
    let text = label(value)?;
    let address = text.rsplit_once('<').map_or(Some(&*text), |(_, rest)| rest.strip_suffix('>'));
    let parts = address.and_then(|address| address.split_once('@'));
    let good = parts.is_some_and(|(name, host)| !name.is_empty() && !name.contains(' ') && host_of(host).is_some());
    let hint = "this is not an email address; write stepwell@example.com, or Stepwell <stepwell@example.com>";
    if good { Ok(text) } else { Err(hint.into()) }
}

pub fn format(value: &Value) -> Result<LogFormat, Wrong> {
    choice(value, &[("human", LogFormat::Human), ("json", LogFormat::Json)])
}

pub fn level(value: &Value) -> Result<Level, Wrong> {
    let levels = [
        ("error", Level::Error),
        ("warn", Level::Warn),
        ("info", Level::Info),
        ("debug", Level::Debug),
        ("trace", Level::Trace),
    ];
    choice(value, &levels)
}

pub fn long_callbacks(value: &Value) -> Result<LongCallbacks, Wrong> {
    choice(value, &[("truncate", LongCallbacks::Truncate), ("refuse", LongCallbacks::Refuse)])
}

fn choice<T: Copy>(value: &Value, choices: &[(&'static str, T)]) -> Result<T, Wrong> {
    let text = text(value)?;
    let found = choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        match nearest(&text, names.iter().copied()) {
            Some(near) => format!("one of {} is needed here; did you mean `{near}`?", names.join(", ")),
            None => format!("one of {} is needed here", names.join(", ")),
        }
    })
}
