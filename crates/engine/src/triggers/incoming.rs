//! Calls to webhook addresses: verifying their signatures and deriving their dedupe keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::collections::BTreeMap;
use stepwell_core::definition::{Dedupe, Encoding, Scheme};
use stepwell_core::time::{Millis, Time};
use stepwell_store::digest;

/// The largest difference between a signed timestamp and the server's time.
const TOLERANCE: Millis = Millis::from_secs(300);
/// Bytes of a dedupe key that is stored as it is.
const MAX_KEY: usize = 255;

/// A call to a workflow's address.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Incoming {
    /// Names are lower case. Headers with credentials are left out.
    pub headers: BTreeMap<String, String>,
    /// The query string.
    pub query: BTreeMap<String, String>,
    /// The body as received, for signatures.
    pub raw: Vec<u8>,
    pub body: Value,
}

/// Verifies that the call was signed with this secret. The error says why it was not.
pub fn verify(call: &Incoming, scheme: &Scheme, secret: &str, now: Time) -> Result<(), String> {
    match scheme {
        Scheme::Standard => standard(call, secret, now),
        Scheme::Header { header, prefix, encoding } => {
            let given = call.headers.get(header).ok_or_else(|| format!("the header {header} is missing"))?;
            let given = given.trim().strip_prefix(prefix.as_str());
            let given = given.ok_or_else(|| format!("the header {header} does not begin with {prefix:?}"))?;
            let code = match encoding {
                Encoding::Hex => unhex(given),
                Encoding::Base64 => BASE64.decode(given).ok(),
            };
            let code = code.ok_or_else(|| format!("the signature in {header} cannot be read"))?;
            let genuine = mac(secret.as_bytes(), &[&call.raw]).verify_slice(&code).is_ok();
            genuine.then_some(()).ok_or_else(|| "the signature does not match the body".into())
        }
    }
}

/// Standard Webhooks: `v1` signatures over id, time and body.
fn standard(call: &Incoming, secret: &str, now: Time) -> Result<(), String> {
    let header = |name: &str| call.headers.get(name).ok_or_else(|| format!("the header {name} is missing"));
    let (id, sent, given) = (header("webhook-id")?, header("webhook-timestamp")?, header("webhook-signature")?);
    let seconds: i64 = sent.parse().map_err(|_| "webhook-timestamp is not a number of seconds".to_string())?;
    let sent_at = Time(seconds.saturating_mul(1_000));
    if sent_at.since(now) > TOLERANCE || now.since(sent_at) > TOLERANCE {
        return Err("webhook-timestamp is too far from the server's time".into());
    }
    let key = standard_key(secret)?;
    let codes =
        given.split(' ').filter_map(|part| part.strip_prefix("v1,")).filter_map(|code| BASE64.decode(code).ok());
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", sent.as_bytes(), b".", &call.raw];
    let genuine = { codes }.any(|code| mac(&key, &signed).verify_slice(&code).is_ok());
    genuine.then_some(()).ok_or_else(|| "no signature matches the call".into())
}

/// The `webhook-signature` header of an outgoing call, as Standard Webhooks defines it. The time is in seconds.
pub fn sign(secret: &str, id: &str, time: &str, body: &[u8]) -> Result<String, String> {
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", body];
    let code = mac(&standard_key(secret)?, &signed).finalize().into_bytes();
    Ok(format!("v1,{}", BASE64.encode(code)))
}

