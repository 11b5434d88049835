//! Callback URLs of waits. A caller that knows a URL can deliver to it, so URLs cannot be guessed. Nothing is stored
//! per URL: a token is derived from the run's secret and the step's path, so it exists as soon as the run does.

use super::live::Live;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of the code in a token: 128 bits.
const CODE_BYTES: usize = 16;

/// `run_….path.code`, which is appended to the server's address.
pub fn token(run: &str, secret: &[u8; 16], path: &str) -> String {
    let code = BASE64.encode(&mac(run, secret, path).finalize().into_bytes()[..CODE_BYTES]);
    format!("{run}.{}.{code}", BASE64.encode(path))
}

/// Returns a function that builds the callback URLs of a run's waits.
pub fn urls(base: &str, live: &Live) -> impl Fn(&str) -> String + use<> {
    let (base, run, secret) = (base.to_string(), live.run.id.clone(), live.secret);
    move |path| format!("{base}/wh/{}", token(&run, &secret, path))
}

/// The run and step that a token names. Not verified yet.
pub struct Named {
    pub run: String,
    pub path: String,
    code: Vec<u8>,
}

impl Named {
    pub fn parse(token: &str) -> Option<Named> {
        let mut parts = token.split('.');
        let (run, path, code) = (parts.next()?, parts.next()?, parts.next()?);
        let path = String::from_utf8(BASE64.decode(path).ok()?).ok()?;
        let named = Named { run: run.to_string(), path, code: BASE64.decode(code).ok()? };
        parts.next().is_none().then_some(named)
    }

    /// Compares in constant time.
    pub fn is_genuine(&self, secret: &[u8; 16]) -> bool {
        self.code.len() == CODE_BYTES && mac(&self.run, secret, &self.path).verify_truncated_left(&self.code).is_ok()
    }
}

fn mac(run: &str, secret: &[u8; 16], path: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(run.as_bytes());
    mac.update(b"\0");
    mac.update(path.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_for_its_own_step_only() {
        let token = token("run_1", &[7; 16], "each[3].wait");
        let named = Named::parse(&token).unwrap();
        assert_eq!((named.run.as_str(), named.path.as_str()), ("run_1", "each[3].wait"));
        assert!(named.is_genuine(&[7; 16]));
        assert!(!named.is_genuine(&[8; 16]));
        let other = Named { path: "other".into(), ..Named::parse(&token).unwrap() };
        assert!(!other.is_genuine(&[7; 16]));
        let short = Named { code: named.code[..8].to_vec(), ..Named::parse(&token).unwrap() };
        assert!(!short.is_genuine(&[7; 16]));
    }

    #[test]
    fn malformed_tokens_are_rejected() {
        for text in ["", "run_1", "run_1.x", "run_1.!.x", "a.b.c.d", "run_1.w8M.AAAA"] {
            assert!(Named::parse(text).is_none_or(|named| !named.is_genuine(&[7; 16])), "{text}");
        }
    }
}
