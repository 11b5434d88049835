//! Functions of text and numbers.

use super::{CallError, Outcome, text};
use crate::expr::Val;
use crate::expr::decimal::{self, CalculationError, Rounding};
use crate::expr::number::Num;
use crate::expr::value::{Bounded, View};
use crate::value::VALUE_WEIGHT;
use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Digits after the point that `round` can keep.
const MAX_DIGITS: i64 = 30;
pub const DIGITS: &str = "from 0 to 30 digits";

pub fn split<'a>(whole: &str, separator: &str) -> Outcome<'a> {
    not_empty(separator, "a separator that is not empty")?;
    let parts = whole.matches(separator).count() + 1;
    if parts.saturating_mul(VALUE_WEIGHT) + whole.len() > super::lists::MAX_WEIGHT {
        return Err(CallError::Exceeds(super::lists::LIMIT));
    }
    Ok(Val::Owned(whole.split(separator).map(Value::from).collect()))
}

pub fn replace<'a>(arguments: &[Val<'_>]) -> Outcome<'a> {
    let [whole, part, by] = arguments else { return super::wrong_type("other arguments", &Val::Null) };
    let (whole, part, by) = (text(whole)?, text(part)?, text(by)?);
    not_empty(part, "a part that is not empty")?;
    let mut out = Bounded::new();
    for (n, piece) in whole.split(part).enumerate() {
        let between = if n > 0 { by } else { "" };
        out.write_str(between).and_then(|()| out.write_str(piece)).map_err(|_| CallError::TooLarge)?;
    }
    Ok(String::from(out).into())
}

fn not_empty(text: &str, needs: &'static str) -> Result<(), CallError> {
    if text.is_empty() { Err(CallError::Type { needs, got: "an empty string" }) } else { Ok(()) }
}

pub fn base64<'a>(value: &Val<'_>) -> Outcome<'a> {
    let text = value.text().ok_or(CallError::TooLarge)?;
    if text.len() / 3 * 4 > crate::expr::MAX_TEXT {
        return Err(CallError::TooLarge);
    }
    Ok(STANDARD.encode(text.as_bytes()).into())
}

/// In hexadecimal.
pub fn sha256<'a>(value: &Val<'_>) -> Outcome<'a> {
    let text = value.text().ok_or(CallError::TooLarge)?;
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(out, "{byte:02x}");
    }
    Ok(out.into())
}

/// How many digits after the point a number asks for, if `round` can keep them.
pub fn digits(number: Num) -> Option<u32> {
    let digits = number.whole().filter(|digits| (0..=MAX_DIGITS).contains(digits))?;
    u32::try_from(digits).ok()
}

pub fn round<'a>(arguments: &[Val<'_>]) -> Outcome<'a> {
    let Some(View::Number(number)) = arguments.first().map(Val::view) else {
        return super::wrong_type("a number", arguments.first().unwrap_or(&Val::Null));
    };
    let digits = match arguments.get(1).map(Val::view) {
        Some(View::Number(number)) => digits(number),
        _ => Some(0),
    };
    let digits = digits.ok_or(CallError::Type { needs: DIGITS, got: "another number" })?;
    Ok(Val::number(decimal::round(number, digits, Rounding::Nearest)?))
}

impl From<CalculationError> for CallError {
    fn from(error: CalculationError) -> CallError {
        match error {
            CalculationError::DivisionByZero => CallError::Type { needs: "a divisor other than 0", got: "0" },
            CalculationError::TooLarge => CallError::Exceeds("1.8e308, the largest number"),
        }
    }
}
