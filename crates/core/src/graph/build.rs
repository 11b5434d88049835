//! Turns a [`Spec`] into a [`Graph`]: rejects what cannot run, lays out scopes, binds names. Reports every fault it
//! can.

use super::loops::{self, Link, Region};
use super::names::Binder;
use super::spec::{Origin, Spec};
use super::{Dialect, Graph, Join, Kind, OnFail, Out, Scope, ScopeIx, Step, StepDef, Target};
use crate::expr::StepIx;
use crate::limits;
use crate::quote::quote;
use serde_json::json;
use std::collections::HashMap;

/// The most steps named in one message.
const MAX_SHOWN: usize = 5;

/// A fault in a definition, at the place that the reader identifies by `origin`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub origin: Origin,
    /// The name in an expression that the fault is about, as written.
    pub name: Option<String>,
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

impl Graph {
    pub fn build(spec: Spec) -> Result<Graph, Vec<Fault>> {
        let mut builder = Builder::new(spec);
        builder.check_counts();
        if builder.faults.is_empty() {
            builder.check_names();
            builder.check_bodies();
            builder.check_joins();
            builder.check_reachable();
        }
        if builder.faults.is_empty() {
            builder.lay_out();
        }
        let Builder { spec, mut graph, mut faults, .. } = builder;
        // Names can be checked even if the shape is wrong, so that the author sees both at once.
        if spec.steps.len() <= limits::MAX_STEPS && spec.edges.len() <= limits::MAX_EDGES {
            faults.extend(Binder::new(&spec, &mut graph).bind());
        }
        if faults.is_empty() { Ok(graph) } else { Err(faults) }
    }

    /// The faults of names in expressions, for a definition whose edges are already known to be incomplete. Reports
    /// nothing that depends on edges: which step comes first, what is in the body of a graph's loop.
    pub fn name_faults(mut spec: Spec) -> Vec<Fault> {
        spec.edges.clear();
        if spec.dialect == Dialect::Graph {
            spec.steps.iter_mut().for_each(|step| step.parent = None);
        }
        let Builder { spec, mut graph, .. } = Builder::new(spec);
        Binder::new(&spec, &mut graph).without_edges().bind()
    }
}

struct Builder {
    spec: Spec,
    graph: Graph,
    faults: Vec<Fault>,
}

impl Builder {
    fn new(mut spec: Spec) -> Builder {
        let output = spec.output.as_ref().map(|(template, _)| template.clone());
        let steps = spec.steps.iter_mut().enumerate().map(|(order, step)| Step {
            def: step.def.clone(),
            scope: ScopeIx::ROOT,
            local: 0,
            order: order as u32,
            in_edges: 0,
            outs: Vec::new(),
            variable: None,
        });
        let vars = spec.vars.iter().map(|var| (var.name.clone(), var.value.clone())).collect();
        let written = spec.vars.iter().map(|var| json!([&*var.name, var.written])).collect();
        let graph = Graph {
            dialect: spec.dialect,
            scopes: Vec::new(),
            steps: steps.collect(),
            variables: Vec::new(),
            output,
            vars,
            vars_written: written,
            warnings: Vec::new(),
            order: None,
        };
        Builder { spec, graph, faults: Vec::new() }
    }

    fn fault(&mut self, origin: Origin, code: &'static str, message: String, hint: Option<String>) {
        self.faults.push(Fault { origin, name: None, code, message, hint });
    }

    fn check_counts(&mut self) {
        let origin = self.spec.origin;
        if self.spec.steps.is_empty() {
            self.fault(origin, "no-steps", "the workflow has no steps".into(), Some("add at least one step".into()));
        }
        let apart = |edge: &&super::SpecEdge| {
            let (from, to) = (&self.spec.steps[edge.from], &self.spec.steps[edge.to]);
            from.parent != to.parent && from.parent != Some(edge.to)
        };
        let crossing: Vec<Origin> = self.spec.edges.iter().filter(apart).map(|edge| edge.origin).collect();
        for origin in crossing {
            let hint = "a loop body is entered and left only through its loop".to_string();
            self.fault(origin, "crosses-body", "this edge goes into or out of a loop body".into(), Some(hint));
        }
        for (what, count, most) in
            [("steps", self.spec.steps.len(), limits::MAX_STEPS), ("edges", self.spec.edges.len(), limits::MAX_EDGES)]
        {
            if count > most {
                let hint = "split it into workflows that call each other".to_string();
                self.fault(origin, "limit-steps", format!("{count} {what}; at most {most} are allowed"), Some(hint));
            }
        }
    }

    /// Checks that names and aliases are unique in each group of steps that see each other: the definition, or one
    /// for_each body.
    fn check_names(&mut self) {
        let mut seen: HashMap<(Option<usize>, &str), usize> = HashMap::new();
        let mut twice = Vec::new();
        for (i, step) in self.spec.steps.iter().enumerate() {
            let names = step.aliases.iter().map(String::as_str).chain([&*step.def.name]);
            for name in names {
                if let Some(other) = seen.insert((step.parent, name), i)
                    && other != i
                {
                    twice.push((step.origin, name.to_string()));
                }
            }
        }
        for (origin, name) in twice {
            let hint = Some("give each step its own name".to_string());
            self.fault(origin, "duplicate-step", format!("another step is already named {}", quote(&name)), hint);
        }
    }

