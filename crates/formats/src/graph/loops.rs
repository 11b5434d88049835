//! Finds the bodies of loop nodes and hands nodes and edges to the builder.
//!
//! A body is what the `loop` handle reaches before returning to the node, and is entered only there. Edges back to the
//! node are kept: they do not affect the next item, but an edge for failures handles them.

use super::config::NodeType;
use super::handles::Exit;
use super::{Edge, ParsedNode};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::quoted;
use std::collections::{HashMap, HashSet};
use stepwell_core::graph::Kind;

/// The most nodes visited in total while searching for bodies.
const MAX_VISITS: usize = 2_000_000;

/// A loop node and the nodes that its `loop` handle reaches.
struct Body {
    node: usize,
    members: HashSet<usize>,
}

pub fn lay_out(draft: &mut Draft<'_>, read: &[ParsedNode<'_>], edges: Vec<Edge>) {
    let mut canvas = Canvas { edges: &edges, outs: vec![Vec::new(); read.len()], ins: vec![Vec::new(); read.len()] };
    for (n, edge) in edges.iter().enumerate() {
        canvas.outs[edge.from].push(n);
        canvas.ins[edge.to].push(n);
    }
    let Some(bodies) = bodies(draft, read, &canvas) else { return };
    let parent = parents(read, &bodies);
    let mut faulty = reject_crossed(draft, read, &canvas, &bodies);
    if !faulty {
        for body in &bodies {
            faulty |= check_entries(draft, read, &canvas, body);
        }
    }
    if faulty {
        return;
    }
    for (i, node) in read.iter().enumerate() {
        let step = &mut draft.steps[node.index];
        step.parent = parent[i].map(|loop_node| read[loop_node].index);
    }
    mark_entries(draft, read, &edges, &parent);
    for edge in edges {
        if let Exit::By(handle) = edge.handle {
            draft.add_edge(read[edge.from].index, handle, read[edge.to].index, &edge.place);
        }
    }
}

/// The edges, with the out-edges and in-edges of each node.
struct Canvas<'e> {
    edges: &'e [Edge],
    outs: Vec<Vec<usize>>,
    ins: Vec<Vec<usize>>,
}

impl Canvas<'_> {
    /// The nodes that the `loop` handle of `node` reaches without passing `node` or `wall`. `None` if the budget runs
    /// out.
    fn reach(&self, node: usize, wall: Option<usize>, budget: &mut usize) -> Option<HashSet<usize>> {
        let mut members = HashSet::new();
        let first = self.outs[node].iter().filter(|&&n| self.edges[n].handle == Exit::Body);
        let mut todo: Vec<usize> = first.map(|&n| self.edges[n].to).collect();
        while let Some(at) = todo.pop() {
            if at == node || Some(at) == wall || !members.insert(at) {
                continue;
            }
            *budget = budget.checked_sub(1 + self.outs[at].len() + self.ins[at].len())?;
            todo.extend(self.outs[at].iter().map(|&n| self.edges[n].to));
        }
        Some(members)
    }
}

fn bodies(draft: &mut Draft<'_>, read: &[ParsedNode<'_>], canvas: &Canvas<'_>) -> Option<Vec<Body>> {
    let mut bodies = Vec::new();
    let mut budget = MAX_VISITS;
    for (node, found) in read.iter().enumerate() {
        if found.kind != NodeType::Loop || !matches!(draft.steps[found.index].def.kind, Kind::Each(_)) {
            continue;
        }
        let Some(members) = canvas.reach(node, None, &mut budget) else {
            let fault = Fault::new(code::LIMIT_STEPS, "too many loops reach too many nodes");
            draft.fault_in_shape(&found.place, fault);
            return None;
        };
        if members.is_empty() {
            let fault = Fault::new(code::EMPTY_BODY, format!("the loop {} has no body", quoted(found.id)));
            draft.fault_in_shape(&found.place, fault.hint("draw an edge from its `loop` handle"));
        }
        bodies.push(Body { node, members });
    }
    Some(bodies)
}

