//! Columns, after Brandes and Köpf: four passes each build straight vertical blocks and pack them to one
//! side; every cell takes the middle of its four places. Long edges stay straight, fans come out even.

use std::collections::HashSet;

use super::Gaps;
use super::grid::{Grid, Kind};

/// Gives every cell its column; the left edge of the body is 0.
pub fn assign(grid: &mut Grid, gaps: &Gaps) {
    let conflicts = conflicts(grid);
    let mut passes = Vec::with_capacity(4);
    for down in [true, false] {
        for rightward in [false, true] {
            let pass = Pass { grid, gaps, conflicts: &conflicts, down, rightward };
            passes.push((pass.columns(), rightward));
        }
    }
    let xs = balance(grid, passes);
    for (cell, x) in grid.cells.iter_mut().zip(xs) {
        cell.x = x;
    }
    straighten(grid, gaps);
    let left = grid.cells.iter().map(|cell| cell.x - cell.left()).min().unwrap_or(0);
    grid.cells.iter_mut().for_each(|cell| cell.x -= left);
}

/// Pairs of cells whose edge would cut through the straight part of a long edge.
fn conflicts(grid: &Grid) -> HashSet<(usize, usize)> {
    let mut found = HashSet::new();
    let mut position = vec![0; grid.cells.len()];
    for row in &grid.rows {
        row.iter().enumerate().for_each(|(index, &cell)| position[cell] = index);
    }
    let passing = |cell: usize| grid.cells[cell].kind != Kind::Item;
    let inner = |cell: usize| {
        let above = grid.up[cell].first().copied();
        above.filter(|&above| passing(cell) && passing(above))
    };
    for row in grid.rows.iter().skip(1) {
        let (mut left, mut scanned) = (0, 0);
        for (index, &cell) in row.iter().enumerate() {
            let wall = inner(cell);
            if wall.is_none() && index + 1 < row.len() {
                continue;
            }
            let right = wall.map_or(usize::MAX, |above| position[above]);
            for &other in &row[scanned..=index] {
                for &above in &grid.up[other] {
                    let crosses = position[above] < left || position[above] > right;
                    if crosses && !(passing(other) && passing(above)) {
                        found.insert((above, other));
                    }
                }
            }
            scanned = index + 1;
            left = if wall.is_some() { right } else { left };
        }
    }
    found
}

/// One of the four: rows taken from the top or the bottom, packed to the left or the right.
struct Pass<'a> {
    grid: &'a Grid,
    gaps: &'a Gaps,
    conflicts: &'a HashSet<(usize, usize)>,
    down: bool,
    rightward: bool,
}

impl Pass<'_> {
    fn columns(&self) -> Vec<i64> {
        let mut rows = self.grid.rows.clone();
        if !self.down {
            rows.reverse();
        }
        if self.rightward {
            rows.iter_mut().for_each(|row| row.reverse());
        }
        let root = self.align(&rows);
        let mut xs = self.pack(&rows, &root);
        if self.rightward {
            xs.iter_mut().for_each(|x| *x = -*x);
        }
        xs
    }

    /// The block of each cell, named by its first cell: a cell joins its middle neighbour if it can.
    fn align(&self, rows: &[Vec<usize>]) -> Vec<usize> {
        let count = self.grid.cells.len();
        let mut position = vec![0i64; count];
        for row in rows {
            row.iter().zip(0..).for_each(|(&cell, index)| position[cell] = index);
        }
        let mut root: Vec<usize> = (0..count).collect();
        let mut taken = vec![false; count];
        let mut near = Vec::new();
        for row in rows {
            let mut last = -1;
            for &cell in row {
                near.clear();
                near.extend(if self.down { &self.grid.up[cell] } else { &self.grid.down[cell] });
                near.sort_by_key(|&n| position[n]);
                let middles = if near.is_empty() { 0..0 } else { (near.len() - 1) / 2..near.len() / 2 + 1 };
                for &other in &near[middles] {
                    let edge = if self.down { (other, cell) } else { (cell, other) };
                    let free = root[cell] == cell && !taken[other] && last < position[other];
                    if free && !self.conflicts.contains(&edge) {
                        taken[other] = true;
                        root[cell] = root[other];
                        last = position[other];
                    }
                }
            }
        }
        root
    }

    /// Packs the blocks as far to one side as they go, then lets each follow what holds it back.
    fn pack(&self, rows: &[Vec<usize>], root: &[usize]) -> Vec<i64> {
        let count = self.grid.cells.len();
        let mut after: Vec<Vec<(usize, i64)>> = vec![Vec::new(); count];
        let mut waiting = vec![0usize; count];
        for row in rows {
            for pair in row.windows(2) {
                let (a, b) = (root[pair[0]], root[pair[1]]);
                after[a].push((b, self.distance(pair[0], pair[1])));
                waiting[b] += 1;
            }
        }
        let mut order: Vec<usize> = (0..count).filter(|&cell| root[cell] == cell && waiting[cell] == 0).collect();
        let mut xs = vec![0i64; count];
        let mut next = 0;
        while let Some(&block) = order.get(next) {
            next += 1;
            for &(other, distance) in &after[block] {
                xs[other] = xs[other].max(xs[block] + distance);
                waiting[other] -= 1;
                if waiting[other] == 0 {
                    order.push(other);
                }
            }
        }
        for &block in order.iter().rev() {
            let room = after[block].iter().map(|&(other, distance)| xs[other] - distance).min();
            xs[block] = room.map_or(xs[block], |room| room.max(xs[block]));
        }
        (0..count).map(|cell| xs[root[cell]]).collect()
    }

    fn distance(&self, first: usize, second: usize) -> i64 {
        let (left, right) = if self.rightward { (second, first) } else { (first, second) };
        distance(self.grid, self.gaps, left, right)
    }
}

