//! Functions of lists and objects.

use super::{CallError, Outcome, wrong_type};
use crate::expr::Val;
use crate::expr::decimal;
use crate::expr::number::Num;
use crate::expr::value::View;
use crate::value::weight;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write;

/// What a list or object that a function makes may weigh; see [`weight`].
pub const MAX_WEIGHT: usize = 16 * 1024 * 1024;
pub const LIMIT: &str = "16 MB";

fn items<'v>(value: &'v Val<'_>) -> Result<&'v [Value], CallError> {
    match value.view() {
        View::List(list) => Ok(list),
        other => Err(CallError::Type { needs: "a list", got: other.kind() }),
    }
}

/// Refuses to copy what is too large.
fn check_weight<'v>(values: impl IntoIterator<Item = &'v Value>) -> Result<(), CallError> {
    let mut left = MAX_WEIGHT;
    for value in values {
        left = left.checked_sub(weight(value)).ok_or(CallError::Exceeds(LIMIT))?;
    }
    Ok(())
}

pub fn sum<'a>(value: &Val<'_>) -> Outcome<'a> {
    let numbers = items(value)?.iter().map(|item| match View::of(item) {
        View::Number(number) => Ok(number),
        other => Err(CallError::Type { needs: "a list of numbers", got: other.kind() }),
    });
    let numbers: Vec<Num> = numbers.collect::<Result<_, _>>()?;
    Ok(Val::number(decimal::sum(&numbers)?))
}

pub fn values<'a>(value: &Val<'_>) -> Outcome<'a> {
    let View::Object(map) = value.view() else { return wrong_type("an object", value) };
    check_weight(map.values())?;
    Ok(Val::Owned(map.values().cloned().collect()))
}

pub fn merge<'a>(objects: &[Val<'_>]) -> Outcome<'a> {
    let mut merged = Map::new();
    let mut weighed = 0usize;
    for object in objects {
        let View::Object(map) = object.view() else { return wrong_type("objects", object) };
        weighed += object.cost();
        if weighed > MAX_WEIGHT {
            return Err(CallError::Exceeds(LIMIT));
        }
        merged.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(Val::Owned(merged.into()))
}

pub fn slice<'a>(arguments: &[Val<'_>]) -> Outcome<'a> {
    let [whole, bounds @ ..] = arguments else { return wrong_type("other arguments", &Val::Null) };
    let bound = |at: usize| match bounds.get(at).map(Val::view) {
        Some(View::Number(number)) => {
            let needs = CallError::Type { needs: "whole positions", got: "a number with a fraction" };
            number.whole().map(Some).ok_or(needs)
        }
        _ => Ok(None),
    };
    let (from, to) = (bound(0)?, bound(1)?);
    match whole.view() {
        View::Text(text) => {
            let range = range(text.chars().count(), from, to);
            Ok(text.chars().skip(range.start).take(range.len()).collect::<String>().into())
        }
        View::List(list) => {
            let part = &list[range(list.len(), from, to)];
            check_weight(part)?;
            Ok(Val::Owned(part.into()))
        }
        _ => wrong_type("a string or a list", whole),
    }
}

/// Positions before 0 count from the end; positions outside are moved to the nearest end.
fn range(length: usize, from: Option<i64>, to: Option<i64>) -> std::ops::Range<usize> {
    let at = |position: i64| {
        let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
        if position < 0 { length.saturating_sub(distance) } else { distance.min(length) }
    };
    let (start, end) = (from.map_or(0, at), to.map_or(length, at));
    start.min(end)..end
}

/// Ascending: numbers by value or strings by code point. Equal ones keep their order.
pub fn sort<'a>(arguments: &[Val<'_>]) -> Outcome<'a> {
    let [list, field @ ..] = arguments else { return wrong_type("a list", &Val::Null) };
    let list = items(list)?;
    let field = match field.first().map(Val::view) {
        Some(View::Text(field)) => Some(field),
        _ => None,
    };
    let mut keyed = Vec::with_capacity(list.len());
    for item in list {
        let key = match field {
            None => Some(item),
            Some(field) => item.get(field),
        };
        let key = View::of(key.ok_or(CallError::Type { needs: "items that have the field", got: "one without it" })?);
        if !matches!(key, View::Number(_) | View::Text(_)) {
            return Err(CallError::Type { needs: "numbers or strings to sort by", got: key.kind() });
        }
        keyed.push((key, item));
    }
    let mixed = keyed.windows(2).any(|pair| pair[0].0.order(pair[1].0).is_none());
    if mixed {
        return Err(CallError::Type { needs: "numbers or strings to sort by", got: "both" });
    }
    check_weight(list)?;
    keyed.sort_by(|(left, _), (right, _)| left.order(*right).unwrap_or(Ordering::Equal));
    Ok(Val::Owned(keyed.into_iter().map(|(_, item)| item.clone()).collect()))
}

/// The first of equal items stays.
pub fn unique<'a>(value: &Val<'_>) -> Outcome<'a> {
    let list = items(value)?;
    check_weight(list)?;
    let mut seen = HashSet::new();
    let new = list.iter().filter(|item| {
        let mut key = String::new();
        write_key(item, &mut key);
        seen.insert(key)
    });
    Ok(Val::Owned(new.cloned().collect()))
}

/// Text that is the same for equal values, whatever the order of keys and the notation of numbers.
fn write_key(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => {
            let _ = match Num::of(number) {
                Num::Int(int) => write!(out, "{int}"),
                Num::Float(float) if float.fract() == 0.0 && float.abs() < 1e30 => write!(out, "{}", float as i128),
                Num::Float(float) => write!(out, "{float:e}"),
            };
        }
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| {
                write_key(item, out);
                out.push(',');
            });
        }
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, item) in entries {
                write_key(&Value::from(key.as_str()), out);
                out.push(':');
                write_key(item, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}
