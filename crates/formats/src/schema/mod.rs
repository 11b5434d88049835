//! The JSON Schema (2020-12) of definitions, generated from the tables in `vocabulary/` that the readers use.
//!
//! The schema catches what one object shows: unknown fields, wrong types, missing fields, fields that exclude each
//! other. [`CAUGHT`] lists the faults that it always catches. What needs the whole document is left to the reader:
//! names of steps, cycles, expressions, duplicates.

#[cfg(test)]
mod agreement;
mod graph;
mod shapes;
mod steps;

use crate::code;
use crate::vocabulary::WORKFLOW;
use serde_json::{Map, Value as Json, json};
use shapes::{absent, any_of, has, properties, rules};

/// The dialects that a schema describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    All,
    Tasks,
    Flow,
    Graph,
}

impl Which {
    pub const NAMES: [(&str, Which); 4] =
        [("all", Which::All), ("tasks", Which::Tasks), ("flow", Which::Flow), ("graph", Which::Graph)];

    pub fn named(name: &str) -> Option<Which> {
        Which::NAMES.iter().find(|(known, _)| *known == name).map(|(_, which)| *which)
    }

    fn has(self, part: Which) -> bool {
        self == Which::All || self == part
    }
}

/// The codes of faults that the schema always catches. For the exceptions, see `docs/definitions.md`.
pub const CAUGHT: &[&str] = &[
    code::BAD_BACKOFF,
    code::BAD_METHOD,
    code::MANY_DIALECTS,
    code::MANY_STEP_TYPES,
    code::MANY_TRANSITIONS,
    code::MISSING_FIELD,
    code::MISSING_URL,
    code::NO_DIALECT,
    code::NO_STEP_TYPE,
    code::NOT_ALLOWED,
    code::UNKNOWN_FIELD,
    code::UNKNOWN_NODE_TYPE,
    code::WRONG_TYPE,
];

/// The schema of definitions in one dialect, or in any.
pub fn schema(which: Which) -> Json {
    let mut defs = Defs::default();
    defs.0.insert("given".into(), json!({"type": ["boolean", "number", "string", "array", "object"]}));
    defs.0.insert("absent".into(), json!({"not": {"$ref": "#/$defs/given"}}));
    let mut fields = properties(&WORKFLOW, &mut defs, |def| match def.name {
        "tasks" => which.has(Which::Tasks),
        "flow" => which.has(Which::Flow),
        "nodes" | "edges" => which.has(Which::Graph),
        _ => true,
    });
    if which.has(Which::Tasks) {
        steps::task(&mut defs);
    }
    if which.has(Which::Flow) {
        let step = steps::flow(&mut defs);
        fields["flow"]["anyOf"] = json!([steps::flow_map(&step), absent()]);
    }
    if which.has(Which::Graph) {
        let node = graph::node(&mut defs);
        fields["nodes"]["anyOf"] = json!([{"type": "array", "items": node}, absent()]);
    }
    let title = match which {
        Which::All => "Stepwell workflow",
        Which::Tasks => "Stepwell workflow in tasks",
        Which::Flow => "Stepwell workflow in flow",
        Which::Graph => "Stepwell workflow in graph",
    };
    let mut whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": WORKFLOW.doc,
        "type": "object",
        "properties": fields,
        "patternProperties": unused(which),
        "additionalProperties": false,
        "allOf": whole(which),
        "$defs": defs.0,
    });
    drop_empty(&mut whole);
    whole
}

/// Leaves out lists of rules and patterns that have no entries.
fn drop_empty(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            map.retain(|key, value| match value {
                Json::Array(list) => key != "allOf" || !list.is_empty(),
                Json::Object(inner) => key != "patternProperties" || !inner.is_empty(),
                _ => true,
            });
            map.values_mut().for_each(drop_empty);
        }
        Json::Array(list) => list.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

/// Definitions that the schema refers to by name.
#[derive(Default)]
struct Defs(Map<String, Json>);

