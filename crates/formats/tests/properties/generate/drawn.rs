//! The common shape of flow and graph definitions: nodes and arrows, generated block by block.
//!
//! A block has one entry and leads to one exit, so loops have one entry by construction. `flow.rs` and `graph.rs`
//! decide the kinds of steps and what they read; this file also determines what each of them may read.

use super::Rng;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One successor.
    Step,
    /// Several successors at once.
    Fork,
    /// One of several successors.
    Choice,
    /// A graph loop over a list.
    Each,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Plain,
    /// Not written: the open end of a flow branch whose fork names the join.
    Implied,
    /// The numbered entry of a choice.
    Branch,
    Error,
    Denied,
    /// Into the body of a for_each.
    Body,
}

#[derive(Clone, Debug)]
pub struct Arrow {
    pub way: Way,
    pub to: String,
    /// To a loop's header, or back to the for_each.
    pub back: bool,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub shape: Shape,
    /// Graph and flow: an approval gate.
    pub gate: bool,
    pub arrows: Vec<Arrow>,
    /// Flow: the `join` of a `parallel`.
    pub join: Option<String>,
    pub any: bool,
    /// The path ends here, explicitly.
    pub done: bool,
    /// The for_each whose body it is in; paths there return or just end.
    pub each: Option<String>,
    /// Always a call, because its result decides a loop.
    pub calls: bool,
}

#[derive(Clone, Debug)]
enum Exit {
    To {
        name: String,
        back: bool,
    },
    /// The join named by an outer fork.
    Open(String),
    End,
}

#[derive(Clone, Default)]
struct Around {
    /// Jump targets: headers (back) and continuations of the enclosing loops.
    jumps: Vec<(String, bool)>,
    in_loop: bool,
    /// Inside a fork inside a flow loop: the join is the only exit.
    no_leave: bool,
    each: Option<String>,
    each_depth: usize,
}

pub struct Drawing {
    pub nodes: Vec<Node>,
    /// No forks anywhere: no two steps run at the same time.
    pub sequential: bool,
}

/// Draws about `size` nodes, the first of them called `first`.
pub fn draw(rng: &mut Rng, graph: bool, first: &str, size: usize) -> Drawing {
    let sequential = rng.chance(20);
    let mut pen = Pen { rng, graph, sequential, nodes: Vec::new(), count: 0, any: BTreeSet::new() };
    pen.block(first.to_string(), &Exit::End, size, &Around::default());
    let mut nodes = pen.nodes;
    // The entry first, the rest by name, for readability; nothing may depend on the order.
    nodes.sort_by_key(|node| (node.name != first, node.name.len(), node.name.clone()));
    Drawing { nodes, sequential }
}

impl Drawing {
    /// The for_each nodes around this node, outermost last.
    pub fn each_around(&self, node: &Node) -> Vec<String> {
        let mut around = Vec::new();
        let mut here = node.each.clone();
        while let Some(name) = here {
            here = self.nodes.iter().find(|node| node.name == name).and_then(|node| node.each.clone());
            around.push(name);
        }
        around
    }

    /// For each node, the nodes that are terminal whenever it starts: all before it, but for an `any` join only those
    /// that are before every one of its arrows.
    pub fn readable(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for node in &self.nodes {
            self.before(&node.name, &mut found);
        }
        found
    }

    fn before(&self, name: &str, found: &mut BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
        if let Some(known) = found.get(name) {
            return known.clone();
        }
        let mut ways: Vec<BTreeSet<String>> = Vec::new();
        for node in &self.nodes {
            for arrow in node.arrows.iter().filter(|arrow| arrow.to == name && !arrow.back) {
                let mut way = self.before(&node.name, found);
                if arrow.way != Way::Body {
                    way.insert(node.name.clone());
                }
                ways.push(way);
            }
        }
        let any = self.nodes.iter().any(|node| node.name == name && node.any);
        let join = |left: BTreeSet<String>, right: BTreeSet<String>| match any {
            true => left.intersection(&right).cloned().collect(),
            false => left.union(&right).cloned().collect(),
        };
        let set = ways.into_iter().reduce(join).unwrap_or_default();
        found.insert(name.to_string(), set.clone());
        set
    }
}

