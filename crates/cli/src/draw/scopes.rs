//! The tree of scopes, and the edges sorted into the scope that each is drawn in.
//!
//! An edge that crosses a scope's frame is drawn between the two outermost boxes that hold one end each, and
//! its label names the ends that are hidden inside.

use std::collections::BTreeSet;

use super::{EdgeStyle, Outline, chars};

/// Which nodes are inside which.
pub struct Scopes {
    pub parent: Vec<Option<usize>>,
    pub children: Vec<Vec<usize>>,
    pub roots: Vec<usize>,
    depth: Vec<usize>,
}

/// One end of a [`Link`]: a box, or the frame that the link is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Node(usize),
    Frame,
}

/// An edge as it is drawn inside one scope.
#[derive(Debug, Clone)]
pub struct Link {
    /// Index of the edge in the drawing.
    pub edge: usize,
    /// The scope whose body it is drawn in; `None` is the top level.
    pub scope: Option<usize>,
    pub from: End,
    pub to: End,
    pub label: String,
    pub style: EdgeStyle,
}

/// A step of a walk through the tree: scopes open and close around what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    Open(usize),
    Leaf(usize),
    Close(usize),
}

impl Visit {
    pub fn node(self) -> usize {
        match self {
            Self::Open(node) | Self::Leaf(node) | Self::Close(node) => node,
        }
    }
}

impl Scopes {
    pub fn new(drawing: &Outline) -> Self {
        let count = drawing.nodes.len();
        let mut parent: Vec<Option<usize>> =
            drawing.nodes.iter().map(|node| node.parent.filter(|&p| p < count)).collect();
        let depth = depths(&mut parent);
        let mut children = vec![Vec::new(); count];
        let mut roots = Vec::new();
        for (node, parent) in parent.iter().enumerate() {
            match parent {
                Some(parent) => children[*parent].push(node),
                None => roots.push(node),
            }
        }
        Self { parent, children, roots, depth }
    }

    pub fn is_scope(&self, node: usize) -> bool {
        !self.children[node].is_empty()
    }

    pub fn members(&self, scope: Option<usize>) -> &[usize] {
        scope.map_or(&self.roots, |scope| &self.children[scope])
    }

    /// Every scope before the scope it is inside; the top level is not among them.
    pub fn innermost_first(&self) -> Vec<usize> {
        let mut scopes: Vec<usize> = (0..self.parent.len()).filter(|&n| self.is_scope(n)).collect();
        scopes.sort_by_key(|&n| (std::cmp::Reverse(self.depth[n]), n));
        scopes
    }

    /// All nodes in the order of the file, each scope around its body.
    pub fn walk(&self) -> Vec<Visit> {
        self.walk_by(|node| node)
    }

    /// All nodes, each scope around its body, siblings by `place`.
    pub fn walk_by(&self, place: impl Fn(usize) -> usize) -> Vec<Visit> {
        let mut visits = Vec::with_capacity(self.parent.len());
        let mut todo = Vec::new();
        let put_off = |todo: &mut Vec<Visit>, members: &[usize]| {
            let mut members = members.to_vec();
            members.sort_by_key(|&node| std::cmp::Reverse(place(node)));
            let visit = |n| if self.is_scope(n) { Visit::Open(n) } else { Visit::Leaf(n) };
            todo.extend(members.into_iter().map(visit));
        };
        put_off(&mut todo, &self.roots);
        while let Some(next) = todo.pop() {
            visits.push(next);
            if let Visit::Open(scope) = next {
                todo.push(Visit::Close(scope));
                put_off(&mut todo, &self.children[scope]);
            }
        }
        visits
    }

    /// The edges as drawn, without those that would repeat another or point nowhere.
    pub fn links(&self, drawing: &Outline) -> Vec<Link> {
        let mut seen = BTreeSet::new();
        let mut links = Vec::with_capacity(drawing.edges.len());
        for (index, edge) in drawing.edges.iter().enumerate() {
            if edge.from >= drawing.nodes.len() || edge.to >= drawing.nodes.len() {
                continue;
            }
            let (from, to, scope) = self.meet(edge.from, edge.to);
            let mut label = chars::clean(&edge.label);
            if matches!(from, End::Node(n) if n != edge.from) {
                let inner = chars::fit(&drawing.nodes[edge.from].name, 24);
                label = if label.is_empty() { inner } else { format!("{inner}: {label}") };
            }
            if matches!(to, End::Node(n) if n != edge.to) {
                label = format!("{label} → {}", chars::fit(&drawing.nodes[edge.to].name, 24));
            }
            let label = label.trim().to_owned();
            if seen.insert((from, to, scope, label.clone(), edge.style)) {
                links.push(Link { edge: index, scope, from, to, label, style: edge.style });
            }
        }
        links
    }

