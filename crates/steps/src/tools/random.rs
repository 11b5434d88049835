//! The `uuid` and `random` tools. Every attempt draws a new value.

use super::{FunctionTool, spec};
use crate::tool::integer;
use serde_json::{Value, json};
use stepwell_core::event::Failure;
use stepwell_engine::StepCall;

pub fn uuid() -> FunctionTool {
    FunctionTool { spec: spec("uuid", "Generates a random UUID (version 4).", json!({}), &[]), run: make_uuid }
}

fn make_uuid(_args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(no_randomness)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-").into())
}

pub fn random() -> FunctionTool {
    let properties = json!({"min": {"type": "integer"}, "max": {"type": "integer"}});
    let description = "Returns a random integer from `min` to `max`, inclusive.";
    FunctionTool { spec: spec("random", description, properties, &["min", "max"]), run: draw }
}

fn draw(args: &Value, _ctx: &StepCall) -> Result<Value, Failure> {
    let bad = |message: &str| Failure::new("bad_arguments", format!("`random` was not called: {message}"));
    let number = |name| args.get(name).and_then(integer).ok_or_else(|| bad("`min` and `max` must be whole numbers"));
    let (min, max) = (number("min")?, number("max")?);
    if min > max {
        return Err(bad("`args.min` is greater than `args.max`"));
    }
    Ok(min.wrapping_add_unsigned(below(max.abs_diff(min))?).into())
}

/// Returns a uniformly distributed number from 0 to `last`. Draws above the largest multiple of the range are rejected
/// to avoid modulo bias.
fn below(last: u64) -> Result<u64, Failure> {
    let Some(count) = last.checked_add(1) else { return getrandom::u64().map_err(no_randomness) };
    let excess = (u64::MAX % count + 1) % count;
    loop {
        let drawn = getrandom::u64().map_err(no_randomness)?;
        if drawn <= u64::MAX - excess {
            return Ok(drawn % count);
        }
    }
}

fn no_randomness(error: getrandom::Error) -> Failure {
    Failure::retryable("no_randomness", format!("the system returned no random bytes: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_cover_the_range_and_stay_within_it() {
        let mut seen = [false; 3];
        for _ in 0..1_000 {
            seen[below(2).unwrap() as usize] = true;
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!(below(0).unwrap(), 0);
        below(u64::MAX).unwrap();
        assert!(below(u64::MAX - 1).unwrap() < u64::MAX);
    }

    #[test]
    fn without_random_bytes_the_call_may_be_tried_again() {
        let failure = no_randomness(getrandom::Error::UNSUPPORTED);
        assert_eq!((&*failure.code, failure.retryable, failure.may_have_happened), ("no_randomness", true, false));
    }
}
