//! A workflow's graph, for drawing.

use super::{EdgeStyle, StepKind};
use serde::{Deserialize, Serialize};
use stepwell_core::outline;
use utoipa::ToSchema;

/// The steps of a version and the edges between them, for any dialect. Edges refer to steps by their index in `nodes`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphView {
    /// Name of the workflow.
    pub name: String,
    pub version: u32,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphNode {
    pub name: String,
    /// The path of the step in runs, without iteration and item numbers: `each[].charge`.
    pub path: String,
    #[schema(value_type = StepKind)]
    pub kind: String,
    /// A short summary: `POST /charge`, `3d`.
    pub detail: String,
    /// The loop or for_each that contains it.
    #[serde(default)]
    pub parent: Option<usize>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GraphEdge {
    pub from: usize,
    pub to: usize,
    /// Handle or condition; empty for plain success.
    pub label: String,
    #[schema(value_type = EdgeStyle)]
    pub style: String,
}

impl GraphView {
    pub fn new(outline: outline::Outline, version: u32) -> GraphView {
        let node = |node: outline::Node| GraphNode {
            name: node.name,
            path: node.path,
            kind: node.kind,
            detail: node.detail,
            parent: node.parent,
        };
        let edge = |edge: outline::Edge| GraphEdge {
            from: edge.from,
            to: edge.to,
            label: edge.label,
            style: style(edge.style).into(),
        };
        GraphView {
            name: outline.name,
            version,
            nodes: outline.nodes.into_iter().map(node).collect(),
            edges: outline.edges.into_iter().map(edge).collect(),
        }
    }
}

fn style(style: outline::EdgeStyle) -> &'static str {
    match style {
        outline::EdgeStyle::Normal => "normal",
        outline::EdgeStyle::Error => "error",
        outline::EdgeStyle::Back => "back",
    }
}
