//! Shapes and rules of the vocabulary as parts of a JSON Schema.

use super::{Defs, reference};
use crate::values::Unit;
use crate::vocabulary::{Bounds, Def, Object, Rule, STEP, Shape};
use serde_json::{Map, Value as Json, json};
use stepwell_core::time::Millis;

/// A value that is not null.
pub fn given() -> Json {
    reference("given")
}

/// Null, which counts as leaving the field out. Written so that editors do not suggest it.
pub fn absent() -> Json {
    reference("absent")
}

/// The object has the field.
pub fn has(name: &str) -> Json {
    json!({"type": "object", "required": [name], "properties": {name: given()}})
}

/// The field has this value, in JSON; `[]` stands for any list.
pub fn is(name: &str, value: &str) -> Json {
    let value = match value {
        "[]" => json!({"type": "array"}),
        value => json!({"const": serde_json::from_str::<Json>(value).unwrap_or_default()}),
    };
    json!({"type": "object", "required": [name], "properties": {name: value}})
}

pub fn any_of(parts: impl IntoIterator<Item = Json>) -> Json {
    let mut parts: Vec<Json> = parts.into_iter().collect();
    if parts.len() == 1 { parts.remove(0) } else { json!({"anyOf": parts}) }
}

/// `retry.attempts` and the fields with the same meaning beside `retry`.
pub fn attempts_once() -> Json {
    const NUMBERS: [&str; 4] = ["retries", "retry_attempts", "maxAttempts", "max_attempts"];
    let counted = json!({"type": "object", "required": ["retry"], "properties": {"retry": has("attempts")}});
    json!({"if": counted, "then": none(NUMBERS, "`retry.attempts` has the same meaning")})
}

/// None of these fields has a value.
pub fn none<'n>(names: impl IntoIterator<Item = &'n str>, why: &str) -> Json {
    let mut refused = absent();
    refused["errorMessage"] = why.into();
    json!({"properties": names.into_iter().map(|name| (name.to_owned(), refused.clone())).collect::<Map<_, _>>()})
}

/// The names as one pattern for `patternProperties`, whose names editors do not suggest.
pub fn pattern<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    format!("^({})$", names.into_iter().collect::<Vec<_>>().join("|"))
}

/// The properties of an object, all that are `wanted`.
pub fn properties(object: &Object, defs: &mut Defs, wanted: impl Fn(&Def) -> bool) -> Map<String, Json> {
    let mut found = Map::new();
    for def in object.fields.iter().filter(|def| wanted(def)) {
        let required = required(object).any(|name| name == def.name);
        for (n, name) in def.names().enumerate() {
            let doc = if n == 0 { def.doc.to_owned() } else { format!("The same as `{}`. {}", def.name, def.doc) };
            found.insert(name.to_owned(), property(def, &doc, required, defs));
        }
    }
    found
}

fn property(def: &Def, doc: &str, required: bool, defs: &mut Defs) -> Json {
    let value = shape(&def.shape, defs);
    let mut field = match def.shape {
        Shape::Any => json!({}),
        _ if required || def.null => value,
        _ => json!({"anyOf": [value, absent()]}),
    };
    if field.get("$ref").is_some() {
        field = json!({"allOf": [field]});
    }
    field["description"] = doc.into();
    if let Ok(example) = serde_json::from_str::<Json>(def.example) {
        field["examples"] = json!([example]);
    }
    field
}

/// The shape of a field of an object without its description.
pub fn of(object: &Object, name: &str) -> Json {
    object.find(name).map_or(json!(true), |def| shape(&def.shape, &mut Defs::default()))
}

/// The fields that an object always needs.
fn required(object: &Object) -> impl Iterator<Item = &'static str> {
    object.rules.iter().filter_map(|rule| match rule {
        Rule::Some([one]) => Some(*one),
        _ => None,
    })
}

/// Adds the object to the definitions and returns a reference to it.
pub fn object(object: &'static Object, defs: &mut Defs) -> Json {
    if object.fields.is_empty() && object.open {
        return json!({"type": "object"});
    }
    let name = match object.name {
        // Steps in the body of a for_each are tasks in every dialect.
        "step" => "taskStep",
        name => name,
    };
    if defs.0.contains_key(name) || name == "taskStep" {
        return reference(name);
    }
    // Stands here while its fields are written, which may refer to it.
    defs.put(name, Json::Null);
    let mut schema = json!({
        "description": object.doc,
        "type": "object",
        "properties": properties(object, defs, |_| true),
    });
    let required: Vec<&str> = required(object).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !object.ignored.is_empty() {
        schema["patternProperties"] = json!({pattern(object.ignored.iter().copied()): true});
    }
    if !object.open {
        schema["additionalProperties"] = json!(false);
    }
    let mut rules = rules(object);
    if object.name == "defaults" {
        rules.push(attempts_once());
        // Fields of steps that defaults cannot have count as absent if they are null.
        let elsewhere = STEP.fields.iter().flat_map(Def::names).filter(|name| object.find(name).is_none());
        schema["patternProperties"] = json!({pattern(elsewhere): absent()});
    }
    if !rules.is_empty() {
        schema["allOf"] = json!(rules);
    }
    defs.put(name, schema)
}

pub fn rules(object: &Object) -> Vec<Json> {
    object.rules.iter().filter_map(rule).collect()
}

