//! A workflow in a terminal: boxes from top to bottom, joined by lines.
//!
//! A drawing that is too wide for a terminal becomes a [`list`] instead.

use super::canvas::Canvas;
use super::layout::{Gaps, Layout, Measure, Point, Size, lay_out};
use super::scopes::Scopes;
use super::{Node, Outline, chars, list};

/// Maximum width of a drawing; a wider one would have to be scrolled.
const MOST_COLUMNS: i64 = 200;
const MOST_CELLS: i64 = 40_000_000;
const TOO_WIDE: &str = "(too wide to draw as text; svg shows it as a picture)";
const NAME_COLUMNS: usize = 32;
const LABEL_COLUMNS: usize = 24;

pub fn render(drawing: &Outline) -> String {
    let scopes = Scopes::new(drawing);
    let layout = lay_out(drawing, &scopes, &Columns::new());
    let Size { width, height } = layout.size;
    let fits = width <= MOST_COLUMNS && width * height <= MOST_CELLS && layout.loose == 0;
    let body = match (drawing.nodes.is_empty(), fits) {
        (true, _) => "(no steps)\n".to_owned(),
        (false, true) => draw(drawing, &scopes, &layout),
        (false, false) => format!("{TOO_WIDE}\n\n{}", list::render(drawing, &scopes)),
    };
    format!("{}\n\n{body}", chars::fit(&drawing.name, 120))
}

fn draw(drawing: &Outline, scopes: &Scopes, layout: &Layout) -> String {
    let mut canvas = Canvas::new(layout.size.width, layout.size.height);
    for (index, (node, area)) in drawing.nodes.iter().zip(&layout.boxes).enumerate() {
        canvas.frame(*area);
        if scopes.is_scope(index) {
            canvas.write(area.x + 2, area.y, &format!(" {} ", title(node)));
        } else {
            for (line, y) in lines(node).iter().zip(area.y + 1..) {
                canvas.write(area.x + 2, y, line);
            }
        }
    }
    for path in &layout.paths {
        draw_path(&mut canvas, &path.points, path.arrow);
        if let Some((area, label)) = &path.label {
            canvas.write(area.x, area.y, &chars::fit(label, LABEL_COLUMNS));
        }
    }
    for note in &layout.notes {
        canvas.write(note.area.x, note.area.y, &back_to(&drawing.nodes[note.target]));
    }
    canvas.finish()
}

/// From the border of the upper box, which the line joins, to just above the lower.
fn draw_path(canvas: &mut Canvas, points: &[Point], arrow: bool) {
    let mut points = points.to_vec();
    if let Some(first) = points.first_mut() {
        first.y -= 1;
    }
    if let Some(last) = points.last_mut() {
        last.y -= 1;
    }
    canvas.path(&points);
    if let Some(&first) = points.first() {
        canvas.join_below(first);
    }
    if let Some(last) = points.last().filter(|_| arrow) {
        canvas.write(last.x, last.y, "▼");
    }
}

fn lines(node: &Node) -> Vec<String> {
    let lines = [&node.name, &super::subtitle(node)].map(|line| chars::fit(line, NAME_COLUMNS));
    let [name, subtitle] = lines;
    if subtitle.is_empty() { vec![name] } else { vec![name, subtitle] }
}

fn title(node: &Node) -> String {
    chars::fit(&super::title(node), NAME_COLUMNS)
}

fn back_to(target: &Node) -> String {
    format!("↺ back to {}", chars::fit(&target.name, LABEL_COLUMNS))
}

/// The layout in columns and rows.
#[cfg(test)]
pub fn lay_out_columns(drawing: &Outline, scopes: &Scopes) -> Layout {
    lay_out(drawing, scopes, &Columns::new())
}

struct Columns {
    gaps: Gaps,
}

impl Columns {
    fn new() -> Self {
        let gaps = Gaps {
            node: 2,
            bend: 2,
            lead: 0,
            track: 1,
            tail: 1,
            soft_tail: 0,
            port: 2,
            corner: 1,
            frame_top: 1,
            frame_side: 2,
            frame_bottom: 1,
            heading: 0,
            lane: 0,
            split_styles: false,
        };
        Self { gaps }
    }
}

fn columns(text: &str) -> i64 {
    chars::width(text) as i64
}

impl Measure for Columns {
    fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    fn leaf(&self, node: &Node) -> Size {
        let lines = lines(node);
        let widest = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
        Size { width: widest.max(1) + 4, height: lines.len() as i64 + 2 }
    }

    fn frame(&self, node: &Node) -> i64 {
        columns(&title(node)) + 6
    }

    fn label(&self, text: &str) -> Size {
        Size { width: columns(&chars::fit(text, LABEL_COLUMNS)), height: 1 }
    }

    fn note(&self, target: &Node) -> Option<Size> {
        Some(Size { width: columns(&back_to(target)), height: 1 })
    }
}

#[cfg(test)]
mod tests;
