//! One scope's body, laid out with its top left corner at the origin.

use super::super::scopes::Link;
use super::super::{EdgeStyle, Outline};
use super::graph::{Graph, Item, Line};
use super::grid::{Grid, Spec};
use super::{Gaps, Measure, Note, Path, Point, Rect, Size, order, place, route};

pub struct Input<'a> {
    pub drawing: &'a Outline,
    pub measure: &'a dyn Measure,
    /// Of every node; scopes inside this one are measured already.
    pub sizes: &'a [Size],
    pub links: &'a [Link],
    /// Whose body it is; `None` is the top level.
    pub scope: Option<usize>,
}

#[derive(Default)]
pub struct Body {
    pub size: Size,
    /// Node, place and layer.
    pub boxes: Vec<(usize, Rect, usize)>,
    pub paths: Vec<Path>,
    pub notes: Vec<Note>,
    pub loose: usize,
    /// Room taken at the right, to be left free at the left too so that the middle stays the middle.
    pub lane: i64,
}

impl Input<'_> {
    pub fn lay_out(&self, members: &[usize]) -> Body {
        let gaps = self.measure.gaps();
        let anyone = members.first().and_then(|&node| self.drawing.nodes.get(node));
        let notes = anyone.is_some_and(|node| self.measure.note(node).is_some());
        let graph = Graph::new(members, self.links, notes);
        let ranks = graph.ranks();
        let specs: Vec<Spec> = graph.lines.iter().map(|line| self.spec(line)).collect();
        let sizes: Vec<Size> = graph.items.iter().map(|&item| self.size(item)).collect();
        let mut grid = Grid::new(&sizes, &ranks, &specs);
        order::reduce_crossings(&mut grid);
        place::assign(&mut grid, gaps);
        let routed = route::route(&mut grid, &specs, gaps);

        let mut body = Body { size: routed.size, loose: grid.loose, ..Body::default() };
        for (index, &item) in graph.items.iter().enumerate() {
            let area = grid.area(index);
            match (item, self.scope) {
                (Item::Node(node), _) => body.boxes.push((node, area, ranks[index])),
                (Item::Note(target), _) => body.notes.push(Note { area, target }),
                (Item::Return, Some(target)) if notes => body.notes.push(Note { area, target }),
                (Item::Return | Item::Entry, _) => {}
            }
        }
        let lane = (!notes && graph.items.contains(&Item::Return)).then(|| {
            body.size.width += gaps.lane;
            body.lane = gaps.lane;
            body.size.width
        });
        for (index, (line, points)) in graph.lines.iter().zip(routed.lines).enumerate() {
            let label = grid.labels[index].map(|cell| (grid.area(cell), line.link.label.clone()));
            let ends = (graph.items[line.arc.from], graph.items[line.arc.to]);
            let mut path = self.path(line, points);
            path.label = label;
            path.arrow = !matches!(ends.1, Item::Note(_) | Item::Return);
            if ends.0 == Item::Entry {
                start_at_heading(&mut path, gaps);
            }
            if let Some(lane) = lane.filter(|_| ends.1 == Item::Return) {
                return_to_heading(&mut path, lane, gaps);
            }
            body.paths.push(path);
        }
        for &(item, link) in &graph.loops {
            let points = loop_beside(grid.area(item), gaps.lane);
            body.size.width = body.size.width.max(grid.area(item).right() + gaps.lane);
            let back = true;
            body.paths.push(Path { edge: link.edge, scope: self.scope, points, label: None, back, arrow: true });
        }
        body
    }

    fn path(&self, line: &Line, mut points: Vec<Point>) -> Path {
        if line.turned {
            points.reverse();
        }
        Path { edge: line.link.edge, scope: self.scope, points, label: None, back: line.back, arrow: true }
    }

    fn spec(&self, line: &Line) -> Spec {
        let label = &line.link.label;
        Spec {
            arc: line.arc,
            style: if line.back { EdgeStyle::Back } else { line.link.style },
            label: (!label.is_empty()).then(|| self.measure.label(label)),
            turned: line.turned,
        }
    }

    fn size(&self, item: Item) -> Size {
        const POINT: Size = Size { width: 1, height: 0 };
        let note = |node: usize| {
            let note = self.drawing.nodes.get(node).and_then(|node| self.measure.note(node));
            note.unwrap_or(POINT)
        };
        match item {
            Item::Node(node) => self.sizes[node],
            Item::Note(target) => note(target),
            Item::Return => self.scope.map_or(POINT, note),
            Item::Entry => POINT,
        }
    }
}

fn start_at_heading(path: &mut Path, gaps: &Gaps) {
    if let Some(first) = path.points.first_mut() {
        first.y = -gaps.heading;
    }
}

fn return_to_heading(path: &mut Path, lane: i64, gaps: &Gaps) {
    if let Some(&last) = path.points.last() {
        path.points.push(Point { x: lane, y: last.y });
        path.points.push(Point { x: lane, y: -gaps.heading });
        path.arrow = true;
    }
}

fn loop_beside(area: Rect, reach: i64) -> Vec<Point> {
    let (low, high) = (area.y + area.height * 3 / 4, area.y + area.height / 4);
    let (near, far) = (area.right(), area.right() + reach / 2);
    [(near, low), (far, low), (far, high), (near, high)].map(|(x, y)| Point { x, y }).to_vec()
}