    fn check_bodies(&mut self) {
        let mut empty: Vec<bool> = self.spec.steps.iter().map(|step| matches!(step.def.kind, Kind::Each(_))).collect();
        self.spec.steps.iter().filter_map(|step| step.parent).for_each(|parent| empty[parent] = false);
        for i in (0..empty.len()).filter(|&i| empty[i]) {
            let hint = Some("add the steps to run for each item".to_string());
            self.fault(self.spec.steps[i].origin, "no-steps", "its body has no steps".into(), hint);
        }
    }

    fn check_joins(&mut self) {
        let wrong = |step: &&super::SpecStep| step.def.join == Join::Any && step.def.condition.is_some();
        let origins: Vec<Origin> = self.spec.steps.iter().filter(wrong).map(|step| step.origin).collect();
        for origin in origins {
            let hint = "put the condition on the step after it".to_string();
            self.fault(origin, "if-with-any", "a step that joins on any edge cannot have an `if`".into(), Some(hint));
        }
    }

    fn check_reachable(&mut self) {
        let count = self.spec.steps.len();
        let mut seen: Vec<bool> = self.spec.steps.iter().map(|step| step.entry).collect();
        let mut targets = vec![Vec::new(); count];
        for edge in &self.spec.edges {
            targets[edge.from].push(edge.to);
        }
        let mut todo: Vec<usize> = (0..count).filter(|&i| seen[i]).collect();
        if !todo.iter().any(|&i| self.spec.steps[i].parent.is_none()) {
            let hint = match self.spec.dialect {
                Dialect::Flow => "name the first step `start`",
                Dialect::Graph => "add a node of type `start`, or one that no edge leads to",
                Dialect::Tasks => "leave `needs` off the first step",
            };
            self.fault(self.spec.origin, "no-start", "no step can start first".into(), Some(hint.into()));
            return;
        }
        while let Some(at) = todo.pop() {
            for &to in &targets[at] {
                if !std::mem::replace(&mut seen[to], true) {
                    todo.push(to);
                }
            }
        }
        for i in (0..count).filter(|&i| !seen[i]) {
            let step = &self.spec.steps[i];
            let message = format!("no path leads to step {}", quote(&step.def.name));
            let hint = Some("connect it to a step that runs, or remove it".to_string());
            self.fault(step.origin, "unreachable-step", message, hint);
        }
    }

    /// Creates scopes for the root, for every for_each body, and for every cycle in them.
    fn lay_out(&mut self) {
        let mut regions = self.first_regions();
        while let Some(mut region) = regions.pop() {
            if region.depth > limits::MAX_SCOPE_DEPTH {
                let origin = self.origin(region.members[0]);
                let message = format!("loops are nested more than {} deep", limits::MAX_SCOPE_DEPTH);
                self.fault(origin, "limit-depth", message, Some("move the inner part into a separate workflow".into()));
                continue;
            }
            let entries = &self.spec.steps;
            let is_entry = |step: StepIx| entries.get(step.0 as usize).is_some_and(|s| s.entry);
            for cycle in loops::cycles(&region, self.graph.steps.len(), is_entry) {
                let &[header] = cycle.entries.as_slice() else {
                    self.irreducible(&cycle);
                    continue;
                };
                let (loop_step, body_scope) = self.add_loop(header, region.scope);
                self.graph.steps[loop_step.0 as usize].order = cycle.members[0].0;
                let (body, outs) = loops::contract(&mut region, &cycle, header, loop_step);
                self.leave_through(region.scope, loop_step, &outs);
                self.graph.steps[loop_step.0 as usize].outs = outs;
                let depth = region.depth + 1;
                regions.push(Region { scope: body_scope, members: cycle.members, links: body, depth });
            }
            self.write_region(region);
        }
        self.set_frames();
    }

    /// The root and the for_each bodies, with all edges between their steps.
    fn first_regions(&mut self) -> Vec<Region> {
        let mut scope_of: HashMap<Option<usize>, usize> = HashMap::from([(None, 0)]);
        let mut regions = vec![Region { scope: ScopeIx::ROOT, members: Vec::new(), links: Vec::new(), depth: 0 }];
        self.graph.scopes.push(Scope::default());
        for i in 0..self.graph.steps.len() {
            let body = ScopeIx(self.graph.scopes.len() as u32);
            let Kind::Each(each) = &mut self.graph.steps[i].def.kind else { continue };
            each.body = body;
            scope_of.insert(Some(i), regions.len());
            self.graph.scopes.push(Scope { owner: Some(StepIx(i as u32)), ..Scope::default() });
            let depth = self.each_depth(i);
            regions.push(Region { scope: body, members: Vec::new(), links: Vec::new(), depth });
        }
        for (i, step) in self.spec.steps.iter().enumerate() {
            regions[scope_of[&step.parent]].members.push(StepIx(i as u32));
        }
        let mut next_pos = vec![0u32; self.spec.steps.len()];
        for edge in &self.spec.edges {
            let pos = next_pos[edge.from];
            next_pos[edge.from] += 1;
            let group = self.spec.steps[edge.from].parent;
            let to = if group == Some(edge.to) { Target::Back } else { Target::Step(StepIx(edge.to as u32)) };
            let from = StepIx(edge.from as u32);
            regions[scope_of[&group]].links.push(Link { from, pos, handle: edge.handle, to });
        }
        regions
    }

