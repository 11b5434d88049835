//! The outline with pixel coordinates, for programs that draw it themselves.

use serde::Serialize;

use super::layout::{Layout, Point, Rect};
use super::scopes::Scopes;
use super::{Edge, Node, Outline, chars, svg};

#[derive(Serialize)]
struct Picture<'a> {
    name: &'a str,
    width: i64,
    height: i64,
    nodes: Vec<PlacedNode<'a>>,
    edges: Vec<RoutedEdge<'a>>,
}

#[derive(Serialize)]
struct PlacedNode<'a> {
    name: &'a str,
    kind: &'a str,
    detail: &'a str,
    parent: Option<usize>,
    /// Counted from the top of its scope.
    layer: usize,
    x: i64,
    y: i64,
    width: i64,
    height: i64,
}

#[derive(Serialize)]
struct RoutedEdge<'a> {
    #[serde(flatten)]
    edge: &'a Edge,
    /// From `from` to `to`; empty for an edge that repeats another or points nowhere.
    points: Vec<[i64; 2]>,
}

pub fn render(drawing: &Outline) -> String {
    let layout = svg::lay_out_pixels(drawing, &Scopes::new(drawing));
    let picture = Picture::new(drawing, &layout);
    let text = serde_json::to_string_pretty(&picture).unwrap_or_else(|_| "{}".to_owned());
    escape_unprintable(&text) + "\n"
}

impl<'a> Picture<'a> {
    fn new(drawing: &'a Outline, layout: &Layout) -> Self {
        let place = |((node, area), &layer): ((&'a Node, &Rect), &usize)| {
            let Rect { x, y, width, height } = *area;
            let Node { name, kind, detail, parent, .. } = node;
            PlacedNode { name, kind, detail, parent: *parent, layer, x, y, width, height }
        };
        let mut points: Vec<&[Point]> = vec![&[]; drawing.edges.len()];
        layout.paths.iter().for_each(|path| points[path.edge] = &path.points);
        let route = |(edge, points): (&'a Edge, &[Point])| RoutedEdge {
            edge,
            points: points.iter().map(|point| [point.x, point.y]).collect(),
        };
        Self {
            name: &drawing.name,
            width: layout.size.width,
            height: layout.size.height,
            nodes: drawing.nodes.iter().zip(&layout.boxes).zip(&layout.layers).map(place).collect(),
            edges: drawing.edges.iter().zip(points).map(route).collect(),
        }
    }
}

/// JSON allows most of them raw, but the text may be shown in a terminal. They only occur within strings.
fn escape_unprintable(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if c != '\n' && chars::unprintable(c) {
            let escapes = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
            out.extend(escapes);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn nodes_and_edges_keep_their_fields_and_gain_places() {
        let json: serde_json::Value = serde_json::from_str(&render(&samples::polling())).unwrap();
        let wait = &json["nodes"][3];
        assert_eq!((&wait["name"], &wait["parent"], &wait["layer"]), (&"wait".into(), &1.into(), &2.into()));
        assert!(wait["width"].as_i64() > Some(0) && wait["y"].as_i64() > json["nodes"][2]["y"].as_i64());
        assert_eq!(json["edges"][3]["style"], "back");
        assert!(json["edges"].as_array().unwrap().iter().all(|edge| edge["points"][1].is_array()));
    }

    #[test]
    fn escaped_characters_read_back_as_they_were() {
        let mut drawing = samples::three();
        drawing.nodes[0].name = "a\u{9b}\u{202e}\u{e0041}\"\\b".to_owned();
        let json: serde_json::Value = serde_json::from_str(&render(&drawing)).unwrap();
        assert_eq!(json["nodes"][0]["name"], drawing.nodes[0].name);
    }
}
