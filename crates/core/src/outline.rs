//! A definition as a diagram: its steps with a short description each, and the edges between them.
//!
//! Not here: layout, and the state of a run.

use crate::definition::Definition;
use crate::expr::StepIx;
use crate::graph::{Arm, Call, Graph, Handle, Kind, Out, Sleep, Step, Target, Test};
use crate::run::handle_name;
use serde::{Deserialize, Serialize};

/// Indices in `edges` and in [`Node::parent`] point into `nodes`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outline {
    pub name: String,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// A step, or a scope when other nodes name it as their parent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// The step's path in a run, without pass and item numbers: `each[].charge`.
    pub path: String,
    /// `http`, `tool`, `sleep`, `approval`, `condition`, `loop`, `for_each`, …
    pub kind: String,
    /// A short description: `POST /charge`, `3d`.
    pub detail: String,
    /// The scope this node is inside.
    pub parent: Option<usize>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// Handle or condition; empty for plain success.
    pub label: String,
    pub style: EdgeStyle,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeStyle {
    Normal,
    Error,
    /// Leads back to an earlier step, usually from a loop's body to the loop itself.
    Back,
}

pub fn outline(definition: &Definition) -> Outline {
    let graph = &definition.graph;
    let node = |step: &Step| Node {
        name: step.def.name.trim_start_matches("loop:").to_string(),
        path: path(graph, step),
        kind: kind(step).to_string(),
        detail: detail(step),
        parent: graph.scope(step.scope).owner.map(index),
    };
    let nodes = graph.steps.iter().map(node).collect();
    let mut edges = Vec::new();
    for (from, step) in graph.steps.iter().enumerate() {
        // An edge that leaves a loop is drawn once, from the loop. One back to a for_each only ends the item.
        let repeats = graph.scope(step.scope).owner.is_some_and(|owner| is_loop(graph.step(owner)));
        let drawn = step.outs.iter().filter(|out| match out.to {
            Target::Step(_) => true,
            Target::Back => repeats,
            Target::Leave(_) => false,
        });
        edges.extend(drawn.map(|out| edge(graph, from, out)));
    }
    Outline { name: definition.name.clone(), nodes, edges }
}

/// The recursion is bounded by the limit on scope nesting.
fn path(graph: &Graph, step: &Step) -> String {
    match graph.scope(step.scope).owner {
        Some(owner) => format!("{}[].{}", path(graph, graph.step(owner)), step.def.name),
        None => step.def.name.to_string(),
    }
}

fn is_loop(step: &Step) -> bool {
    matches!(step.def.kind, Kind::Loop { .. })
}

fn index(step: StepIx) -> usize {
    step.0 as usize
}

fn edge(graph: &Graph, from: usize, out: &Out) -> Edge {
    // For an edge that leaves a loop, use the handle of the step inside it.
    let (mut source, mut handle, mut inner) = (StepIx(from as u32), out.handle, out.inner);
    while let Some((step, pos)) = inner {
        let out = &graph.step(step).outs[pos as usize];
        (source, handle, inner) = (step, out.handle, out.inner);
    }
    let label = match handle {
        Handle::SUCCESS => condition_of(graph, out),
        handle => label(graph, source, handle),
    };
    let style = match (handle, out.to) {
        (_, Target::Back) => EdgeStyle::Back,
        (Handle::ERROR | Handle::DENIED, _) => EdgeStyle::Error,
        _ => EdgeStyle::Normal,
    };
    let to = match out.to {
        Target::Step(to) => index(to),
        // Only leaving edges go further out, and they are not drawn from inside.
        Target::Back | Target::Leave(_) => header(graph, from),
    };
    Edge { from, to, label, style }
}

/// Where a back edge returns to: the first step of the body.
fn header(graph: &Graph, from: usize) -> usize {
    let scope = graph.scope(graph.steps[from].scope);
    scope.starts.first().copied().map_or(from, index)
}

/// The target's `if`, as a label for the edge that leads to it.
fn condition_of(graph: &Graph, out: &Out) -> String {
    let Target::Step(to) = out.to else { return String::new() };
    graph.step(to).def.condition.as_ref().map(|expr| expr.source().to_string()).unwrap_or_default()
}

/// Labels a branch with its condition, and the handle of a condition node with its name.
fn label(graph: &Graph, step: StepIx, handle: Handle) -> String {
    let arm = |arms: &[Arm]| match arms.iter().find(|arm| arm.handle == handle).map(|arm| &arm.test) {
        Some(Test::Expr(expr)) => Some(expr.source().to_string()),
        Some(Test::Always) => Some("else".to_string()),
        Some(Test::Rules { .. }) | None => None,
    };
    arm(&graph.step(step).def.branches).unwrap_or_else(|| handle_name(graph, step, handle).to_string())
}

fn kind(step: &Step) -> &'static str {
    let written = step.def.written.get("nodeType").or_else(|| step.def.written.get("type"));
    match (&step.def.kind, written.and_then(|kind| kind.as_str())) {
        (Kind::Pass { .. }, Some("start")) => "start",
        (kind, _) => kind.name(),
    }
}

fn detail(step: &Step) -> String {
    // As the author wrote it, templates and all.
    let written = |name: &str| {
        let written = &step.def.written;
        let places = [Some(&**written), written.get("nodeConfig"), written.get("data")];
        let found = places.into_iter().flatten().find_map(|place| place.get(name)?.as_str());
        found.unwrap_or_default().to_string()
    };
    match &step.def.kind {
        Kind::Call { call: Call::Http, .. } => format!("{} {}", written("method"), written("url")).trim().to_string(),
        Kind::Call { call: Call::Tool, .. } => written("tool"),
        Kind::Sleep(Sleep::For(length)) => length.to_string(),
        Kind::Webhook { timeout: Some(timeout) } => format!("at most {timeout}"),
        Kind::Gate(gate) => gate.timeout.map(|timeout| format!("at most {timeout}")).unwrap_or_default(),
        Kind::Child { workflow, .. } => workflow.to_string(),
        Kind::Each(each) => format!("{} at a time", each.max_parallel),
        Kind::Loop { limit, .. } => format!("at most {limit} times"),
        Kind::Call { call: Call::Javascript | Call::Query, .. }
        | Kind::Webhook { timeout: None }
        | Kind::Sleep(Sleep::ForValue(_) | Sleep::Until(_))
        | Kind::Pass { .. }
        | Kind::Condition { .. }
        | Kind::End { .. } => String::new(),
    }
}
