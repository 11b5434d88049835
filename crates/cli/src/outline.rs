//! A definition as something to draw.

use crate::draw::{Drawing, Edge, EdgeStyle, Node};
use stepwell_core::definition::Definition;
use stepwell_core::outline;

pub fn drawing(definition: &Definition) -> Drawing {
    let outline = outline::outline(definition);
    let node =
        |node: outline::Node| Node { name: node.name, kind: node.kind, detail: node.detail, parent: node.parent };
    let edge = |edge: outline::Edge| Edge { from: edge.from, to: edge.to, label: edge.label, style: style(edge.style) };
    Drawing {
        name: outline.name,
        nodes: outline.nodes.into_iter().map(node).collect(),
        edges: outline.edges.into_iter().map(edge).collect(),
    }
}

fn style(style: outline::EdgeStyle) -> EdgeStyle {
    match style {
        outline::EdgeStyle::Normal => EdgeStyle::Normal,
        outline::EdgeStyle::Error => EdgeStyle::Error,
        outline::EdgeStyle::Back => EdgeStyle::Back,
    }
}
