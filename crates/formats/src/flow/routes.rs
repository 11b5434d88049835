//! Turns the transitions of flow steps into edges: names, the open ends of a `parallel` with a `join`, `on_error`.

use super::{ParsedStep, Transition, forks};
use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, quoted};
use std::collections::{HashMap, HashSet};
use stepwell_core::graph::Handle;
use stepwell_core::limits;

/// The most steps visited in total while searching for open ends.
const MAX_VISITS: usize = 2_000_000;

/// An edge between positions in the list of steps.
pub struct Edge {
    pub from: usize,
    pub handle: Handle,
    pub to: usize,
    pub place: Place,
}

/// A `parallel` with a `join`.
struct Fork {
    at: usize,
    join: usize,
    place: Place,
}

pub fn connect<'d>(draft: &mut Draft<'d>, read: &[ParsedStep<'d>]) {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (i, step) in read.iter().enumerate() {
        by_name.insert(step.key, i);
    }
    // The first step can also be referred to by its name, unless that is another step's key.
    if let Some(&start) = by_name.get("start") {
        let name = draft.steps[read[start].index].def.name.to_string();
        if let Some((i, step)) = read.iter().enumerate().find(|(_, step)| *step.key == *name)
            && i != start
        {
            let message = format!("`start` and another step are both named {}", quoted(step.key));
            let place = place_of(draft, read, start);
            draft.fault_in_shape(&place, Fault::new(code::DUPLICATE_NAME, message));
        }
        let names = Names { by_name, start: Some((name, start)) };
        return route(draft, read, &names);
    }
    route(draft, read, &Names { by_name, start: None });
}

struct Names<'d> {
    by_name: HashMap<&'d str, usize>,
    start: Option<(String, usize)>,
}

impl Names<'_> {
    fn find<'d>(&self, draft: &mut Draft<'d>, field: &Field<'d>) -> Option<usize> {
        let Some(name) = draft.text(field) else {
            draft.break_shape();
            return None;
        };
        let found = self.by_name.get(name).copied();
        let found = found.or_else(|| self.start.as_ref().filter(|(start, _)| start == name).map(|(_, i)| *i));
        if found.is_none() {
            draft.unknown_step(name, &field.place, self.by_name.keys().copied());
        }
        found
    }
}

fn route<'d>(draft: &mut Draft<'d>, read: &[ParsedStep<'d>], names: &Names<'_>) {
    let mut edges: Vec<Edge> = Vec::new();
    let mut forks: Vec<Fork> = Vec::new();
    for (from, step) in read.iter().enumerate() {
        let mut add = |draft: &mut Draft<'d>, handle: Handle, field: &Field<'d>| {
            if let Some(to) = names.find(draft, field) {
                edges.push(Edge { from, handle, to, place: field.place.clone() });
            }
        };
        for field in &step.beside {
            names.find(draft, field);
        }
        match &step.transition {
            Transition::Open | Transition::Done => {}
            Transition::Next(field) => add(draft, Handle::SUCCESS, field),
            Transition::Branch(entries) => {
                for (handle, field) in entries {
                    add(draft, *handle, field);
                }
            }
            Transition::Parallel { branches, join } => {
                let mut seen = HashSet::new();
                for field in branches {
                    if field.node.as_str().is_some_and(|name| !seen.insert(name)) {
                        let fault = Fault::new(code::DUPLICATE_NAME, "this branch is already named here");
                        draft.fault(&field.place, fault.hint("name it once"));
                        continue;
                    }
                    add(draft, Handle::SUCCESS, field);
                }
                if let Some(field) = join
                    && let Some(join) = names.find(draft, field)
                {
                    forks.push(Fork { at: from, join, place: field.place.clone() });
                }
            }
        }
    }
    join_open_ends(draft, read, &mut edges, &forks);
    add_error_edges(draft, read, &mut edges, names);
    end_paths(draft, read, &edges);
    forks::reject_half_forks(draft, read, &edges);
    for edge in edges {
        draft.add_edge(read[edge.from].index, edge.handle, read[edge.to].index, &edge.place);
    }
}

