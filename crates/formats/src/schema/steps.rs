//! Steps of tasks and flow: one field decides the kind, which decides the other fields.

use super::shapes::{absent, any_of, attempts_once, has, none, pattern, properties, rule, rules};
use super::{Defs, reference};
use crate::kinds::TYPES;
use crate::vocabulary::{Def, K, Only, Rule, STEP, STEP_KEYS};
use serde_json::{Value as Json, json};

/// The kind that each deciding field stands for.
const KINDS: [(&str, K); 11] = [
    ("url", K::Http),
    ("tool", K::Tool),
    ("javascript", K::Code),
    ("query", K::Query),
    ("condition", K::Condition),
    ("sleep", K::Sleep),
    ("until", K::Sleep),
    ("wait_for_webhook", K::Webhook),
    ("approval", K::Gate),
    ("for_each", K::Each),
    ("workflow", K::Child),
];

const TRANSITIONS: [Rule; 7] = [
    Rule::AtMostOne(&["next", "branch", "parallel"]),
    Rule::AtMostOne(&["join", "next"]),
    Rule::AtMostOne(&["join", "branch"]),
    Rule::Bars("done", "true", &["next", "branch", "parallel", "join"]),
    Rule::Bars("on_error", r#""continue""#, &["branch"]),
    Rule::AtMostOne(&["sleep", "until"]),
    Rule::Needs("for_each", &["tasks"]),
];

/// Adds `taskStep`.
pub fn task(defs: &mut Defs) {
    step(defs, "taskStep", Only::Tasks, |all| {
        let types: Vec<Json> = TYPES.iter().map(|name| has(name)).collect();
        all.push(json!({"anyOf": types, "errorMessage": format!("give the step one of {}", TYPES.join(", "))}));
        for (name, kind) in KINDS {
            all.push(json!({"if": has(name), "then": only(kind, name)}));
        }
    });
}

/// Adds `flowStep`, and `taskStep` for the bodies of `for_each`.
pub fn flow(defs: &mut Defs) -> Json {
    if !defs.0.contains_key("taskStep") {
        task(defs);
    }
    step(defs, "flowStep", Only::Flow, |all| {
        let typed = any_of(KINDS.iter().filter(|(name, _)| *name != "approval").map(|(name, _)| has(name)));
        let null_tool = json!({"required": ["tool"], "properties": {"tool": absent()}});
        let asks = any_of([has("approval"), has("notify_user"), has("timeout_s"), null_tool]);
        for (name, kind) in KINDS.into_iter().filter(|(name, _)| *name != "approval") {
            all.push(json!({"if": has(name), "then": only(kind, name)}));
        }
        let no_args = json!({"properties": {"args": {"anyOf": [{"type": "object", "maxProperties": 0}, absent()]}}});
        let gate = json!({"allOf": [without(|def| def.is_on(K::Gate) || def.name == "args", "an approval"), no_args]});
        let fork = without(|def| def.kinds.is_empty(), "a step without a type");
        all.push(json!({"if": {"not": typed}, "then": {
            "anyOf": [asks, has("parallel")],
            "errorMessage": format!("give the step one of {}", TYPES.join(", ")),
            "if": asks, "then": gate, "else": fork,
        }}));
    })
}

/// The map of flow steps.
pub fn flow_map(step: &Json) -> Json {
    json!({
        "type": "object",
        "required": ["start"],
        "properties": {"start": {"allOf": [step], "description": "The first step."}},
        "additionalProperties": step,
        "propertyNames": {"pattern": STEP_KEYS},
    })
}

fn step(defs: &mut Defs, name: &str, dialect: Only, more: impl FnOnce(&mut Vec<Json>)) -> Json {
    let here = |def: &Def| def.only.is_none_or(|only| only == dialect);
    let fields = properties(&STEP, defs, here);
    let elsewhere: Vec<&str> =
        STEP.fields.iter().filter(|def| !here(def)).flat_map(Def::names).filter(|name| *name != "name").collect();
    let elsewhere = elsewhere.into_iter().chain((dialect == Only::Tasks).then_some("name"));
    let mut all = rules(&STEP);
    let transitions = TRANSITIONS.iter().filter(|rule| dialect == Only::Flow || !is_transition(rule));
    all.extend(transitions.filter_map(rule));
    all.extend([escalation(), attempts_once()]);
    more(&mut all);
    let schema = json!({
        "description": STEP.doc,
        "type": "object",
        "properties": fields,
        "patternProperties": {pattern(elsewhere): absent()},
        "additionalProperties": false,
        "allOf": all,
    });
    defs.put(name, schema);
    reference(name)
}

fn is_transition(rule: &Rule) -> bool {
    match rule {
        Rule::AtMostOne(names) => names.iter().any(|name| matches!(*name, "next" | "join")),
        Rule::Bars(..) => true,
        _ => false,
    }
}

/// The fields of other kinds have no place on this one.
fn only(kind: K, name: &str) -> Json {
    without(|def| def.is_on(kind), &format!("a step with `{name}`"))
}

fn without(keep: impl Fn(&Def) -> bool, what: &str) -> Json {
    let names = STEP.fields.iter().filter(|def| !keep(def)).flat_map(Def::names);
    none(names, &format!("{what} cannot have this field"))
}

/// `escalate_to` needs a time to escalate, in the approval or as `timeout_s` beside it.
fn escalation() -> Json {
    let timeless = json!({
        "allOf": [has("escalate_to"), {"not": has("timeout")}, {"not": has("escalate_after")}],
    });
    let escalates = json!({"required": ["approval"], "properties": {"approval": timeless}});
    json!({"if": escalates, "then": has("timeout_s")})
}
