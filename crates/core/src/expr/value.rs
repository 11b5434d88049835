//! The values of expressions, mostly borrowed from the run's data: equality, order, truthiness and text.

use super::number::Num;
use crate::value::{VALUE_WEIGHT, weight};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// Bytes of a string that an expression or template may produce. Without a limit, `json(json(…))`, which doubles
/// backslashes, could exhaust memory.
pub(crate) const MAX_TEXT: usize = 4 * 1024 * 1024;

/// A value, borrowed where possible. `==` is that of the language: deep, and `1 == 1.0`.
#[derive(Clone, Debug)]
pub enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Str(&'a str),
    Json(&'a Value),
    Owned(Value),
}

/// A view of a JSON value, however it is stored.
#[derive(Clone, Copy)]
pub(super) enum View<'v> {
    Null,
    Bool(bool),
    Number(Num),
    Text(&'v str),
    List(&'v [Value]),
    Object(&'v Map<String, Value>),
}

impl<'v> View<'v> {
    pub fn of(value: &'v Value) -> View<'v> {
        match value {
            Value::Null => View::Null,
            Value::Bool(bool) => View::Bool(*bool),
            Value::Number(number) => View::Number(Num::of(number)),
            Value::String(text) => View::Text(text),
            Value::Array(list) => View::List(list),
            Value::Object(map) => View::Object(map),
        }
    }

    pub fn equals(self, other: View<'_>) -> bool {
        match (self, other) {
            (View::Null, View::Null) => true,
            (View::Bool(a), View::Bool(b)) => a == b,
            (View::Number(a), View::Number(b)) => a.order(b) == Ordering::Equal,
            (View::Text(a), View::Text(b)) => a == b,
            (View::List(a), View::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| View::of(a).equals(View::of(b)))
            }
            (View::Object(a), View::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| View::of(a).equals(View::of(b))))
            }
            _ => false,
        }
    }

    /// Only numbers and strings are ordered.
    pub fn order(self, other: View<'_>) -> Option<Ordering> {
        match (self, other) {
            (View::Number(a), View::Number(b)) => Some(a.order(b)),
            (View::Text(a), View::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// The type with its article, for messages.
    pub fn kind(self) -> &'static str {
        match self {
            View::Null => "null",
            View::Bool(_) => "a boolean",
            View::Number(_) => "a number",
            View::Text(_) => "a string",
            View::List(_) => "a list",
            View::Object(_) => "an object",
        }
    }
}

impl<'a> Val<'a> {
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Val::Null => View::Null,
            Val::Bool(bool) => View::Bool(*bool),
            Val::Int(int) => View::Number(Num::Int((*int).into())),
            Val::Str(text) => View::Text(text),
            Val::Json(value) => View::of(value),
            Val::Owned(value) => View::of(value),
        }
    }

    /// The bytes that reading the whole value touches.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Val::Null | Val::Bool(_) | Val::Int(_) => VALUE_WEIGHT,
            Val::Str(text) => VALUE_WEIGHT + text.len(),
            Val::Json(value) => weight(value),
            Val::Owned(value) => weight(value),
        }
    }

    pub(super) fn number(number: Number) -> Val<'a> {
        match number.as_i64() {
            Some(int) => Val::Int(int),
            None => Val::Owned(number.into()),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.view(), View::Null)
    }

    /// Whether the value is truthy: anything but `null`, `false`, `""` and `0`.
    pub fn is_true(&self) -> bool {
        match self.view() {
            View::Null => false,
            View::Bool(bool) => bool,
            View::Number(number) => !number.is_zero(),
            View::Text(text) => !text.is_empty(),
            View::List(_) | View::Object(_) => true,
        }
    }

    /// A copy as JSON.
    pub fn to_json(&self) -> Value {
        self.clone().into_json()
    }

    pub fn into_json(self) -> Value {
        match self {
            Val::Null => Value::Null,
            Val::Bool(bool) => bool.into(),
            Val::Int(int) => int.into(),
            Val::Str(text) => text.into(),
            Val::Json(value) => value.clone(),
            Val::Owned(value) => value,
        }
    }

    /// Writes the value as it appears inside text: a string unchanged, null as the empty string, anything else as
    /// compact JSON.
    pub fn write_text(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Val::Null | Val::Json(Value::Null) | Val::Owned(Value::Null) => Ok(()),
            Val::Bool(bool) => write!(out, "{bool}"),
            Val::Int(int) => write!(out, "{int}"),
            Val::Str(text) => out.write_str(text),
            Val::Json(Value::String(text)) | Val::Owned(Value::String(text)) => out.write_str(text),
            Val::Json(value) => write!(out, "{value}"),
            Val::Owned(value) => write!(out, "{value}"),
        }
    }

    /// What [`Val::write_text`] writes; borrowed if the value is a string, `None` if it is too long.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        if let View::Text(text) = self.view() {
            return Some(Cow::Borrowed(text));
        }
        let mut out = Bounded::new();
        self.write_text(&mut out).ok()?;
        Some(Cow::Owned(out.into()))
    }
}

