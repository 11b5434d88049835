//! Compares the description with that of the last release, and demands that CHANGELOG announces what breaks clients.
//!
//! `openapi.json` beside this crate is the description of the last release. `UPDATE=1` replaces it, when one is made.

use super::description;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RELEASED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
const CHANGELOG: &str = include_str!("../../../../CHANGELOG.md");

/// What breaks a client: the name to announce, and what happened.
type Break = (String, String);

struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    found: Vec<Break>,
}

/// Which side sends a schema: a field that is required now breaks those who send it, one that may be missing now those
/// who read it.
#[derive(Clone, Copy, PartialEq)]
enum Sent {
    ByClients,
    ByServer,
}

fn breaks(old: &Value, new: &Value) -> Vec<Break> {
    let mut comparison = Comparison { old, new, found: Vec::new() };
    comparison.operations();
    comparison.schemas();
    comparison.found
}

impl Comparison<'_> {
    fn lost(&mut self, name: &str, what: impl Into<String>) {
        self.found.push((name.to_string(), what.into()));
    }

    fn operations(&mut self) {
        let (old, new) = (self.old, self.new);
        for (path, item) in old["paths"].as_object().into_iter().flatten() {
            for (method, was) in item.as_object().into_iter().flatten() {
                let name = format!("{} {path}", method.to_ascii_uppercase());
                let Some(is) = new["paths"][path].get(method) else {
                    self.lost(&name, "the operation is gone");
                    continue;
                };
                if was["operationId"] != is["operationId"] {
                    self.lost(&name, format!("operationId {} is now {}", was["operationId"], is["operationId"]));
                }
                self.parameters(&name, was, is);
                for (status, answer) in was["responses"].as_object().into_iter().flatten() {
                    if status.starts_with('2') && is["responses"].get(status).is_none() {
                        self.lost(&name, format!("no longer answers with {status}"));
                    }
                    self.content(&name, Sent::ByServer, answer, &is["responses"][status]);
                }
                self.content(&name, Sent::ByClients, &was["requestBody"], &is["requestBody"]);
            }
        }
    }

    fn parameters(&mut self, name: &str, was: &Value, is: &Value) {
        let list = |operation: &Value| operation["parameters"].as_array().cloned().unwrap_or_default();
        let (was, is) = (list(was), list(is));
        for one in &was {
            let same = is.iter().find(|other| other["name"] == one["name"] && other["in"] == one["in"]);
            match same {
                None => self.lost(name, format!("the parameter {} is gone", one["name"])),
                Some(other) => self.value(name, Sent::ByClients, (&one["schema"], &other["schema"])),
            }
        }
        for one in is.iter().filter(|one| one["required"] == true) {
            let before = was.iter().find(|other| other["name"] == one["name"]);
            if before.is_none_or(|before| before["required"] != true) {
                self.lost(name, format!("the parameter {} is required", one["name"]));
            }
        }
    }

    fn content(&mut self, name: &str, sent: Sent, was: &Value, is: &Value) {
        for (kind, body) in was["content"].as_object().into_iter().flatten() {
            match is["content"].get(kind) {
                None => self.lost(name, format!("{kind} is gone")),
                Some(other) => self.value(name, sent, (&body["schema"], &other["schema"])),
            }
        }
    }

    fn schemas(&mut self) {
        let (old, new) = (&self.old["components"]["schemas"], &self.new["components"]["schemas"]);
        let requested = requested(self.new);
        for (name, was) in old.as_object().into_iter().flatten() {
            let sent = if requested.contains(name) { Sent::ByClients } else { Sent::ByServer };
            match new.get(name) {
                None => self.lost(name, "the schema is gone"),
                Some(is) => self.value(name, sent, (was, is)),
            }
        }
    }

    /// The recursion ends at references.
    fn value(&mut self, name: &str, sent: Sent, (was, is): (&Value, &Value)) {
        for word in ["$ref", "type", "format", "const"] {
            if was[word] != is[word] && !(sent == Sent::ByClients && is[word].is_null()) {
                self.lost(name, format!("{word} was {}, is {}", was[word], is[word]));
            }
        }
        let enumerated = |schema: &Value| -> BTreeSet<String> {
            schema["enum"].as_array().into_iter().flatten().map(Value::to_string).collect()
        };
        for gone in enumerated(was).difference(&enumerated(is)) {
            self.lost(name, format!("the value {gone} is gone"));
        }
        let required = |schema: &Value| -> BTreeSet<String> {
            schema["required"].as_array().into_iter().flatten().filter_map(|one| Some(one.as_str()?.into())).collect()
        };
        let (before, now) = (required(was), required(is));
        match sent {
            Sent::ByClients => {
                now.difference(&before).for_each(|field| self.lost(&format!("{name}.{field}"), "is required"))
            }
            Sent::ByServer => {
                before.difference(&now).for_each(|field| self.lost(&format!("{name}.{field}"), "may be missing"));
            }
        }
        for (field, schema) in was["properties"].as_object().into_iter().flatten() {
            let place = format!("{name}.{field}");
            match is["properties"].get(field) {
                None => self.lost(&place, "the field is gone"),
                Some(other) => self.value(&place, sent, (schema, other)),
            }
        }
        for word in ["items", "additionalProperties"] {
            self.value_if_any(name, sent, (&was[word], &is[word]));
        }
        for word in ["oneOf", "anyOf", "allOf"] {
            let parts = |schema: &Value| schema[word].as_array().cloned().unwrap_or_default();
            let now = parts(is);
            for part in parts(was).iter().filter(|part| !now.contains(part)) {
                let same = now.iter().find(|other| part.get("$ref").is_none() && other["type"] == part["type"]);
                match same {
                    Some(other) => self.value(name, sent, (part, other)),
                    None => self.lost(name, format!("one of its forms is gone: {part}")),
                }
            }
        }
    }

    fn value_if_any(&mut self, name: &str, sent: Sent, (was, is): (&Value, &Value)) {
        if was.is_object() {
            self.value(name, sent, (was, is));
        }
    }
}

