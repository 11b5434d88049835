//! Arithmetic with fractions of whole numbers: exact as long as the numbers are small, as the generated ones are.

use serde_json::Value;

/// `over / under`, in lowest terms, with a positive `under`.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    over: i128,
    under: i128,
}

pub fn fraction(over: i128, under: i128) -> Fraction {
    let sign = if under < 0 { -1 } else { 1 };
    let (mut a, mut b) = (over.abs(), under.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let common = a.max(1);
    Fraction { over: sign * over / common, under: sign * under / common }
}

/// The number as it is written.
pub fn read(value: &Value) -> Option<Fraction> {
    let text = value.as_number()?.to_string();
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.trim_start_matches('+').parse().ok()?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let over: i128 = format!("{whole}{decimals}").parse().ok()?;
    let places = decimals.len() as i32 - exponent;
    let power = 10i128.checked_pow(places.unsigned_abs())?;
    Some(if places >= 0 { fraction(over, power) } else { fraction(over.checked_mul(power)?, 1) })
}

/// A whole number, an exact decimal, or the nearest double.
pub fn written(number: Fraction) -> Option<Value> {
    let Fraction { over, under } = number;
    if under == 1 {
        return Some(serde_json::from_str(&over.to_string()).expect("digits"));
    }
    let ends = (1..30u32).find(|places| 10i128.pow(*places) % under == 0);
    let text = match ends {
        Some(places) => {
            let digits =
                format!("{:0>width$}", (over * (10i128.pow(places) / under)).abs(), width = places as usize + 1);
            let (whole, decimals) = digits.split_at(digits.len() - places as usize);
            format!("{}{whole}.{decimals}", if over < 0 { "-" } else { "" })
        }
        None => return serde_json::Number::from_f64(over as f64 / under as f64).map(Value::Number),
    };
    Some(serde_json::from_str(&text).expect("a decimal"))
}

/// `None` if the operands are not numbers, or the right one is 0 where it divides.
pub fn calculate(sign: &str, left: &Value, right: &Value) -> Option<Value> {
    let doubles = (left.as_f64()?, right.as_f64()?);
    if matches!(sign, "/" | "%") && doubles.1 == 0.0 {
        return None;
    }
    let exact = read(left).zip(read(right)).and_then(|(left, right)| exactly(sign, left, right));
    match exact {
        Some(exact) => written(exact),
        // More digits than are calculated exactly.
        None => {
            let (left, right) = doubles;
            let result = match sign {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => left % right,
            };
            serde_json::Number::from_f64(result).map(Value::Number)
        }
    }
}

fn exactly(sign: &str, left: Fraction, right: Fraction) -> Option<Fraction> {
    let (a, b, c, d) = (left.over, left.under, right.over, right.under);
    let (ad, cb, bd) = (a.checked_mul(d)?, c.checked_mul(b)?, b.checked_mul(d)?);
    Some(match sign {
        "+" => fraction(ad.checked_add(cb)?, bd),
        "-" => fraction(ad.checked_sub(cb)?, bd),
        "*" => fraction(a.checked_mul(c)?, bd),
        "/" => fraction(ad, b.checked_mul(c)?),
        // The sign of the left operand.
        _ => fraction(ad % cb, bd),
    })
}

/// Rounds halves away from zero.
pub fn round(number: &Value, places: u32) -> Option<Value> {
    let Fraction { over, under } = read(number)?;
    let power = 10i128.pow(places);
    let doubled = 2 * over.abs() * power + under;
    let rounded = doubled.div_euclid(2 * under);
    written(fraction(if over < 0 { -rounded } else { rounded }, power))
}

pub fn floor(number: &Value) -> Option<Value> {
    let Fraction { over, under } = read(number)?;
    written(fraction(over.div_euclid(under), 1))
}
