//! Turns a directed graph with cycles into nested acyclic scopes.
//!
//! A strongly connected component with one entry becomes a loop step; its body is laid out the same way once the edges
//! back to the entry are removed. Works through a list of scopes, so nesting never deepens the call stack.

use super::{Handle, Out, ScopeIx, Target};
use crate::expr::StepIx;

/// An edge while scopes are being laid out. `pos` is its position among the edges of `from`, which never changes.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub from: StepIx,
    pub pos: u32,
    pub handle: Handle,
    pub to: Target,
}

/// A scope to lay out: its members and all edges that start at one of them.
pub struct Region {
    pub scope: ScopeIx,
    pub members: Vec<StepIx>,
    pub links: Vec<Link>,
    pub depth: usize,
}

/// A cycle found in a region.
pub struct Cycle {
    pub members: Vec<StepIx>,
    /// Members that are entered from outside the cycle. A loop has exactly one.
    pub entries: Vec<StepIx>,
}

/// The cycles of a region, each with its entries. `is_entry` tells where the run itself may begin.
pub fn cycles(region: &Region, steps: usize, is_entry: impl Fn(StepIx) -> bool) -> Vec<Cycle> {
    let mut local = vec![usize::MAX; steps];
    for (i, member) in region.members.iter().enumerate() {
        local[member.0 as usize] = i;
    }
    let mut targets = vec![Vec::new(); region.members.len()];
    for link in &region.links {
        if let Target::Step(to) = link.to {
            targets[local[link.from.0 as usize]].push(local[to.0 as usize]);
        }
    }
    let parts = components(&targets);
    let mut found: Vec<Option<Cycle>> = (0..parts.count).map(|_| None).collect();
    let mut sizes = vec![0usize; parts.count];
    for &part in &parts.of {
        sizes[part] += 1;
    }
    for (i, &part) in parts.of.iter().enumerate() {
        if sizes[part] > 1 || targets[i].contains(&i) {
            let cycle = found[part].get_or_insert_with(|| Cycle { members: Vec::new(), entries: Vec::new() });
            cycle.members.push(region.members[i]);
            if is_entry(region.members[i]) {
                cycle.entries.push(region.members[i]);
            }
        }
    }
    for (i, outs) in targets.iter().enumerate() {
        for &to in outs {
            if parts.of[i] == parts.of[to] {
                continue;
            }
            if let Some(cycle) = &mut found[parts.of[to]] {
                let entry = region.members[to];
                if !cycle.entries.contains(&entry) {
                    cycle.entries.push(entry);
                }
            }
        }
    }
    let mut cycles: Vec<Cycle> = found.into_iter().flatten().collect();
    for cycle in &mut cycles {
        cycle.members.sort_unstable();
    }
    cycles.sort_by_key(|cycle| cycle.members[0]);
    cycles
}

/// Contracts a cycle of a region into `loop_step`: edges inside it move to the returned body, edges across its border
/// now start or end at `loop_step`. Also returns the out-edges of the loop step.
pub fn contract(region: &mut Region, cycle: &Cycle, header: StepIx, loop_step: StepIx) -> (Vec<Link>, Vec<Out>) {
    let inside = |step: StepIx| cycle.members.binary_search(&step).is_ok();
    let mut body = Vec::new();
    let mut outs = Vec::new();
    let mut around = Vec::new();
    for link in region.links.drain(..) {
        match (inside(link.from), link.to) {
            (true, Target::Step(to)) if to == header => body.push(Link { to: Target::Back, ..link }),
            (true, Target::Step(to)) if inside(to) => body.push(link),
            (true, to) => {
                let pos = outs.len() as u32;
                outs.push(Out { handle: Handle::SUCCESS, to, inner: Some((link.from, link.pos)) });
                around.push(Link { from: loop_step, pos, handle: Handle::SUCCESS, to });
                body.push(Link { to: Target::Leave(pos), ..link });
            }
            (false, Target::Step(to)) if inside(to) => around.push(Link { to: Target::Step(loop_step), ..link }),
            (false, _) => around.push(link),
        }
    }
    region.links = around;
    region.members.retain(|&m| !inside(m));
    region.members.push(loop_step);
    (body, outs)
}

/// Strongly connected components, numbered so that an edge never goes from a lower number to a higher one.
pub struct Parts {
    pub of: Vec<usize>,
    pub count: usize,
}

/// Tarjan's algorithm with an explicit stack.
pub fn components(targets: &[Vec<usize>]) -> Parts {
    const NEW: u32 = u32::MAX;
    let n = targets.len();
    let mut order = vec![NEW; n];
    let mut low = vec![0u32; n];
    let mut of = vec![usize::MAX; n];
    let mut path = Vec::new();
    let mut frames: Vec<(usize, usize)> = Vec::new();
    let (mut clock, mut count) = (0u32, 0usize);
    for root in 0..n {
        if order[root] != NEW {
            continue;
        }
        frames.push((root, 0));
        while let Some(frame) = frames.last_mut() {
            let (node, next) = *frame;
            if next == 0 {
                order[node] = clock;
                low[node] = clock;
                clock += 1;
                path.push(node);
            }
            if let Some(&to) = targets[node].get(next) {
                frame.1 += 1;
                if order[to] == NEW {
                    frames.push((to, 0));
                } else if of[to] == usize::MAX {
                    low[node] = low[node].min(order[to]);
                }
                continue;
            }
            frames.pop();
            if let Some(&(parent, _)) = frames.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == order[node] {
                while let Some(member) = path.pop() {
                    of[member] = count;
                    if member == node {
                        break;
                    }
                }
                count += 1;
            }
        }
    }
    Parts { of, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_numbered_in_reverse_topological_order() {
        // 0 → 1 ⇄ 2 → 3, 4 → 4
        let parts = components(&[vec![1], vec![2], vec![1, 3], vec![], vec![4]]);
        assert_eq!(parts.count, 4);
        assert_eq!(parts.of[1], parts.of[2]);
        assert!(parts.of[0] > parts.of[1] && parts.of[1] > parts.of[3]);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_steps_does_not_overflow_the_stack() {
        let n = 100_000;
        let mut targets: Vec<Vec<usize>> = (0..n).map(|i| if i + 1 < n { vec![i + 1] } else { vec![0] }).collect();
        assert_eq!(components(&targets).count, 1);
        targets[n - 1].clear();
        assert_eq!(components(&targets).count, n);
    }
}
