//! The `fail` tool.

use super::{FunctionTool, spec};
use serde_json::{Value, json};
use stepwell_core::event::Failure;
use stepwell_engine::StepCall;

pub fn fail() -> FunctionTool {
    let properties = json!({
        "message": {"type": "string"},
        "code": {"type": "string", "description": "default: `failed`"},
        "retryable": {"type": "boolean"},
    });
    let description = "Fails with the given message and code, retryable or not, for tests and drills.";
    FunctionTool { spec: spec("fail", description, properties, &[]), run: fail_as_requested }
}

fn fail_as_requested(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let or = |name, default: &'static str| args.get(name).and_then(Value::as_str).unwrap_or(default).to_owned();
    let retryable = args.get("retryable").and_then(Value::as_bool).unwrap_or(false);
    let failure = Failure::new(&or("code", "failed"), or("message", "failed as requested"));
    Err(Failure { retryable, ..failure })
}
