//! A workflow in Graphviz's DOT language.
//!
//! Graphviz joins nodes only, never clusters: an edge of a scope is attached to a node inside and clipped at
//! the frame. A scope joined to its own body holds a small node for its heading.

use std::fmt::Write;

use super::palette::{Colours, Family};
use super::scopes::{End, Link, Scopes, Visit};
use super::{EdgeStyle, Outline, chars};

const TEXT_COLUMNS: usize = 48;
const DEEPEST_INDENT: usize = 20;

pub fn render(drawing: &Outline) -> String {
    let scopes = Scopes::new(drawing);
    let links = scopes.links(drawing);
    let graph = Graph { drawing, headed: scopes.headed(&links), scopes };
    let name = quoted(&drawing.name);
    let mut out = format!(
        "digraph {name} {{\n  graph [label={name}, labelloc=t, compound=true, rankdir=TB, fontname=\"Helvetica\"]\n  \
         node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11]\n  \
         edge [fontname=\"Helvetica\", fontsize=10, color=\"#64748b\"]\n"
    );
    let mut depth = 1;
    for visit in graph.scopes.walk() {
        depth -= usize::from(matches!(visit, Visit::Close(_)));
        let indent = "  ".repeat(depth.min(DEEPEST_INDENT));
        depth += usize::from(matches!(visit, Visit::Open(_)));
        for line in graph.node(visit) {
            let _ = writeln!(out, "{indent}{line}");
        }
    }
    for link in &links {
        let _ = writeln!(out, "  {}", graph.edge(link));
    }
    out.push_str("}\n");
    out
}

struct Graph<'a> {
    drawing: &'a Outline,
    scopes: Scopes,
    headed: Vec<bool>,
}

impl Graph<'_> {
    fn node(&self, visit: Visit) -> Vec<String> {
        let index = visit.node();
        let node = &self.drawing.nodes[index];
        match visit {
            Visit::Leaf(_) => {
                let Colours { line, fill, .. } = Family::of(&node.kind).colours();
                let (name, subtitle) = (escaped(&node.name), escaped(&super::subtitle(node)));
                let label = if subtitle.is_empty() { name } else { format!("{name}\\n{subtitle}") };
                vec![format!("n{index} [label=\"{label}\", color=\"{line}\", fillcolor=\"{fill}\"]")]
            }
            Visit::Open(_) => {
                let line = Family::Scope.colours().line;
                let title = quoted(&super::title(node));
                let mut lines = vec![
                    format!("subgraph cluster_{index} {{"),
                    format!("  graph [label={title}, style=rounded, color=\"{line}\", fontsize=12]"),
                ];
                if self.headed[index] {
                    let name = quoted(&node.name);
                    let look = format!("shape=ellipse, color=\"{line}\", fillcolor=\"#ffffff\"");
                    lines.push(format!("  n{index} [label={name}, {look}]"));
                }
                lines
            }
            Visit::Close(_) => vec!["}".to_owned()],
        }
    }

    fn edge(&self, link: &Link) -> String {
        let mut attributes = Vec::new();
        if !link.label.is_empty() {
            attributes.push(format!("label={}", quoted(&link.label)));
        }
        match link.style {
            EdgeStyle::Normal => {}
            EdgeStyle::Error => attributes.push("color=\"#dc2626\", fontcolor=\"#dc2626\"".to_owned()),
            EdgeStyle::Back => attributes.push("style=dashed, constraint=false".to_owned()),
        }
        let frame = link.scope.unwrap_or_default();
        let clipped = |node: usize| self.scopes.is_scope(node) && link.from != link.to;
        let from = match link.from {
            End::Node(node) if clipped(node) => {
                attributes.push(format!("ltail=cluster_{node}"));
                self.last_inside(node)
            }
            End::Node(node) => node,
            End::Frame => frame,
        };
        let to = match link.to {
            End::Node(node) if clipped(node) => {
                attributes.push(format!("lhead=cluster_{node}"));
                self.first_inside(node)
            }
            End::Node(node) => node,
            End::Frame => frame,
        };
        let attributes = attributes.join(", ");
        let attributes = if attributes.is_empty() { attributes } else { format!(" [{attributes}]") };
        format!("n{from} -> n{to}{attributes}")
    }

    /// The heading or first step inside a scope, so that the scope's body is placed below what leads to it.
    fn first_inside(&self, scope: usize) -> usize {
        let mut at = scope;
        while let Some(&first) = self.scopes.members(Some(at)).first().filter(|_| !self.headed[at]) {
            at = first;
        }
        at
    }

    /// The last step inside a scope, so that what follows the scope is placed below its body.
    fn last_inside(&self, scope: usize) -> usize {
        let mut at = scope;
        while let Some(&last) = self.scopes.members(Some(at)).last() {
            at = last;
        }
        at
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Quotes text. Graphviz also decodes entities there, hence `&amp;`.
fn escaped(text: &str) -> String {
    let text = chars::fit(text, TEXT_COLUMNS);
    text.replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_scope_is_a_cluster_and_its_edges_are_clipped_at_the_frame() {
        let drawn = render(&samples::nested());
        assert!(drawn.contains("  subgraph cluster_1 {\n    graph [label=\"for_each each · users\""));
        assert!(drawn.contains("  n0 -> n2 [lhead=cluster_1]\n"));
        assert!(drawn.contains("  n4 -> n5 [ltail=cluster_1]\n"));
    }

    #[test]
    fn an_error_is_red_and_a_way_back_is_dashed() {
        let error = render(&samples::order_processing());
        assert!(error.contains("n0 -> n3 [label=\"error\", color=\"#dc2626\", fontcolor=\"#dc2626\"]"));
        assert!(render(&samples::polling()).contains("n3 -> n1 [style=dashed, constraint=false]"));
    }

    #[test]
    fn quotes_backslashes_and_entities_are_escaped() {
        let mut drawing = samples::three();
        drawing.nodes[0].name = "a\" b\\N &lt;\n<x>".to_owned();
        assert!(render(&drawing).contains("label=\"a\\\" b\\\\N &amp;lt; <x>\\nhttp"));
    }
}
