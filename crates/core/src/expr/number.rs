//! Numbers that compare exactly. JSON mixes `i64`, `u64` and `f64`; comparing as `f64` would make ids above 2^53 equal
//! to their neighbours.

use serde_json::Number;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    /// Wide enough for `i64` and `u64`.
    Int(i128),
    /// Always finite, as in JSON.
    Float(f64),
}

impl Num {
    pub fn of(number: &Number) -> Num {
        match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Num::Int(int.into()),
            (None, Some(int)) => Num::Int(int.into()),
            (None, None) => Num::Float(number.as_f64().unwrap_or_default()),
        }
    }

    pub fn is_zero(self) -> bool {
        match self {
            Num::Int(int) => int == 0,
            Num::Float(float) => float == 0.0,
        }
    }

    pub fn is_negative(self) -> bool {
        match self {
            Num::Int(int) => int < 0,
            Num::Float(float) => float < 0.0,
        }
    }

    /// The number, if it has no fraction.
    pub fn whole(self) -> Option<i64> {
        match self {
            Num::Int(int) => i64::try_from(int).ok(),
            Num::Float(float) if float.fract() == 0.0 && float.abs() < 9e15 => Some(float as i64),
            Num::Float(_) => None,
        }
    }

    /// The nearest double.
    pub fn double(self) -> f64 {
        match self {
            Num::Int(int) => int as f64,
            Num::Float(float) => float,
        }
    }

    pub fn order(self, other: Num) -> Ordering {
        match (self, other) {
            (Num::Int(a), Num::Int(b)) => a.cmp(&b),
            (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Num::Int(a), Num::Float(b)) => order_mixed(a, b),
            (Num::Float(a), Num::Int(b)) => order_mixed(b, a).reverse(),
        }
    }
}

fn order_mixed(int: i128, float: f64) -> Ordering {
    // The cast is exact in range and saturates outside it, far beyond any 64-bit integer.
    let whole = float.trunc();
    int.cmp(&(whole as i128)).then_with(|| 0.0.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal))
}

/// The length of the JSON number at the start of `text` (leading zeros allowed).
pub(super) fn scan(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(sign);
    if whole == 0 {
        return 0;
    }
    let mut end = sign + whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        end += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}

/// Parses all of `text` as a number. `None` also if it is too large for a float.
pub(super) fn parse(text: &str) -> Option<Number> {
    if text.is_empty() || scan(text) != text.len() {
        return None;
    }
    if let Ok(int) = text.parse::<i64>() {
        return Some(int.into());
    }
    if let Ok(int) = text.parse::<u64>() {
        return Some(int.into());
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares exact decimal digits as strings: `format!` prints a float without rounding if given enough places, and
    /// no float needs more than 1,074.
    fn oracle(a: &Number, b: &Number) -> Ordering {
        let digits = |number: &Number| {
            let exact = match (number.is_f64(), number.as_f64()) {
                (true, Some(float)) => format!("{float:.1074}"),
                _ => format!("{number}.{}", "0".repeat(1074)),
            };
            let negative = exact.starts_with('-') && exact.bytes().any(|b| b.is_ascii_digit() && b != b'0');
            (negative, format!("{:0>1400}", exact.trim_start_matches('-')))
        };
        match (digits(a), digits(b)) {
            ((false, a), (false, b)) => a.cmp(&b),
            ((true, a), (true, b)) => b.cmp(&a),
            ((a, _), (b, _)) => b.cmp(&a),
        }
    }

    fn check(a: &str, b: &str, expected: Ordering) {
        let [a, b] = [a, b].map(|text| parse(text).unwrap());
        assert_eq!(Num::of(&a).order(Num::of(&b)), expected, "{a} {b}");
        assert_eq!(Num::of(&b).order(Num::of(&a)), expected.reverse(), "{b} {a}");
        assert_eq!(oracle(&a, &b), expected, "oracle: {a} {b}");
    }

    #[test]
    fn neighbouring_integers_beyond_float_precision_stay_distinct() {
        check("9007199254740993", "9007199254740992.0", Ordering::Greater);
        check("9223372036854775807", "9223372036854775808.0", Ordering::Less);
        check("18446744073709551615", "18446744073709551616", Ordering::Less);
        check("-9223372036854775808", "-9223372036854775808.0", Ordering::Equal);
        check("18446744073709551615", "-1", Ordering::Greater);
        check("0", "-0.0", Ordering::Equal);
        check("1", "1.0", Ordering::Equal);
        check("0", "5e-324", Ordering::Less);
        check("-1", "-1.5", Ordering::Greater);
        check("7", "1e300", Ordering::Less);
        check("7", "-1e300", Ordering::Greater);
    }

    #[test]
    fn only_complete_numbers_in_json_notation_parse() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse(text).map(|n| n.to_string()).as_deref(), expected, "{text}");
        };
        check("42", Some("42"));
        check("-0.5e1", Some("-5.0"));
        check("007", Some("7"));
        check("18446744073709551615", Some("18446744073709551615"));
        for text in ["", "-", ".5", "5.", "1e", "0x10", "inf", "NaN", "1e999", "1_000", " 1", "+1", "--1"] {
            check(text, None);
        }
    }

    fn number() -> impl Strategy<Value = Number> {
        // The interesting bugs are near powers of two and whole values; fully random bits rarely get there.
        let near_power = (0u32..64, -3i128..=3).prop_map(|(bit, delta)| {
            let int = ((1i128 << bit) + delta).clamp(i64::MIN.into(), u64::MAX.into());
            Number::from_i128(int).unwrap()
        });
        let near_float = (0i32..66, -2i8..=2, any::<bool>()).prop_map(|(bit, delta, negative)| {
            let float = (2f64.powi(bit) + f64::from(delta) / 4.0) * if negative { -1.0 } else { 1.0 };
            Number::from_f64(float).unwrap()
        });
        prop_oneof![
            any::<i64>().prop_map(Number::from),
            any::<u64>().prop_map(Number::from),
            any::<f64>().prop_filter_map("finite", Number::from_f64),
            near_power,
            near_float,
        ]
    }

    proptest! {
        #[test]
        fn any_two_numbers_compare_like_their_exact_decimals(a in number(), b in number()) {
            prop_assert_eq!(Num::of(&a).order(Num::of(&b)), oracle(&a, &b), "{} {}", a, b);
        }

        #[test]
        fn a_printed_number_parses_back_to_itself(a in number()) {
            let again = parse(&a.to_string()).unwrap();
            prop_assert_eq!(Num::of(&a).order(Num::of(&again)), Ordering::Equal);
        }
    }
}
