//! Which steps can have finished before another starts, inside one group of steps that see each other's names.

use super::loops::components;
use std::collections::HashMap;
use std::sync::Arc;

/// The order of a definition's steps, for code that may read all earlier ones.
#[derive(Clone, Debug)]
pub struct Order {
    /// The for_each around each step.
    pub parent: Vec<Option<usize>>,
    /// Steps by group and name.
    pub names: HashMap<(Option<usize>, Arc<str>), usize>,
    pub reach: Reach,
}

impl Order {
    /// The step that `name` refers to in the code of `step`, if it can have finished by then.
    pub fn named(&self, step: usize, name: &str) -> Option<usize> {
        let mut groups = std::iter::successors(Some(step), |&at| self.parent[at]);
        let name: Arc<str> = name.into();
        groups
            .find_map(|at| Some((*self.names.get(&(self.parent[at], name.clone()))?, at)))
            .and_then(|(other, at)| self.reach.before(other, at).then_some(other))
    }

    /// The steps that can have finished when `step` starts, innermost group first.
    pub fn visible(&self, step: usize) -> impl Iterator<Item = usize> {
        let groups = std::iter::successors(Some(step), |&at| self.parent[at]);
        groups.flat_map(move |at| {
            let beside = move |&other: &usize| self.parent[other] == self.parent[at];
            (0..self.parent.len()).filter(beside).filter(move |&other| self.reach.before(other, at))
        })
    }
}

/// Ancestors of every strongly connected component, as bit sets: a query is one lookup.
#[derive(Clone, Debug)]
pub struct Reach {
    part: Vec<usize>,
    cyclic: Vec<bool>,
    words: usize,
    above: Vec<u64>,
}

impl Reach {
    pub fn new(targets: &[Vec<usize>]) -> Reach {
        let parts = components(targets);
        let words = parts.count.div_ceil(64);
        let mut above = vec![0u64; words * parts.count];
        let mut cyclic = vec![false; parts.count];
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for (from, outs) in targets.iter().enumerate() {
            for &to in outs {
                let (a, b) = (parts.of[from], parts.of[to]);
                if a == b {
                    cyclic[a] = true;
                } else {
                    edges.push((a, b));
                }
            }
        }
        // Sources have higher numbers than targets: in descending order, a component's ancestors are complete when it
        // is read.
        edges.sort_unstable_by(|x, y| y.cmp(x));
        edges.dedup();
        for (from, to) in edges {
            let (low, high) = above.split_at_mut(from * words);
            let (target, source) = (&mut low[to * words..(to + 1) * words], &high[..words]);
            for (t, s) in target.iter_mut().zip(source) {
                *t |= s;
            }
            target[from / 64] |= 1 << (from % 64);
        }
        Reach { part: parts.of, cyclic, words, above }
    }

    /// Whether there is a path from `first` to `second` (in a cycle, also from a step to itself).
    pub fn before(&self, first: usize, second: usize) -> bool {
        let (a, b) = (self.part[first], self.part[second]);
        if a == b {
            return self.cyclic[a];
        }
        self.above[b * self.words + a / 64] >> (a % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_follows_paths_and_cycles() {
        // 0 → 1 → 2 ⇄ 3 → 4, 5 alone
        let reach = Reach::new(&[vec![1], vec![2], vec![3], vec![2, 4], vec![], vec![]]);
        let check = |a, b, expected| assert_eq!(reach.before(a, b), expected, "{a} before {b}");
        check(0, 4, true);
        check(2, 2, true);
        check(3, 2, true);
        check(4, 0, false);
        check(1, 1, false);
        check(5, 4, false);
    }

    #[test]
    fn agrees_with_a_plain_search_on_random_graphs() {
        let mut seed = 7u64;
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let n = 1 + random(90) as usize;
            let edges = random(2 * n as u64 + 1);
            let mut targets = vec![Vec::new(); n];
            for _ in 0..edges {
                targets[random(n as u64) as usize].push(random(n as u64) as usize);
            }
            let reach = Reach::new(&targets);
            for from in 0..n {
                let mut seen = vec![false; n];
                let mut todo = targets[from].clone();
                while let Some(at) = todo.pop() {
                    if !std::mem::replace(&mut seen[at], true) {
                        todo.extend(&targets[at]);
                    }
                }
                for (to, seen) in seen.iter().enumerate() {
                    assert_eq!(reach.before(from, to), *seen);
                }
            }
        }
    }
}
