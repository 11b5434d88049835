//! The graph dialect: nodes and edges as an editor canvas saves them, in the engine's own names or React Flow's.
//!
//! A node finishes with a handle; the edges from that handle are taken. The body of a `loop` node is what its `loop`
//! handle reaches before returning.
//!
//! This file reads nodes and edges; `config.rs` and `condition.rs` read what a node does, `handles.rs` what an edge's
//! handle means, `loops.rs` finds the bodies.

mod canvas;
mod condition;
mod config;
mod handles;
mod loops;

use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::kinds::{self, Defaults, ParsedKind, Rules};
use crate::tasks;
use crate::values::name_fault;
use crate::vocabulary::{ANY, EDGE_IGNORED};
pub use canvas::COSMETIC;
use canvas::{label, unique_labels, written};
use config::{DefaultBranch, NodeFlags, NodeType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use stepwell_core::expr::Grammar;
use stepwell_core::graph::{Join, OnFail, Retry, SpecStep, StepDef};
use stepwell_core::time::Millis;

/// Default attempts: the first and two retries, after 1 s, 2 s.
const ATTEMPTS: u32 = 3;
fn rules() -> Rules {
    Rules {
        grammar: Grammar::Standard,
        retry: Retry::exponential(ATTEMPTS, Millis::SECOND),
        tool_errors: false,
        timeout: tasks::call_timeout,
        defaults: Defaults::default(),
    }
}

/// A node that was read.
struct ParsedNode<'d> {
    index: usize,
    id: &'d str,
    kind: NodeType,
    place: Place,
    /// For a condition.
    default: Option<DefaultBranch<'d>>,
}

/// An edge between positions in the list of nodes.
struct Edge {
    from: usize,
    handle: handles::Exit,
    to: usize,
    place: Place,
}

pub fn read<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, defaults: Option<Field<'d>>) {
    fields.ignore(&["workflowOptions", "viewport"]);
    let nodes = fields.take("nodes").map(|field| draft.items(&field)).unwrap_or_default();
    let edges = match fields.take("edges") {
        Some(field) => draft.items(&field),
        None => {
            if nodes.len() > 1 {
                kinds::missing(draft, fields, "edges");
            }
            Vec::new()
        }
    };
    let ends: Vec<Option<Ends<'d>>> = edges.iter().map(|edge| ends(draft, edge)).collect();
    let context = NodeContext {
        labels: unique_labels(&nodes),
        default_edges: condition::with_default_edge(&ends),
        rules: rules().with_defaults(draft, defaults),
    };
    let read: Vec<ParsedNode<'d>> = nodes.iter().filter_map(|field| node(draft, field, &context)).collect();
    connect(draft, &read, &ends);
}

/// An edge as written: the names of its nodes, and the handle it leaves from.
struct Ends<'d> {
    from: Field<'d>,
    to: Field<'d>,
    handle: Option<Field<'d>>,
    place: Place,
}

fn ends<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Ends<'d>> {
    let mut fields = Fields::of(field, draft)?;
    fields.ignore(&COSMETIC);
    fields.ignore(EDGE_IGNORED);
    let from = fields.take_one(&["upstreamNodeID", "source"], draft).map(|(_, field)| field);
    let to = fields.take_one(&["downstreamNodeID", "target"], draft).map(|(_, field)| field);
    let handle = fields.take("sourceHandle").filter(|handle| draft.text(handle).is_some());
    for (name, end) in [("source", &from), ("target", &to)] {
        match end {
            None => draft.fault_in_shape(&field.place, Fault::new(code::MISSING_FIELD, format!("`{name}` is missing"))),
            Some(end) if draft.text(end).is_none() => draft.break_shape(),
            Some(_) => {}
        }
    }
    fields.finish(draft, "an edge", &[]);
    Some(Ends { from: from?, to: to?, handle, place: field.place.clone() })
}

/// What a node needs to know about the others.
struct NodeContext<'d> {
    /// Labels that identify their node.
    labels: HashSet<&'d str>,
    /// Conditions whose default branch has an edge.
    default_edges: HashSet<&'d str>,
    rules: Rules,
}

