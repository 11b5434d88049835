//! Masks secrets in the outcome of a call before it is stored or shown.
//!
//! `find` recognises a secret in all its forms: plain, escaped as in JSON, URLs and HTML, as base64 and as hexadecimal
//! digits. This file replaces each match by the name of the secret, in one pass over the text.

mod find;
#[cfg(test)]
mod tests;

use find::Patterns;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use stepwell_core::event::{Failure, Outcome, Reply};

/// The fewest characters of a secret that is masked. A shorter one would match unrelated text.
pub const SHORTEST: usize = 8;

/// Whether a text may have been truncated, so that only the start of a secret may be at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    Cut,
}

/// Secrets, and the text that replaces each.
#[derive(Default)]
pub struct Mask {
    secrets: Vec<String>,
    shown: Vec<Arc<str>>,
    /// Made of the secrets when the first text is masked.
    patterns: OnceLock<[Patterns; 3]>,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Mask {
    /// Masks a secret as `{{secrets.NAME}}`.
    pub fn hide(&mut self, name: &str, secret: &str) {
        self.replace(secret, &format!("{{{{secrets.{name}}}}}"));
    }

    /// Masks a secret as `shown`, unless it is too short.
    pub fn replace(&mut self, secret: &str, shown: &str) {
        // White space around a header value is not sent.
        let secret = secret.trim();
        if secret.chars().count() < SHORTEST {
            return;
        }
        self.secrets.push(secret.into());
        self.shown.push(shown.into());
        self.patterns = OnceLock::new();
    }

    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Masks a text of a log or a message, which may be truncated.
    pub fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.text(text, Ending::Cut).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    pub fn outcome(&self, outcome: Outcome) -> Outcome {
        if self.is_empty() {
            return outcome;
        }
        match outcome {
            Outcome::Success(reply) => Outcome::Success(self.reply(reply)),
            Outcome::Failure { failure, reply } => {
                let code = self.shown(&failure.code).into();
                let message = self.shown(&failure.message).into();
                Outcome::Failure {
                    failure: Failure { code, message, ..failure },
                    reply: reply.map(|reply| self.reply(reply)),
                }
            }
        }
    }

    fn reply(&self, reply: Reply) -> Reply {
        let ending = if reply.truncated { Ending::Cut } else { Ending::Whole };
        let masked = |value: Arc<Value>| {
            let mut value = Arc::unwrap_or_clone(value);
            self.hide_in(&mut value, ending);
            Arc::new(value)
        };
        Reply { body: masked(reply.body), headers: reply.headers.map(masked), log: reply.log.map(masked), ..reply }
    }

    /// Masks a value that is not the outcome of a call.
    pub fn value(&self, value: &mut Value) {
        if !self.is_empty() {
            self.hide_in(value, Ending::Whole);
        }
    }

    fn hide_in(&self, value: &mut Value, ending: Ending) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.text(text, ending) {
                    *text = masked;
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|item| self.hide_in(item, ending)),
            Value::Object(fields) => {
                if fields.keys().any(|key| self.text(key, ending).is_some()) {
                    let all = std::mem::take(fields).into_iter();
                    *fields = all.map(|(key, field)| (self.text(&key, ending).unwrap_or(key), field)).collect();
                }
                fields.values_mut().for_each(|field| self.hide_in(field, ending));
            }
            // A secret of digits may come back as a number.
            Value::Number(number) => {
                if let Some(masked) = self.text(&number.to_string(), ending) {
                    *value = masked.into();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The masked text. `None` if it contains no secret.
    fn text(&self, text: &str, ending: Ending) -> Option<String> {
        self.counted(text, ending, &mut 0)
    }

    /// Masks a text, and counts the steps that this takes.
    fn counted(&self, text: &str, ending: Ending, work: &mut u64) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let patterns = self.patterns.get_or_init(|| Patterns::all(&self.secrets));
        let bytes = text.as_bytes();
        let begins = |byte: &u8| patterns.iter().any(|patterns| patterns.begin_with(*byte));
        let mut masked: Option<String> = None;
        let (mut at, mut copied) = (0, 0);
        while let Some(next) = bytes[at..].iter().position(begins) {
            at += next;
            let found = patterns.iter().filter_map(|patterns| patterns.end(bytes, at, ending, work)).max();
            let Some((end, secret)) = found.filter(|(end, _)| text.is_char_boundary(*end)) else {
                at += 1;
                continue;
            };
            let masked = masked.get_or_insert_default();
            masked.push_str(&text[copied..at]);
            masked.push_str(&self.shown[secret as usize]);
            (at, copied) = (end, end);
        }
        let mut masked = masked?;
        masked.push_str(&text[copied..]);
        Some(masked)
    }
}

/// Bytes of text in an outcome, about.
pub fn outcome_size(outcome: &Outcome) -> usize {
    let reply = match outcome {
        Outcome::Success(reply) => Some(reply),
        Outcome::Failure { reply, .. } => reply.as_ref(),
    };
    let parts = reply.into_iter().flat_map(|reply| [Some(&reply.body), reply.headers.as_ref(), reply.log.as_ref()]);
    parts.flatten().map(|part| text_size(part)).sum()
}

fn text_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(text_size).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + text_size(field)).sum(),
        Value::Number(_) => 8,
        Value::Null | Value::Bool(_) => 0,
    }
}
