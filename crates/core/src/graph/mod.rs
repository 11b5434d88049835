//! A workflow independent of its dialect: scopes of steps connected by edges. Built once, then only read.
//!
//! [`Graph::build`] creates a [`Graph`]: it finds loops, binds names in expressions and rejects what cannot run. Steps
//! are identified by number here; names and paths appear only in what people or the log see.
//!
//! Not here: syntax of the dialects (`formats`), the state of a run (`run`).

mod build;
mod loops;
mod names;
mod reach;
mod spec;
mod step;

pub use build::Fault;
pub use loops::{Parts, components};
pub use reach::Order;
pub use spec::{Origin, Spec, SpecEdge, SpecStep, SpecVar};
pub use step::*;

use crate::expr::StepIx;
use crate::template::Template;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A scope's number; 0 is the root.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ScopeIx(pub u32);

impl ScopeIx {
    pub const ROOT: ScopeIx = ScopeIx(0);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Tasks,
    Flow,
    Graph,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Tasks => "tasks",
            Dialect::Flow => "flow",
            Dialect::Graph => "graph",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Graph {
    pub dialect: Dialect,
    pub scopes: Vec<Scope>,
    pub steps: Vec<Step>,
    /// The names of `ctx` variables; expressions and steps refer to them by position.
    pub variables: Vec<Box<str>>,
    /// The run's output, if the definition gives one.
    pub output: Option<Template>,
    /// The values computed once, when a run starts; each may read those before it.
    pub vars: Vec<(Box<str>, Template)>,
    /// The vars as written.
    pub vars_written: Value,
    /// What is suspicious but not wrong.
    pub warnings: Vec<Fault>,
    /// Set only if a code step may read any step before it.
    pub order: Option<Arc<Order>>,
}

/// A directed acyclic part of the graph: the root, the body of a loop or the body of a for_each.
#[derive(Clone, Default, Debug)]
pub struct Scope {
    /// The loop or for_each step whose body this is.
    pub owner: Option<StepIx>,
    pub steps: Vec<StepIx>,
    pub names: HashMap<Arc<str>, StepIx>,
    /// Steps without in-edges in this scope.
    pub starts: Vec<StepIx>,
    /// The nearest enclosing scope (or this one) whose instances do not run one after another: the root, or the body of
    /// a for_each that runs items in parallel. Names and `ctx` are looked up per instance of this scope.
    pub frame: ScopeIx,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub def: StepDef,
    pub scope: ScopeIx,
    /// Position in its scope's `steps`.
    pub local: u32,
    /// Position in the definition. A loop made from a cycle has that of its first step.
    pub order: u32,
    pub in_edges: u32,
    pub outs: Vec<Out>,
    /// The number of its `ctx` variable.
    pub variable: Option<u32>,
}

/// An out-edge of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    pub handle: Handle,
    pub to: Target,
    /// For an edge that leaves a loop step: the edge inside the body that it stands for (step, position in its `outs`).
    pub inner: Option<(StepIx, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Step(StepIx),
    /// Back to the header: requests another pass of the loop. In a for_each body it only ends the item.
    Back,
    /// Out of the loop: the position of the edge in the loop step's own `outs`.
    Leave(u32),
}

impl Graph {
    pub fn step(&self, step: StepIx) -> &Step {
        &self.steps[step.0 as usize]
    }

    pub fn scope(&self, scope: ScopeIx) -> &Scope {
        &self.scopes[scope.0 as usize]
    }

    /// The step with this name in this scope.
    pub fn find(&self, scope: ScopeIx, name: &str) -> Option<StepIx> {
        self.scope(scope).names.get(name).copied()
    }
}

impl Step {
    pub fn has_out(&self, handle: Handle) -> bool {
        self.outs.iter().any(|out| out.handle == handle && out.inner.is_none())
    }
}
