//! Plain scalars of YAML that are not text, and numbers that JSON can represent.
//!
//! The YAML 1.2 core schema: `yes`, `no`, `on` and `off` are text.

use super::Value;
use serde_json::Number;

/// Parses a plain YAML scalar. `Err` explains why a number cannot be represented.
pub fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err("infinity and not-a-number are not supported".into());
    }
    if let Some((digits, radix)) = radix(text) {
        return match u64::from_str_radix(digits, radix) {
            Ok(n) => Ok(Value::Number(n.into())),
            Err(_) => Err(too_large(text)),
        };
    }
    if is_number(unsigned) { number(text.strip_prefix('+').unwrap_or(text)).map(Value::Number) } else { text_of(text) }
}

fn text_of(text: &str) -> Result<Value, String> {
    Ok(Value::String(text.to_owned()))
}

fn radix(text: &str) -> Option<(&str, u32)> {
    let (digits, radix) = match text.get(..2)? {
        "0x" => (&text[2..], 16),
        "0o" => (&text[2..], 8),
        _ => return None,
    };
    (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix))).then_some((digits, radix))
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_number(text: &str) -> bool {
    let digits = |t: &str| t.len() - t.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let whole = digits(text);
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let places = digits(fraction);
        if whole == 0 && places == 0 {
            return false;
        }
        rest = &fraction[places..];
    } else if whole == 0 {
        return false;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return rest.is_empty() };
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

/// Parses a decimal number: integers exactly or not at all, others to the nearest double.
pub fn number(text: &str) -> Result<Number, String> {
    let whole = text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    if whole {
        if let Ok(n) = text.parse::<i64>() {
            return Ok(n.into());
        }
        return text.parse::<u64>().map(Number::from).map_err(|_| too_large(text));
    }
    text.parse::<f64>().ok().and_then(Number::from_f64).ok_or_else(|| too_large(text))
}

fn too_large(text: &str) -> String {
    let mut shown: String = text.chars().take(24).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("the number {shown} cannot be represented exactly")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match plain(text) {
            Ok(value) => super::super::Node::new(value, None).to_json().to_string(),
            Err(_) => "refused".into(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for text in ["", "~", "null", "NULL"] {
            check(text, "null");
        }
        for (text, expected) in [
            ("true", "true"),
            ("FALSE", "false"),
            ("yes", r#""yes""#),
            ("on", r#""on""#),
            ("12", "12"),
            ("+12", "12"),
            ("-7", "-7"),
            ("007", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("1e3", "1000.0"),
            ("18446744073709551615", "18446744073709551615"),
            ("1_000", r#""1_000""#),
            ("1.2.3", r#""1.2.3""#),
            ("12:30", r#""12:30""#),
            ("-", r#""-""#),
            (".", r#"".""#),
            ("0x", r#""0x""#),
            ("é", r#""é""#),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn a_number_out_of_range_is_rejected_rather_than_rounded() {
        for text in ["18446744073709551616", "1e999999", ".inf", "-.INF", ".nan", "0xfffffffffffffffff"] {
            check(text, "refused");
        }
    }
}
