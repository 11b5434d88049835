//! Requests that Stepwell signs, and calls that it waits for.
//!
//! Requests of `http` steps and notifications are signed according to Standard Webhooks if the organisation has a secret
//! named `WEBHOOK_SIGNING_SECRET`; triggers may demand such a signature.

use crate::call::pause;
use crate::client::{http, or_empty, refused};
use crate::{ATTEMPTS, Error, find};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How far the clock of the sender may be off.
pub const TOLERANCE: Duration = Duration::from_secs(300);
/// How long an answer to a wait may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Accepts a request only if the secret signed it within the last five minutes. `header` returns a header by its name in
/// lower case; `payload` is the body as it was received.
///
/// ```
/// use stepwell_client::webhooks::{sign, verify};
///
/// let headers = sign(b"{}", "msg_1", "secret")?;
/// let header = |name: &str| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str());
/// assert!(verify(b"{}", header, "secret").is_ok());
/// assert!(verify(b"[]", header, "secret").is_err());
/// # Ok::<(), stepwell_client::Error>(())
/// ```
pub fn verify<'a>(payload: &[u8], header: impl Fn(&str) -> Option<&'a str>, secret: &str) -> Result<(), Error> {
    verify_at(payload, header, secret, SystemTime::now())
}

/// Like [`verify`], at this time.
pub fn verify_at<'a>(
    payload: &[u8],
    header: impl Fn(&str) -> Option<&'a str>,
    secret: &str,
    now: SystemTime,
) -> Result<(), Error> {
    let found = |name: &str| header(name).ok_or_else(|| invalid(&format!("the header {name} is missing")));
    let (message, timestamp) = (found("webhook-id")?, found("webhook-timestamp")?);
    let signatures = found("webhook-signature")?;
    // Digits only: `parse` takes a sign too.
    let digits = timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let sent: u64 = timestamp
        .parse()
        .ok()
        .filter(|_| digits)
        .ok_or_else(|| invalid("webhook-timestamp is not a number of seconds"))?;
    if seconds(now).abs_diff(sent) > TOLERANCE.as_secs() {
        return Err(invalid("the request is too old, or the clocks differ"));
    }
    let mac = mac(payload, message, timestamp, secret)?;
    // While a secret is changed, there is one signature for each.
    let given = signatures.split(' ').filter_map(|part| STANDARD.decode(part.strip_prefix("v1,")?).ok());
    let mut given = given;
    if given.any(|code| mac.clone().verify_slice(&code).is_ok()) {
        return Ok(());
    }
    Err(invalid("no signature matches"))
}

/// The headers of a signed request, such as a call of a trigger that verifies signatures. `message` is its id.
pub fn sign(payload: &[u8], message: &str, secret: &str) -> Result<[(&'static str, String); 3], Error> {
    sign_at(payload, message, secret, SystemTime::now())
}

/// Like [`sign`], at this time.
pub fn sign_at(
    payload: &[u8],
    message: &str,
    secret: &str,
    now: SystemTime,
) -> Result<[(&'static str, String); 3], Error> {
    let timestamp = seconds(now).to_string();
    let code = STANDARD.encode(mac(payload, message, &timestamp, secret)?.finalize().into_bytes());
    let signature = format!("v1,{code}");
    Ok([("webhook-id", message.to_string()), ("webhook-timestamp", timestamp), ("webhook-signature", signature)])
}

/// Answers a step that waits for a webhook. `address` is its `{{wait.<step>.url}}`; no key is needed.
///
/// Repeated after a lost connection: a step takes one answer, so a repetition is harmless.
pub async fn answer_wait(address: &str, body: Value) -> Result<(), Error> {
    let url = find::parse(address)?;
    let (http, body) = (http(&url)?, or_empty(body).to_string());
    let mut attempt = 1;
    loop {
        let request = http.post(url.clone()).timeout(TIMEOUT).header("content-type", "application/json");
        let error = match request.body(body.clone()).send().await {
            Ok(response) if response.status().is_success() => return Ok(()),
            Ok(response) => refused(response).await,
            Err(error) => Error::connection(&url, &error),
        };
        // An earlier attempt arrived, and its answer was lost.
        if attempt > 1 && error.has_code("repeated") {
            return Ok(());
        }
        if attempt >= ATTEMPTS || !error.may_recover() {
            return Err(error);
        }
        tokio::time::sleep(pause(attempt, &error)).await;
        attempt += 1;
    }
}

fn mac(payload: &[u8], message: &str, timestamp: &str, secret: &str) -> Result<Hmac<Sha256>, Error> {
    let key = match secret.strip_prefix("whsec_") {
        Some(code) => STANDARD.decode(code).map_err(|_| invalid("what follows whsec_ in the secret is not base64"))?,
        None => secret.as_bytes().to_vec(),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| invalid("the secret cannot be a key"))?;
    for part in [message.as_bytes(), b".", timestamp.as_bytes(), b".", payload] {
        mac.update(part);
    }
    Ok(mac)
}

fn invalid(text: &str) -> Error {
    Error::InvalidSignature(text.to_string())
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// 128 random bits in hexadecimal digits.
pub(crate) fn random() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without a source of randomness, time and the process still differ.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        bytes = (now << 32 | u128::from(std::process::id())).to_le_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn check(payload: &[u8], headers: &[(&str, &str)], later: i64) -> Result<(), String> {
        let header = |name: &str| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        let now = UNIX_EPOCH + Duration::from_secs(1_614_265_330u64.saturating_add_signed(later));
        verify_at(payload, header, SECRET, now).map_err(|error| error.to_string())
    }

    /// The example of the specification of Standard Webhooks.
    #[test]
    fn the_example_of_the_specification_is_verified() {
        let payload = br#"{"test": 2432232314}"#;
        let code = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let headers = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", code),
        ];
        assert_eq!(check(payload, &headers, 0), Ok(()));
        assert_eq!(check(payload, &headers, 300), Ok(()));
        assert!(check(payload, &headers, 301).unwrap_err().contains("too old"));
        assert!(check(payload, &headers, -301).unwrap_err().contains("too old"));
        assert!(check(b"{}", &headers, 0).unwrap_err().contains("no signature"));
        assert!(check(payload, &headers[..2], 0).unwrap_err().contains("webhook-signature is missing"));
        let both = format!("v1,AAAA v2,x {code}");
        assert_eq!(check(payload, &[headers[0], headers[1], ("webhook-signature", &both)], 0), Ok(()));
        let signed = [headers[0], ("webhook-timestamp", "+1614265330"), headers[2]];
        assert!(check(payload, &signed, 0).unwrap_err().contains("not a number"));
    }

    #[test]
    fn a_secret_that_is_not_base64_is_refused() {
        assert!(matches!(sign(b"", "m", "whsec_%"), Err(Error::InvalidSignature(_))));
    }
}
