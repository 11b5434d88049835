//! Data of the canvas rather than of the workflow: positions, colours, labels.

use crate::fields::Field;
use crate::source::Node;
use std::collections::HashSet;

/// Fields that editors store with a node or an edge and that the engine does not use.
pub const COSMETIC: [&str; 42] = [
    "position",
    "positionAbsolute",
    "width",
    "height",
    "measured",
    "selected",
    "selectable",
    "dragging",
    "draggable",
    "dragHandle",
    "connectable",
    "deletable",
    "focusable",
    "hidden",
    "style",
    "className",
    "zIndex",
    "parentId",
    "parentNode",
    "extent",
    "expandParent",
    "sourcePosition",
    "targetPosition",
    "initialWidth",
    "initialHeight",
    "handles",
    "ariaLabel",
    "title",
    "icon",
    "color",
    "notes",
    "category",
    "targetHandle",
    "animated",
    "markerStart",
    "markerEnd",
    "interactionWidth",
    "labelStyle",
    "labelBgStyle",
    "reconnectable",
    "pathOptions",
    "createdAt",
];

/// Labels that only one node has.
pub fn unique_labels<'d>(nodes: &[Field<'d>]) -> HashSet<&'d str> {
    let ids: HashSet<&str> =
        nodes.iter().filter_map(|field| field.node.get("nodeID").or(field.node.get("id"))?.as_str()).collect();
    let mut once = HashSet::new();
    let mut twice = HashSet::new();
    for label in nodes.iter().filter_map(|field| label(field.node)) {
        if !once.insert(label) || ids.contains(label) {
            twice.insert(label);
        }
    }
    once.retain(|label| !twice.contains(label));
    once
}

pub fn label(node: &Node) -> Option<&str> {
    let inside = |name: &str| node.get(name)?.get("label")?.as_str();
    node.get("label").and_then(Node::as_str).or_else(|| inside("data")).or_else(|| inside("nodeConfig"))
}

/// The node without canvas data, so that moving it does not change it.
pub fn written(node: &Node) -> serde_json::Value {
    let mut json = node.to_json();
    strip(&mut json);
    if let Some(data) = json.get_mut("data") {
        strip(data);
    }
    json
}

fn strip(json: &mut serde_json::Value) {
    if let Some(map) = json.as_object_mut() {
        map.retain(|key, _| !COSMETIC.contains(&key.as_str()) && !matches!(key.as_str(), "label" | "description"));
    }
}
