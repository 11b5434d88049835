//! Outlines shared by the tests of every format, and a seeded generator of messy ones.

use super::{Edge, EdgeStyle, Node, Outline};

pub fn node(name: &str, kind: &str, detail: &str) -> Node {
    let (name, kind, detail) = (name.to_owned(), kind.to_owned(), detail.to_owned());
    Node { path: name.clone(), name, kind, detail, parent: None }
}

pub fn inside(parent: usize, node: Node) -> Node {
    Node { parent: Some(parent), ..node }
}

pub fn edge(from: usize, to: usize, label: &str) -> Edge {
    let style = if label == "error" { EdgeStyle::Error } else { EdgeStyle::Normal };
    Edge { from, to, label: label.to_owned(), style }
}

pub fn back(from: usize, to: usize) -> Edge {
    Edge { from, to, label: String::new(), style: EdgeStyle::Back }
}

fn drawing(name: &str, nodes: Vec<Node>, edges: Vec<Edge>) -> Outline {
    Outline { name: name.to_owned(), nodes, edges }
}

pub fn chain(length: usize) -> Outline {
    let nodes = (0..length).map(|i| node(&format!("step-{i}"), "http", "")).collect();
    drawing("chain", nodes, (1..length).map(|i| edge(i - 1, i, "")).collect())
}

pub fn three() -> Outline {
    let nodes = vec![
        node("fetch", "http", "GET /orders"),
        node("transform", "javascript", ""),
        node("store", "tool", "db.insert"),
    ];
    drawing("three", nodes, vec![edge(0, 1, ""), edge(1, 2, "")])
}

pub fn diamond() -> Outline {
    let nodes = vec![
        node("start", "start", ""),
        node("left", "http", "GET /a"),
        node("right", "http", "GET /b"),
        node("join", "javascript", "merge"),
    ];
    let edges = vec![edge(0, 1, ""), edge(0, 2, ""), edge(1, 3, ""), edge(2, 3, "")];
    drawing("diamond", nodes, edges)
}

pub fn order_processing() -> Outline {
    let nodes = vec![
        node("charge", "http", "POST /charge"),
        node("send-receipt", "tool", "email.send"),
        node("notify-warehouse", "http", "POST /pick"),
        node("handle-failure", "javascript", ""),
    ];
    let edges = vec![edge(0, 1, ""), edge(0, 2, ""), edge(0, 3, "error")];
    drawing("order-processing", nodes, edges)
}

/// A `for_each` between two steps, with a small diamond as its body.
pub fn nested() -> Outline {
    let nodes = vec![
        node("list", "http", "GET /users"),
        node("each", "for_each", "users"),
        inside(1, node("load", "http", "GET /user")),
        inside(1, node("mail", "tool", "email.send")),
        inside(1, node("log", "javascript", "")),
        node("report", "approval", "ops"),
    ];
    let edges = vec![edge(0, 1, ""), edge(2, 3, ""), edge(2, 4, ""), edge(1, 5, "")];
    drawing("nested", nodes, edges)
}

pub fn polling() -> Outline {
    let nodes = vec![
        node("submit", "http", "POST /job"),
        node("poll", "loop", "max 10"),
        inside(1, node("check", "http", "GET /job")),
        inside(1, node("wait", "sleep", "30s")),
        node("done", "end", ""),
    ];
    let edges = vec![edge(0, 1, ""), edge(1, 2, ""), edge(2, 3, ""), back(3, 1), edge(1, 4, "")];
    drawing("polling", nodes, edges)
}

/// One step, then `width` parallel steps, then one step.
pub fn fan(width: usize) -> Outline {
    let mut nodes = vec![node("split", "condition", "")];
    nodes.extend((1..=width).map(|i| node(&format!("part-{i}"), "http", "")));
    nodes.push(node("gather", "javascript", ""));
    let edges = (1..=width).flat_map(|i| [edge(0, i, ""), edge(i, width + 1, "")]).collect();
    drawing("fan", nodes, edges)
}

/// Scopes inside scopes.
pub fn deep(depth: usize) -> Outline {
    let mut nodes: Vec<Node> = (0..depth).map(|i| node(&format!("scope-{i}"), "loop", "")).collect();
    for (i, node) in nodes.iter_mut().enumerate().skip(1) {
        node.parent = Some(i - 1);
    }
    drawing("deep", nodes, Vec::new())
}

/// Any shape that the model allows: scopes in scopes, long and labelled edges, edges across frames, cycles.
pub fn random(seed: u64, count: usize) -> Outline {
    const KINDS: [&str; 7] = ["http", "tool", "sleep", "approval", "javascript", "condition", "for_each"];
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut out = drawing(&format!("random-{seed}"), Vec::new(), Vec::new());
    for i in 0..count {
        let detail = ["", "3d", "POST /v1/things", "if ok"][dice.roll(4)];
        let mut new = node(&format!("node-{i}"), KINDS[dice.roll(KINDS.len())], detail);
        if !seed.is_multiple_of(3) && i > 0 && dice.roll(4) == 0 {
            let sibling = dice.roll(i);
            let beside: Option<usize> = out.nodes[sibling].parent;
            new.parent = if dice.roll(2) == 0 { Some(sibling) } else { beside };
        }
        out.nodes.push(new);
    }
    for to in 1..count {
        for _ in 0..1 + dice.roll(2) {
            let near = to.saturating_sub(1 + dice.roll(8));
            let label = ["", "", "", "", "error", "no", "a longer label"][dice.roll(7)];
            out.edges.push(edge(near, to, label));
        }
        if seed % 2 == 1 && dice.roll(12) == 0 {
            out.edges.push(back(to, dice.roll(count)));
        }
    }
    out
}

/// xorshift: enough to make shapes, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}