fn standard_key(secret: &str) -> Result<Vec<u8>, String> {
    match secret.strip_prefix("whsec_") {
        Some(encoded) => BASE64.decode(encoded).map_err(|_| "the secret after whsec_ is not base64".to_string()),
        None => Ok(secret.as_bytes().to_vec()),
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The dedupe key: equal for calls of the same event. `None` if the call has none.
pub fn dedupe_key(call: &Incoming, dedupe: &Dedupe) -> Option<String> {
    let key = whole_key(call, dedupe)?;
    // Not every index takes long keys.
    Some(if key.len() > MAX_KEY { format!("sha256:{}", digest(&key)) } else { key })
}

fn whole_key(call: &Incoming, dedupe: &Dedupe) -> Option<String> {
    match dedupe {
        Dedupe::Header(name) => call.headers.get(name).cloned(),
        Dedupe::Body(path) => {
            let found = path.iter().try_fold(&call.body, |value, name| match value {
                Value::Array(list) => list.get(name.parse::<usize>().ok()?),
                other => other.get(name),
            })?;
            match found {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(headers: &[(&str, &str)], raw: &str) -> Incoming {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let body = serde_json::from_str(raw).unwrap_or_default();
        Incoming { headers, raw: raw.into(), body, ..Incoming::default() }
    }

    #[test]
    fn a_signature_in_a_header_must_match_the_body() {
        // printf hello | openssl dgst -sha256 -hmac secret
        let code = "88aab3ede8d3adf94d26ab90d3bafd4a2083070c3bcce9c014ee04a443847c0b";
        let scheme =
            Scheme::Header { header: "x-hub-signature-256".into(), prefix: "sha256=".into(), encoding: Encoding::Hex };
        let signed = format!("sha256={code}");
        let good = call(&[("x-hub-signature-256", &signed)], "hello");
        assert_eq!(verify(&good, &scheme, "secret", Time(0)), Ok(()));
        assert!(verify(&good, &scheme, "other", Time(0)).is_err());
        assert!(verify(&call(&[("x-hub-signature-256", &signed)], "hell0"), &scheme, "secret", Time(0)).is_err());
        assert!(verify(&call(&[("x-hub-signature-256", code)], "hello"), &scheme, "secret", Time(0)).is_err());
        assert!(verify(&call(&[], "hello"), &scheme, "secret", Time(0)).is_err());
    }

    #[test]
    fn a_standard_webhook_is_genuine_and_recent() {
        // The example in the Standard Webhooks specification.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let headers = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,AAAA"),
        ];
        let sent = Time(1_614_265_330_000);
        let good = call(&headers, "{\"test\": 2432232314}");
        assert_eq!(verify(&good, &Scheme::Standard, secret, sent), Ok(()));
        let signed = sign(secret, headers[0].1, headers[1].1, &good.raw).unwrap();
        assert_eq!(Some(signed.as_str()), headers[2].1.split(' ').next());
        assert!(verify(&good, &Scheme::Standard, secret, Time(sent.0 + 301_000)).is_err());
        assert!(verify(&good, &Scheme::Standard, secret, Time(sent.0 - 301_000)).is_err());
        assert!(verify(&call(&headers, "{}"), &Scheme::Standard, secret, sent).is_err());
    }

    #[test]
    fn calls_of_one_event_have_the_same_dedupe_key() {
        let body = |path: &[&str]| Dedupe::Body(path.iter().map(|name| name.to_string()).collect());
        let made = call(&[("x-id", "7")], &json!({"event": {"ids": [41, "a"]}, "none": null}).to_string());
        assert_eq!(dedupe_key(&made, &Dedupe::Header("x-id".into())).as_deref(), Some("7"));
        assert_eq!(dedupe_key(&made, &Dedupe::Header("x-other".into())), None);
        assert_eq!(dedupe_key(&made, &body(&["event", "ids", "0"])).as_deref(), Some("41"));
        assert_eq!(dedupe_key(&made, &body(&["event", "ids", "1"])).as_deref(), Some("a"));
        assert_eq!(dedupe_key(&made, &body(&["none"])), None);
        let long = call(&[], &json!({"id": "x".repeat(5_000)}).to_string());
        let key = dedupe_key(&long, &body(&["id"])).unwrap();
        assert!(key.starts_with("sha256:") && key.len() < MAX_KEY, "{key}");
        assert_eq!(dedupe_key(&made, &body(&["event", "missing"])), None);
    }
}
