//! Converts values from PostgreSQL's binary format to JSON.

use super::super::rows::{decimal, float, integer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp, civil};
use serde_json::Value;
use std::error::Error;
use tokio_postgres::types::{FromSql, Kind, Type};

type Read<T> = Result<T, Box<dyn Error + Sync + Send>>;

pub struct Cell(pub Value);

impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Read<Cell> {
        value(ty, raw).map(Cell)
    }

    fn from_sql_null(_: &Type) -> Read<Cell> {
        Ok(Cell(Value::Null))
    }

    fn accepts(ty: &Type) -> bool {
        is_supported(ty)
    }
}

pub fn is_supported(ty: &Type) -> bool {
    match ty.kind() {
        Kind::Array(member) => is_supported(member),
        Kind::Domain(inner) => is_supported(inner),
        Kind::Enum(_) => true,
        Kind::Simple => SIMPLE_TYPES.contains(ty) || ty.name() == "citext",
        // The result of a function without one.
        Kind::Pseudo => *ty == Type::VOID,
        _ => false,
    }
}

const SIMPLE_TYPES: [Type; 21] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::OID,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::NUMERIC,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::NAME,
    Type::UNKNOWN,
    Type::UUID,
    Type::JSON,
    Type::JSONB,
    Type::BYTEA,
    Type::DATE,
    Type::TIME,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
];

fn value(ty: &Type, raw: &[u8]) -> Read<Value> {
    match ty.kind() {
        Kind::Array(member) => return array(member, raw),
        Kind::Domain(inner) => return value(inner, raw),
        _ => {}
    }
    Ok(match *ty {
        Type::BOOL => (number::<1>(raw)? != [0]).into(),
        Type::INT2 => i16::from_be_bytes(number(raw)?).into(),
        Type::INT4 => i32::from_be_bytes(number(raw)?).into(),
        Type::INT8 => integer(i64::from_be_bytes(number(raw)?)),
        Type::OID => u32::from_be_bytes(number(raw)?).into(),
        // Through its shortest text, so that 0.1 does not become 0.10000000149011612.
        Type::FLOAT4 => float(f32::from_be_bytes(number(raw)?).to_string().parse()?),
        Type::FLOAT8 => float(f64::from_be_bytes(number(raw)?)),
        Type::NUMERIC => decimal(numeric(raw)?),
        Type::UUID => uuid(u128::from_be_bytes(number(raw)?)).into(),
        Type::JSON => serde_json::from_slice(raw)?,
        // The first byte is the version of the format.
        Type::JSONB => serde_json::from_slice(raw.get(1..).unwrap_or_default())?,
        Type::BYTEA => STANDARD.encode(raw).into(),
        Type::DATE => match i32::from_be_bytes(number(raw)?) {
            i32::MAX => "infinity".into(),
            i32::MIN => "-infinity".into(),
            days => EPOCH.checked_add(SignedDuration::from_hours(i64::from(days) * 24))?.date().to_string().into(),
        },
        Type::TIME => {
            let micros = SignedDuration::from_micros(i64::from_be_bytes(number(raw)?));
            civil::Time::midnight().checked_add(micros).map_or("24:00:00".into(), |time| time.to_string().into())
        }
        Type::TIMESTAMP => timestamp(raw, |time| time.to_string())?,
        Type::TIMESTAMPTZ => {
            let start: Timestamp = "2000-01-01T00:00:00Z".parse()?;
            let micros = i64::from_be_bytes(number(raw)?);
            let exact = || start.checked_add(SignedDuration::from_micros(micros));
            infinite(micros).map_or_else(|| exact().map(|time| Value::from(time.to_string())), Ok)?
        }
        Type::VOID => Value::Null,
        _ => std::str::from_utf8(raw)?.into(),
    })
}

/// PostgreSQL's epoch.
const EPOCH: civil::DateTime = civil::datetime(2000, 1, 1, 0, 0, 0, 0);

