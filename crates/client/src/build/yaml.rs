//! Writes YAML in block style; keys and texts are in quotes where YAML would read something else. JSON is part of YAML, so
//! lists and everything odd are written as JSON.

use super::read::is_plain;
use serde_json::Value;

/// Words that some readers of YAML take for something else than text.
const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"];

pub(super) fn write(definition: &Value) -> String {
    let mut text = String::new();
    block(definition, 0, &mut text);
    text
}

fn block(value: &Value, depth: usize, text: &mut String) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = if is_plain(key) && !is_word(key) { key.clone() } else { Value::from(key.as_str()).to_string() };
        text.push_str(&"  ".repeat(depth));
        text.push_str(&key);
        match value {
            Value::Object(map) if !map.is_empty() => {
                text.push_str(":\n");
                block(value, depth + 1, text);
            }
            Value::String(plain) if is_bare(plain) => text.push_str(&format!(": {plain}\n")),
            value => text.push_str(&format!(": {value}\n")),
        }
    }
}

fn is_word(text: &str) -> bool {
    WORDS.contains(&text.to_ascii_lowercase().as_str())
}

fn is_bare(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_/. -".contains(c);
    let last = |c: char| c.is_ascii_alphanumeric() || "_/".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.ends_with(last)
        && text.chars().all(inner)
        && !is_word(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_quoted_where_yaml_would_read_something_else() {
        let deep = json!({"a": "{{b}}"});
        let definition =
            json!({"name": "a b", "on": "no", "odd key": "x: y", "list": [1, "a"], "empty": {}, "deep": deep});
        let expected =
            "name: a b\n\"on\": \"no\"\n\"odd key\": \"x: y\"\nlist: [1,\"a\"]\nempty: {}\ndeep:\n  a: \"{{b}}\"\n";
        assert_eq!(write(&definition), expected);
    }
}
