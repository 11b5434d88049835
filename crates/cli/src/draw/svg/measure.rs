//! Sizes in pixels.

use super::super::layout::{Gaps, Measure, Size};
use super::super::{Node, chars, subtitle};

/// The height of a scope's heading.
pub const HEADER: i64 = 34;
pub const NAME_COLUMNS: usize = 36;
pub const SUBTITLE_COLUMNS: usize = 44;
pub const LABEL_COLUMNS: usize = 36;

/// Kind, name and detail of a scope, as its heading shows them.
pub fn title_parts(node: &Node) -> (String, String, String) {
    let kind = if node.kind == node.name { "" } else { &node.kind };
    let detail = chars::fit(&node.detail, NAME_COLUMNS);
    let detail = if detail.is_empty() { detail } else { format!("· {detail}") };
    (chars::fit(kind, 16), chars::fit(&node.name, NAME_COLUMNS), detail)
}

/// A generous estimate, since the reader's fonts are unknown.
pub fn text_width(text: &str, pixels: i64) -> i64 {
    let thousandths: i64 = text
        .chars()
        .map(|c| match (chars::columns(c), c) {
            (0, _) => 0,
            (2, _) => 1_020,
            (_, 'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ') => 340,
            (_, 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '"') => 430,
            (_, 'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '→') => 960,
            (_, 'A'..='Z' | '_' | '<' | '>' | '=' | '+' | '~' | '#' | '&') => 740,
            _ => 620,
        })
        .sum();
    thousandths * pixels / 1_000 + 1
}

pub struct Pixels {
    gaps: Gaps,
}

impl Pixels {
    pub fn new() -> Self {
        let gaps = Gaps {
            node: 32,
            bend: 20,
            lead: 12,
            track: 12,
            tail: 22,
            soft_tail: 8,
            port: 14,
            corner: 14,
            frame_top: HEADER + 18,
            frame_side: 20,
            frame_bottom: 20,
            heading: 18,
            lane: 20,
            split_styles: true,
        };
        Self { gaps }
    }
}

impl Measure for Pixels {
    fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    fn leaf(&self, node: &Node) -> Size {
        let name = text_width(&chars::fit(&node.name, NAME_COLUMNS), 15);
        let subtitle = chars::fit(&subtitle(node), SUBTITLE_COLUMNS);
        let width = (name.max(text_width(&subtitle, 12)) + 40).max(96);
        Size { width, height: if subtitle.is_empty() { 42 } else { 54 } }
    }

    fn frame(&self, node: &Node) -> i64 {
        let (kind, name, detail) = title_parts(node);
        text_width(&kind, 13) + text_width(&name, 15) + text_width(&detail, 12) + 48
    }

    fn label(&self, text: &str) -> Size {
        Size { width: text_width(&chars::fit(text, LABEL_COLUMNS), 11) + 16, height: 18 }
    }

    fn note(&self, _target: &Node) -> Option<Size> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;

    #[test]
    fn a_box_grows_with_its_text_up_to_a_limit() {
        let width = |name: &str| Pixels::new().leaf(&samples::node(name, "http", "")).width;
        assert_eq!(width("a"), width("b"));
        assert!(width("a-longer-name-here") > width("a"));
        assert_eq!(width(&"x".repeat(50)), width(&"x".repeat(5_000)));
    }
}