fn timestamp(raw: &[u8], show: impl Fn(civil::DateTime) -> String) -> Read<Value> {
    let micros = i64::from_be_bytes(number(raw)?);
    match infinite(micros) {
        Some(value) => Ok(value),
        None => Ok(show(EPOCH.checked_add(SignedDuration::from_micros(micros))?).into()),
    }
}

fn infinite(micros: i64) -> Option<Value> {
    match micros {
        i64::MAX => Some("infinity".into()),
        i64::MIN => Some("-infinity".into()),
        _ => None,
    }
}

fn number<const N: usize>(raw: &[u8]) -> Read<[u8; N]> {
    Ok(raw.try_into()?)
}

fn uuid(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A reader that consumes bytes from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("the value is truncated")?;
        self.0 = rest;
        Ok(taken)
    }

    fn int2(&mut self) -> Read<i16> {
        Ok(i16::from_be_bytes(number(self.take(2)?)?))
    }

    fn int4(&mut self) -> Read<i32> {
        Ok(i32::from_be_bytes(number(self.take(4)?)?))
    }
}

/// Parses base-10000 digit groups with the weight of the first, the sign and the number of decimals.
fn numeric(raw: &[u8]) -> Read<String> {
    let mut bytes = Bytes(raw);
    let (count, weight, sign, scale) = (bytes.int2()?, bytes.int2()?, bytes.int2()? as u16, bytes.int2()?);
    match sign {
        0xC000 => return Ok("NaN".into()),
        0xD000 => return Ok("Infinity".into()),
        0xF000 => return Ok("-Infinity".into()),
        _ => {}
    }
    let mut groups = Vec::new();
    for _ in 0..count {
        groups.push(bytes.int2()?);
    }
    let group =
        |at: i32| usize::try_from(i32::from(weight) - at).ok().and_then(|n| groups.get(n)).copied().unwrap_or(0);
    let mut text = String::from(if sign == 0x4000 { "-" } else { "" });
    let whole: String = (0..=i32::from(weight).max(0)).rev().map(|at| format!("{:04}", group(at))).collect();
    let whole = whole.trim_start_matches('0');
    text.push_str(if whole.is_empty() { "0" } else { whole });
    let scale = usize::try_from(scale)?;
    if scale > 0 {
        let after = scale.div_ceil(4) as i32;
        let fraction: String = (1..=after).map(|at| format!("{:04}", group(-at))).collect();
        text.push('.');
        text.push_str(&fraction[..scale]);
    }
    Ok(text)
}

/// Parses the number of dimensions, their lengths, then the elements.
fn array(member: &Type, raw: &[u8]) -> Read<Value> {
    let mut bytes = Bytes(raw);
    let dimensions = bytes.int4()?;
    bytes.take(8)?;
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(bytes.int4()?)?);
        bytes.take(4)?;
    }
    if lengths.is_empty() {
        return Ok(Value::Array(Vec::new()));
    }
    nested(member, &lengths, &mut bytes)
}

/// Recurses once per dimension; the server allows six.
fn nested(member: &Type, lengths: &[usize], bytes: &mut Bytes<'_>) -> Read<Value> {
    let Some((length, inner)) = lengths.split_first() else {
        return match bytes.int4()? {
            -1 => Ok(Value::Null),
            size => value(member, bytes.take(usize::try_from(size)?)?),
        };
    };
    (0..*length).map(|_| nested(member, inner, bytes)).collect::<Read<Vec<Value>>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_or_invalid_values_are_errors_and_do_not_panic() {
        let types = [Type::INT8_ARRAY, Type::NUMERIC, Type::TIMESTAMPTZ, Type::JSONB, Type::UUID, Type::TEXT_ARRAY];
        let mut state = 1u64;
        for round in 0..20_000usize {
            let bytes: Vec<u8> = (0..round % 40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Mostly zeroes, so that some lengths are valid.
                    if state >> 62 == 0 { (state >> 33) as u8 } else { 0 }
                })
                .collect();
            let _ = value(&types[round % types.len()], &bytes);
        }
    }
}
