//! Refuses a `parallel` of which one branch stays in a loop while another leaves it.

use super::Read;
use super::routes::{Edge, place_of};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::quoted;
use std::collections::HashSet;
use stepwell_core::graph::Handle;
use stepwell_core::limits;

/// Looks at the cycles, then at those inside them once the edges back to the header are gone, as the builder does.
pub fn refuse_half_forks(draft: &mut Draft<'_>, read: &[Read<'_>], edges: &[Edge]) {
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
        let cyclic = |at: usize| parts.sizes[parts.of[at]] > 1 || targets[at].contains(&at);
        let mut any = false;
        for (at, targets) in forked.iter().enumerate().filter(|(at, _)| cyclic(*at)) {
            any = true;
            let stays = |to: &&usize| parts.of[**to] == parts.of[at];
            let inside = targets.iter().filter(stays).count();
            if inside > 0 && inside < targets.len() && reported.insert(at) {
                half_fork(draft, read, at, targets, |to| parts.of[to] == parts.of[at]);
            }
        }
        if !any {
            return;
        }
        // Headers: where a cycle is entered from outside it.
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

fn half_fork(draft: &mut Draft<'_>, read: &[Read<'_>], at: usize, targets: &[usize], stays: impl Fn(usize) -> bool) {
    let names = |inside: bool| {
        let names: Vec<String> =
            targets.iter().filter(|&&to| stays(to) == inside).take(3).map(|&to| quoted(read[to].key)).collect();
        names.join(", ")
    };
    let message = format!("of these branches {} stays in the loop and {} leaves it", names(true), names(false));
    let place = place_of(draft, read, at);
    let fault = Fault::new(code::FORK_LEAVES_LOOP, message).hint("let the branches join before the loop is left");
    draft.fault(&place, fault);
}

struct Parts {
    of: Vec<usize>,
    sizes: Vec<usize>,
}

/// Strongly connected parts, by Tarjan's algorithm with a stack of its own.
fn components(targets: &[Vec<usize>]) -> Parts {
    const NEW: usize = usize::MAX;
    let n = targets.len();
    let (mut order, mut low, mut of) = (vec![NEW; n], vec![0; n], vec![NEW; n]);
    let (mut path, mut frames, mut sizes) = (Vec::new(), Vec::<(usize, usize)>::new(), Vec::new());
    let mut clock = 0;
    for root in 0..n {
        if order[root] == NEW {
            frames.push((root, 0));
        }
        while let Some((node, next)) = frames.last_mut() {
            let node = *node;
            if *next == 0 {
                (order[node], low[node]) = (clock, clock);
                clock += 1;
                path.push(node);
            }
            if let Some(&to) = targets[node].get(*next) {
                *next += 1;
                if order[to] == NEW {
                    frames.push((to, 0));
                } else if of[to] == NEW {
                    low[node] = low[node].min(order[to]);
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == order[node] {
                let size = path.iter().rev().position(|&member| member == node).unwrap_or(0) + 1;
                for member in path.drain(path.len() - size..) {
                    of[member] = sizes.len();
                }
                sizes.push(size);
            }
        }
    }
    Parts { of, sizes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_cycles_and_single_steps() {
        // 0 → 1 ⇄ 2 → 3
        let parts = components(&[vec![1], vec![2], vec![1, 3], vec![]]);
        assert_eq!(parts.of[1], parts.of[2]);
        assert_eq!(parts.sizes[parts.of[1]], 2);
        assert!(parts.of[0] != parts.of[1] && parts.of[3] != parts.of[1]);
    }

    #[test]
    fn a_long_ring_does_not_deepen_the_stack() {
        let count = 100_000;
        let ring: Vec<Vec<usize>> = (0..count).map(|n| vec![(n + 1) % count]).collect();
        assert_eq!(components(&ring).sizes, vec![count]);
    }
}
