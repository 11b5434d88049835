//! The functions an expression can call. All are pure: a time is an argument, and the clock is the name `now`, which
//! stands for the recorded time of the decision.
//!
//! | function | result |
//! | --- | --- |
//! | `len(x)` | characters of a string, items of a list, entries of an object |
//! | `contains(x, y)` | whether a string contains a part, a list an item, an object a key |
//! | `starts_with(text, part)`, `ends_with(text, part)` | |
//! | `lower(text)`, `upper(text)`, `trim(text)` | |
//! | `exists(path)` | whether the path leads to something other than null |
//! | `string(x)` | the text that `{{x}}` becomes inside a string |
//! | `number(x)` | a number, or a string parsed as a number |
//! | `json(x)` | compact JSON text |
//! | `join(list, separator)` | the items as text, separated by the separator |
//! | `min(a, b, …)`, `max(a, b, …)` | the least or greatest number of the arguments or of one list |
//! | `keys(object)` | its keys, in order |
//! | `first(list)`, `last(list)` | |
//! | `urlencode(x)` | the text of a value, percent-encoded |
//! | `split(text, separator)` | the parts between the separators, as a list |
//! | `replace(text, part, by)` | the text with every occurrence of the part replaced |
//! | `slice(x, from, to)` | a part of a string or list; negative positions count from the end |
//! | `sum(list)` | the sum of numbers |
//! | `sort(list, field)` | the list in ascending order, by a field of its items if one is given |
//! | `unique(list)` | the list without repeated items |
//! | `values(object)` | its values, in order |
//! | `merge(a, b, …)` | one object with the entries of all; later ones win |
//! | `round(x, digits)`, `floor(x)`, `ceil(x)`, `abs(x)` | |
//! | `base64(x)`, `sha256(x)` | of the text of a value |
//! | `date(time, add, format, zone)` | a time, moved by a duration and formatted |
//! | `raw(x)` | the value itself; in the URL of a request it is not encoded. Only around a whole expression |
//!
//! A wrong type, and `first`, `last`, `min` and `max` of an empty list, are null in a condition and an error in a
//! template.

mod date;
mod lists;
mod text;
pub(super) mod types;

use super::decimal::{self, Rounding};
use super::number::{self, Num};
use super::value::{Bounded, View};
use super::{Missing, Percent, Span, Val};
use crate::value::VALUE_WEIGHT;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt::Write;

/// Arguments of `min`, `max` and `merge`.
pub(super) const MAX_ARGUMENTS: usize = 8;

macro_rules! functions {
    ($($name:literal $variant:ident $least:literal..=$most:expr,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Function { $($variant),* }

        /// The names of all functions.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Function {
            pub fn named(name: &str) -> Option<Function> {
                match name { $($name => Some(Function::$variant),)* _ => None }
            }

            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// The least and the greatest number of arguments.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Function::$variant => ($least, $most)),* }
            }
        }
    };
}

functions! {
    "len" Len 1..=1,
    "contains" Contains 2..=2,
    "starts_with" StartsWith 2..=2,
    "ends_with" EndsWith 2..=2,
    "lower" Lower 1..=1,
    "upper" Upper 1..=1,
    "trim" Trim 1..=1,
    "exists" Exists 1..=1,
    "string" String 1..=1,
    "number" Number 1..=1,
    "json" Json 1..=1,
    "join" Join 2..=2,
    "min" Min 1..=MAX_ARGUMENTS,
    "max" Max 1..=MAX_ARGUMENTS,
    "keys" Keys 1..=1,
    "first" First 1..=1,
    "last" Last 1..=1,
    "urlencode" UrlEncode 1..=1,
    "raw" Raw 1..=1,
    "split" Split 2..=2,
    "replace" Replace 3..=3,
    "slice" Slice 2..=3,
    "sum" Sum 1..=1,
    "sort" Sort 1..=2,
    "unique" Unique 1..=1,
    "values" Values 1..=1,
    "merge" Merge 2..=MAX_ARGUMENTS,
    "round" Round 1..=2,
    "floor" Floor 1..=1,
    "ceil" Ceil 1..=1,
    "abs" Abs 1..=1,
    "base64" Base64 1..=1,
    "sha256" Sha256 1..=1,
    "date" Date 1..=4,
}