/// Adds an edge from every open end of a fork's branches to the fork's join. Inner forks come first.
fn join_open_ends<'d>(draft: &mut Draft<'d>, read: &[ParsedStep<'d>], edges: &mut Vec<Edge>, forks: &[Fork]) {
    if forks.is_empty() {
        return;
    }
    let mut targets = vec![Vec::new(); read.len()];
    for edge in edges.iter() {
        targets[edge.from].push(edge.to);
    }
    // After a fork the search continues at its join, whose in-edges do not exist yet.
    let mut after: HashMap<usize, usize> = HashMap::new();
    for fork in forks {
        after.insert(fork.at, fork.join);
    }
    let mut budget = MAX_VISITS;
    let mut regions: Vec<(usize, HashSet<usize>)> = Vec::new();
    for (n, fork) in forks.iter().enumerate() {
        let mut region = HashSet::new();
        let mut todo: Vec<usize> = targets[fork.at].iter().copied().filter(|&to| to != fork.join).collect();
        while let Some(at) = todo.pop() {
            if !region.insert(at) {
                continue;
            }
            budget = budget.saturating_sub(1 + targets[at].len());
            if budget == 0 {
                let fault = Fault::new(code::LIMIT_STEPS, "too many forks reach too many steps");
                return draft.fault_in_shape(&fork.place, fault.hint("write `join` on the last step of each branch"));
            }
            let next = targets[at].iter().chain(after.get(&at).filter(|_| at != fork.at));
            todo.extend(next.copied().filter(|&to| to != fork.join && to != fork.at));
        }
        regions.push((n, region));
    }
    regions.sort_by_key(|(n, region)| (region.len(), *n));
    // Which forks added the edge of an open end.
    let mut taken: HashMap<usize, Vec<usize>> = HashMap::new();
    for (n, region) in &regions {
        let fork = &forks[*n];
        let mut ends: Vec<usize> =
            region.iter().copied().filter(|&at| matches!(read[at].transition, Transition::Open)).collect();
        ends.sort_unstable();
        for end in ends {
            let by = taken.entry(end).or_default();
            if by.iter().any(|&inner| region.contains(&forks[inner].at)) {
                continue;
            }
            by.push(*n);
            if edges.len() > limits::MAX_EDGES {
                return; // Reported when the edges are added.
            }
            edges.push(Edge { from: end, handle: Handle::SUCCESS, to: fork.join, place: fork.place.clone() });
        }
    }
}

/// `on_error: continue` doubles every success edge as an error edge; `on_error: <step>` is one edge to it.
fn add_error_edges<'d>(draft: &mut Draft<'d>, read: &[ParsedStep<'d>], edges: &mut Vec<Edge>, names: &Names<'_>) {
    let mut continuing = vec![false; read.len()];
    for (from, step) in read.iter().enumerate() {
        let Some(field) = &step.on_error else { continue };
        if field.node.as_str() != Some("continue") {
            if let Some(to) = names.find(draft, field) {
                edges.push(Edge { from, handle: Handle::ERROR, to, place: field.place.clone() });
            }
            continue;
        }
        if matches!(step.transition, Transition::Branch(_)) {
            let fault = Fault::new(code::NOT_ALLOWED, "`on_error: continue` has no target with a `branch`");
            draft.fault(&field.place, fault.hint("name the step to go to instead"));
            continue;
        }
        continuing[from] = true;
    }
    for n in 0..edges.len() {
        let Edge { from, handle, to, ref place } = edges[n];
        if continuing[from] && handle == Handle::SUCCESS {
            let place = place.clone();
            edges.push(Edge { from, handle: Handle::ERROR, to, place });
        }
    }
}

/// A step without a successor determines the run's output, with or without `done`.
fn end_paths(draft: &mut Draft<'_>, read: &[ParsedStep<'_>], edges: &[Edge]) {
    let mut goes_on = vec![false; read.len()];
    for edge in edges.iter().filter(|edge| edge.handle != Handle::ERROR) {
        goes_on[edge.from] = true;
    }
    for (step, goes_on) in read.iter().zip(goes_on) {
        if matches!(step.transition, Transition::Open) {
            draft.steps[step.index].def.done = !goes_on;
        }
    }
}

pub fn place_of(draft: &mut Draft<'_>, read: &[ParsedStep<'_>], at: usize) -> Place {
    if let Transition::Parallel { branches, .. } = &read[at].transition
        && let Some(first) = branches.first()
    {
        let path = first.place.path.rsplit_once('[').map_or(first.place.path.as_str(), |(list, _)| list);
        return Place { path: path.to_owned(), span: first.place.span };
    }
    draft.place_of_step(read[at].index)
}
