//! A workflow as a Mermaid flowchart.

use std::fmt::Write;

use super::palette::Family;
use super::scopes::{End, Link, Scopes, Visit};
use super::{EdgeStyle, Node, Outline, chars};

const TEXT_COLUMNS: usize = 48;
const DEEPEST_INDENT: usize = 20;

pub fn render(drawing: &Outline) -> String {
    let scopes = Scopes::new(drawing);
    let links = scopes.links(drawing);
    let headed = scopes.headed(&links);
    let mut out = format!("---\ntitle: \"{}\"\n---\nflowchart TD\n", yaml(&drawing.name));
    let mut depth = 1;
    for visit in scopes.walk() {
        let index = visit.node();
        let node = &drawing.nodes[index];
        depth -= usize::from(matches!(visit, Visit::Close(_)));
        let indent = "  ".repeat(depth.min(DEEPEST_INDENT));
        let _ = match visit {
            Visit::Leaf(_) => writeln!(out, "{indent}n{index}{}", shape(node)),
            Visit::Close(_) => writeln!(out, "{indent}end"),
            Visit::Open(_) => {
                depth += 1;
                let _ = writeln!(out, "{indent}subgraph n{index}[\"{}\"]", label(&super::title(node)));
                // Mermaid cannot connect a subgraph to itself or to its contents, so a heading node stands in for it.
                if headed[index] {
                    let _ = writeln!(out, "{indent}  h{index}([\"{}\"])", label(&node.name));
                }
                Ok(())
            }
        };
    }
    for link in &links {
        let ends = [link.from, link.to].map(|end| match (end, link.scope) {
            (End::Node(node), _) if link.from == link.to && scopes.is_scope(node) => format!("h{node}"),
            (End::Node(node), _) => format!("n{node}"),
            (End::Frame, scope) => format!("h{}", scope.unwrap_or_default()),
        });
        let arrow = if link.style == EdgeStyle::Back { "-.->" } else { "-->" };
        let text = label(&link.label);
        let text = if text.is_empty() { text } else { format!("|\"{text}\"|") };
        let _ = writeln!(out, "  {} {arrow}{text} {}", ends[0], ends[1]);
    }
    styles(&mut out, drawing, &links);
    out
}

fn styles(out: &mut String, drawing: &Outline, links: &[Link]) {
    for (index, link) in links.iter().enumerate() {
        if link.style == EdgeStyle::Error {
            let _ = writeln!(out, "  linkStyle {index} stroke:#dc2626");
        }
    }
    for family in Family::ALL {
        let nodes = drawing.nodes.iter().enumerate();
        let same = nodes.filter(|(_, node)| Family::of(&node.kind) == family);
        let ids: Vec<String> = same.map(|(index, _)| format!("n{index}")).collect();
        if !ids.is_empty() {
            let (class, line) = (family.class(), family.colours().line);
            let _ = writeln!(out, "  classDef sw_{class} stroke:{line}");
            for ids in ids.chunks(100) {
                let _ = writeln!(out, "  class {} sw_{class}", ids.join(","));
            }
        }
    }
}

fn shape(node: &Node) -> String {
    let subtitle = super::subtitle(node);
    let mut text = label(&node.name);
    if !subtitle.is_empty() {
        text = format!("{text}<br/>{}", label(&subtitle));
    }
    match Family::of(&node.kind) {
        Family::Condition => format!("{{{{\"{text}\"}}}}"),
        Family::End => format!("([\"{text}\"])"),
        Family::Approval => format!("[/\"{text}\"/]"),
        Family::Http | Family::Tool | Family::Script | Family::Sleep | Family::Scope | Family::Other => {
            format!("[\"{text}\"]")
        }
    }
}

/// Quotes text: Mermaid interprets markup, Markdown and its own entities there, so all of them are encoded.
fn label(text: &str) -> String {
    let mut out = String::new();
    for c in chars::fit(text, TEXT_COLUMNS).chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '\\' | '*' | ';' | '|' | '{' | '}' | '[' | ']' | '~' | '$' | '%'
            | '@' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn yaml(text: &str) -> String {
    chars::fit(text, TEXT_COLUMNS).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_loop_is_a_subgraph_whose_heading_takes_the_way_back() {
        assert_eq!(
            render(&samples::polling()),
            "---\ntitle: \"polling\"\n---\nflowchart TD\n  \
             n0[\"submit<br/>http · POST /job\"]\n  \
             subgraph n1[\"loop poll · max 10\"]\n    \
             h1([\"poll\"])\n    \
             n2[\"check<br/>http · GET /job\"]\n    \
             n3[\"wait<br/>sleep · 30s\"]\n  \
             end\n  \
             n4([\"done<br/>end\"])\n  \
             n0 --> n1\n  h1 --> n2\n  n2 --> n3\n  n3 -.-> h1\n  n1 --> n4\n  \
             classDef sw_http stroke:#2563eb\n  class n0,n2 sw_http\n  \
             classDef sw_sleep stroke:#b45309\n  class n3 sw_sleep\n  \
             classDef sw_scope stroke:#4f46e5\n  class n1 sw_scope\n  \
             classDef sw_end stroke:#15803d\n  class n4 sw_end\n"
        );
    }

    #[test]
    fn markup_and_quotes_in_names_are_encoded() {
        let mut drawing = samples::three();
        drawing.name = "a \"b\"\n---".to_owned();
        drawing.nodes[0].name = "\"]; click n0 <b>#quot;`x`".to_owned();
        let drawn = render(&drawing);
        assert!(drawn.starts_with("---\ntitle: \"a \\\"b\\\" ---\"\n---\n"));
        let safe = "n0[\"#34;#93;#59; click n0 #60;b#62;#35;quot#59;#96;x#96;<br/>http · GET /orders\"]";
        assert!(drawn.contains(safe), "{drawn}");
    }

    #[test]
    fn an_error_edge_is_labelled_and_red() {
        let drawn = render(&samples::order_processing());
        assert!(drawn.contains("n0 -->|\"error\"| n3\n") && drawn.contains("linkStyle 2 stroke:#dc2626"));
    }
}
