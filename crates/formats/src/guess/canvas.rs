//! Nodes and edges under other names: `from` and `to`, types of other editors. They stay a graph.

use super::words::Names;
use super::{Object, add, step, take, take_text};
use crate::vocabulary::NODE_TYPES;
use serde_json::{Value as Json, json};

pub fn convert(root: &mut Object) {
    let mut names = Names::default();
    let nodes = root.get("nodes").and_then(Json::as_array).cloned().unwrap_or_default();
    for name in nodes.iter().filter_map(id) {
        names.add(&name, &name);
    }
    let nodes: Vec<Json> = nodes.iter().map(|written| node(written, &names)).collect();
    root.insert("nodes".into(), nodes.into());
    let edges = root.get("edges").and_then(Json::as_array).cloned().unwrap_or_default();
    root.insert("edges".into(), edges.iter().filter_map(edge).collect());
    for name in ["entry_point", "entryPoint", "start", "finish_point"] {
        root.shift_remove(name);
    }
}

/// Whether these are nodes with types that exist here.
pub fn is_known(nodes: &Json) -> bool {
    let kind = |node: &Json| {
        ["nodeType", "type"].iter().find_map(|name| node.get(*name)?.as_str().map(|kind| NODE_TYPES.contains(&kind)))
    };
    nodes.as_array().is_some_and(|nodes| nodes.iter().any(|node| kind(node) == Some(true)))
}

fn id(node: &Json) -> Option<String> {
    ["nodeID", "id", "name", "key"].iter().find_map(|name| node.get(*name)?.as_str().map(str::to_owned))
}

fn edge(edge: &Json) -> Option<Json> {
    if let Some([from, to]) = edge.as_array().map(Vec::as_slice) {
        return Some(json!({"source": from, "target": to}));
    }
    let mut fields = edge.as_object()?.clone();
    for (names, here) in [(["from", "fromNode", "start", "src"], "source"), (["to", "toNode", "end", "dst"], "target")]
    {
        if let Some(value) = take(&mut fields, &names) {
            fields.entry(here).or_insert(value);
        }
    }
    if fields.keys().any(|name| matches!(name.as_str(), "condition" | "when")) {
        fields.shift_remove("condition");
        fields.shift_remove("when");
    }
    Some(Json::Object(fields))
}

/// A node whose type exists stays as it is; any other becomes the kind of step that it means.
fn node(written: &Json, names: &Names) -> Json {
    let kind = ["nodeType", "type"].iter().find_map(|name| written.get(*name)?.as_str()).unwrap_or_default();
    if NODE_TYPES.contains(&kind) {
        return written.clone();
    }
    let Some(mut fields) = written.as_object().cloned() else { return written.clone() };
    let mut out = Object::new();
    out.insert("id".into(), id(written).unwrap_or_else(|| "node".into()).into());
    if let Some(position) = fields.shift_remove("position") {
        out.insert("position".into(), position);
    }
    for name in ["nodeID", "id", "key", "label"] {
        fields.shift_remove(name);
    }
    let word = kind.to_ascii_lowercase();
    if matches!(word.as_str(), "input" | "trigger" | "begin" | "output" | "finish" | "terminal") {
        out.insert(
            "type".into(),
            if matches!(word.as_str(), "output" | "finish" | "terminal") { "end" } else { "start" }.into(),
        );
        return Json::Object(out);
    }
    for name in ["data", "config", "parameters"] {
        if let Some(Json::Object(inner)) = fields.shift_remove(name) {
            inner.into_iter().for_each(|(name, value)| add(&mut fields, &name, value));
        }
    }
    take_text(&mut fields, &["label"]);
    let Json::Object(step) = step::convert(&Json::Object(fields), names, false) else { return written.clone() };
    let (kind, data) = flat(step);
    out.insert("type".into(), kind.into());
    out.insert("data".into(), Json::Object(data));
    Json::Object(out)
}

/// The type of a node, and its fields, from a step.
fn flat(mut step: Object) -> (&'static str, Object) {
    for (field, kind) in [("url", "http"), ("tool", "tool"), ("workflow", "workflow")] {
        if step.contains_key(field) {
            return (kind, step);
        }
    }
    if let Some(Json::Object(inner)) = step.shift_remove("approval") {
        return ("approval", inner);
    }
    if let Some(code) = step.shift_remove("javascript") {
        step.insert("code".into(), code);
        return ("javascript", step);
    }
    if let Some(Json::Object(inner)) = step.shift_remove("query") {
        return ("dataQuery", inner);
    }
    if step.contains_key("wait_for_webhook") {
        return ("wait_for_webhook", Object::new());
    }
    ("tool", step)
}