    /// Scopes that need a node for their heading where frames cannot be joined to what they hold.
    pub fn headed(&self, links: &[Link]) -> Vec<bool> {
        let mut headed = vec![false; self.parent.len()];
        for link in links {
            let scope = match (link.from, link.to) {
                (End::Node(from), End::Node(to)) if from == to && self.is_scope(from) => Some(from),
                (End::Node(_), End::Node(_)) => None,
                (End::Frame, _) | (_, End::Frame) => link.scope,
            };
            if let Some(scope) = scope {
                headed[scope] = true;
            }
        }
        headed
    }

    /// The boxes that stand for two nodes in the innermost scope around both.
    fn meet(&self, from: usize, to: usize) -> (End, End, Option<usize>) {
        let (mut a, mut b) = (from, to);
        if a == b {
            return (End::Node(a), End::Node(b), self.parent[a]);
        }
        let (mut below_a, mut below_b) = (None, None);
        while let Some(up) = self.parent[a].filter(|_| self.depth[a] > self.depth[b]) {
            below_a = Some(a);
            a = up;
        }
        while let Some(up) = self.parent[b].filter(|_| self.depth[b] > self.depth[a]) {
            below_b = Some(b);
            b = up;
        }
        while a != b {
            let (Some(up_a), Some(up_b)) = (self.parent[a], self.parent[b]) else {
                return (End::Node(a), End::Node(b), None);
            };
            (below_a, below_b) = (Some(a), Some(b));
            (a, b) = (up_a, up_b);
        }
        let end = |below: Option<usize>| below.map_or(End::Frame, End::Node);
        (end(below_a), end(below_b), Some(a))
    }
}

/// The depth of each node; cuts cycles of parents.
fn depths(parent: &mut [Option<usize>]) -> Vec<usize> {
    const UNKNOWN: usize = usize::MAX;
    let mut depth = vec![UNKNOWN; parent.len()];
    let mut on_path = vec![false; parent.len()];
    for start in 0..parent.len() {
        let mut path = Vec::new();
        let mut at = start;
        while depth[at] == UNKNOWN {
            on_path[at] = true;
            path.push(at);
            match parent[at] {
                Some(up) if on_path[up] => {
                    parent[at] = None;
                    break;
                }
                Some(up) => at = up,
                None => break,
            }
        }
        for node in path.into_iter().rev() {
            depth[node] = parent[node].map_or(0, |up| depth[up] + 1);
            on_path[node] = false;
        }
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn links(drawing: &Outline) -> Vec<(Option<usize>, End, End, String)> {
        let links = Scopes::new(drawing).links(drawing);
        links.into_iter().map(|l| (l.scope, l.from, l.to, l.label)).collect()
    }

    /// `0`, then scope `1` holding `2` and scope `3` holding `4`, then `5`.
    fn nest() -> Outline {
        let mut drawing = samples::chain(6);
        drawing.edges.clear();
        for (node, parent) in [(2, 1), (3, 1), (4, 3)] {
            drawing.nodes[node].parent = Some(parent);
        }
        drawing
    }

    #[test]
    fn an_edge_across_a_frame_joins_the_outer_boxes_and_names_the_hidden_ends() {
        let mut drawing = nest();
        drawing.edges = vec![
            samples::edge(0, 4, ""),
            samples::edge(4, 5, "error"),
            samples::edge(2, 4, ""),
            samples::edge(0, 5, ""),
        ];
        use End::Node;
        assert_eq!(
            links(&drawing),
            [
                (None, Node(0), Node(1), "→ step-4".to_owned()),
                (None, Node(1), Node(5), "step-4: error".to_owned()),
                (Some(1), Node(2), Node(3), "→ step-4".to_owned()),
                (None, Node(0), Node(5), String::new()),
            ]
        );
    }

    #[test]
    fn an_edge_between_a_scope_and_its_body_is_drawn_inside_the_scope() {
        let mut drawing = nest();
        drawing.edges = vec![samples::edge(1, 2, ""), samples::edge(3, 1, ""), samples::edge(4, 1, "")];
        use End::{Frame, Node};
        assert_eq!(
            links(&drawing),
            [
                (Some(1), Frame, Node(2), String::new()),
                (Some(1), Node(3), Frame, String::new()),
                (Some(1), Node(3), Frame, "step-4".to_owned()),
            ]
        );
    }

    #[test]
    fn a_walk_opens_and_closes_scopes_around_their_bodies() {
        use Visit::{Close, Leaf, Open};
        let walk = Scopes::new(&nest()).walk();
        assert_eq!(walk, [Leaf(0), Open(1), Leaf(2), Open(3), Leaf(4), Close(3), Close(1), Leaf(5)]);
        assert_eq!(Scopes::new(&nest()).innermost_first(), [3, 1]);
    }
}