impl Defs {
    fn put(&mut self, name: &str, schema: Json) -> Json {
        self.0.insert(name.to_owned(), schema);
        reference(name)
    }
}

fn reference(name: &str) -> Json {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The fields of other dialects: null counts as absent.
fn unused(which: Which) -> Json {
    match which {
        Which::All => json!({"^(workflowOptions|viewport)$": true}),
        Which::Tasks => json!({"^flow$": absent()}),
        Which::Flow => json!({"^tasks$": absent()}),
        Which::Graph => json!({"^(tasks|flow)$": absent(), "^(workflowOptions|viewport)$": true}),
    }
}

/// What the fields of a workflow demand of each other.
fn whole(which: Which) -> Vec<Json> {
    let mut all = Vec::new();
    let dialects: Vec<&str> = [("tasks", Which::Tasks), ("flow", Which::Flow), ("nodes", Which::Graph)]
        .into_iter()
        .filter(|(_, part)| which.has(*part))
        .map(|(name, _)| name)
        .collect();
    all.push(match dialects[..] {
        [one] => has(one),
        _ => json!({
            "oneOf": dialects.iter().map(|name| has(name)).collect::<Vec<_>>(),
            "errorMessage": "write the steps as exactly one of `tasks`, `flow`, or `nodes` with `edges`",
        }),
    });
    all.push(json!({"if": has("name"), "else": {
        "required": ["title"], "properties": {"title": shapes::of(&WORKFLOW, "name")},
        "errorMessage": "the workflow has no `name`",
    }}));
    if which.has(Which::Graph) {
        let many = json!({"required": ["nodes"], "properties": {"nodes": {"type": "array", "minItems": 2}}});
        all.push(json!({"if": many, "then": has("edges")}));
    }
    if which == Which::All {
        // Even null is refused where the steps are written otherwise.
        let parts: Vec<Json> =
            ["nodes", "edges", "viewport", "workflowOptions"].iter().map(|name| json!({"required": [name]})).collect();
        all.push(json!({"if": {"not": has("nodes")}, "then": {"not": {"anyOf": parts}}}));
    }
    all.extend(rules(&WORKFLOW));
    all.extend(triggers());
    all
}

const CRON: [&str; 3] = ["cron", "cron_expression", "schedule"];

/// `trigger: cron` and `trigger: at` use fields beside them, which otherwise belong to no trigger.
fn triggers() -> Vec<Json> {
    let named = |words: &[&str]| {
        let word = json!({"enum": words});
        let list = json!({"type": "array", "contains": word});
        any_of(
            ["trigger", "triggers"]
                .map(|field| json!({"required": [field], "properties": {field: {"anyOf": [word, list]}}})),
        )
    };
    let repeated = |words: &[&str]| {
        let list = json!({"type": "array", "contains": {"enum": words}, "minContains": 2});
        any_of(["trigger", "triggers"].map(|field| json!({"required": [field], "properties": {field: list}})))
    };
    let trigger = any_of(["trigger", "triggers"].map(has));
    let cron = any_of(CRON.map(has));
    let none = |names: &[&str]| shapes::none(names.iter().copied(), "this belongs to no trigger");
    let (words, times) = (&["cron", "schedule"][..], &["at"][..]);
    vec![
        json!({"if": named(words), "then": cron}),
        json!({"if": named(times), "then": has("at")}),
        json!({"not": repeated(words)}),
        json!({"not": repeated(times)}),
        json!({"if": {"allOf": [trigger, {"not": named(words)}]},
               "then": none(&["cron", "cron_expression", "schedule", "timezone"])}),
        json!({"if": {"allOf": [trigger, {"not": named(times)}]}, "then": none(&["at"])}),
        json!({"if": {"not": trigger}, "then": {"allOf": [
            {"if": has("timezone"), "then": cron}, {"if": cron, "then": none(&["at"])},
        ]}}),
    ]
}
