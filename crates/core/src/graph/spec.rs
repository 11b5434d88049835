//! The input of the builder, made by a dialect: steps by position, edges between them, and where each was written.

use super::{Dialect, Handle, StepDef};
use crate::template::Template;
use serde_json::Value;

/// Where in the document something was written: an opaque number that the reader assigns and faults return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin(pub u32);

#[derive(Clone, Debug)]
pub struct Spec {
    pub dialect: Dialect,
    pub origin: Origin,
    pub steps: Vec<SpecStep>,
    pub edges: Vec<SpecEdge>,
    pub output: Option<(Template, Origin)>,
    /// In the order of the definition.
    pub vars: Vec<SpecVar>,
    /// The most passes of a loop made from a cycle.
    pub max_iterations: u32,
}

/// A value computed once, when the run starts.
#[derive(Clone, Debug)]
pub struct SpecVar {
    pub name: Box<str>,
    pub value: Template,
    /// As written, to notice that a newer version changes it.
    pub written: Value,
    pub origin: Origin,
}

#[derive(Clone, Debug)]
pub struct SpecStep {
    pub def: StepDef,
    pub origin: Origin,
    /// The for_each step (position in [`Spec::steps`]) whose body this step is in.
    pub parent: Option<usize>,
    /// Whether the run, or an instance of the body, may begin here: flow's `start`, a graph's start nodes, a task
    /// without `needs`.
    pub entry: bool,
    /// Other names that expressions may use: flow's `start`, a graph node's label.
    pub aliases: Vec<String>,
}

/// An edge between steps of the same group, or from a body back to its for_each.
#[derive(Clone, Copy, Debug)]
pub struct SpecEdge {
    pub from: usize,
    pub handle: Handle,
    pub to: usize,
    pub origin: Origin,
}
