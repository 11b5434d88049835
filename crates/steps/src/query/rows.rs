//! Rows as JSON, within limits. A number that JSON readers may not represent exactly becomes text.

use super::failure;
use crate::text::quoted;
use serde_json::{Map, Number, Value, json};
use stepwell_core::event::Failure;
use stepwell_core::limits;
use stepwell_core::value::check_size;

/// Up to here, JavaScript and most JSON readers represent every integer exactly.
const EXACT: u64 = 1 << 53;
/// Significant decimal digits that a double always preserves.
const EXACT_DIGITS: usize = 15;

pub struct Rows {
    columns: Vec<String>,
    list: Vec<Value>,
    bytes: usize,
    max: u32,
}

impl Rows {
    pub fn new(columns: Vec<String>, max: u32) -> Result<Rows, Failure> {
        for (n, name) in columns.iter().enumerate() {
            if columns[..n].contains(name) {
                return Err(failure::bad_query(format!(
                    "two columns are called {}; rename one with `AS`",
                    quoted(name)
                )));
            }
        }
        Ok(Rows { columns, list: Vec::new(), bytes: 0, max })
    }

    pub fn push(&mut self, values: impl Iterator<Item = Result<Value, Failure>>) -> Result<(), Failure> {
        if self.list.len() >= self.max as usize {
            return Err(failure::too_many_rows(self.max));
        }
        let mut row = Map::new();
        for (name, value) in self.columns.iter().zip(values) {
            let value = value?;
            self.bytes += name.len() + size(&value);
            row.insert(name.clone(), value);
        }
        if self.bytes > limits::MAX_PAYLOAD_BYTES {
            return Err(failure::too_large());
        }
        self.list.push(Value::Object(row));
        Ok(())
    }

    /// The rows or, for a statement without a result set, the number of changed rows.
    pub fn body(self, changed: u64) -> Result<Value, Failure> {
        if self.columns.is_empty() {
            return Ok(json!({"row_count": changed}));
        }
        let body = Value::Array(self.list);
        check_size(&body)?;
        Ok(body)
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(list) => 2 + list.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 2 + fields.iter().map(|(name, field)| name.len() + size(field)).sum::<usize>(),
    }
}

pub fn integer(value: i64) -> Value {
    if value.unsigned_abs() <= EXACT { value.into() } else { value.to_string().into() }
}

pub fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}

/// A decimal number in plain notation.
pub fn decimal(text: String) -> Value {
    let digits = text.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
    if digits > EXACT_DIGITS {
        return text.into();
    }
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    match text.parse::<f64>() {
        Ok(number) => float(number),
        Err(_) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_a_number_if_that_is_exact() {
        assert_eq!(integer(9_007_199_254_740_992), json!(9_007_199_254_740_992u64));
        assert_eq!(integer(9_007_199_254_740_993), json!("9007199254740993"));
        assert_eq!(integer(i64::MIN), json!("-9223372036854775808"));
        for (text, expected) in [
            ("10.50", json!(10.5)),
            ("-0.000001", json!(-0.000001)),
            ("12", json!(12)),
            ("0", json!(0)),
            ("123456789012345", json!(123_456_789_012_345u64)),
            ("1234567890.1234567", json!("1234567890.1234567")),
            ("NaN", json!("NaN")),
        ] {
            assert_eq!(decimal(text.into()), expected, "{text}");
        }
        assert_eq!(float(f64::NEG_INFINITY), json!("-Infinity"));
    }
}
