//! A gate's form on a page: fields for the simple properties of its schema, one JSON text for everything else; and
//! parsing of the submitted form.

use super::Faults;
use crate::error::Problem;
use serde_json::{Map, Value};

/// Prefix of field names on the page, so that no property collides with the page's own fields.
const FIELD: &str = "form.";
/// The field for all data as JSON, if the form is not simple.
pub const WHOLE: &str = "form";

/// A submitted form.
pub struct Sent(Vec<(String, String)>);

impl Sent {
    pub fn read(pairs: Vec<(String, String)>) -> Result<Sent, Problem> {
        if pairs.iter().any(|(_, value)| value.contains('\0')) {
            return Err(Problem::input("", "strings must not contain NUL characters"));
        }
        Ok(Sent(pairs))
    }

    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A property with its own field.
pub struct Field<'a> {
    pub name: &'a str,
    pub label: &'a str,
    pub help: Option<&'a str>,
    pub required: bool,
    pub sort: Sort<'a>,
    pub default: Option<&'a Value>,
}

pub enum Sort<'a> {
    Text,
    Number,
    Integer,
    Boolean,
    Choice(&'a [Value]),
}

impl Field<'_> {
    pub fn key(&self) -> String {
        format!("{FIELD}{}", self.name)
    }
}

/// The fields of a simple form. `None` if the schema needs more than fields can express.
pub fn fields(schema: &Value) -> Option<Vec<Field<'_>>> {
    let known = ["type", "properties", "required", "title", "description", "additionalProperties", "$schema"];
    let schema = schema.as_object()?;
    if schema.get("type")? != "object" || schema.keys().any(|key| !known.contains(&&**key)) {
        return None;
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|one| one == name));
    let properties = schema.get("properties")?.as_object()?;
    if required.into_iter().flatten().filter_map(Value::as_str).any(|name| !properties.contains_key(name)) {
        return None;
    }
    let mut fields = Vec::new();
    for (name, property) in properties {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        fields.push(Field {
            name,
            label: text("title").unwrap_or(name),
            help: text("description"),
            required: is_required(name),
            sort: sort(property)?,
            default: property.get("default"),
        });
    }
    Some(fields)
}

fn sort(property: &Value) -> Option<Sort<'_>> {
    if let Some(choices) = property.get("enum").and_then(Value::as_array) {
        return Some(Sort::Choice(choices));
    }
    match property.get("type")?.as_str()? {
        "string" => Some(Sort::Text),
        "number" => Some(Sort::Number),
        "integer" => Some(Sort::Integer),
        "boolean" => Some(Sort::Boolean),
        _ => None,
    }
}

/// The submitted data. The engine validates it against the schema.
pub fn filled(schema: &Value, sent: &Sent) -> Result<Value, Faults> {
    let Some(fields) = fields(schema) else {
        let text = sent.first(WHOLE).unwrap_or_default();
        let bad = |error| vec![("data".to_string(), format!("this is not JSON: {error}"))];
        return serde_json::from_str(text).map_err(bad);
    };
    let mut data = Map::new();
    let mut faults = Vec::new();
    for field in fields {
        match value(&field, sent.first(&field.key())) {
            Ok(Some(value)) => {
                data.insert(field.name.to_string(), value);
            }
            Ok(None) => {}
            Err(message) => faults.push((format!("data/{}", field.name), message)),
        }
    }
    if faults.is_empty() { Ok(Value::Object(data)) } else { Err(faults) }
}

fn value(field: &Field<'_>, text: Option<&str>) -> Result<Option<Value>, String> {
    let text = text.unwrap_or_default();
    match field.sort {
        // Browsers do not send an unchecked box.
        Sort::Boolean => Ok(Some(Value::Bool(!text.is_empty()))),
        _ if text.is_empty() && !field.required => Ok(None),
        Sort::Text => Ok(Some(text.into())),
        Sort::Number | Sort::Integer => {
            let number = serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_number);
            number.map(Some).ok_or_else(|| format!("{text:?} is not a number"))
        }
        Sort::Choice(choices) => {
            let chosen = text.parse::<usize>().ok().and_then(|n| choices.get(n));
            chosen.cloned().map(Some).ok_or_else(|| "choose one".to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, body: &str, expected: Value) {
        let sent = Sent::read(form_urlencoded::parse(body.as_bytes()).into_owned().collect()).unwrap();
        let told = match filled(&schema, &sent) {
            Ok(data) => data,
            Err(faults) => json!(faults.iter().map(|(path, _)| path).collect::<Vec<_>>()),
        };
        assert_eq!(told, expected, "{schema} {body}");
    }

    #[test]
    fn simple_properties_are_fields_and_come_back_as_what_they_are() {
        let schema = json!({"type": "object", "required": ["n"], "properties": {
            "text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "ok": {"type": "boolean"},
            "size": {"enum": ["S", 2, null]}}});
        let all = "form.text=a%26b&form.n=3&form.x=1.5&form.ok=on&form.size=1";
        check(schema.clone(), all, json!({"text": "a&b", "n": 3, "x": 1.5, "ok": true, "size": 2}));
        check(schema.clone(), "form.n=3", json!({"n": 3, "ok": false}));
        check(schema.clone(), "form.n=three&form.size=9", json!(["data/n", "data/size"]));
        check(schema, "", json!(["data/n"]));
    }

    #[test]
    fn what_is_not_simple_is_filled_in_as_json() {
        for schema in [
            json!({"type": "array"}),
            json!({"type": "object", "properties": {"list": {"type": "array"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": []}),
            json!({"type": "object", "properties": {}, "required": ["a"]}),
            json!({}),
            json!(true),
        ] {
            check(schema.clone(), "form=%7B%22a%22%3A+1%7D", json!({"a": 1}));
            check(schema, "form=%7B", json!(["data"]));
        }
    }
}
