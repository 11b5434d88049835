//! Nodes of a graph. Their own fields may stand in several places, and their type in any of them.

use super::Defs;
use super::shapes::{absent, any_of, attempts_once, given, has, is, pattern, properties, rules};
use crate::vocabulary::{Def, EDGE, EDGE_IGNORED, K, NODE, NODE_TYPES, STEP};
use serde_json::{Map, Value as Json, json};

/// Where the fields of a node may stand, beside the node itself.
const PLACES: [&[&str]; 4] = [&["nodeConfig"], &["config"], &["data"], &["data", "nodeConfig"]];

/// Fields that only the node itself has.
const OUTER: [&str; 2] = ["id", "nodeID"];
/// Fields that any object of a node may have, whatever they hold.
const LOOSE: [&str; 6] = ["label", "description", "nodeConfig", "config", "data", "type"];
/// Fields of every node.
const COMMON: [&str; 5] = ["nodeType", "isDisabled", "outputVariable", "joinMode", "errorHandling"];

/// How a node of one type is read.
struct Variant {
    /// Its name in the schema.
    name: &'static str,
    types: &'static [&'static str],
    fields: fn(&Def) -> bool,
    /// Each list: one of these fields is needed.
    needs: &'static [&'static [&'static str]],
    /// Read so only if this field is there, or is not.
    marked: Option<(&'static str, bool)>,
}

const fn variant(name: &'static str, types: &'static [&'static str], fields: fn(&Def) -> bool) -> Variant {
    Variant { name, types, fields, needs: &[], marked: None }
}

impl Variant {
    const fn needs(mut self, needs: &'static [&'static [&'static str]]) -> Variant {
        self.needs = needs;
        self
    }

    const fn marked(mut self, field: &'static str, there: bool) -> Variant {
        self.marked = Some((field, there));
        self
    }
}

const APPROVAL_FIELDS: [&str; 3] = ["approval", "notify_user", "timeout_s"];
const DELAYS: &[&str] = &["delayMinutes", "delaySeconds", "delayMs", "untilTime", "delayVariable"];

const VARIANTS: [Variant; 14] = [
    variant("start", &["start"], |def| own(def, K::Start)),
    variant("end", &["end"], |def| own(def, K::End)),
    variant("http", &["http"], |def| own(def, K::Http)).needs(&[&["url"]]),
    variant("tool", &["tool"], |def| own(def, K::Tool)).needs(&[&["tool", "toolName"]]),
    variant("javascript", &["javascript"], |def| own(def, K::Code)).needs(&[&["code"]]),
    variant("query", &["dataQuery"], |def| own(def, K::Query))
        .needs(&[&["saved", "dataQueryID", "connection"], &["saved", "dataQueryID", "sql"]]),
    variant("condition", &["condition", "switch"], |def| own(def, K::Condition)).needs(&[&["branches"]]),
    variant("delay", &["delay"], |def| own(def, K::Sleep)).needs(&[DELAYS]),
    variant("loop", &["loop"], |def| own(def, K::Each)).needs(&[&["sourceVariable"]]),
    variant("workflow", &["workflow"], |def| own(def, K::Child)).needs(&[&["workflow"]]),
    variant("nestedApproval", &["approval"], |def| APPROVAL_FIELDS.contains(&def.name)).marked("approval", true),
    variant("approvalNode", &["approval"], |def| own(def, K::Gate) && !APPROVAL_FIELDS.contains(&def.name))
        .marked("approval", false),
    variant("nestedWait", &["wait_for_webhook"], |def| def.name == "wait_for_webhook").marked("wait_for_webhook", true),
    variant("waitNode", &["wait_for_webhook"], |def| own(def, K::Webhook) && def.name != "wait_for_webhook")
        .marked("wait_for_webhook", false),
];

/// Whether the field belongs to this kind of node, and not to all.
fn own(def: &Def, kind: K) -> bool {
    !def.kinds.is_empty() && def.is_on(kind)
}

/// Adds `node` and `edge`.
pub fn node(defs: &mut Defs) -> Json {
    edge(defs);
    let mut all = Vec::new();
    let typed = somewhere(&has("nodeType"));
    let types = |field: &str| json!({"properties": {field: {"enum": NODE_TYPES}}});
    all.push(json!({"if": {"not": typed}, "then": {"allOf": [has("type"), types("type")]}}));
    all.push(everywhere(&json!({"properties": common(defs)})));
    let disabled = defs.put("disabledNode", somewhere(&is("isDisabled", "true")));
    for variant in &VARIANTS {
        let (outer, inner) = layers(variant, defs);
        let kind = is_type(variant, &typed);
        let mut then = vec![outer];
        then.extend(PLACES.map(|place| at(place, &inner)));
        then.extend(variant.needs.iter().map(|names| somewhere(&any_of(names.iter().map(|name| has(name))))));
        then.extend(together(variant));
        all.push(json!({"if": {"allOf": [kind, {"not": disabled}]}, "then": {"allOf": then}}));
    }
    all.extend(rules(&NODE));
    let mut outer = properties(&NODE, defs, |def| OUTER.contains(&def.name));
    let object = json!({"anyOf": [{"type": "object"}, absent()]});
    for (name, doc) in [("nodeConfig", "config"), ("config", "config"), ("data", "config")] {
        let doc = NODE.find(doc).map_or("", |def| def.doc);
        let mut field = object.clone();
        field["description"] = doc.into();
        outer.insert(name.to_owned(), field);
    }
    outer["data"]["properties"] = json!({"nodeConfig": {"type": "object"}});
    outer.insert(
        "type".into(),
        json!({"description": "What the node does, unless `nodeType` says so.",
        "examples": ["http"]}),
    );
    let schema = json!({"description": NODE.doc, "type": "object", "properties": outer, "allOf": all});
    defs.put("node", schema)
}

fn edge(defs: &mut Defs) {
    let mut fields = properties(&EDGE, defs, |_| true);
    for name in ["source", "upstreamNodeID", "target", "downstreamNodeID"] {
        if let Some(field) = fields.get_mut(name) {
            field["anyOf"] = json!([{"type": "string"}, absent()]);
        }
    }
    let ignored = EDGE.ignored.iter().chain(EDGE_IGNORED).copied();
    defs.put(
        "edge",
        json!({
            "description": EDGE.doc,
            "type": "object",
            "properties": fields,
            "patternProperties": {pattern(ignored): true},
            "additionalProperties": false,
            "allOf": rules(&EDGE),
        }),
    );
}

fn common(defs: &mut Defs) -> Map<String, Json> {
    properties(&NODE, defs, |def| COMMON.contains(&def.name))
}

/// The node itself, and the objects inside it, as one variant.
fn layers(variant: &Variant, defs: &mut Defs) -> (Json, Json) {
    let mut fields = properties(&NODE, defs, |def| (variant.fields)(def) || COMMON.contains(&def.name));
    let known: Vec<String> = fields.keys().cloned().collect();
    let elsewhere: Vec<&str> = NODE
        .fields
        .iter()
        .filter(|def| !OUTER.contains(&def.name) && !LOOSE.contains(&def.name))
        .flat_map(Def::names)
        .filter(|name| !known.iter().any(|known| known == name))
        .collect();
    let ignored = NODE.ignored.iter().chain(&LOOSE).copied();
    let mut all = rules_of(variant);
    if variant.name == "delay" {
        all.extend(delay());
    }
    let inner = json!({
        "type": "object",
        "properties": fields,
        "patternProperties": {pattern(ignored.clone()): true, pattern(elsewhere.iter().copied()): absent()},
        "additionalProperties": false,
        "allOf": all,
    });
    for name in OUTER {
        fields.insert(name.into(), json!(true));
    }
    let mut outer = inner.clone();
    outer["properties"] = json!(fields);
    let inner = defs.put(&format!("{}Config", variant.name), json!({"if": given(), "then": inner}));
    (defs.put(&format!("{}Node", variant.name), outer), inner)
}

/// What the fields of a variant demand of each other within one object.
fn rules_of(variant: &Variant) -> Vec<Json> {
    let attempts = || [rules(&STEP), vec![attempts_once()]].concat();
    match variant.name {
        "http" | "tool" | "javascript" | "workflow" => attempts(),
        "query" => [attempts(), query_rules()].concat(),
        "approvalNode" => vec![json!({"if": is("on_timeout", r#""escalate""#), "then": has("escalate_to")})],
        _ => Vec::new(),
    }
}

fn query_rules() -> Vec<Json> {
    use crate::vocabulary::Rule;
    const RULES: [Rule; 4] = [
        Rule::AtMostOne(&["saved", "dataQueryID"]),
        Rule::AtMostOne(&["params", "inputValues"]),
        Rule::Excludes("saved", &["connection", "sql"]),
        Rule::Excludes("dataQueryID", &["connection", "sql"]),
    ];
    RULES.iter().filter_map(super::shapes::rule).collect()
}

/// What the fields of a variant demand of each other wherever they stand.
fn together(variant: &Variant) -> Vec<Json> {
    let timed = |names: &[&str]| somewhere(&any_of(names.iter().map(|name| has(name))));
    match variant.name {
        "approvalNode" => vec![
            json!({"if": somewhere(&has("escalate_to")), "then": timed(&["timeout", "escalate_after"])}),
            json!({"if": somewhere(&has("escalate_after")), "then": somewhere(&has("escalate_to"))}),
        ],
        "nestedApproval" => {
            let timeless = json!({"type": "object",
                "allOf": [has("escalate_to"), {"not": has("timeout")}, {"not": has("escalate_after")}]});
            let escalates = json!({"type": "object", "required": ["approval"], "properties": {"approval": timeless}});
            vec![json!({"if": somewhere(&escalates), "then": timed(&["timeout_s"])})]
        }
        "delay" => ["until", "dynamic", "fixed"]
            .map(|kind| {
                let needs: &[&str] = match kind {
                    "until" => &["untilTime"],
                    "dynamic" => &["delayVariable"],
                    _ => &DELAYS[..3],
                };
                json!({"if": somewhere(&is("delayType", &format!("\"{kind}\""))), "then": timed(needs)})
            })
            .into(),
        _ => Vec::new(),
    }
}

/// Only the fields of the chosen type are read.
fn delay() -> Vec<Json> {
    let texts = |name: &str| json!({"properties": {name: {"anyOf": [{"type": "string"}, absent()]}}});
    let amount = json!({"anyOf": [
        {"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\s*\+?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"},
        absent(),
    ]});
    let amounts = json!({"properties": {"delayMinutes": amount, "delaySeconds": amount, "delayMs": amount}});
    let typed = has("delayType");
    let chosen = |kind: &str| is("delayType", &format!("\"{kind}\""));
    let unless = |parts: Vec<Json>| json!({"not": any_of(parts)});
    let until = any_of([chosen("until"), json!({"allOf": [{"not": typed}, has("untilTime")]})]);
    let by_variable = json!({"allOf": [{"not": typed}, {"not": has("untilTime")}, has("delayVariable")]});
    let dynamic = any_of([chosen("dynamic"), by_variable]);
    let by_amount = unless(vec![typed.clone(), has("untilTime"), has("delayVariable")]);
    let fixed = any_of([chosen("fixed"), by_amount]);
    vec![
        json!({"if": until, "then": texts("untilTime")}),
        json!({"if": dynamic, "then": texts("delayVariable")}),
        json!({"if": fixed, "then": amounts}),
    ]
}

/// Whether the node is read as this variant.
fn is_type(variant: &Variant, typed: &Json) -> Json {
    let names = |field: &str| {
        json!({"type": "object", "required": [field],
        "properties": {field: {"enum": variant.types}}})
    };
    let by_type = json!({"allOf": [{"not": typed}, names("type")]});
    let kind = any_of([somewhere(&names("nodeType")), by_type]);
    match variant.marked {
        None => kind,
        Some((field, true)) => json!({"allOf": [kind, somewhere(&has(field))]}),
        Some((field, false)) => json!({"allOf": [kind, {"not": somewhere(&has(field))}]}),
    }
}

/// A condition that holds in the node or in one of its places.
fn somewhere(condition: &Json) -> Json {
    let inside = PLACES.map(|place| {
        place.iter().rev().fold(
            condition.clone(),
            |inner, name| json!({"type": "object", "required": [name], "properties": {*name: inner}}),
        )
    });
    any_of([condition.clone()].into_iter().chain(inside))
}

/// A schema of the node and of each of its places that is there.
fn everywhere(schema: &Json) -> Json {
    let inside = PLACES.map(|place| at(place, schema));
    let all: Vec<Json> = [schema.clone()].into_iter().chain(inside).collect();
    json!({"allOf": all})
}

fn at(place: &[&str], schema: &Json) -> Json {
    place.iter().rev().fold(schema.clone(), |inner, name| json!({"properties": {*name: inner}}))
}
