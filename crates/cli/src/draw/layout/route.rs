//! Rows from top to bottom, with a channel after each that is as high as its edges need.

use super::channel::{self, Run, Wire};
use super::grid::{Cell, Grid, Kind, Spec};
use super::{Gaps, Point, Size};

pub struct Routed {
    pub size: Size,
    /// The points of each edge, from its upper end to its lower.
    pub lines: Vec<Vec<Point>>,
}

/// Gives every cell its height and every edge its line.
pub fn route(grid: &mut Grid, specs: &[Spec], gaps: &Gaps) -> Routed {
    let mut wires: Vec<Vec<(usize, Wire)>> = vec![Vec::new(); grid.rows.len()];
    for (edge, chain) in grid.chains.iter().enumerate() {
        for pair in chain.windows(2) {
            let wire = Wire { from: pair[0], to: pair[1], class: (specs[edge].style, specs[edge].turned) };
            wires[grid.cells[pair[0]].row].push((edge, wire));
        }
    }
    let mut runs: Vec<Vec<(Run, i64)>> = vec![Vec::new(); specs.len()];
    let mut y = 0;
    for (row, wires) in wires.into_iter().enumerate() {
        let cells = grid.rows[row].clone();
        let height = cells.iter().map(|&cell| grid.cells[cell].size.height).max().unwrap_or(0);
        cells.iter().for_each(|&cell| grid.cells[cell].y = y);
        y += height;
        if row + 1 == grid.rows.len() {
            break;
        }
        let (edges, wires): (Vec<usize>, Vec<Wire>) = wires.into_iter().unzip();
        let (found, tracks) = channel::route(grid, &wires, gaps);
        for (edge, run) in edges.into_iter().zip(found) {
            let track = run.track.unwrap_or(0) as i64;
            runs[edge].push((run, y + gaps.lead + track * gaps.track + gaps.track / 2));
        }
        // Notes and ends at the frame are lower than any box, and take no arrow head.
        let is_box = |cell: &Cell| cell.kind == Kind::Item && cell.size.height > 1;
        let boxes = grid.rows[row + 1].iter().any(|&cell| is_box(&grid.cells[cell]));
        y += gaps.lead + tracks as i64 * gaps.track + if boxes { gaps.tail } else { gaps.soft_tail };
    }
    let lines: Vec<Vec<Point>> = (0..specs.len()).map(|edge| line(grid, &specs[edge], &runs[edge])).collect();
    settle(grid, lines, y)
}

fn line(grid: &Grid, spec: &Spec, runs: &[(Run, i64)]) -> Vec<Point> {
    let (from, to) = (&grid.cells[spec.arc.from], &grid.cells[spec.arc.to]);
    let start_x = runs.first().map_or(from.x, |(run, _)| run.from_x);
    let end_x = runs.last().map_or(to.x, |(run, _)| run.to_x);
    let mut points = vec![Point { x: start_x, y: from.y + from.size.height }];
    for (run, y) in runs.iter().filter(|(run, _)| run.track.is_some()) {
        if run.from_x != run.to_x {
            points.extend([run.from_x, run.to_x].map(|x| Point { x, y: *y }));
        }
    }
    points.push(Point { x: end_x, y: to.y });
    points
}

/// Moves everything so that the leftmost thing stands at 0.
fn settle(grid: &mut Grid, mut lines: Vec<Vec<Point>>, height: i64) -> Routed {
    let columns = || lines.iter().flatten().map(|point| (point.x, point.x));
    let areas = grid.cells.iter().map(|cell| (cell.x - cell.left(), cell.x + cell.right()));
    let all = || columns().chain(areas.clone());
    let left = all().map(|(left, _)| left).min().unwrap_or(0);
    let right = all().map(|(_, right)| right).max().unwrap_or(0);
    grid.cells.iter_mut().for_each(|cell| cell.x -= left);
    lines.iter_mut().flatten().for_each(|point| point.x -= left);
    Routed { size: Size { width: right - left, height }, lines }
}