/// Why a call has no result.
pub(super) enum CallError {
    /// The type the function takes, and the type it got.
    Type { needs: &'static str, got: &'static str },
    /// The text of the result.
    TooLarge,
    /// Another limit.
    Exceeds(&'static str),
}

impl CallError {
    pub fn at(self, function: Function, at: Span) -> Missing {
        match self {
            CallError::Type { needs, got } => Missing::Type { function: function.name(), needs, got, at },
            CallError::TooLarge => Missing::TooLarge { limit: "4 MB of text" },
            CallError::Exceeds(limit) => Missing::TooLarge { limit },
        }
    }
}

type Outcome<'a> = Result<Val<'a>, CallError>;

impl Function {
    /// The bytes of an argument that a call reads.
    pub fn cost(self, argument: &Val<'_>) -> usize {
        match (self, argument.view()) {
            (Function::Exists | Function::First | Function::Last | Function::Raw, _) => 0,
            (Function::Len, View::List(_) | View::Object(_)) => 0,
            (Function::Contains, View::List(list)) => list.len() * VALUE_WEIGHT,
            (Function::Contains | Function::Keys, View::Object(map)) => map.len() * VALUE_WEIGHT,
            (Function::Sort, View::List(list)) => {
                argument.cost().saturating_mul(1 + list.len().checked_ilog2().unwrap_or(0) as usize)
            }
            _ => argument.cost(),
        }
    }

    /// Calls the function. [`Function::arity`] was checked; arguments may be moved out of the slice.
    pub fn call<'a>(self, arguments: &mut [Val<'a>]) -> Outcome<'a> {
        types::check(self, arguments)?;
        match self {
            Function::Min | Function::Max => return self.extreme(arguments),
            Function::Merge => return lists::merge(arguments),
            Function::Slice => return lists::slice(arguments),
            Function::Sort => return lists::sort(arguments),
            Function::Replace => return text::replace(arguments),
            Function::Date => return date::date(arguments),
            Function::Round => return text::round(arguments),
            _ => {}
        }
        match arguments {
            [value] => self.call_one(value),
            [value, other] => self.call_two(value, other),
            _ => wrong_type("other arguments", &Val::Null),
        }
    }

    fn call_one<'a>(self, value: &mut Val<'a>) -> Outcome<'a> {
        match self {
            Function::Len => match value.view() {
                View::Text(text) => Ok(count(text.chars().count())),
                View::List(list) => Ok(count(list.len())),
                View::Object(map) => Ok(count(map.len())),
                _ => wrong_type("a string, list or object", value),
            },
            Function::Lower => bounded(text(value)?.to_lowercase()),
            Function::Upper => bounded(text(value)?.to_uppercase()),
            Function::Trim => match std::mem::replace(value, Val::Null) {
                Val::Str(text) => Ok(Val::Str(text.trim())),
                Val::Json(Value::String(text)) => Ok(Val::Str(text.trim())),
                other => Ok(text(&other)?.trim().to_owned().into()),
            },
            Function::Exists => Ok((!value.is_null()).into()),
            Function::String => match value.view() {
                View::Text(_) => Ok(take(value)),
                _ => Ok(value.text().ok_or(CallError::TooLarge)?.into_owned().into()),
            },
            Function::Number => match value.view() {
                View::Number(_) => Ok(take(value)),
                View::Text(text) => match number::parse(text.trim()) {
                    Some(number) => Ok(Val::Owned(number.into())),
                    None => Err(CallError::Type { needs: "a number", got: "a string that is not a number" }),
                },
                _ => wrong_type("a number or a string", value),
            },
            Function::Json => {
                let mut out = Bounded::new();
                let written = match value {
                    Val::Json(value) => write!(out, "{value}"),
                    Val::Owned(value) => write!(out, "{value}"),
                    other => write!(out, "{}", other.to_json()),
                };
                written.map_err(|_| CallError::TooLarge)?;
                Ok(String::from(out).into())
            }
            Function::Keys => match value.view() {
                View::Object(map) => Ok(Val::Owned(map.keys().map(|key| Value::from(key.as_str())).collect())),
                _ => wrong_type("an object", value),
            },
            Function::First => end_of(value, <[Value]>::first),
            Function::Last => end_of(value, <[Value]>::last),
            Function::UrlEncode => {
                let mut out = Bounded::new();
                value.write_text(&mut Percent(&mut out)).map_err(|_| CallError::TooLarge)?;
                Ok(String::from(out).into())
            }
            Function::Raw => Ok(take(value)),
            Function::Sum => lists::sum(value),
            Function::Unique => lists::unique(value),
            Function::Values => lists::values(value),
            Function::Floor => rounded(value, Rounding::Down),
            Function::Ceil => rounded(value, Rounding::Up),
            Function::Abs => match value.view() {
                View::Number(number) if number.is_negative() => Ok(Val::number(decimal::negate(number)?)),
                _ => Ok(take(value)),
            },
            Function::Base64 => text::base64(value),
            Function::Sha256 => text::sha256(value),
            _ => wrong_type("other arguments", value),
        }
    }

    fn call_two<'a>(self, value: &Val<'a>, other: &Val<'a>) -> Outcome<'a> {
        match self {
            Function::Contains => match value.view() {
                View::Text(whole) => Ok(whole.contains(text(other)?).into()),
                View::List(list) => Ok(list.iter().any(|item| View::of(item).equals(other.view())).into()),
                View::Object(map) => Ok(map.contains_key(text(other)?).into()),
                _ => wrong_type("a string, list or object", value),
            },
            Function::StartsWith => Ok(text(value)?.starts_with(text(other)?).into()),
            Function::EndsWith => Ok(text(value)?.ends_with(text(other)?).into()),
            Function::Split => text::split(text(value)?, text(other)?),
            Function::Join => match value.view() {
                View::List(list) => join(list, text(other)?),
                _ => wrong_type("a list", value),
            },
            _ => wrong_type("other arguments", value),
        }
    }

    fn extreme<'a>(self, arguments: &mut [Val<'a>]) -> Outcome<'a> {
        if let [only] = arguments
            && let View::List(list) = only.view()
        {
            let best = self.best(list.iter().map(View::of))?;
            return Ok(Val::Owned(list[best].clone()));
        }
        let best = self.best(arguments.iter().map(Val::view))?;
        Ok(take(&mut arguments[best]))
    }

    /// The position of the least or greatest number; the first of equal ones.
    fn best<'v>(self, values: impl Iterator<Item = View<'v>>) -> Result<usize, CallError> {
        let wanted = if self == Function::Min { Ordering::Less } else { Ordering::Greater };
        let mut best: Option<(Num, usize)> = None;
        for (at, value) in values.enumerate() {
            let View::Number(number) = value else {
                return Err(CallError::Type { needs: "numbers", got: value.kind() });
            };
            if best.is_none_or(|(old, _)| number.order(old) == wanted) {
                best = Some((number, at));
            }
        }
        best.map(|(_, at)| at).ok_or(EMPTY)
    }
}

