//! Parameters: converts JSON to the text format of the type that the statement expects. Values never become part of the
//! statement.

use super::super::failure;
use super::super::request::Params;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use serde_json::Value;
use std::error::Error;
use stepwell_core::event::Failure;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

/// A parameter in PostgreSQL's text format.
#[derive(Debug)]
pub struct TextParam {
    pub name: String,
    pub text: Option<String>,
}

impl ToSql for TextParam {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.text {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

pub fn text_params(params: &Params, names: &[String], types: &[Type]) -> Result<Vec<TextParam>, Failure> {
    let one = |name: String, value: &Value, ty: &Type| match text(value, ty) {
        Ok(text) => Ok(TextParam { name, text }),
        Err(why) => Err(failure::bad_param(&name, &why)),
    };
    match params {
        Params::List(list) if list.len() != types.len() => Err(failure::wrong_param_count(types.len(), list.len())),
        Params::List(list) => {
            let all = list.iter().zip(types).enumerate();
            all.map(|(n, (value, ty))| one(format!("${}", n + 1), value, ty)).collect()
        }
        Params::Named(_) if names.len() != types.len() => {
            Err(failure::bad_query("with an object as `params`, every parameter must be a `:name`, not a `$1`".into()))
        }
        Params::Named(given) => {
            let all = names.iter().zip(types);
            all.map(|(name, ty)| {
                let value = given.get(name).ok_or_else(|| failure::missing_param(name))?;
                one(format!(":{name}"), value, ty)
            })
            .collect()
        }
    }
}

/// Converts a value and checks what it can: the server's error does not always identify the parameter.
fn text(value: &Value, ty: &Type) -> Result<Option<String>, String> {
    let ty = base(ty);
    if value.is_null() {
        return Ok(None);
    }
    if *ty == Type::JSON || *ty == Type::JSONB {
        return Ok(Some(value.to_string()));
    }
    if let (Kind::Array(member), Value::Array(list)) = (ty.kind(), value) {
        return array(list, member).map(Some);
    }
    let mismatch = |what: &str| Err(format!("{what} cannot be converted to {}", ty.name()));
    let text = match value {
        Value::Null => return Ok(None),
        Value::Bool(_) if is_number(ty) => return mismatch("true or false"),
        Value::Bool(value) => value.to_string(),
        Value::Number(_) if *ty == Type::BOOL => return mismatch("a number"),
        Value::Number(number) => match number_text(ty, number) {
            Some(whole) => whole,
            None => return mismatch(&number.to_string()),
        },
        Value::String(text) if text.contains('\0') => return Err("text must not contain NUL characters".into()),
        Value::String(text) if *ty == Type::BYTEA => match STANDARD.decode(text) {
            Ok(bytes) => bytes.iter().fold(String::from("\\x"), |hex, byte| format!("{hex}{byte:02x}")),
            Err(_) => return Err("bytes must be base64".into()),
        },
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) if is_text(ty) => value.to_string(),
        Value::Array(_) => return mismatch("a list"),
        Value::Object(_) => return mismatch("an object"),
    };
    Ok(Some(text))
}

/// The type underlying a domain.
fn base(mut ty: &Type) -> &Type {
    while let Kind::Domain(inner) = ty.kind() {
        ty = inner;
    }
    ty
}

fn is_number(ty: &Type) -> bool {
    [Type::INT2, Type::INT4, Type::INT8, Type::OID, Type::FLOAT4, Type::FLOAT8, Type::NUMERIC].contains(ty)
}

fn is_text(ty: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::UNKNOWN].contains(ty)
}

/// Formats a number. For an integer type, `None` if it has a fraction or is out of range.
fn number_text(ty: &Type, number: &serde_json::Number) -> Option<String> {
    let (least, most) = match *ty {
        Type::INT2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::INT4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Type::INT8 => (i64::MIN, i64::MAX),
        _ => return Some(number.to_string()),
    };
    let exact = |value: f64| (value.fract() == 0.0 && value.abs() <= 9e15).then_some(value as i64);
    let value = number.as_i64().or_else(|| number.as_f64().filter(|_| number.is_f64()).and_then(exact))?;
    (least..=most).contains(&value).then(|| value.to_string())
}

/// `{"a","b",NULL}`
fn array(list: &[Value], member: &Type) -> Result<String, String> {
    let mut out = String::from("{");
    for (n, item) in list.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        let is_json = *base(member) == Type::JSON || *base(member) == Type::JSONB;
        match item {
            Value::Array(inner) if !is_json => out.push_str(&array(inner, member)?),
            item => match text(item, member)? {
                Some(text) => {
                    out.push('"');
                    for c in text.chars() {
                        if matches!(c, '"' | '\\') {
                            out.push('\\');
                        }
                        out.push(c);
                    }
                    out.push('"');
                }
                None => out.push_str("NULL"),
            },
        }
    }
    out.push('}');
    Ok(out)
}