/// Rejects two loops that are each in the other's body: an edge of the inner loop leads to the outer one instead of
/// back.
fn reject_crossed(draft: &mut Draft<'_>, read: &[ParsedNode<'_>], canvas: &Canvas<'_>, bodies: &[Body]) -> bool {
    let mut faulty = false;
    let mut budget = MAX_VISITS;
    let by_node: HashMap<usize, &Body> = bodies.iter().map(|body| (body.node, body)).collect();
    for inner in bodies {
        let outers = inner.members.iter().filter_map(|member| by_node.get(member));
        for outer in outers.filter(|outer| outer.members.contains(&inner.node)) {
            // The outer loop is entered from outside both bodies.
            let outside = |n: &&usize| {
                let from = canvas.edges[**n].from;
                from != inner.node && !inner.members.contains(&from) && !outer.members.contains(&from)
            };
            if !canvas.ins[outer.node].iter().any(|n| outside(&n)) {
                continue;
            }
            let Some(own) = canvas.reach(inner.node, Some(outer.node), &mut budget) else { return true };
            let (name, to) = (quoted(read[inner.node].id), quoted(read[outer.node].id));
            let leaving = canvas.ins[outer.node].iter().filter(|&&n| own.contains(&canvas.edges[n].from));
            for &n in leaving {
                faulty = true;
                let message = format!("this edge leads out of the body of the loop {name} to the loop {to} around it");
                let hint = format!("make it lead back to {name}, and continue from the `done` handle of {name}");
                draft.fault_in_shape(&canvas.edges[n].place, Fault::new(code::LOOP_BODY, message).hint(hint));
            }
        }
    }
    faulty
}

/// The innermost loop around each node: the loop with the smallest body that contains it.
fn parents(read: &[ParsedNode<'_>], bodies: &[Body]) -> Vec<Option<usize>> {
    let mut parent: Vec<Option<(usize, usize)>> = vec![None; read.len()];
    for body in bodies {
        for &member in &body.members {
            if parent[member].is_none_or(|(size, _)| body.members.len() < size) {
                parent[member] = Some((body.members.len(), body.node));
            }
        }
    }
    parent.into_iter().map(|found| found.map(|(_, node)| node)).collect()
}

/// Reports edges that enter a body other than through its loop. This also finds edges out of a body: their target was
/// reached from the `loop` handle, so it counts as part of the body, and is also entered from outside.
fn check_entries(draft: &mut Draft<'_>, read: &[ParsedNode<'_>], canvas: &Canvas<'_>, body: &Body) -> bool {
    let mut faulty = false;
    let entering = body.members.iter().flat_map(|&member| &canvas.ins[member]).map(|&n| &canvas.edges[n]);
    for edge in entering {
        let inside = body.members.contains(&edge.from) || (edge.from == body.node && edge.handle == Exit::Body);
        if inside {
            continue;
        }
        faulty = true;
        let (name, to) = (quoted(read[body.node].id), quoted(read[edge.to].id));
        let inner = canvas.ins[edge.to].iter().find(|&&n| body.members.contains(&canvas.edges[n].from));
        let after = inner.map(|&n| format!(", after {}", quoted(read[canvas.edges[n].from].id))).unwrap_or_default();
        let message =
            format!("node {to} is in the body of the loop {name}{after}, but this edge enters it from outside");
        let hint = format!("make the last node of the body lead back to {name}, and continue from its `done` handle");
        draft.fault_in_shape(&edge.place, Fault::new(code::LOOP_BODY, message).hint(hint));
        if draft.is_full() {
            return true;
        }
    }
    faulty
}

/// Marks where the run or an item begins: start nodes, or else nodes without in-edges; and targets of a `loop` handle.
fn mark_entries(draft: &mut Draft<'_>, read: &[ParsedNode<'_>], edges: &[Edge], parent: &[Option<usize>]) {
    let starts = read.iter().any(|node| node.kind == NodeType::Start);
    let mut entered = vec![false; read.len()];
    for edge in edges {
        // A body's edge back to its loop does not enter it.
        entered[edge.to] |= edge.from != edge.to && parent[edge.from] != Some(edge.to);
        if edge.handle == Exit::Body {
            draft.steps[read[edge.to].index].entry = true;
        }
    }
    for (i, node) in read.iter().enumerate() {
        if parent[i].is_none() {
            let first = if starts { node.kind == NodeType::Start } else { !entered[i] };
            draft.steps[node.index].entry |= first;
        }
    }
}
