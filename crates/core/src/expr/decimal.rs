//! Exact decimal arithmetic with bounds: 38 digits, of which up to 38 after the point.
//!
//! A number that needs more is calculated as a double, as in other languages. Whether a result can be stored exactly is
//! up to [`number::parse`], the one place where text becomes a number.

use super::number::{self, Num};
use serde_json::Number;
use std::cmp::Ordering;
use std::fmt;

/// Digits after the point. `10^38` is the largest power of ten in 128 bits.
const MAX_SCALE: u32 = 38;

/// `mantissa / 10^scale`, without trailing zeros after the point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Decimal {
    mantissa: i128,
    scale: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// How [`round`] chooses between the two nearest numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    Down,
    Up,
    /// Halves away from zero.
    Nearest,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CalculationError {
    DivisionByZero,
    /// Not even a double can hold the result.
    TooLarge,
}

type Calculated = Result<Number, CalculationError>;

impl Operation {
    pub fn sign(self) -> &'static str {
        match self {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
            Operation::Divide => "/",
            Operation::Remainder => "%",
        }
    }

    pub fn of(self, left: Num, right: Num) -> Calculated {
        let divides = matches!(self, Operation::Divide | Operation::Remainder);
        if divides && right.is_zero() {
            return Err(CalculationError::DivisionByZero);
        }
        let exact = Decimal::of(left).zip(Decimal::of(right)).and_then(|(left, right)| match self {
            Operation::Add => left.add(right),
            Operation::Subtract => left.add(right.negated()?),
            Operation::Multiply => left.multiply(right),
            Operation::Divide => left.divide(right),
            Operation::Remainder => left.remainder(right),
        });
        exact.and_then(Decimal::number).map_or_else(|| self.as_doubles(left.double(), right.double()), Ok)
    }

    fn as_doubles(self, left: f64, right: f64) -> Calculated {
        let result = match self {
            Operation::Add => left + right,
            Operation::Subtract => left - right,
            Operation::Multiply => left * right,
            Operation::Divide => left / right,
            Operation::Remainder => left % right,
        };
        Number::from_f64(result).ok_or(CalculationError::TooLarge)
    }
}

pub(super) fn negate(number: Num) -> Calculated {
    Operation::Subtract.of(Num::Int(0), number)
}

/// The sum of numbers, rounded only once.
pub(super) fn sum(numbers: &[Num]) -> Calculated {
    let zero = Decimal { mantissa: 0, scale: 0 };
    let exact = numbers.iter().try_fold(zero, |sum, number| sum.add(Decimal::of(*number)?));
    exact.and_then(Decimal::number).map_or_else(
        || {
            let sum: f64 = numbers.iter().map(|number| number.double()).sum();
            Number::from_f64(sum).ok_or(CalculationError::TooLarge)
        },
        Ok,
    )
}

/// Rounds to this many digits after the point. A number beyond the bounds has no digits after it.
pub(super) fn round(number: Num, digits: u32, rounding: Rounding) -> Calculated {
    match Decimal::of(number).and_then(|decimal| decimal.round(digits, rounding)).and_then(Decimal::number) {
        Some(number) => Ok(number),
        None => Number::from_f64(number.double()).ok_or(CalculationError::TooLarge),
    }
}

impl Decimal {
    fn of(number: Num) -> Option<Decimal> {
        match number {
            Num::Int(int) => Some(Decimal { mantissa: int, scale: 0 }),
            // The shortest text that reads back as this double: the number as it was written.
            Num::Float(float) => Decimal::read(&Number::from_f64(float)?.to_string()),
        }
    }