/// What is wrong with text that is written as an argument, and what to write instead.
pub(super) fn literal_fault(function: Function, position: usize, literal: &str) -> Option<(String, Option<String>)> {
    match function {
        Function::Date => date::literal_fault(position, literal),
        Function::Split | Function::Replace if position == 1 && literal.is_empty() => {
            Some((format!("the second argument of `{}` must not be empty", function.name()), None))
        }
        _ => None,
    }
}

/// What is wrong with a number that is written as an argument.
pub(super) fn number_fault(function: Function, position: usize, literal: &Number) -> Option<(String, Option<String>)> {
    let wrong = function == Function::Round && position == 1 && text::digits(Num::of(literal)).is_none();
    wrong.then(|| (format!("`round` needs {}", text::DIGITS), None))
}

const EMPTY: CallError = CallError::Type { needs: "a list with items", got: "an empty list" };

fn wrong_type<'a>(needs: &'static str, got: &Val<'_>) -> Outcome<'a> {
    Err(CallError::Type { needs, got: got.view().kind() })
}

fn rounded<'a>(value: &Val<'_>, rounding: Rounding) -> Outcome<'a> {
    match value.view() {
        View::Number(number) => Ok(Val::number(decimal::round(number, 0, rounding)?)),
        _ => wrong_type("a number", value),
    }
}

fn take<'a>(value: &mut Val<'a>) -> Val<'a> {
    std::mem::replace(value, Val::Null)
}

fn count<'a>(length: usize) -> Val<'a> {
    Val::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

fn text<'v>(value: &'v Val<'_>) -> Result<&'v str, CallError> {
    match value.view() {
        View::Text(text) => Ok(text),
        other => Err(CallError::Type { needs: "a string", got: other.kind() }),
    }
}

/// Checks the length: changing case can triple the length of a string, and calls nest.
fn bounded<'a>(text: String) -> Outcome<'a> {
    if text.len() > super::MAX_TEXT { Err(CallError::TooLarge) } else { Ok(text.into()) }
}

fn join<'a>(list: &[Value], separator: &str) -> Outcome<'a> {
    let mut out = Bounded::new();
    for (n, item) in list.iter().enumerate() {
        if n > 0 {
            out.write_str(separator).map_err(|_| CallError::TooLarge)?;
        }
        Val::Json(item).write_text(&mut out).map_err(|_| CallError::TooLarge)?;
    }
    Ok(String::from(out).into())
}

fn end_of<'a>(value: &mut Val<'a>, end: impl Fn(&[Value]) -> Option<&Value>) -> Outcome<'a> {
    match value {
        Val::Json(Value::Array(list)) => {
            let list: &'a [Value] = list;
            end(list).map(Val::Json).ok_or(EMPTY)
        }
        Val::Owned(Value::Array(list)) => end(list).cloned().map(Val::Owned).ok_or(EMPTY),
        other => wrong_type("a list", other),
    }
}
