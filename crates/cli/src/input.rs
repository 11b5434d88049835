//! A run's input from the command line.

use anyhow::Context;
use serde_json::{Value, json};

/// Parses `JSON`, `@FILE`, `-` for standard input, and any number of `key=value`; a value that parses as JSON is JSON.
/// Objects are merged.
pub fn input(given: &[String]) -> anyhow::Result<Value> {
    let mut all = json!({});
    for text in given {
        if text == "-" {
            let text = std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?;
            all = merge(all, serde_json::from_str(&text).context("standard input is not JSON")?);
        } else if let Some(path) = text.strip_prefix('@') {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            let value = serde_json::from_str(&text).with_context(|| format!("{path} is not JSON"))?;
            all = merge(all, value);
        } else if text.trim_start().starts_with(['{', '[', '"']) {
            all = merge(all, serde_json::from_str(text).with_context(|| format!("--input {text} is not JSON"))?);
        } else if let Ok(value) = serde_json::from_str(text) {
            all = value;
        } else {
            let (key, value) =
                text.split_once('=').with_context(|| format!("--input {text}: expected JSON, @FILE or key=value"))?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_string()));
            let fields = all.as_object_mut().context("--input key=value can be added only to an object")?;
            fields.insert(key.to_string(), value);
        }
    }
    Ok(all)
}

/// The later value wins, field by field if both are objects.
fn merge(all: Value, more: Value) -> Value {
    match (all, more) {
        (Value::Object(mut all), Value::Object(more)) => {
            all.extend(more);
            Value::Object(all)
        }
        (_, more) => more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_json_or_pairs_whose_values_are_json_where_they_can_be() {
        let check = |given: &[&str], expected: Value| {
            let given: Vec<String> = given.iter().map(|s| s.to_string()).collect();
            assert_eq!(input(&given).unwrap(), expected);
        };
        check(&[], json!({}));
        check(&["n=5", "name=ann", "list=[1]"], json!({"n": 5, "name": "ann", "list": [1]}));
        check(&["{\"a\": 1}", "b=2"], json!({"a": 1, "b": 2}));
        check(&["b=2", "{\"a\": 1, \"b\": 3}"], json!({"a": 1, "b": 3}));
        check(&["5"], json!(5));
        check(&["null"], json!(null));
        assert!(input(&["nonsense".into()]).is_err());
        assert!(input(&["{broken".into()]).is_err());
        assert!(input(&["5".into(), "a=1".into()]).is_err());
    }
}