struct Pen<'a> {
    rng: &'a mut Rng,
    graph: bool,
    sequential: bool,
    nodes: Vec<Node>,
    count: usize,
    any: BTreeSet<String>,
}

impl Pen<'_> {
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("s{}", self.count)
    }

    fn node(&mut self, name: &str, shape: Shape, around: &Around) -> Node {
        Node {
            name: name.to_string(),
            shape,
            gate: false,
            arrows: Vec::new(),
            join: None,
            any: self.any.contains(name),
            done: false,
            each: around.each.clone(),
            calls: false,
        }
    }

    /// Steps from `entry` to `exit`.
    fn block(&mut self, entry: String, exit: &Exit, size: usize, around: &Around) {
        if size <= 1 {
            return self.step(entry, exit, around);
        }
        let fork = if self.sequential || size < 3 { 0 } else { 30 };
        let each = if self.graph && around.each_depth < 2 { 12 } else { 0 };
        match self.rng.weighted(&[(34, 0), (22, 1), (fork, 2), (14, 3), (each, 4)]) {
            0 => {
                let first = 1 + self.rng.below(size - 1);
                let middle = self.fresh();
                self.block(entry, &Exit::To { name: middle.clone(), back: false }, first, around);
                self.block(middle, exit, size - first, around);
            }
            1 => self.choice(entry, exit, size, around),
            2 => self.fork(entry, exit, size, around),
            3 => self.cycle(entry, exit, size, around),
            _ => self.each(entry, exit, size, around),
        }
    }

    fn step(&mut self, entry: String, exit: &Exit, around: &Around) {
        let mut node = self.node(&entry, Shape::Step, around);
        node.gate = self.rng.chance(15);
        node.arrows.extend(arrow(Way::Plain, exit));
        node.done = node.arrows.is_empty();
        self.failure_ways(&mut node, exit, around);
        self.nodes.push(node);
    }

    /// Sometimes a failure leads to the same step as success, sometimes to a separate step.
    fn failure_ways(&mut self, node: &mut Node, exit: &Exit, around: &Around) {
        let ways: &[Way] = if self.graph && node.gate { &[Way::Denied, Way::Error] } else { &[Way::Error] };
        for way in ways {
            if self.rng.chance(if self.graph { 65 } else { 55 }) {
                continue;
            }
            let straight = arrow(*way, exit).filter(|_| node.shape == Shape::Step);
            if let Some(straight) = straight
                && self.rng.chance(50)
            {
                node.arrows.push(straight);
                continue;
            }
            // An open end next to the branches of a fork would belong to no branch: a handler there ends its path.
            let rejoins = matches!(exit, Exit::To { .. }) && self.rng.chance(60);
            if !rejoins && around.no_leave {
                continue;
            }
            let handler = self.fresh();
            let mut after = self.node(&handler, Shape::Step, around);
            if rejoins {
                after.arrows.extend(arrow(Way::Plain, exit));
            }
            after.done = !rejoins;
            node.arrows.push(Arrow { way: *way, to: handler, back: false });
            self.nodes.push(after);
        }
    }

    fn choice(&mut self, entry: String, exit: &Exit, size: usize, around: &Around) {
        let mut node = self.node(&entry, Shape::Choice, around);
        node.gate = !self.graph && self.rng.chance(25);
        let arms = 2 + usize::from(self.rng.chance(30));
        let share = ((size - 1) / arms).max(1);
        for arm in 0..arms {
            // The first arm always leads on, so that the exit is reached.
            let direct = arrow(Way::Branch, exit).filter(|arrow| arrow.way == Way::Branch);
            let made = match self.rng.below(100) {
                0..20 if arm > 0 => direct,
                20..38 if arm > 0 && !around.jumps.is_empty() => {
                    let (to, back) = self.rng.pick(&around.jumps).clone();
                    Some(Arrow { way: Way::Branch, to, back })
                }
                38..48 if arm > 0 && !around.no_leave => {
                    let to = self.fresh();
                    let size = 1 + self.rng.below(share);
                    self.block(to.clone(), &Exit::End, size, around);
                    Some(Arrow { way: Way::Branch, to, back: false })
                }
                _ => None,
            };
            let made = made.unwrap_or_else(|| {
                let to = self.fresh();
                self.block(to.clone(), exit, share, around);
                Arrow { way: Way::Branch, to, back: false }
            });
            node.arrows.push(made);
        }
        if !self.graph {
            self.failure_ways(&mut node, exit, around);
        }
        self.nodes.push(node);
    }

    fn fork(&mut self, entry: String, exit: &Exit, size: usize, around: &Around) {
        let arms = 2 + usize::from(size > 4 && self.rng.chance(40));
        let share = ((size - 1) / (arms + 1)).max(1);
        let join = match exit {
            Exit::To { name, back: false } if self.rng.chance(25) => name.clone(),
            _ => {
                let join = self.fresh();
                if self.graph && self.rng.chance(50) {
                    self.any.insert(join.clone());
                }
                self.block(join.clone(), exit, share, around);
                join
            }
        };
        let beside = !self.graph && self.rng.chance(50);
        let inner = Around {
            jumps: if self.graph { around.jumps.clone() } else { Vec::new() },
            no_leave: around.no_leave || (around.in_loop && !self.graph),
            ..around.clone()
        };
        let end = match beside {
            true => Exit::Open(join.clone()),
            false => Exit::To { name: join.clone(), back: false },
        };
        let mut node = self.node(&entry, Shape::Fork, around);
        for _ in 0..arms {
            let to = self.fresh();
            self.block(to.clone(), &end, share, &inner);
            node.arrows.push(Arrow { way: Way::Plain, to, back: false });
        }
        node.join = beside.then_some(join);
        self.nodes.push(node);
    }

    /// A loop: a body, then a choice between going back and continuing.
    fn cycle(&mut self, entry: String, exit: &Exit, size: usize, around: &Around) {
        let next = match exit {
            Exit::To { name, back: false } => name.clone(),
            Exit::To { back: true, .. } | Exit::Open(_) | Exit::End => {
                let next = self.fresh();
                self.step(next.clone(), exit, around);
                next
            }
        };
        let mut inner = Around { in_loop: true, ..around.clone() };
        inner.jumps.extend([(next.clone(), false), (entry.clone(), true)]);
        // In a graph a condition decides, which needs a result to test.
        let last = if self.graph { self.fresh() } else { entry.clone() };
        let turn = if !self.graph && size <= 2 { entry.clone() } else { self.fresh() };
        if turn != entry {
            let to = Exit::To { name: turn.clone(), back: false };
            if self.graph {
                if size > 3 {
                    self.block(entry.clone(), &Exit::To { name: last.clone(), back: false }, size - 3, &inner);
                }
                let name = if size > 3 { last } else { entry.clone() };
                let mut call = self.node(&name, Shape::Step, &inner);
                call.calls = true;
                call.arrows.extend(arrow(Way::Plain, &to));
                self.failure_ways(&mut call, &to, &inner);
                self.nodes.push(call);
            } else {
                self.block(entry.clone(), &to, size - 1, &inner);
            }
        }
        let mut node = self.node(&turn, Shape::Choice, &inner);
        node.calls = true;
        node.arrows =
            vec![Arrow { way: Way::Branch, to: entry, back: true }, Arrow { way: Way::Branch, to: next, back: false }];
        if self.rng.chance(30) {
            node.arrows.reverse();
        }
        self.nodes.push(node);
    }

    fn each(&mut self, entry: String, exit: &Exit, size: usize, around: &Around) {
        let mut node = self.node(&entry, Shape::Each, around);
        let inner = Around { each: Some(entry.clone()), each_depth: around.each_depth + 1, ..Around::default() };
        let body = self.fresh();
        self.block(body.clone(), &Exit::To { name: entry, back: true }, size - 1, &inner);
        node.arrows.push(Arrow { way: Way::Body, to: body, back: false });
        node.arrows.extend(arrow(Way::Plain, exit));
        self.failure_ways(&mut node, exit, around);
        self.nodes.push(node);
    }
}

fn arrow(way: Way, exit: &Exit) -> Option<Arrow> {
    match exit {
        Exit::To { name, back } => Some(Arrow { way, to: name.clone(), back: *back }),
        Exit::Open(join) if way == Way::Plain => Some(Arrow { way: Way::Implied, to: join.clone(), back: false }),
        Exit::Open(join) if way == Way::Error => Some(Arrow { way, to: join.clone(), back: false }),
        Exit::Open(_) | Exit::End => None,
    }
}
