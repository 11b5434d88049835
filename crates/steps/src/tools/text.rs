//! The `json_parse`, `base64_encode`, `base64_decode` and `hash_sha256` tools.

use super::{FunctionTool, spec, text};
use crate::http::{MAX_BODY_DEPTH, deeper_than};
use crate::tool::ToolSpec;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stepwell_core::event::Failure;
use stepwell_engine::StepCall;

/// Writes padding, but accepts input without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn text_spec(name: &str, description: &str) -> ToolSpec {
    spec(name, description, json!({"text": {"type": "string"}}), &["text"])
}

pub fn json_parse() -> FunctionTool {
    FunctionTool { spec: text_spec("json_parse", "Parses a text as JSON."), run: parse }
}

fn parse(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let value: Value = serde_json::from_str(text(args, "text"))
        .map_err(|why| Failure::new("bad_json", format!("the text is not JSON: {why}")))?;
    if deeper_than(&value, MAX_BODY_DEPTH) {
        return Err(Failure::new("bad_json", format!("the JSON is nested deeper than {MAX_BODY_DEPTH} levels")));
    }
    Ok(value)
}

pub fn base64_encode() -> FunctionTool {
    FunctionTool {
        spec: text_spec("base64_encode", "Encodes a text as base64."),
        run: |args, _ctx| Ok(BASE64.encode(text(args, "text")).into()),
    }
}

pub fn base64_decode() -> FunctionTool {
    FunctionTool { spec: text_spec("base64_decode", "Decodes base64 to UTF-8 text."), run: decode }
}

fn decode(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let bytes = BASE64
        .decode(text(args, "text").trim())
        .map_err(|why| Failure::new("bad_base64", format!("the text is not base64: {why}")))?;
    let decoded =
        String::from_utf8(bytes).map_err(|_| Failure::new("bad_base64", "the decoded bytes are not UTF-8 text"))?;
    Ok(decoded.into())
}

pub fn hash_sha256() -> FunctionTool {
    FunctionTool { spec: text_spec("hash_sha256", "Returns the SHA-256 digest of a text in hexadecimal."), run: hash }
}

fn hash(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let digest = Sha256::digest(text(args, "text").as_bytes());
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}
