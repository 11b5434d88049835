//! Request bodies that are not JSON, written so that generators keep them.

use super::operations;
use serde_json::{Value, json};

/// Bodies that are sent as they are.
const PLAIN: [&str; 3] = ["application/yaml", "text/plain", "application/octet-stream"];
const FORM: &str = "application/x-www-form-urlencoded";

pub fn add(api: &mut Value) {
    for (_, operation) in operations(api) {
        let Some(content) = operation.get_mut("requestBody").and_then(|body| body["content"].as_object_mut()) else {
            continue;
        };
        for (kind, media) in content.iter_mut() {
            match kind.as_str() {
                kind if PLAIN.contains(&kind) => media["schema"] = json!({"type": "string", "format": "binary"}),
                FORM => media["schema"] = answer(),
                _ => {}
            }
        }
        // A generator for Python needs an optional parameter beside several types of body. Every operation takes this one.
        let several = content.len() > 1;
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        let is_optional = |one: &Value| one["required"] != true;
        if let Some(list) = parameters.as_array_mut().filter(|list| several && !list.iter().any(is_optional)) {
            list.push(json!({
                "name": "X-Request-Id", "in": "header", "required": false,
                "description": "Identifies the request in the log and in the response", "schema": {"type": "string"},
            }));
        }
    }
}

/// The form behind an approval link.
fn answer() -> Value {
    json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["approve", "deny"]},
            "digest": {"type": "string", "description": "Digest of the question that was shown"},
            "comment": {"type": "string"},
            "form": {"type": "string", "description": "All fields of the gate's form as JSON"},
        },
        "required": ["decision"],
        "additionalProperties": {"type": "string", "description": "A field of the gate's form, as `form.NAME`"},
    })
}