fn node<'d>(draft: &mut Draft<'d>, field: &Field<'d>, context: &NodeContext<'d>) -> Option<ParsedNode<'d>> {
    let rules = &context.rules;
    let Some(mut fields) = Fields::of(field, draft) else {
        draft.break_shape();
        return None;
    };
    let id = fields.take_one(&["nodeID", "id"], draft).map(|(_, field)| field);
    let Some(id_field) = id else {
        draft.fault_in_shape(&field.place, Fault::new(code::MISSING_FIELD, "a node has no `id`"));
        return None;
    };
    let Some(id) = draft.text(&id_field) else {
        draft.break_shape();
        return None;
    };
    draft.step_name(id, &id_field.place);
    let react_type = fields.take("type");
    for name in ["nodeConfig", "config", "data"] {
        if let Some(layer) = fields.take(name) {
            fields.add_layer(&layer, draft);
        }
    }
    // React Flow puts everything into `data`, perhaps with a nodeConfig inside that too.
    if let Some(inner) = field.node.get("data").and_then(|data| data.get("nodeConfig")) {
        let place = Place { path: format!("{}.data.nodeConfig", field.place.path), span: inner.span };
        fields.add_layer(&Field { node: inner, place, shape: &ANY }, draft);
    }
    fields.ignore(&COSMETIC);
    fields.ignore(&["label", "description", "nodeConfig", "config", "data", "type"]);
    let kind = fields.take("nodeType").or(react_type).and_then(|field| NodeType::read(draft, &field));
    let given = |name: &str| field.node.get(name).is_some_and(|node| !node.is_null());
    if kind.is_none() && !given("nodeType") && !given("type") && !fields.has("nodeType") {
        kinds::missing(draft, &fields, "nodeType");
    }
    let label = label(field.node);
    let aliases = label.filter(|label| context.labels.contains(label) && *label != id && name_fault(label).is_none());

    let disabled = draft.flag(&mut fields, "isDisabled", false);
    let output_variable = variable(draft, &mut fields, "outputVariable");
    let join = match fields.take("joinMode") {
        Some(field) => draft.choice(&field, &[("all", Join::Some), ("any", Join::Any)]),
        None => None,
    };
    let on_fail = match fields.take("errorHandling") {
        Some(field) => draft.choice(&field, &[("continue", OnFail::Route), ("fail_workflow", OnFail::Abort)]),
        None => None,
    };
    let kind_known = kind.unwrap_or(NodeType::Start);
    let flags = NodeFlags { default_edge: context.default_edges.contains(id), disabled };
    let made = match kind {
        None => None,
        Some(_) if disabled && !kind_known.keeps_shape() => Some((ParsedKind::placeholder(), None)),
        Some(kind) => Some(config::read(draft, &mut fields, kind, flags, rules)),
    };
    if made.is_none() || disabled {
        fields.ignore_rest();
    }
    let (ParsedKind { kind, handles, .. }, default) = made.unwrap_or((ParsedKind::placeholder(), None));
    let attempts = kinds::attempts(draft, &mut fields, &kind, rules);
    fields.finish(draft, &format!("a node of type {}", kind_known.name()), &config::NODE_FIELDS);

    let def = StepDef {
        join: join.unwrap_or(Join::Some),
        on_fail: on_fail.unwrap_or(OnFail::Route),
        retry: attempts.retry,
        timeout: attempts.timeout,
        bound: attempts.bound,
        at_most_once: attempts.at_most_once,
        output_variable,
        handles,
        written: Arc::new(rules.written(written(field.node))),
        ..StepDef::new(id, kind)
    };
    let origin = draft.origin(&field.place, Some(field.node));
    let aliases = aliases.map(str::to_owned).into_iter().collect();
    let index = draft.add_step(SpecStep { def, origin, parent: None, entry: false, aliases })?;
    Some(ParsedNode { index, id, kind: kind_known, place: id_field.place, default })
}

/// A variable name, which must be readable as `ctx.<name>`.
fn variable<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, name: &'static str) -> Option<Arc<str>> {
    let field = fields.take(name)?;
    let text = draft.text(&field)?.trim();
    let text = text.strip_prefix("ctx.").unwrap_or(text);
    if text.is_empty() {
        return None; // Editors store an unset field as "".
    }
    if text == "vars" && draft.has_vars {
        let fault = Fault::new(code::RESERVED_NAME, "an output cannot be named `vars`: ctx.vars are the run's vars");
        draft.fault(&field.place, fault);
        return None;
    }
    if text == "input" {
        let fault = Fault::new(code::RESERVED_NAME, "an output cannot be named `input`: ctx.input is the run's input");
        draft.fault(&field.place, fault);
        return None;
    }
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !text.chars().all(plain) || text.len() > stepwell_core::limits::MAX_NAME_BYTES {
        let fault = Fault::new(code::BAD_NAME, "this is not a valid variable name");
        draft.fault(&field.place, fault.hint("use letters, digits, `_` and `-`"));
        return None;
    }
    Some(text.into())
}

fn connect<'d>(draft: &mut Draft<'d>, read: &[ParsedNode<'d>], ends: &[Option<Ends<'d>>]) {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (i, node) in read.iter().enumerate() {
        if by_id.insert(node.id, i).is_some() {
            let message = format!("another node has the id {}", quoted(node.id));
            draft.fault_in_shape(&node.place, Fault::new(code::DUPLICATE_NAME, message));
        }
    }
    let mut edges: Vec<Edge> = Vec::new();
    let mut seen = HashSet::new();
    for end in ends.iter().flatten() {
        let mut find = |field: &Field<'d>| {
            let name = field.node.as_str()?;
            let found = by_id.get(name).copied();
            if found.is_none() {
                draft.unknown_step(name, &field.place, read.iter().map(|node| node.id));
            }
            found
        };
        let (Some(from), Some(to)) = (find(&end.from), find(&end.to)) else { continue };
        let Some(handle) = handles::exit(draft, &read[from], end.handle.as_ref(), &end.place) else { continue };
        // Ignore an edge that is drawn twice.
        if seen.insert((from, handle, to)) {
            edges.push(Edge { from, handle, to, place: end.place.clone() });
        }
    }
    loops::lay_out(draft, read, edges);
}
