//! Are arguments what a tool's schema asks for? Knows only as much of JSON Schema as arguments of tools need.
//!
//! A complete validator would add some thirty crates for schemas that are all written in this crate. What a schema says
//! beyond these keywords is for its reader, and for the tool itself to check.

use serde_json::Value;
use stepwell_core::nearest::nearest;

/// A schema, read once.
pub struct Shape {
    fields: Vec<(String, Field)>,
    required: Vec<String>,
    /// Nothing but `fields`.
    closed: bool,
    /// Something is asked for at all.
    checked: bool,
}

#[derive(Default)]
struct Field {
    types: Vec<String>,
    choices: Vec<Value>,
    minimum: Option<f64>,
    maximum: Option<f64>,
}

impl Shape {
    pub fn of(schema: &Value) -> Shape {
        let fields: Vec<(String, Field)> = match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => properties.iter().map(|(name, rule)| (name.clone(), Field::of(rule))).collect(),
            None => Vec::new(),
        };
        let required = texts(schema.get("required"));
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let checked = closed || !fields.is_empty() || !required.is_empty();
        Shape { fields, required, closed, checked }
    }

    /// Says what is wrong, and where.
    pub fn check(&self, args: &Value) -> Result<(), String> {
        if !self.checked {
            return Ok(());
        }
        let Some(given) = args.as_object() else {
            return Err(format!("`args` must be an object, but it is {}", kind(args)));
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
    fn of(rule: &Value) -> Field {
        let types = match rule.get("type") {
            Some(Value::String(one)) => vec![one.clone()],
            several => texts(several),
        };
        let choices = rule.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let number = |name| rule.get(name).and_then(Value::as_f64);
        Field { types, choices, minimum: number("minimum"), maximum: number("maximum") }
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        if !self.types.is_empty() && !self.types.iter().any(|wanted| is(value, wanted)) {
            let wanted: Vec<&str> = self.types.iter().map(|wanted| in_words(wanted)).collect();
            return Err(format!("`args.{name}` must be {}, but it is {}", wanted.join(" or "), kind(value)));
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

/// A whole number, also where arithmetic made `2.0` of it.
pub fn integer(value: &Value) -> Option<i64> {
    /// The largest whole numbers that a double holds exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |n: &f64| n.fract() == 0.0 && n.abs() <= EXACT;
    value.as_i64().or_else(|| value.as_f64().filter(whole).map(|n| n as i64))
}

fn is(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => integer(value).is_some(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A type that does not exist is a fault of the schema, not of the arguments.
        _ => true,
    }
}

fn in_words(wanted: &str) -> &str {
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

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(args: Value, expected: &str) {
        let shape = Shape::of(&json!({
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
        assert_eq!(shape.check(&args).err().unwrap_or_default(), expected, "{args}");
    }

    #[test]
    fn arguments_that_fit_pass() {
        check(json!({"message": "x"}), "");
        check(json!({"message": "x", "level": null}), "");
        check(json!({"message": "", "level": "warn", "priority": 2.0, "body": [1], "html": true}), "");
    }

    #[test]
    fn the_first_argument_that_does_not_fit_is_named() {
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
    fn a_schema_that_asks_for_nothing_takes_anything() {
        let shape = Shape::of(&json!({"type": "object"}));
        assert_eq!(shape.check(&json!([1])), Ok(()));
    }
}
