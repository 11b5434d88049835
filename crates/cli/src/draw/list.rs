//! A workflow as an indented list in execution order, for graphs that are too wide to draw.

use super::layout::rank::{self, Arc};
use super::scopes::{End, Link, Scopes, Visit};
use super::{Outline, chars};

const LINE_COLUMNS: usize = 100;
const DEEPEST_INDENT: usize = 20;

pub fn render(drawing: &Outline, scopes: &Scopes) -> String {
    let mut targets: Vec<Vec<String>> = vec![Vec::new(); drawing.nodes.len()];
    for edge in &drawing.edges {
        if let (Some(list), Some(to)) = (targets.get_mut(edge.from), drawing.nodes.get(edge.to)) {
            let name = chars::fit(&to.name, 40);
            let label = chars::fit(&edge.label, 24);
            let back = if edge.style == super::EdgeStyle::Back { "↺ " } else { "" };
            let label = if label.is_empty() { label } else { format!(" [{label}]") };
            list.push(format!("{back}{name}{label}"));
        }
    }
    let mut out = String::new();
    let mut depth = 0usize;
    for visit in ordered(drawing, scopes) {
        let (Visit::Open(index) | Visit::Leaf(index)) = visit else {
            depth -= 1;
            continue;
        };
        let indent = "  ".repeat(depth.min(DEEPEST_INDENT));
        let node = &drawing.nodes[index];
        let line = match visit {
            Visit::Open(_) => format!("{}:", chars::fit(&super::title(node), 72)),
            _ => {
                let (name, what) = (chars::fit(&node.name, 40), chars::fit(&super::subtitle(node), 40));
                if what.is_empty() { name } else { format!("{name} ({what})") }
            }
        };
        out.push_str(&format!("{indent}{line}\n"));
        wrap(&mut out, &format!("{indent}  → "), &targets[index]);
        if let Visit::Open(_) = visit {
            depth += 1;
        }
    }
    out
}

/// Names after a first indent, on as many lines as they need.
fn wrap(out: &mut String, first: &str, names: &[String]) {
    let mut used = LINE_COLUMNS;
    for (index, name) in names.iter().enumerate() {
        let comma = if index + 1 < names.len() { "," } else { "" };
        let width = chars::width(name) + 2;
        if index == 0 {
            out.push_str(first);
            used = chars::width(first);
        } else if used + width > LINE_COLUMNS {
            used = chars::width(first);
            out.push('\n');
            out.push_str(&" ".repeat(used));
        } else {
            out.push(' ');
        }
        out.push_str(name);
        out.push_str(comma);
        used += width;
    }
    if !names.is_empty() {
        out.push('\n');
    }
}

/// A walk through the tree with every scope's body in topological order.
fn ordered(drawing: &Outline, scopes: &Scopes) -> Vec<Visit> {
    let count = drawing.nodes.len();
    let links = scopes.links(drawing);
    let arc = |link: &Link| match (link.from, link.to) {
        (End::Node(from), End::Node(to)) if from != to => Some(Arc { from, to }),
        (End::Node(_) | End::Frame, _) => None,
    };
    let forward = links.iter().filter(|link| link.style != super::EdgeStyle::Back);
    let mut arcs: Vec<Arc> = forward.filter_map(arc).collect();
    rank::break_cycles(count, &mut arcs);
    let mut place = vec![0; count];
    rank::topological(count, &arcs).into_iter().enumerate().for_each(|(at, node)| place[node] = at);
    scopes.walk_by(|node| place[node])
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn listed(drawing: &Outline) -> String {
        render(drawing, &Scopes::new(drawing))
    }

    #[test]
    fn a_list_follows_the_order_of_the_run_and_names_every_target() {
        let mut drawing = samples::order_processing();
        drawing.nodes.swap(0, 3);
        for edge in &mut drawing.edges {
            (edge.from, edge.to) = (3, if edge.to == 3 { 0 } else { edge.to });
        }
        assert_eq!(
            listed(&drawing),
            "charge (http · POST /charge)\n  → send-receipt, notify-warehouse, handle-failure [error]\n\
             handle-failure (javascript)\nsend-receipt (tool · email.send)\n\
             notify-warehouse (http · POST /pick)\n"
        );
    }

    #[test]
    fn a_scope_is_indented_and_its_way_back_is_marked() {
        assert_eq!(
            listed(&samples::polling()),
            "submit (http · POST /job)\n  → poll\nloop poll · max 10:\n  → check, done\n  \
             check (http · GET /job)\n    → wait\n  wait (sleep · 30s)\n    → ↺ poll\ndone (end)\n"
        );
    }

    #[test]
    fn many_targets_are_wrapped() {
        let list = listed(&samples::fan(300));
        assert!(list.lines().all(|line| chars::width(line) <= LINE_COLUMNS));
        assert!(list.contains("part-300\n"));
    }
}
