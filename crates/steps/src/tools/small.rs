//! `log`, `now` and `fail`.

use super::{Small, spec, text};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use stepwell_core::event::Failure;
use stepwell_core::time::Time;
use stepwell_engine::StepCall;

pub fn log() -> Small {
    let properties = json!({
        "message": {"type": "string"},
        "level": {
            "type": "string",
            "enum": ["error", "warn", "info", "debug", "trace"],
            "description": "`info` if not given",
        },
    });
    let description = "Writes a message to the server's log and gives it back. Secrets show by name only.";
    Small { spec: spec("log", description, properties, &["message"]), run: write_log }
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

pub fn now() -> Small {
    let description = "The time on the server: `time` (RFC 3339, UTC) and `unix_ms`.";
    Small { spec: spec("now", description, json!({}), &[]), run: read_clock }
}

fn read_clock(_args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    // A clock before 1970 is a broken one; the epoch is as good an answer as any.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Ok(json!({"time": Time(millis).to_string(), "unix_ms": millis}))
}

pub fn fail() -> Small {
    let properties = json!({
        "message": {"type": "string"},
        "code": {"type": "string", "description": "`failed` if not given"},
        "retryable": {"type": "boolean"},
    });
    let description = "Fails, for tests and drills: with this message and code, and worth another attempt or not.";
    Small { spec: spec("fail", description, properties, &[]), run: fail_as_asked }
}

fn fail_as_asked(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let or = |name, otherwise: &'static str| args.get(name).and_then(Value::as_str).unwrap_or(otherwise).to_owned();
    let retryable = args.get("retryable").and_then(Value::as_bool).unwrap_or(false);
    let failure = Failure::new(&or("code", "failed"), or("message", "failed as asked"));
    Err(Failure { retryable, ..failure })
}