impl PartialEq for Val<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.view().equals(other.view())
    }
}

impl From<bool> for Val<'_> {
    fn from(bool: bool) -> Self {
        Val::Bool(bool)
    }
}

impl From<i64> for Val<'_> {
    fn from(int: i64) -> Self {
        Val::Int(int)
    }
}

impl<'a> From<&'a str> for Val<'a> {
    fn from(text: &'a str) -> Self {
        Val::Str(text)
    }
}

impl From<String> for Val<'_> {
    fn from(text: String) -> Self {
        Val::Owned(Value::String(text))
    }
}

impl<'a> From<&'a Value> for Val<'a> {
    fn from(value: &'a Value) -> Self {
        Val::Json(value)
    }
}

impl From<Value> for Val<'_> {
    fn from(value: Value) -> Self {
        Val::Owned(value)
    }
}

/// A string that cannot grow beyond [`MAX_TEXT`].
#[derive(Default)]
pub(crate) struct Bounded(String);

impl Bounded {
    pub fn new() -> Bounded {
        Bounded::default()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > MAX_TEXT - self.0.len() {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

impl From<Bounded> for String {
    fn from(text: Bounded) -> String {
        text.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equality_is_deep_by_value_and_ignores_key_order() {
        let check = |a: Value, b: Value, expected: bool| {
            assert_eq!(Val::Json(&a) == Val::Owned(b.clone()), expected, "{a} {b}");
            assert_eq!(Val::Json(&b) == Val::Owned(a.clone()), expected, "{b} {a}");
        };
        check(json!({"a": [1, {"b": 2.0}], "c": null}), json!({"c": null, "a": [1.0, {"b": 2}]}), true);
        check(json!({"a": 1}), json!({"a": 1, "b": null}), false);
        check(json!({"a": null}), json!({"b": null}), false);
        check(json!([1, 2]), json!([2, 1]), false);
        check(json!("1"), json!(1), false);
        check(json!(0), json!(false), false);
        check(json!(null), json!(""), false);
    }

    #[test]
    fn equality_ignores_how_a_value_is_stored() {
        assert_eq!(Val::from(3), Val::from(json!(3)));
        assert_eq!(Val::from("a"), Val::from("a".to_string()));
        assert_eq!(Val::from(true), Val::Json(&json!(true)));
        assert_eq!(Val::Null, Val::Json(&Value::Null));
    }

    #[test]
    fn inside_text_null_is_empty_and_structures_are_compact_json() {
        let check = |value: Value, expected: &str| {
            assert_eq!(Val::Json(&value).text().unwrap(), expected);
        };
        check(json!(null), "");
        check(json!("a \"b\""), "a \"b\"");
        check(json!(1.5), "1.5");
        check(json!(true), "true");
        check(json!({"a": [1, null, "x"]}), r#"{"a":[1,null,"x"]}"#);
    }
}
