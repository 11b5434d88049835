//! `webhook: {verify, dedupe}`: how a call is authenticated, and how a repeated delivery is recognised.

use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use stepwell_core::definition::{Dedupe, Encoding, Scheme, Verify, Webhook};
use stepwell_core::limits;

const MAX_PREFIX_BYTES: usize = 64;
/// Bodies are nested no deeper than other documents.
const MAX_PATH_PARTS: usize = 64;
const MAX_PATH_BYTES: usize = 1_024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Standard,
    Header,
}

pub fn read<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Webhook> {
    match field.node.value {
        Value::Bool(true) => return Some(Webhook::default()),
        Value::Map(_) => {}
        _ => {
            draft.wrong_type(field, "an object or true");
            return None;
        }
    }
    let mut fields = Fields::of(field, draft)?;
    // An empty `verify:` is more likely unfinished than meant to accept every call, so null is not treated as absent
    // here.
    let (verify, dedupe) = (fields.take_raw("verify"), fields.take("dedupe"));
    fields.finish(draft, "a webhook trigger", &[]);
    // A fault rejects the definition, so an invalid `verify` never lets a call in unverified.
    let verify = verify.and_then(|field| self::verify(draft, &field));
    let dedupe = dedupe.and_then(|field| self::dedupe(draft, &field));
    Some(Webhook { verify, dedupe })
}

fn verify<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Verify> {
    let mut fields = Fields::of(field, draft)?;
    let secret = match fields.take("secret") {
        Some(secret) => secret_name(draft, &secret),
        None => {
            let fault = Fault::new(code::MISSING_FIELD, "the name of the secret is missing");
            draft.fault(&field.place, fault.hint("write it as `secret: NAME`"));
            None
        }
    };
    let named = fields.take("scheme");
    let named = match &named {
        Some(scheme) => draft.choice(scheme, &[("standard", Named::Standard), ("header", Named::Header)]),
        // Naming a header implies the scheme.
        None if fields.has("header") => Some(Named::Header),
        None => Some(Named::Standard),
    };
    let scheme = match named {
        Some(Named::Standard) => {
            fields.finish(draft, "the scheme `standard`", &["header", "prefix", "encoding"]);
            Some(Scheme::Standard)
        }
        Some(Named::Header) => header_scheme(draft, fields),
        None => None,
    };
    Some(Verify { secret: secret?, scheme: scheme? })
}

fn header_scheme<'d>(draft: &mut Draft<'d>, mut fields: Fields<'d>) -> Option<Scheme> {
    let header = match fields.take("header") {
        Some(header) => header_name(draft, &header),
        None => {
            let fault = Fault::new(code::MISSING_FIELD, "the header of the signature is missing");
            draft.fault(&fields.place, fault.hint("write it as `header: X-Hub-Signature-256`"));
            None
        }
    };
    let prefix = fields.take("prefix").and_then(|field| prefix(draft, &field)).unwrap_or_default();
    let encodings = [("hex", Encoding::Hex), ("base64", Encoding::Base64)];
    let encoding = fields.take("encoding").and_then(|field| draft.choice(&field, &encodings)).unwrap_or_default();
    fields.finish(draft, "`verify`", &[]);
    Some(Scheme::Header { header: header?, prefix, encoding })
}

/// The message does not repeat the value: it may be the secret itself.
fn secret_name<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<String> {
    let text = draft.text(field)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || text.len() > limits::MAX_NAME_BYTES || !text.chars().all(plain) {
        let fault = Fault::new(code::BAD_NAME, "this is not a valid secret name");
        draft.fault(&field.place, fault.hint("write its name (letters, digits, `_`), never the secret itself"));
        return None;
    }
    Some(text.to_owned())
}

/// A header name, in lower case: header names are case-insensitive.
fn header_name<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<String> {
    let text = draft.text(field)?;
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if text.is_empty() || text.len() > limits::MAX_NAME_BYTES || !text.chars().all(token) {
        let fault = Fault::new(code::BAD_VALUE, format!("{} is not a header name", quoted(text)));
        draft.fault(&field.place, fault);
        return None;
    }
    Some(text.to_ascii_lowercase())
}

fn prefix<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<String> {
    let text = draft.text(field)?;
    let shown = |c: char| c.is_ascii_graphic() || c == ' ';
    if text.len() > MAX_PREFIX_BYTES || !text.chars().all(shown) {
        let message = format!("a prefix has at most {MAX_PREFIX_BYTES} printable ASCII characters");
        draft.fault(&field.place, Fault::new(code::BAD_VALUE, message));
        return None;
    }
    Some(text.to_owned())
}

fn dedupe<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Dedupe> {
    let mut fields = Fields::of(field, draft)?;
    let found = match (fields.take("header"), fields.take("body")) {
        (Some(header), None) => header_name(draft, &header).map(Dedupe::Header),
        (None, Some(body)) => body_path(draft, &body).map(Dedupe::Body),
        _ => {
            let fault = Fault::new(code::BAD_VALUE, "`dedupe` is exactly one of header and body");
            draft.fault(&field.place, fault.hint("write {header: X-Request-Id} or {body: path.to.id}"));
            None
        }
    };
    fields.finish(draft, "`dedupe`", &[]);
    found
}

fn body_path<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Vec<String>> {
    let text = draft.constant_text(field)?;
    let parts: Vec<&str> = text.split('.').collect();
    let bad = |part: &&str| part.is_empty() || part.contains(|c: char| c.is_whitespace() || c.is_control());
    if text.len() > MAX_PATH_BYTES || parts.len() > MAX_PATH_PARTS || parts.iter().any(bad) {
        let fault = Fault::new(code::BAD_VALUE, format!("{} is not a path into a body", quoted(text)));
        draft.fault(&field.place, fault.hint("write names with dots between them, such as `event.id`"));
        return None;
    }
    Some(parts.into_iter().map(str::to_owned).collect())
}
