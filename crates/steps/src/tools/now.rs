//! The `now` tool.

use super::{FunctionTool, spec};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use stepwell_core::event::Failure;
use stepwell_core::time::Time;
use stepwell_engine::StepCall;

pub fn now() -> FunctionTool {
    let description = "Returns the server's time: `time` (RFC 3339, UTC) and `unix_ms`.";
    FunctionTool { spec: spec("now", description, json!({}), &[]), run: read_clock }
}

fn read_clock(_args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    // A clock before 1970 is broken; report the epoch.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Ok(json!({"time": Time(millis).to_string(), "unix_ms": millis}))
}
