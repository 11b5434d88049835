//! A layered (Sugiyama) layout in whole units: columns for text and pixels for SVG.
//!
//! Each scope's body is laid out on its own, innermost first, and then stands in its parent as one big box.
//! Within a body: [`rank`] gives layers, [`grid`] cuts long edges into one cell per layer, [`order`] removes
//! crossings, [`place`] gives columns, [`route`] leads the edges through the channels between the layers.
//! Nothing recurses, so depth and length are limited by memory alone.

mod body;
mod channel;
mod graph;
mod grid;
mod order;
mod place;
pub mod rank;
mod route;
mod tracks;

use super::scopes::Scopes;
use super::{Node, Outline};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Point {
    pub x: i64,
    pub y: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    pub width: i64,
    pub height: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rect {
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
}

/// Distances, in the units of the format that is drawn.
#[derive(Debug, Clone)]
pub struct Gaps {
    /// Between boxes side by side.
    pub node: i64,
    /// Between a passing edge and whatever is beside it.
    pub bend: i64,
    /// In a channel between layers: above the first track, per track, below the last.
    pub lead: i64,
    pub track: i64,
    pub tail: i64,
    /// Replaces `tail` where no box follows, so no arrow head needs room.
    pub soft_tail: i64,
    /// Between two arrows that reach the same box, and from its corner.
    pub port: i64,
    pub corner: i64,
    /// From a scope's frame to its body.
    pub frame_top: i64,
    pub frame_side: i64,
    pub frame_bottom: i64,
    /// From the body up to the heading, for edges between the two.
    pub heading: i64,
    /// Beside the body, for the line back to the heading.
    pub lane: i64,
    /// Edges of different styles leave a box apart.
    pub split_styles: bool,
}

/// The sizes of boxes in a format.
pub trait Measure {
    fn gaps(&self) -> &Gaps;
    fn leaf(&self, node: &Node) -> Size;
    /// The least width of a scope's frame.
    fn frame(&self, node: &Node) -> i64;
    fn label(&self, text: &str) -> Size;
    /// The note that ends an edge going back to `target`; `None` where such edges are drawn as lines.
    fn note(&self, target: &Node) -> Option<Size>;
}

#[derive(Debug, Default)]
pub struct Layout {
    pub size: Size,
    /// One per node, scopes around their bodies.
    pub boxes: Vec<Rect>,
    /// The layer of each node within its scope.
    pub layers: Vec<usize>,
    pub paths: Vec<Path>,
    pub notes: Vec<Note>,
    /// Edges too long to lead around everything between their ends.
    pub loose: usize,
}

/// An edge from the border of one box to the border of another, with right angles only.
#[derive(Debug, Clone)]
pub struct Path {
    pub edge: usize,
    pub scope: Option<usize>,
    pub points: Vec<Point>,
    pub label: Option<(Rect, String)>,
    /// Goes against the flow.
    pub back: bool,
    /// Ends in a box, and so in an arrow head.
    pub arrow: bool,
}

/// Stands for the end of an edge that goes back to `target`.
#[derive(Debug, Clone)]
pub struct Note {
    pub area: Rect,
    pub target: usize,
}

/// Lays out a whole drawing.
pub fn lay_out(drawing: &Outline, scopes: &Scopes, measure: &dyn Measure) -> Layout {
    let count = drawing.nodes.len();
    let gaps = measure.gaps();
    let mut links = vec![Vec::new(); count + 1];
    for link in scopes.links(drawing) {
        links[link.scope.unwrap_or(count)].push(link);
    }
    let mut sizes: Vec<Size> = drawing.nodes.iter().map(|node| measure.leaf(node)).collect();
    let mut bodies: Vec<Option<body::Body>> = (0..count).map(|_| None).collect();
    let mut inset = vec![0; count];
    let order = scopes.innermost_first();
    for &scope in &order {
        let input = body::Input { drawing, measure, sizes: &sizes, links: &links[scope], scope: Some(scope) };
        let body = input.lay_out(scopes.members(Some(scope)));
        let inner = body.lane + body.size.width + 2 * gaps.frame_side;
        let width = inner.max(measure.frame(&drawing.nodes[scope]));
        inset[scope] = body.lane + gaps.frame_side + (width - inner) / 2;
        let height = body.size.height + gaps.frame_top + gaps.frame_bottom;
        sizes[scope] = Size { width, height };
        bodies[scope] = Some(body);
    }
    let input = body::Input { drawing, measure, sizes: &sizes, links: &links[count], scope: None };
    let top = input.lay_out(scopes.members(None));

    let mut layout =
        Layout { size: top.size, boxes: vec![Rect::default(); count], layers: vec![0; count], ..Layout::default() };
    layout.add(top, Point::default());
    for &scope in order.iter().rev() {
        let frame = layout.boxes[scope];
        let origin = Point { x: frame.x + inset[scope], y: frame.y + gaps.frame_top };
        if let Some(body) = bodies[scope].take() {
            layout.add(body, origin);
        }
    }
    layout
}

impl Layout {
    fn add(&mut self, body: body::Body, origin: Point) {
        for (node, area, layer) in body.boxes {
            self.boxes[node] = area.shifted(origin);
            self.layers[node] = layer;
        }
        self.paths.extend(body.paths.into_iter().map(|path| Path {
            points: path.points.iter().map(|p| p.shifted(origin)).collect(),
            label: path.label.map(|(area, text)| (area.shifted(origin), text)),
            ..path
        }));
        let notes = body.notes.into_iter();
        self.notes.extend(notes.map(|note| Note { area: note.area.shifted(origin), ..note }));
        self.loose += body.loose;
    }
}

impl Point {
    fn shifted(self, by: Point) -> Point {
        Point { x: self.x + by.x, y: self.y + by.y }
    }
}

impl Rect {
    fn shifted(self, by: Point) -> Rect {
        Rect { x: self.x + by.x, y: self.y + by.y, ..self }
    }

    pub fn right(&self) -> i64 {
        self.x + self.width
    }

    pub fn bottom(&self) -> i64 {
        self.y + self.height
    }
}

#[cfg(test)]
mod tests;