    /// Reads a JSON number. `None` if it has too many digits.
    fn read(text: &str) -> Option<Decimal> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let mut mantissa: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit.checked_sub(b'0')?))?;
        }
        let exponent: i64 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        let mantissa = if negative { mantissa.checked_neg()? } else { mantissa };
        Decimal::scaled(mantissa, scale)
    }

    /// `mantissa / 10^scale` within the bounds.
    fn scaled(mantissa: i128, scale: i64) -> Option<Decimal> {
        if mantissa == 0 {
            return Some(Decimal { mantissa, scale: 0 });
        }
        if scale <= 0 {
            let factor = power(u32::try_from(scale.checked_neg()?).ok()?)?;
            return Some(Decimal { mantissa: mantissa.checked_mul(factor)?, scale: 0 });
        }
        let (mut mantissa, mut scale) = (mantissa, scale);
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        let scale = u32::try_from(scale).ok().filter(|scale| *scale <= MAX_SCALE)?;
        Some(Decimal { mantissa, scale })
    }

    /// Both mantissas at the larger scale.
    fn aligned(self, other: Decimal) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let at = |number: Decimal| number.mantissa.checked_mul(power(scale - number.scale)?);
        Some((at(self)?, at(other)?, scale))
    }

    fn negated(self) -> Option<Decimal> {
        Some(Decimal { mantissa: self.mantissa.checked_neg()?, ..self })
    }

    fn add(self, other: Decimal) -> Option<Decimal> {
        let (left, right, scale) = self.aligned(other)?;
        Decimal::scaled(left.checked_add(right)?, scale.into())
    }

    fn multiply(self, other: Decimal) -> Option<Decimal> {
        Decimal::scaled(self.mantissa.checked_mul(other.mantissa)?, i64::from(self.scale) + i64::from(other.scale))
    }

    fn remainder(self, other: Decimal) -> Option<Decimal> {
        let (left, right, scale) = self.aligned(other)?;
        Decimal::scaled(left.checked_rem(right)?, scale.into())
    }

    /// The quotient by long division, if it ends within the bounds.
    fn divide(self, other: Decimal) -> Option<Decimal> {
        let (left, right, _) = self.aligned(other)?;
        let (divisor, mut rest) = (right.unsigned_abs(), left.unsigned_abs());
        let mut quotient = rest.checked_div(divisor)?;
        rest %= divisor;
        let mut scale = 0;
        while rest != 0 {
            rest = rest.checked_mul(10)?;
            quotient = quotient.checked_mul(10)?.checked_add(rest / divisor)?;
            rest %= divisor;
            scale += 1;
        }
        let mantissa = i128::try_from(quotient).ok()?;
        Decimal::scaled(if (left < 0) == (right < 0) { mantissa } else { -mantissa }, scale)
    }

    fn round(self, digits: u32, rounding: Rounding) -> Option<Decimal> {
        if self.scale <= digits {
            return Some(self);
        }
        let unit = power(self.scale - digits)?;
        let (down, rest) = (self.mantissa.div_euclid(unit), self.mantissa.rem_euclid(unit));
        let up = match rounding {
            Rounding::Down => false,
            Rounding::Up => rest > 0,
            Rounding::Nearest => match rest.cmp(&(unit - rest)) {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => self.mantissa > 0,
            },
        };
        Decimal::scaled(down + i128::from(up), digits.into())
    }

    fn number(self) -> Option<Number> {
        number::parse(&self.to_string())
    }
}