pub fn rule(rule: &Rule) -> Option<Json> {
    let list = |names: &[&str]| names.join("`, `");
    Some(match rule {
        Rule::Some([_]) => return None,
        Rule::Some(names) => {
            json!({"anyOf": names.iter().map(|name| has(name)).collect::<Vec<_>>(),
                   "errorMessage": format!("one of `{}` is needed", list(names))})
        }
        Rule::One(names) => {
            json!({"oneOf": names.iter().map(|name| has(name)).collect::<Vec<_>>(),
                   "errorMessage": format!("exactly one of `{}` is needed", list(names))})
        }
        Rule::AtMostOne(names) => {
            let mut pairs = Vec::new();
            for (n, first) in names.iter().enumerate() {
                pairs.extend(names[n + 1..].iter().map(|second| json!({"allOf": [has(first), has(second)]})));
            }
            json!({"not": any_of(pairs), "errorMessage": format!("keep one of `{}`", list(names))})
        }
        Rule::Excludes(name, others) => {
            json!({"if": has(name), "then": none(others.iter().copied(), &format!("this excludes `{name}`"))})
        }
        Rule::Needs(name, others) => json!({
            "if": has(name), "then": any_of(others.iter().map(|other| has(other))),
        }),
        Rule::Bars(name, value, others) => json!({
            "if": is(name, value),
            "then": none(others.iter().copied(), &format!("this has no effect with `{name}: {value}`")),
        }),
        Rule::Asks(name, value, others) => json!({
            "if": is(name, value), "then": any_of(others.iter().map(|other| has(other))),
        }),
        Rule::OnlyWith(name, other, value) => json!({"if": has(name), "then": is(other, value)}),
    })
}

pub fn shape(shape: &Shape, defs: &mut Defs) -> Json {
    match shape {
        Shape::Any => json!(true),
        Shape::Text => json!({"type": "string"}),
        Shape::Form(form) => json!({"type": "string", "pattern": form}),
        Shape::Constant => json!({"type": "string", "pattern": r"\S", "not": {"pattern": r"\{\{"}}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::True => json!({"const": true}),
        Shape::Number => json!({"type": "number"}),
        Shape::Size => json!({"anyOf": [
            {"type": "integer", "minimum": 1_u64 << 20, "maximum": 4_u64 << 30},
            {"type": "string", "pattern": r"^\s*\d+\s*([bB]|[kKmMgG]([iI]?[bB])?)?\s*$"},
        ]}),
        Shape::Whole(least, most) => {
            let digits = most.to_string().len();
            json!({"anyOf": [
                {"type": "integer", "minimum": least, "maximum": most},
                {"type": "string", "pattern": format!(r"^\s*\+?0*\d{{1,{digits}}}\s*$")},
            ]})
        }
        Shape::Count(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Shape::Length(unit) => length(*unit, false),
        Shape::Positive(unit) => length(*unit, true),
        Shape::Choice(names) => json!({"enum": names}),
        Shape::AnyCase(names) => {
            json!({"anyOf": [{"enum": names}, {"type": "string", "pattern": any_case(names)}]})
        }
        Shape::Condition => json!({"type": ["string", "boolean"]}),
        Shape::List(inner, bounds) => list(self::shape(inner, defs), *bounds),
        Shape::OneOrMore(inner, bounds) => {
            let inner = self::shape(inner, defs);
            json!({"anyOf": [inner, list(inner, *bounds)]})
        }
        Shape::Map(map) => {
            let mut schema = json!({"type": "object", "additionalProperties": self::shape(&map.value, defs)});
            if !map.keys.is_empty() {
                schema["propertyNames"] = json!({"pattern": map.keys});
            }
            bound(&mut schema, map.bounds, "Properties");
            schema
        }
        Shape::Object(object) => self::object(object, defs),
        Shape::Either(shapes) => any_of(shapes.iter().map(|one| self::shape(one, defs)).collect::<Vec<_>>()),
    }
}

fn list(items: Json, bounds: Bounds) -> Json {
    let mut schema = json!({"type": "array", "items": items});
    bound(&mut schema, bounds, "Items");
    schema
}

fn bound(schema: &mut Json, (least, most): Bounds, what: &str) {
    if least > 0 {
        schema[format!("min{what}")] = least.into();
    }
    if most < usize::MAX {
        schema[format!("max{what}")] = most.into();
    }
}

/// A duration: a number, or text such as `1h30m`.
fn length(unit: Unit, positive: bool) -> Json {
    const UNITS: &str = "ms|s|secs?|seconds?|m|mins?|minutes?|h|hr|hours?|d|days?|w|weeks?";
    // What rounds to zero milliseconds is zero.
    let (most, least) = match unit {
        Unit::Seconds => (Millis::MAX.0 / 1_000, 0.0005),
        Unit::Millis => (Millis::MAX.0, 0.5),
    };
    let least = if positive { least } else { 0.0 };
    let some = if positive { r"(?=.*[1-9])" } else { "" };
    let amount = r"(\d+\.?\d*|\.\d+)";
    let bare = match unit {
        Unit::Seconds => format!(r"|\+?{amount}([eE][-+]?\d+)?"),
        Unit::Millis => String::new(),
    };
    let form = format!(r"^{some}\s*(({amount}({UNITS})\s*)+{bare})\s*$");
    json!({"anyOf": [
        {"type": "string", "pattern": form}, {"type": "number", "minimum": least, "maximum": most},
    ]})
}

/// A pattern for words in any case, with spaces around them.
fn any_case(words: &[&str]) -> String {
    let letter = |c: char| match c.to_ascii_uppercase() {
        upper if upper == c.to_ascii_lowercase() => c.to_string(),
        upper => format!("[{}{upper}]", c.to_ascii_lowercase()),
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!(r"^\s*({})\s*$", words.join("|"))
}
