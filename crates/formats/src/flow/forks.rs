//! Rejects a `parallel` if one branch stays in a loop while another leaves it.

use super::ParsedStep;
use super::routes::{Edge, place_of};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::quoted;
use std::collections::HashSet;
use stepwell_core::graph::{Handle, components};
use stepwell_core::limits;

/// Checks the cycles, then the cycles inside them after removing the edges back to the header, as the builder does.
pub fn reject_half_forks(draft: &mut Draft<'_>, read: &[ParsedStep<'_>], edges: &[Edge]) {
    let mut all: Vec<Vec<usize>> = vec![Vec::new(); read.len()];
    let mut forked: Vec<Vec<usize>> = vec![Vec::new(); read.len()];
    for edge in edges {
        all[edge.from].push(edge.to);
        if edge.handle == Handle::SUCCESS {
            forked[edge.from].push(edge.to);
        }
    }
    let mut reported = HashSet::new();
    let start = read.iter().position(|step| step.key == "start");
    let mut targets = all.clone();
    for _ in 0..limits::MAX_SCOPE_DEPTH {
        let parts = components(&targets);
        let mut sizes = vec![0; parts.count];
        parts.of.iter().for_each(|&part| sizes[part] += 1);
        let cyclic = |at: usize| sizes[parts.of[at]] > 1 || targets[at].contains(&at);
        let mut any = false;
        for (at, targets) in forked.iter().enumerate().filter(|(at, _)| cyclic(*at)) {
            any = true;
            let stays = |to: &&usize| parts.of[**to] == parts.of[at];
            let inside = targets.iter().filter(stays).count();
            if inside > 0 && inside < targets.len() && reported.insert(at) {
                report_half_fork(draft, read, at, targets, |to| parts.of[to] == parts.of[at]);
            }
        }
        if !any {
            return;
        }
        // Headers are the steps where a cycle is entered from outside.
        let mut header = vec![false; read.len()];
        for (from, outs) in all.iter().enumerate() {
            for &to in outs.iter().filter(|&&to| parts.of[from] != parts.of[to]) {
                header[to] = true;
            }
        }
        if let Some(start) = start {
            header[start] = true;
        }
        let before: usize = targets.iter().map(Vec::len).sum();
        for (from, outs) in targets.iter_mut().enumerate() {
            outs.retain(|&to| parts.of[from] == parts.of[to] && !header[to]);
        }
        if targets.iter().map(Vec::len).sum::<usize>() == before {
            return;
        }
    }
}

fn report_half_fork(
    draft: &mut Draft<'_>,
    read: &[ParsedStep<'_>],
    at: usize,
    targets: &[usize],
    stays: impl Fn(usize) -> bool,
) {
    let names = |inside: bool| {
        let names: Vec<String> =
            targets.iter().filter(|&&to| stays(to) == inside).take(3).map(|&to| quoted(read[to].key)).collect();
        names.join(", ")
    };
    let message = format!("branch {} stays in the loop, but {} leaves it", names(true), names(false));
    let place = place_of(draft, read, at);
    let fault = Fault::new(code::FORK_LEAVES_LOOP, message).hint("join the branches before they leave the loop");
    draft.fault(&place, fault);
}