fn power(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = self.mantissa.unsigned_abs().to_string();
        let scale = self.scale as usize;
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn num(text: &str) -> Num {
        Num::of(&number::parse(text).unwrap())
    }

    fn check(left: &str, sign: &str, right: &str, expected: &str) {
        let operations =
            [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Divide, Operation::Remainder];
        let operation = operations.into_iter().find(|operation| operation.sign() == sign).unwrap();
        let found = match operation.of(num(left), num(right)) {
            Ok(number) => number.to_string(),
            Err(CalculationError::DivisionByZero) => "division by zero".into(),
            Err(CalculationError::TooLarge) => "too large".into(),
        };
        assert_eq!(found, expected, "{left} {sign} {right}");
    }

    #[test]
    fn decimals_and_large_integers_stay_exact() {
        check("0.1", "+", "0.2", "0.3");
        check("0.3", "-", "0.1", "0.2");
        check("1.1", "*", "1.1", "1.21");
        check("19.99", "*", "3", "59.97");
        check("4.35", "*", "100", "435");
        check("9007199254740993", "+", "1", "9007199254740994");
        check("9223372036854775807", "+", "1", "9223372036854775808");
        check("18446744073709551615", "-", "18446744073709551614", "1");
        check("3037000500", "*", "3037000500", "9223372037000250000");
        check("7", "/", "2", "3.5");
        check("1", "/", "8", "0.125");
        check("9007199254740993", "/", "1", "9007199254740993");
        check("0.6", "/", "0.2", "3");
        check("5.5", "%", "2", "1.5");
        check("-7", "%", "3", "-1");
        check("7", "%", "-3", "1");
        check("0.3", "%", "0.1", "0");
        check("0", "*", "-1", "0");
    }

    #[test]
    fn what_does_not_end_or_fit_is_rounded_to_a_double() {
        check("1", "/", "3", "0.3333333333333333");
        check("-2", "/", "3", "-0.6666666666666666");
        check("10", "/", "0.3", "33.333333333333336");
        check("1e300", "+", "1", "1e+300");
        check("18446744073709551615", "*", "18446744073709551615", "3.402823669209385e+38");
        check("1e-300", "*", "2", "2e-300");
        check("1e308", "*", "10", "too large");
        check("-1e308", "-", "1e308", "too large");
        check("1", "/", "0", "division by zero");
        check("1", "%", "0.0", "division by zero");
    }

    #[test]
    fn rounding_is_by_decimal_digits() {
        let check = |number: &str, digits: u32, rounding: Rounding, expected: &str| {
            assert_eq!(round(num(number), digits, rounding).unwrap().to_string(), expected, "{number} {digits}");
        };
        check("2.675", 2, Rounding::Nearest, "2.68");
        check("-2.5", 0, Rounding::Nearest, "-3");
        check("2.4", 0, Rounding::Nearest, "2");
        check("-2.1", 0, Rounding::Down, "-3");
        check("-2.1", 0, Rounding::Up, "-2");
        check("2.1", 0, Rounding::Up, "3");
        check("1e300", 2, Rounding::Nearest, "1e+300");
        check("7", 3, Rounding::Up, "7");
    }

    fn any_number() -> impl Strategy<Value = Num> {
        prop_oneof![
            any::<i64>().prop_map(|int| Num::Int(int.into())),
            any::<u64>().prop_map(|int| Num::Int(int.into())),
            (-100_000i64..100_000, 0u32..6).prop_map(|(int, scale)| num(&format!("{int}e-{scale}"))),
            any::<f64>().prop_filter_map("finite", |float| float.is_finite().then_some(Num::Float(float))),
        ]
    }

    proptest! {
        #[test]
        fn any_operation_on_any_numbers_ends(left in any_number(), right in any_number(), digits in 0u32..16) {
            for operation in
                [Operation::Add, Operation::Subtract, Operation::Multiply, Operation::Divide, Operation::Remainder]
            {
                let _ = operation.of(left, right);
            }
            for rounding in [Rounding::Down, Rounding::Up, Rounding::Nearest] {
                round(left, digits, rounding).unwrap();
            }
        }

        #[test]
        fn cents_add_up_like_integers(cents in prop::collection::vec(-1_000_000i64..1_000_000, 0..20)) {
            let numbers: Vec<Num> = cents.iter().map(|cents| num(&format!("{cents}e-2"))).collect();
            let hundred = Operation::Multiply.of(Num::of(&sum(&numbers).unwrap()), Num::Int(100)).unwrap();
            prop_assert_eq!(hundred.to_string(), cents.iter().sum::<i64>().to_string());
        }

        #[test]
        fn what_is_added_can_be_taken_away(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000, s in 0u32..9) {
            let (a, b) = (num(&format!("{a}e-{s}")), num(&format!("{b}e-3")));
            let there = Num::of(&Operation::Add.of(a, b).unwrap());
            let back = Num::of(&Operation::Subtract.of(there, b).unwrap());
            prop_assert_eq!(back.order(a), Ordering::Equal);
        }
    }
}
