//! Layers: which box is above which. Also the order of a list, and which edges to reverse to break cycles.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// `from` is drawn above `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arc {
    pub from: usize,
    pub to: usize,
}

/// Reverses each arc that closes a cycle in a walk in file order, and returns which ones.
pub fn break_cycles(count: usize, arcs: &mut [Arc]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Closed,
    }
    let mut out = vec![Vec::new(); count];
    let mut incoming = vec![0usize; count];
    for (index, arc) in arcs.iter().enumerate() {
        out[arc.from].push(index);
        incoming[arc.to] += 1;
    }
    let mut turned = vec![false; arcs.len()];
    let mut marks = vec![Mark::New; count];
    let roots = (0..count).filter(|&n| incoming[n] == 0);
    for start in roots.chain(0..count) {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let Some(&arc) = out[*node].get(*next) else {
                marks[*node] = Mark::Closed;
                stack.pop();
                continue;
            };
            *next += 1;
            let to = arcs[arc].to;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    stack.push((to, 0));
                }
                Mark::Open => turned[arc] = true,
                Mark::Closed => {}
            }
        }
    }
    for (arc, turned) in arcs.iter_mut().zip(&turned) {
        if *turned {
            *arc = Arc { from: arc.to, to: arc.from };
        }
    }
    turned
}

/// Topological order, as close to file order as possible. Needs an acyclic graph.
pub fn topological(count: usize, arcs: &[Arc]) -> Vec<usize> {
    let mut out = vec![Vec::new(); count];
    let mut waiting = vec![0usize; count];
    for arc in arcs {
        out[arc.from].push(arc.to);
        waiting[arc.to] += 1;
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..count).filter(|&n| waiting[n] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &to in &out[node] {
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(Reverse(to));
            }
        }
    }
    order
}

/// The layer of each item: as early as what leads to it allows, because steps start as soon as they can.
/// One that leads to more than leads to it then sinks towards those, which shortens edges.
pub fn ranks(count: usize, arcs: &[Arc]) -> Vec<usize> {
    let order = topological(count, arcs);
    let mut out = vec![Vec::new(); count];
    let mut incoming = vec![0usize; count];
    for arc in arcs {
        out[arc.from].push(arc.to);
        incoming[arc.to] += 1;
    }
    let mut rank = vec![0; count];
    for &node in &order {
        for &to in &out[node] {
            rank[to] = rank[to].max(rank[node] + 1);
        }
    }
    for &node in order.iter().rev() {
        if incoming[node] > 0 && out[node].len() > incoming[node] {
            let lowest = out[node].iter().map(|&to| rank[to] - 1).min();
            rank[node] = lowest.unwrap_or(rank[node]);
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arcs(pairs: &[(usize, usize)]) -> Vec<Arc> {
        pairs.iter().map(|&(from, to)| Arc { from, to }).collect()
    }

    #[test]
    fn only_the_arc_that_closes_a_circle_is_turned_round() {
        let mut arcs = arcs(&[(0, 1), (1, 2), (2, 0), (2, 3)]);
        assert_eq!(break_cycles(4, &mut arcs), [false, false, true, false]);
        assert_eq!(arcs[2], Arc { from: 0, to: 2 });
    }

    #[test]
    fn a_step_is_ranked_below_all_that_lead_to_it() {
        assert_eq!(ranks(4, &arcs(&[(0, 1), (1, 2), (0, 3), (2, 3)])), [0, 1, 2, 3]);
    }

    #[test]
    fn a_step_with_more_successors_than_predecessors_sinks_towards_them() {
        let chain = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (4, 6), (3, 5), (3, 6)];
        assert_eq!(ranks(7, &arcs(&chain))[4], 3);
    }

    #[test]
    fn a_list_keeps_file_order_where_the_arcs_allow_it() {
        assert_eq!(topological(4, &arcs(&[(3, 0), (0, 2)])), [1, 3, 0, 2]);
    }
}
