//! Takes secrets out of what comes back from a call, before it is stored or shown.

use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome, Reply};

/// Shorter ones would mangle text that has nothing to do with them.
const SHORTEST: usize = 4;

/// The secrets of one call, by what is shown instead.
#[derive(Default)]
pub struct Mask {
    hidden: Vec<(String, String)>,
}

impl Mask {
    pub fn hide(&mut self, name: &str, secret: &str) {
        if secret.len() >= SHORTEST {
            let shown = format!("{{{{secrets.{name}}}}}");
            let encoded = percent_encoded(secret);
            if encoded != secret {
                self.hidden.push((encoded, shown.clone()));
            }
            self.hidden.push((secret.to_string(), shown));
        }
    }

    pub fn outcome(&self, outcome: Outcome) -> Outcome {
        if self.hidden.is_empty() {
            return outcome;
        }
        match outcome {
            Outcome::Success(reply) => Outcome::Success(self.reply(reply)),
            Outcome::Failure { failure, reply } => {
                let message = self.text(&failure.message).map_or(failure.message.clone(), Into::into);
                Outcome::Failure {
                    failure: Failure { message, ..failure },
                    reply: reply.map(|reply| self.reply(reply)),
                }
            }
        }
    }

    fn reply(&self, reply: Reply) -> Reply {
        let masked = |value: Arc<Value>| {
            let mut value = Arc::unwrap_or_clone(value);
            self.value(&mut value);
            Arc::new(value)
        };
        Reply { body: masked(reply.body), headers: reply.headers.map(masked), log: reply.log.map(masked), ..reply }
    }

    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.text(text) {
                    *text = masked;
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| self.text(key).is_some()) {
                    let all = std::mem::take(fields).into_iter();
                    *fields = all.map(|(key, field)| (self.text(&key).unwrap_or(key), field)).collect();
                }
                fields.values_mut().for_each(|field| self.value(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text without secrets, if it had any.
    fn text(&self, text: &str) -> Option<String> {
        let mut masked: Option<String> = None;
        for (secret, shown) in &self.hidden {
            let now = masked.as_deref().unwrap_or(text);
            if now.contains(secret.as_str()) {
                masked = Some(now.replace(secret.as_str(), shown));
            }
        }
        masked
    }
}

/// As it stands in a URL.
fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_does_not_come_back_in_body_headers_keys_or_message() {
        let mut mask = Mask::default();
        mask.hide("KEY", "s3cr/et");
        mask.hide("PIN", "12");
        let reply = Reply {
            body: Arc::new(json!({"said": ["you sent s3cr/et", 12], "s3cr/et": true})),
            headers: Some(Arc::new(json!({"x-echo": "s3cr%2Fet"}))),
            ..Reply::default()
        };
        let failure = Failure::new("http_404", "https://api/s3cr%2Fet: not found");
        let Outcome::Failure { failure, reply: Some(reply) } =
            mask.outcome(Outcome::Failure { failure, reply: Some(reply) })
        else {
            panic!("it stays a failure");
        };
        assert_eq!(*reply.body, json!({"said": ["you sent {{secrets.KEY}}", 12], "{{secrets.KEY}}": true}));
        assert_eq!(*reply.headers.unwrap(), json!({"x-echo": "{{secrets.KEY}}"}));
        assert_eq!(&*failure.message, "https://api/{{secrets.KEY}}: not found");
    }
}
