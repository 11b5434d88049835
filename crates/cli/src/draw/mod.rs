//! Draws a workflow: boxes for steps, arrows for order, a frame around the body of every scope.
//!
//! [`render`] takes an [`Outline`] and a [`Format`]. Names and details are the user's own text and may contain
//! anything; each format escapes them for the place where its output is read. Invalid indices never panic: such an edge
//! or parent is left out.
//!
//! Not here: reading workflows, and run state. This draws the shape of a workflow, not its progress.

mod canvas;
mod chars;
mod dot;
mod json;
mod layout;
mod list;
mod mermaid;
mod palette;
#[cfg(test)]
mod samples;
mod scopes;
mod svg;
mod text;

pub use chars::{fit, plain};

use std::str::FromStr;
use stepwell_core::outline::{Edge, EdgeStyle, Node, Outline};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Mermaid,
    Dot,
    Svg,
    Json,
}

impl Format {
    pub const ALL: [(&'static str, Self); 5] = [
        ("text", Self::Text),
        ("mermaid", Self::Mermaid),
        ("dot", Self::Dot),
        ("svg", Self::Svg),
        ("json", Self::Json),
    ];
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| *format).ok_or_else(|| {
            let names = Self::ALL.map(|(known, _)| known).join(", ");
            format!("unknown format `{}`; one of {names}", chars::fit(name, 40))
        })
    }
}

/// Renders an outline in `format`, ending in a newline. Deterministic.
pub fn render(drawing: &Outline, format: Format) -> String {
    match format {
        Format::Text => text::render(drawing),
        Format::Mermaid => mermaid::render(drawing),
        Format::Dot => dot::render(drawing),
        Format::Svg => svg::render(drawing),
        Format::Json => json::render(drawing),
    }
}

/// The second line of a box: the step's kind and detail. Empty if the name already says it all.
fn subtitle(node: &Node) -> String {
    match (node.kind.as_str(), node.detail.as_str()) {
        (kind, "") if kind == node.name => String::new(),
        (kind, "") => kind.to_owned(),
        ("", detail) => detail.to_owned(),
        (kind, detail) => format!("{kind} · {detail}"),
    }
}

/// The heading of a scope's frame, on one line.
fn title(node: &Node) -> String {
    let head = [node.kind.as_str(), node.name.as_str()];
    let head = if node.kind == node.name { &head[1..] } else { &head[..] };
    let head = head.join(" ");
    if node.detail.is_empty() { head } else { format!("{head} · {}", node.detail) }
}

#[cfg(test)]
mod tests {
    use super::samples;
    use super::*;

    #[test]
    fn every_format_has_a_name_and_an_unknown_one_lists_them() {
        for (name, format) in Format::ALL {
            assert_eq!(name.parse(), Ok(format));
        }
        assert_eq!(
            "png".parse::<Format>(),
            Err("unknown format `png`; one of text, mermaid, dot, svg, json".to_owned())
        );
    }

    #[test]
    fn every_format_is_deterministic_and_ends_in_one_newline() {
        for seed in 0..8 {
            let drawing = samples::random(seed, 30);
            for (name, format) in Format::ALL {
                let drawn = render(&drawing, format);
                assert_eq!(drawn, render(&drawing, format), "{name}, seed {seed}");
                assert!(drawn.ends_with('\n') && !drawn.ends_with("\n\n"), "{name}, seed {seed}");
            }
        }
    }

    #[test]
    fn every_node_appears_in_every_format() {
        for seed in 0..24 {
            let drawing = samples::random(seed, 1 + seed as usize % 40);
            for (name, format) in Format::ALL {
                let drawn = render(&drawing, format);
                for node in &drawing.nodes {
                    assert!(drawn.contains(&node.name), "{} in {name}, seed {seed}", node.name);
                }
            }
        }
    }

    #[test]
    fn no_format_lets_a_control_or_direction_character_through() {
        let hostile = "a\u{1b}[31m\u{9b}2J\u{202e}\u{7}\r\n\u{0}\u{ffff}b";
        let mut drawing = samples::nested();
        drawing.name = hostile.to_owned();
        for node in &mut drawing.nodes {
            (node.name, node.kind, node.detail) = (hostile.to_owned(), hostile.to_owned(), hostile.to_owned());
        }
        for edge in &mut drawing.edges {
            edge.label = hostile.to_owned();
        }
        for (name, format) in Format::ALL {
            let drawn = render(&drawing, format);
            let bad = drawn.chars().find(|c| (c.is_control() && *c != '\n') || matches!(c, '\u{202e}' | '\u{ffff}'));
            assert_eq!(bad, None, "{name}");
        }
    }

    #[test]
    fn broken_indices_and_parents_in_a_circle_are_left_out() {
        let mut drawing = samples::chain(3);
        drawing.nodes[0].parent = Some(1);
        drawing.nodes[1].parent = Some(0);
        drawing.nodes[2].parent = Some(77);
        drawing.edges.push(samples::edge(1, 99, ""));
        drawing.edges.push(samples::edge(2, 2, ""));
        for (name, format) in Format::ALL {
            let drawn = render(&drawing, format);
            assert!(drawing.nodes.iter().all(|node| drawn.contains(&node.name)), "{name}");
        }
    }

    #[test]
    fn an_empty_drawing_is_drawn_too() {
        let empty = Outline { name: "nothing".to_owned(), nodes: Vec::new(), edges: Vec::new() };
        for (name, format) in Format::ALL {
            assert!(render(&empty, format).contains("nothing"), "{name}");
        }
    }

    #[test]
    fn thousands_of_nodes_neither_overflow_the_stack_nor_take_long() {
        for drawing in [samples::chain(10_000), samples::fan(1_000), samples::deep(2_000)] {
            for (_, format) in Format::ALL {
                assert!(render(&drawing, format).len() > 10_000);
            }
        }
    }
}