/// The schemas that request bodies are made of.
fn requested(api: &Value) -> BTreeSet<String> {
    let mut open: Vec<&Value> = Vec::new();
    for (_, item) in api["paths"].as_object().into_iter().flatten() {
        open.extend(item.as_object().into_iter().flatten().map(|(_, operation)| &operation["requestBody"]));
    }
    let mut found = BTreeSet::new();
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let schema = field.as_str().and_then(|text| text.strip_prefix("#/components/schemas/"));
                    match schema.filter(|_| name == "$ref") {
                        Some(schema) if found.insert(schema.to_string()) => {
                            open.push(&api["components"]["schemas"][schema]);
                        }
                        _ => open.push(field),
                    }
                }
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

/// What CHANGELOG announces for the next release under "API".
fn announced() -> &'static str {
    let unreleased = CHANGELOG.split("\n## ").nth(1).unwrap_or_default();
    let api = unreleased.split("\n### ").find(|section| section.starts_with("API\n"));
    api.unwrap_or_default()
}

#[test]
fn breaks_since_the_last_release_are_announced() {
    let new = description();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(RELEASED, format!("{new:#}\n")).unwrap();
    }
    let old: Value = serde_json::from_str(&std::fs::read_to_string(RELEASED).unwrap()).unwrap();
    let silent: Vec<Break> =
        breaks(&old, new).into_iter().filter(|(name, _)| !announced().contains(&format!("`{name}`"))).collect();
    assert!(
        silent.is_empty(),
        "these break clients, and the section \"API\" of CHANGELOG.md does not name them in backticks: {silent:#?}"
    );
}

#[test]
fn what_breaks_clients_is_found_and_nothing_else() {
    let api = || {
        json!({
            "paths": {"/a": {"post": {
                "operationId": "makeA",
                "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
                "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}}}},
            }}},
            "components": {"schemas": {
                "In": {"type": "object", "properties": {"x": {"type": "string"}}, "required": []},
                "Out": {"type": "object", "properties": {"y": {"type": "integer"}, "s": {"enum": ["a", "b"]}},
                        "required": ["y"]},
            }},
        })
    };
    let check = |pointer: &str, to: Value, expected: &[&str]| {
        let mut new = api();
        match pointer.rsplit_once('/') {
            Some((parent, last)) if to.is_null() => {
                new.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(last);
            }
            Some((parent, last)) => new.pointer_mut(parent).unwrap()[last] = to,
            None => {}
        }
        let found = breaks(&api(), &new);
        let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected.iter().copied().collect(), "{pointer}: {found:?}");
    };
    let fields = "/components/schemas";
    check("", Value::Null, &[]);
    check("/paths/~1a/post", Value::Null, &["POST /a"]);
    check("/paths/~1a/post/operationId", json!("doA"), &["POST /a"]);
    check("/paths/~1a/post/parameters", json!([]), &["POST /a"]);
    check(&format!("{fields}/Out/properties/y"), Value::Null, &["Out.y"]);
    check(&format!("{fields}/Out/properties/y/type"), json!("string"), &["Out.y"]);
    check(&format!("{fields}/Out/properties/s/enum"), json!(["a"]), &["Out.s"]);
    check(&format!("{fields}/Out/required"), json!([]), &["Out.y"]);
    check(&format!("{fields}/In/required"), json!(["x"]), &["In.x"]);
    check(&format!("{fields}/In"), Value::Null, &["In"]);
    // Additions break no client.
    check(&format!("{fields}/Out/properties/z"), json!({"type": "string"}), &[]);
    check(&format!("{fields}/Out/properties/s/enum"), json!(["a", "b", "c"]), &[]);
    check(&format!("{fields}/In/properties/z"), json!({"type": "string"}), &[]);
    check("/paths/~1b", json!({"get": {"operationId": "getB"}}), &[]);
}
