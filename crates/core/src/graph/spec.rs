//! What a dialect hands to the builder: steps by position, edges between them, and where each was written.

use super::{Dialect, Handle, StepDef};
use crate::template::Template;

/// Where in the document something was written: a number of the reader's own, given back in faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin(pub u32);

#[derive(Clone, Debug)]
pub struct Spec {
    pub dialect: Dialect,
    pub origin: Origin,
    pub steps: Vec<SpecStep>,
    pub edges: Vec<SpecEdge>,
    pub output: Option<(Template, Origin)>,
    /// Passes that a loop made from a cycle may have.
    pub max_iterations: u32,
}

#[derive(Clone, Debug)]
pub struct SpecStep {
    pub def: StepDef,
    pub origin: Origin,
    /// The each step (position in [`Spec::steps`]) whose body this one is in.
    pub parent: Option<usize>,
    /// The run, or an instance of the body, may begin here: flow's `start`, a graph's start nodes, a task without `needs`.
    pub entry: bool,
    /// Further names that expressions may use: flow's `start`, a graph node's label.
    pub aliases: Vec<String>,
}

/// Between steps of the same group, or from a body back to its each.
#[derive(Clone, Copy, Debug)]
pub struct SpecEdge {
    pub from: usize,
    pub handle: Handle,
    pub to: usize,
    pub origin: Origin,
}
