//! `json_parse`, `base64_encode`, `base64_decode` and `hash_sha256`.

use super::{Small, spec, text};
use crate::http::{MAX_BODY_DEPTH, deeper_than};
use crate::tool::ToolSpec;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stepwell_core::event::Failure;
use stepwell_engine::StepCall;

/// Pads, but does not insist on being given padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn of_text(name: &str, description: &str) -> ToolSpec {
    spec(name, description, json!({"text": {"type": "string"}}), &["text"])
}

pub fn json_parse() -> Small {
    Small { spec: of_text("json_parse", "Reads a text as JSON."), run: parse }
}

fn parse(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let value: Value = serde_json::from_str(text(args, "text"))
        .map_err(|why| Failure::new("bad_json", format!("the text is not JSON: {why}")))?;
    if deeper_than(&value, MAX_BODY_DEPTH) {
        return Err(Failure::new("bad_json", format!("the JSON is nested deeper than {MAX_BODY_DEPTH} levels")));
    }
    Ok(value)
}

pub fn base64_encode() -> Small {
    Small {
        spec: of_text("base64_encode", "Writes a text as base64."),
        run: |args, _ctx| Ok(BASE64.encode(text(args, "text")).into()),
    }
}

pub fn base64_decode() -> Small {
    Small { spec: of_text("base64_decode", "Reads base64 that holds a text."), run: decode }
}

fn decode(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let bytes = BASE64
        .decode(text(args, "text").trim())
        .map_err(|why| Failure::new("bad_base64", format!("the text is not base64: {why}")))?;
    let decoded = String::from_utf8(bytes)
        .map_err(|_| Failure::new("bad_base64", "the base64 holds bytes that are not UTF-8 text"))?;
    Ok(decoded.into())
}

pub fn hash_sha256() -> Small {
    Small { spec: of_text("hash_sha256", "The SHA-256 of a text, in hexadecimal."), run: hash }
}

fn hash(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let digest = Sha256::digest(text(args, "text").as_bytes());
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}
