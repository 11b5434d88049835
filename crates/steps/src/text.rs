//! Text for messages.

use serde_json::Value;

/// Quotes a name as JSON does. `{:?}` would show Rust's escapes, which users do not know.
pub fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}

/// The type of a value.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_without_rust_escapes() {
        assert_eq!(quoted("größe"), r#""größe""#);
        assert_eq!(quoted("a\"b\u{1}\u{200b}'"), "\"a\\\"b\\u0001\u{200b}'\"");
    }
}
