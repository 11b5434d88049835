//! Digests that bind an approval to the request that was shown to the approver.
//!
//! A digest is SHA-256 over canonical JSON: keys sorted, no spaces, numbers in their usual form. Secrets appear by
//! name, so comparing digests does not require their values.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The digest of one call: its kind and arguments. It is the same when the call is shown and when it is made.
pub fn call_digest(kind: &str, input: &Value) -> String {
    digest(&serde_json::json!({"kind": kind, "input": input}))
}

pub fn digest(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing into a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The recursion is bounded because the depth of templates and results is.
fn canonical(value: &Value, to: &mut String) {
    match value {
        Value::Object(fields) => object(fields, to),
        Value::Array(items) => {
            to.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    to.push(',');
                }
                canonical(item, to);
            }
            to.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(to, "{value}");
        }
    }
}

fn object(fields: &Map<String, Value>, to: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    to.push('{');
    for (n, (key, field)) in sorted.into_iter().enumerate() {
        if n > 0 {
            to.push(',');
        }
        let _ = write!(to, "{}:", Value::String(key.clone()));
        canonical(field, to);
    }
    to.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn digest_ignores_key_order_and_nothing_else() {
        let same = |a: Value, b: Value, expected| assert_eq!(digest(&a) == digest(&b), expected, "{a} {b}");
        same(json!({"a": 1, "b": [1, {"x": null, "y": "z"}]}), json!({"b": [1, {"y": "z", "x": null}], "a": 1}), true);
        same(json!({"a": 1}), json!({"a": "1"}), false);
        same(json!([1, 2]), json!([2, 1]), false);
        same(json!({"a": {}}), json!({"a": []}), false);
        same(json!({"a\":1,\"b": 2}), json!({"a": 1, "b": 2}), false);
        // printf '{"a":1,"b":"ä"}' | sha256sum
        let known = "f5300ffcfd6fd3fc2de46d700be90d43fd799cd9eb69da4737201006143d48a1";
        assert_eq!(digest(&json!({"b": "ä", "a": 1})), known);
    }
}