/// The least distance between the columns of two cells side by side.
fn distance(grid: &Grid, gaps: &Gaps, left: usize, right: usize) -> i64 {
    let (left, right) = (&grid.cells[left], &grid.cells[right]);
    let boxes = left.kind == Kind::Item && right.kind == Kind::Item;
    left.right() + right.left() + if boxes { gaps.node } else { gaps.bend }
}

/// Lines the four up at the side they were packed to, by the narrowest, and takes each cell's middle.
fn balance(grid: &Grid, mut passes: Vec<(Vec<i64>, bool)>) -> Vec<i64> {
    let bounds = |xs: &[i64]| {
        let cells = || grid.cells.iter().zip(xs);
        let left = cells().map(|(cell, x)| x - cell.left()).min().unwrap_or(0);
        let right = cells().map(|(cell, x)| x + cell.right()).max().unwrap_or(0);
        (left, right)
    };
    let all: Vec<(i64, i64)> = passes.iter().map(|(xs, _)| bounds(xs)).collect();
    let narrowest = all.iter().min_by_key(|(left, right)| right - left).copied().unwrap_or((0, 0));
    for ((xs, rightward), (left, right)) in passes.iter_mut().zip(all) {
        let shift = if *rightward { narrowest.1 - right } else { narrowest.0 - left };
        xs.iter_mut().for_each(|x| *x += shift);
    }
    let middle = |cell: usize| {
        let mut four = [0; 4];
        four.iter_mut().zip(&passes).for_each(|(place, (xs, _))| *place = xs[cell]);
        four.sort_unstable();
        (four[1] + four[2]).div_euclid(2)
    };
    (0..grid.cells.len()).map(middle).collect()
}

/// Moves cells the little that makes an edge straight, where there is room and it bends no other.
fn straighten(grid: &mut Grid, gaps: &Gaps) {
    for sweep in 0..4 {
        for row in 0..grid.rows.len() {
            let row = if sweep % 2 == 0 { row } else { grid.rows.len() - 1 - row };
            for index in 0..grid.rows[row].len() {
                let cell = grid.rows[row][index];
                let Some(x) = wanted(grid, cell) else { continue };
                let left = index.checked_sub(1).map(|i| grid.rows[row][i]);
                let right = grid.rows[row].get(index + 1).copied();
                let low = left.map(|left| grid.cells[left].x + distance(grid, gaps, left, cell));
                let high = right.map(|right| grid.cells[right].x - distance(grid, gaps, cell, right));
                if low.is_none_or(|low| x >= low) && high.is_none_or(|high| x <= high) {
                    grid.cells[cell].x = x;
                }
            }
        }
    }
}

/// The column of the one neighbour that a cell in a chain has above or below, unless one is straight already.
fn wanted(grid: &Grid, cell: usize) -> Option<i64> {
    let only = |near: &[usize], back: &[Vec<usize>]| match near {
        [one] if back[*one].len() == 1 => Some(grid.cells[*one].x),
        _ => None,
    };
    if grid.up[cell].len() > 1 || grid.down[cell].len() > 1 {
        return None;
    }
    let above = only(&grid.up[cell], &grid.down);
    let below = only(&grid.down[cell], &grid.up);
    let now = grid.cells[cell].x;
    let straight = above == Some(now) || below == Some(now);
    above.or(below).filter(|_| !straight)
}