    fn each_depth(&self, each: usize) -> usize {
        let parents = std::iter::successors(Some(each), |&i| self.spec.steps[i].parent);
        parents.take(limits::MAX_SCOPE_DEPTH + 1).count()
    }

    fn add_loop(&mut self, header: StepIx, outer: ScopeIx) -> (StepIx, ScopeIx) {
        let body = ScopeIx(self.graph.scopes.len() as u32);
        let step = StepIx(self.graph.steps.len() as u32);
        let head = &self.graph.step(header).def;
        let on_fail = if self.spec.dialect == Dialect::Flow { OnFail::Abort } else { OnFail::Route };
        let kind = Kind::Loop { body, limit: self.spec.max_iterations };
        let def = StepDef { join: head.join, on_fail, ..StepDef::new(format!("loop:{}", head.name), kind) };
        self.graph.steps.push(Step {
            def,
            scope: outer,
            local: 0,
            order: 0,
            in_edges: 0,
            outs: Vec::new(),
            variable: None,
        });
        self.graph.scopes.push(Scope { owner: Some(step), ..Scope::default() });
        (step, body)
    }

    /// Redirects edges that also leave the loop around `scope`: they now do so through the inner loop.
    fn leave_through(&mut self, scope: ScopeIx, inner: StepIx, outs: &[Out]) {
        let Some(owner) = self.graph.scope(scope).owner else { return };
        for (pos, out) in outs.iter().enumerate() {
            if let Target::Leave(outer) = out.to {
                self.graph.steps[owner.0 as usize].outs[outer as usize].inner = Some((inner, pos as u32));
            }
        }
    }

    fn irreducible(&mut self, cycle: &loops::Cycle) {
        let names = |steps: &[StepIx]| {
            let names = steps.iter().map(|&s| quote(&self.graph.step(s).def.name));
            let shown: Vec<String> = names.take(MAX_SHOWN).collect();
            let more =
                if steps.len() > MAX_SHOWN { format!(" and {} more", steps.len() - MAX_SHOWN) } else { String::new() };
            shown.join(", ") + &more
        };
        let message = format!(
            "the cycle through {} is entered at more than one step: {}",
            names(&cycle.members),
            names(&cycle.entries)
        );
        let origin = self.origin(cycle.entries[0]);
        let hint = "make every edge into the cycle lead to the same step".to_string();
        self.fault(origin, "irreducible-loop", message, Some(hint));
    }

    /// Writes a region without remaining cycles into the graph.
    fn write_region(&mut self, region: Region) {
        for (local, &member) in region.members.iter().enumerate() {
            let step = &mut self.graph.steps[member.0 as usize];
            step.scope = region.scope;
            step.local = local as u32;
        }
        let mut links = region.links;
        links.sort_unstable_by_key(|link| (link.from, link.pos));
        for link in links {
            if let Target::Step(to) = link.to {
                self.graph.steps[to.0 as usize].in_edges += 1;
            }
            let step = &mut self.graph.steps[link.from.0 as usize];
            if matches!(step.def.kind, Kind::Loop { .. }) {
                step.outs[link.pos as usize].to = link.to;
            } else {
                step.outs.push(Out { handle: link.handle, to: link.to, inner: None });
            }
        }
        let starts = region.members.iter().copied().filter(|&m| self.graph.step(m).in_edges == 0).collect();
        let name = |&member: &StepIx| (self.graph.step(member).def.name.clone(), member);
        let names = region.members.iter().map(name).collect();
        let scope = &mut self.graph.scopes[region.scope.0 as usize];
        scope.names = names;
        scope.starts = starts;
        scope.steps = region.members;
    }

    fn set_frames(&mut self) {
        // Owners and bodies are in no fixed order, so walk up from each scope.
        for i in 0..self.graph.scopes.len() {
            let mut scope = ScopeIx(i as u32);
            while let Some(owner) = self.graph.scope(scope).owner {
                match &self.graph.step(owner).def.kind {
                    Kind::Each(each) if each.max_parallel > 1 => break,
                    _ => scope = self.graph.step(owner).scope,
                }
            }
            self.graph.scopes[i].frame = scope;
        }
    }

    /// Where a step was written. A loop step is not in the document itself; its header stands for it.
    fn origin(&self, step: StepIx) -> Origin {
        self.spec.steps.get(step.0 as usize).map_or(self.spec.origin, |s| s.origin)
    }
}
