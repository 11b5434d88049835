//! The `log` tool.

use super::{FunctionTool, spec, text};
use serde_json::{Value, json};
use stepwell_core::event::Failure;
use stepwell_engine::StepCall;

pub fn log() -> FunctionTool {
    let properties = json!({
        "message": {"type": "string"},
        "level": {
            "type": "string",
            "enum": ["error", "warn", "info", "debug", "trace"],
            "description": "default: `info`",
        },
    });
    let description = "Writes a message to the server's log and returns it. Secrets are shown by name only.";
    FunctionTool { spec: spec("log", description, properties, &["message"]), run: write_log }
}

fn write_log(args: &Value, ctx: &StepCall) -> Result<Value, Failure> {
    let message = &*ctx.secrets.mask.shown(text(args, "message"));
    let (run, step, attempt) = (&*ctx.run, ctx.path.as_str(), ctx.attempt);
    match text(args, "level") {
        "error" => tracing::error!(run, step, attempt, message, "log"),
        "warn" => tracing::warn!(run, step, attempt, message, "log"),
        "debug" => tracing::debug!(run, step, attempt, message, "log"),
        "trace" => tracing::trace!(run, step, attempt, message, "log"),
        _ => tracing::info!(run, step, attempt, message, "log"),
    }
    Ok(message.into())
}
