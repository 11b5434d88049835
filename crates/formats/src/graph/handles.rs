//! Resolves the handle of an edge on the node it leaves.

use super::ParsedNode;
use super::config::NodeType;
use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, quoted};
use stepwell_core::graph::Handle;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    By(Handle),
    /// The edge from a loop node into its body.
    Body,
}

const PLAIN: [&str; 3] = ["output", "success", "default"];

pub fn exit<'d>(
    draft: &mut Draft<'d>,
    node: &ParsedNode<'d>,
    handle: Option<&Field<'d>>,
    place: &Place,
) -> Option<Exit> {
    if node.kind == NodeType::End {
        let fault = Fault::new(code::END_HAS_EDGES, format!("an edge leaves the end node {}", quoted(node.id)));
        draft.fault_in_shape(place, fault);
        return None;
    }
    let name = handle.and_then(|field| field.node.as_str());
    let place = handle.map_or(place, |field| &field.place);
    match (node.kind, name) {
        (_, Some("error")) => Some(Exit::By(Handle::ERROR)),
        (_, Some("denied")) => Some(Exit::By(Handle::DENIED)),
        (NodeType::Condition, name) => branch(draft, node, name, place),
        (NodeType::Loop, Some("loop")) => Some(Exit::Body),
        (NodeType::Loop, Some("done" | "completed")) => Some(Exit::By(Handle::SUCCESS)),
        (_, None) => Some(Exit::By(Handle::SUCCESS)),
        (_, Some(name)) if PLAIN.contains(&name) => Some(Exit::By(Handle::SUCCESS)),
        (kind, Some(name)) => {
            let mut known = PLAIN.to_vec();
            known.extend(["error", "denied"]);
            if kind == NodeType::Loop {
                known.extend(["loop", "done", "completed"]);
            }
            unknown(draft, name, &known, place);
            None
        }
    }
}

/// A branch of a condition by its id; `default` and `else` are the default branch unless a branch has that id.
fn branch<'d>(draft: &mut Draft<'d>, node: &ParsedNode<'d>, name: Option<&str>, place: &Place) -> Option<Exit> {
    let handles = draft.steps[node.index].def.handles.clone();
    let Some(name) = name else {
        let fault = Fault::new(code::UNKNOWN_HANDLE, "an edge from a condition must name its branch");
        let known: Vec<&str> = handles.iter().map(|handle| &**handle).collect();
        draft.fault_in_shape(place, fault.hint(format!("set sourceHandle to one of {}", known.join(", "))));
        return None;
    };
    if let Some(n) = handles.iter().position(|handle| &**handle == name) {
        return Some(Exit::By(Handle(Handle::FIRST_NAMED + n as u16)));
    }
    if let Some(default) = node.default
        && (matches!(name, "default" | "else") || default.name == Some(name))
    {
        return Some(Exit::By(default.handle));
    }
    let mut known: Vec<&str> = handles.iter().map(|handle| &**handle).collect();
    known.push("error");
    unknown(draft, name, &known, place);
    None
}

fn unknown(draft: &mut Draft<'_>, name: &str, known: &[&str], place: &Place) {
    let fault = Fault::new(code::UNKNOWN_HANDLE, format!("the node has no handle {}", quoted(name)));
    let near = draft.near(name, known.iter().copied());
    let hint = near.unwrap_or_else(|| format!("known here: {}", known.join(", ")));
    draft.fault_in_shape(place, fault.hint(hint));
}
