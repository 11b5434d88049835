//! Checks arguments against a tool's schema. Supports only the JSON Schema keywords that built-in tools use.
//!
//! A complete validator is not needed, because all these schemas are written in this crate. Other keywords in a schema
//! are documentation for the reader; the tool checks them itself.

use crate::text::type_of;
use serde_json::Value;
use stepwell_core::nearest::nearest;

/// A parsed schema.
pub struct ArgumentSchema {
    fields: Vec<(String, Field)>,
    required: Vec<String>,
    /// Whether properties other than `fields` are refused.
    closed: bool,
    /// Whether the schema constrains the arguments at all.
    checked: bool,
}

#[derive(Default)]
struct Field {
    types: Vec<String>,
    choices: Vec<Value>,
    minimum: Option<f64>,
    maximum: Option<f64>,
}

impl ArgumentSchema {
    pub fn new(schema: &Value) -> ArgumentSchema {
        let fields: Vec<(String, Field)> = match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => properties.iter().map(|(name, rule)| (name.clone(), Field::new(rule))).collect(),
            None => Vec::new(),
        };
        let required = strings(schema.get("required"));
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let checked = closed || !fields.is_empty() || !required.is_empty();
        ArgumentSchema { fields, required, closed, checked }
    }

    /// Returns the first violation as a message that names the argument.
    pub fn check(&self, args: &Value) -> Result<(), String> {
        if !self.checked {
            return Ok(());
        }
        let Some(given) = args.as_object() else {
            return Err(format!("`args` must be an object, but it is {}", type_of(args)));
        };
        if let Some(missing) = self.required.iter().find(|name| given.get(*name).is_none_or(Value::is_null)) {
            return Err(format!("`args.{missing}` is missing"));
        }
        for (name, value) in given {
            match self.fields.iter().find(|(field, _)| field == name) {
                Some((_, field)) if !value.is_null() => field.check(name, value)?,
                Some(_) => {}
                None if self.closed => return Err(self.unknown(name)),
                None => {}
            }
        }
        Ok(())
    }

    /// As [`ArgumentSchema::check`], for arguments of which some are not known yet: they are null.
    pub fn check_known(&self, args: &Value) -> Result<(), String> {
        let Some(given) = args.as_object().filter(|_| self.checked) else { return Ok(()) };
        if let Some(missing) = self.required.iter().find(|name| !given.contains_key(*name)) {
            return Err(format!("`args.{missing}` is missing"));
        }
        for (name, value) in given {
            match self.fields.iter().find(|(field, _)| field == name) {
                Some((_, field)) if !value.is_null() => field.check(name, value)?,
                None if self.closed => return Err(self.unknown(name)),
                _ => {}
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let names = || self.fields.iter().map(|(name, _)| name.as_str());
        let shown: String = name.chars().take(40).collect();
        match nearest(name, names()) {
            Some(near) => format!("it has no argument `args.{shown}`; did you mean `{near}`?"),
            None if self.fields.is_empty() => format!("it takes no arguments, but `args.{shown}` is given"),
            None => format!("it has no argument `args.{shown}`; known: {}", names().collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Field {
    fn new(rule: &Value) -> Field {
        let types = match rule.get("type") {
            Some(Value::String(one)) => vec![one.clone()],
            several => strings(several),
        };
        let choices = rule.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let number = |name| rule.get(name).and_then(Value::as_f64);
        Field { types, choices, minimum: number("minimum"), maximum: number("maximum") }
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        if !self.types.is_empty() && !self.types.iter().any(|wanted| has_type(value, wanted)) {
            let wanted: Vec<&str> = self.types.iter().map(|wanted| type_name(wanted)).collect();
            return Err(format!("`args.{name}` must be {}, but it is {}", wanted.join(" or "), type_of(value)));
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let known: Vec<String> = self.choices.iter().map(Value::to_string).collect();
            return Err(format!("`args.{name}` must be one of {}", known.join(", ")));
        }
        let number = value.as_f64();
        match (self.minimum, self.maximum) {
            (Some(least), _) if number.is_some_and(|n| n < least) => {
                Err(format!("`args.{name}` must be {least} or more"))
            }
            (_, Some(most)) if number.is_some_and(|n| n > most) => Err(format!("`args.{name}` must be {most} or less")),
            _ => Ok(()),
        }
    }
}

/// Reads an integer, including one that arithmetic turned into `2.0`.
pub fn integer(value: &Value) -> Option<i64> {
    /// The largest integers that a double represents exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |n: &f64| n.fract() == 0.0 && n.abs() <= EXACT;
    value.as_i64().or_else(|| value.as_f64().filter(whole).map(|n| n as i64))
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => integer(value).is_some(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // An unknown type is an error in the schema, not in the arguments.
        _ => true,
    }
}

fn type_name(wanted: &str) -> &str {
    match wanted {
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(args: Value, expected: &str) {
        let schema = ArgumentSchema::new(&json!({
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "level": {"type": "string", "enum": ["info", "warn"]},
                "priority": {"type": "integer", "minimum": -2, "maximum": 2},
                "body": {},
                "html": {"type": ["boolean", "integer"]},
            },
            "required": ["message"],
            "additionalProperties": false,
        }));
        assert_eq!(schema.check(&args).err().unwrap_or_default(), expected, "{args}");
    }

    #[test]
    fn accepts_valid_arguments() {
        check(json!({"message": "x"}), "");
        check(json!({"message": "x", "level": null}), "");
        check(json!({"message": "", "level": "warn", "priority": 2.0, "body": [1], "html": true}), "");
    }

    #[test]
    fn names_the_first_invalid_argument() {
        check(json!([]), "`args` must be an object, but it is a list");
        check(json!({}), "`args.message` is missing");
        check(json!({"message": null}), "`args.message` is missing");
        check(json!({"message": 7}), "`args.message` must be text, but it is a number");
        check(json!({"message": "x", "levl": "info"}), "it has no argument `args.levl`; did you mean `level`?");
        check(json!({"message": "x", "level": "loud"}), r#"`args.level` must be one of "info", "warn""#);
        check(json!({"message": "x", "priority": 1.5}), "`args.priority` must be a whole number, but it is a number");
        check(json!({"message": "x", "priority": 3}), "`args.priority` must be 2 or less");
        check(json!({"message": "x", "priority": -3}), "`args.priority` must be -2 or more");
        check(
            json!({"message": "x", "html": "yes"}),
            "`args.html` must be true or false or a whole number, but it is text",
        );
    }

    #[test]
    fn a_schema_without_constraints_accepts_anything() {
        let schema = ArgumentSchema::new(&json!({"type": "object"}));
        assert_eq!(schema.check(&json!([1])), Ok(()));
    }
}
