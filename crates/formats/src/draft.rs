//! A definition while it is being read: its steps and edges so far, and all faults found.
//!
//! After a fault, reading continues with a placeholder, so that one pass finds all faults.

use crate::code;
use crate::fault::{Fault, Faults};
use crate::source::{Flaws, Node, Span, Value, join_key};
use std::collections::HashSet;
use stepwell_core::graph::{self, Handle, Origin, SpecEdge, SpecStep};
use stepwell_core::limits;
use stepwell_core::nearest::nearest;
use stepwell_core::quote::quote;

/// The most names that a misspelt one is compared with.
const MAX_COMPARED: usize = 2_000;

/// A position in the document: the path of a value, and its span if there is text.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub path: String,
    pub span: Option<Span>,
}

#[derive(Default)]
pub struct Draft<'d> {
    pub steps: Vec<SpecStep>,
    pub edges: Vec<SpecEdge>,
    /// Whether the definition has `vars`: only then is that a name of its own.
    pub has_vars: bool,
    warnings: Vec<Fault>,
    faults: Vec<Fault>,
    more: usize,
    /// Where something could not be read. Only that is reported for the place.
    flawed: HashSet<Span>,
    origins: Vec<(Place, Option<&'d Node>)>,
    /// Names or edges are missing, so faults that the builder finds in the rest might be wrong.
    broken: bool,
}

impl<'d> Draft<'d> {
    /// A draft of a document in which these flaws were found.
    pub fn after(flaws: Flaws) -> Draft<'d> {
        Draft {
            more: flaws.more,
            flawed: flaws.places,
            // The dropped entries may have been steps, or edges between them.
            broken: flaws.list.iter().any(|flaw| matches!(flaw.code, code::DUPLICATE_KEY | code::BAD_ALIAS)),
            faults: flaws.list.into_iter().map(Fault::from).collect(),
            ..Draft::default()
        }
    }

    pub fn fault(&mut self, place: &Place, fault: Fault) {
        if place.span.is_some_and(|span| self.flawed.contains(&span)) {
            return;
        }
        // Keep more than needed: they are sorted before the list is truncated.
        if self.faults.len() < 2 * limits::MAX_FAULTS {
            self.faults.push(fault.place(place.path.clone(), place.span));
        } else {
            self.more += 1;
        }
    }

    /// Reports what is suspicious but not wrong: the definition is accepted.
    pub fn warn(&mut self, place: &Place, warning: Fault) {
        if self.warnings.len() < limits::MAX_FAULTS {
            self.warnings.push(warning.place(place.path.clone(), place.span).warning());
        }
    }

    pub fn take_warnings(&mut self) -> Vec<Fault> {
        Faults::of(std::mem::take(&mut self.warnings), 0).list
    }

    /// Reports a fault that leaves the graph in a shape its author did not mean.
    pub fn fault_in_shape(&mut self, place: &Place, fault: Fault) {
        self.broken = true;
        self.fault(place, fault);
    }

    /// Marks the shape as not what its author meant, where another fault already explains why.
    pub fn break_shape(&mut self) {
        self.broken = true;
    }

    /// The hint for an unknown name. Not computed once the list of faults is full.
    pub fn near<'n>(&self, name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
        if self.is_full() {
            return None;
        }
        nearest(name, known.into_iter().take(MAX_COMPARED)).map(|near| format!("did you mean {}?", quote(near)))
    }

    pub fn is_full(&self) -> bool {
        self.more > 0
    }

    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn into_faults(self) -> Faults {
        Faults::of(self.faults, self.more)
    }

    /// Assigns a number for a place, which the builder's faults return.
    pub fn origin(&mut self, place: &Place, node: Option<&'d Node>) -> Origin {
        self.origins.push((place.clone(), node));
        Origin(self.origins.len() as u32 - 1)
    }

    /// Adds a step unless there are too many. The caller continues reading either way.
    pub fn add_step(&mut self, step: SpecStep) -> Option<usize> {
        if self.steps.len() >= limits::MAX_STEPS {
            let place = self.origins.get(step.origin.0 as usize).map(|(place, _)| place.clone()).unwrap_or_default();
            if !self.broken {
                let message = format!("a definition has at most {} steps", limits::MAX_STEPS);
                let fault = Fault::new(code::LIMIT_STEPS, message);
                self.fault_in_shape(&place, fault.hint("split it into workflows that call each other"));
            }
            return None;
        }
        self.steps.push(step);
        Some(self.steps.len() - 1)
    }

    pub fn add_edge(&mut self, from: usize, handle: Handle, to: usize, place: &Place) {
        if self.edges.len() >= limits::MAX_EDGES {
            if !self.broken {
                let message = format!("a definition has at most {} edges", limits::MAX_EDGES);
                self.fault_in_shape(place, Fault::new(code::LIMIT_STEPS, message));
            }
            return;
        }
        let origin = self.origin(place, None);
        self.edges.push(SpecEdge { from, handle, to, origin });
    }

    pub fn place_of_step(&self, index: usize) -> Place {
        let origin = self.steps.get(index).map(|step| step.origin.0 as usize);
        origin.and_then(|origin| self.origins.get(origin)).map(|(place, _)| place.clone()).unwrap_or_default()
    }

    /// Adds the faults of the graph builder, at the places their origins stand for.
    pub fn add_graph_faults(&mut self, faults: Vec<graph::Fault>) {
        for fault in faults {
            let (place, fault) = self.placed(fault);
            self.fault(&place, fault);
        }
    }

    pub fn add_graph_warnings(&mut self, warnings: Vec<graph::Fault>) {
        for warning in warnings {
            let (place, warning) = self.placed(warning);
            self.warn(&place, warning);
        }
    }

    fn placed(&self, fault: graph::Fault) -> (Place, Fault) {
        let found = self.origins.get(fault.origin.0 as usize).cloned();
        let (mut place, node) = found.unwrap_or_default();
        let mut message = fault.message;
        if let Some(name) = &fault.name {
            // The builder knows only the step; find the name itself in the step's text.
            if !self.is_full()
                && let Some(exact) = node.and_then(|node| locate(node, name, &place.path))
            {
                place = exact;
            }
            message = format!("{name}: {message}");
        }
        (place, Fault::new(fault.code, message).maybe_hint(fault.hint))
    }
}

/// The first string in `node` that contains `name`. Bodies are left out: their steps have their own places.
fn locate(node: &Node, name: &str, path: &str) -> Option<Place> {
    match &node.value {
        Value::String(text) => {
            let at = text.find(name)?;
            Some(Place { path: path.to_owned(), span: node.within(at, at + name.len()) })
        }
        Value::List(items) => {
            items.iter().enumerate().find_map(|(n, item)| locate(item, name, &format!("{path}[{n}]")))
        }
        Value::Map(entries) => entries
            .iter()
            .filter(|entry| entry.key != "tasks")
            .find_map(|entry| locate(&entry.value, name, &join_key(path, &entry.key))),
        _ => None,
    }
}
