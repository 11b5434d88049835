//! A body cut into rows of cells: boxes, and one cell for every row that an edge passes or has its label in.
//!
//! Labels take cells of their own, in a row between two layers, so that they never cover anything.

use super::super::EdgeStyle;
use super::rank::Arc;
use super::{Rect, Size};

/// Cells that passing edges may take in one body; longer edges beyond that stay loose.
const MOST_BENDS: usize = 60_000;

/// An edge to lay out.
pub struct Spec {
    pub arc: Arc,
    pub style: EdgeStyle,
    pub label: Option<Size>,
    /// The edge starts at the lower end, and so does its label.
    pub turned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A box, a note, or an end at the frame.
    Item,
    Bend,
    Label,
}

#[derive(Debug, Clone)]
pub struct Cell {
    pub kind: Kind,
    pub size: Size,
    pub row: usize,
    /// The column that an edge through the middle takes, and the top.
    pub x: i64,
    pub y: i64,
}

pub struct Grid {
    /// The items first, in their own order.
    pub cells: Vec<Cell>,
    /// Each row from left to right.
    pub rows: Vec<Vec<usize>>,
    pub up: Vec<Vec<usize>>,
    pub down: Vec<Vec<usize>>,
    /// The cells of each edge from top to bottom; empty for a loose edge.
    pub chains: Vec<Vec<usize>>,
    pub labels: Vec<Option<usize>>,
    pub loose: usize,
}

impl Cell {
    pub fn left(&self) -> i64 {
        self.size.width / 2
    }

    pub fn right(&self) -> i64 {
        self.size.width - self.left()
    }
}

impl Grid {
    pub fn new(items: &[Size], ranks: &[usize], specs: &[Spec]) -> Self {
        let row_of_rank = rows_of_ranks(ranks, specs);
        let rows = row_of_rank.last().map_or(0, |row| row + 1);
        let cell = |(size, rank): (&Size, &usize)| Cell::new(Kind::Item, *size, row_of_rank[*rank]);
        let mut grid = Self {
            cells: items.iter().zip(ranks).map(cell).collect(),
            rows: vec![Vec::new(); rows],
            up: Vec::new(),
            down: Vec::new(),
            chains: vec![Vec::new(); specs.len()],
            labels: vec![None; specs.len()],
            loose: 0,
        };
        let span = |spec: &Spec| ranks[spec.arc.to].saturating_sub(ranks[spec.arc.from]);
        let mut shortest_first: Vec<usize> = (0..specs.len()).collect();
        shortest_first.sort_by_key(|&index| span(&specs[index]));
        let mut kept = vec![false; specs.len()];
        let mut bends = 0;
        for index in shortest_first {
            bends += span(&specs[index]).saturating_sub(1);
            kept[index] = bends <= MOST_BENDS;
        }
        for (index, spec) in specs.iter().enumerate() {
            if kept[index] {
                let rank = if spec.turned { ranks[spec.arc.to] - 1 } else { ranks[spec.arc.from] };
                grid.add_chain(index, spec, row_of_rank[rank] + 1);
            } else {
                grid.loose += 1;
            }
        }
        grid.connect();
        grid
    }

    /// Where a cell is, once it has a place.
    pub fn area(&self, cell: usize) -> Rect {
        let cell = &self.cells[cell];
        let Size { width, height } = cell.size;
        Rect { x: cell.x - cell.left(), y: cell.y, width, height }
    }

    fn add_chain(&mut self, index: usize, spec: &Spec, label_row: usize) {
        let mut chain = vec![spec.arc.from];
        for row in self.cells[spec.arc.from].row + 1..self.cells[spec.arc.to].row {
            let label = spec.label.filter(|_| row == label_row);
            let (kind, size) = match label {
                Some(size) => (Kind::Label, size),
                None => (Kind::Bend, Size { width: 1, height: 0 }),
            };
            if label.is_some() {
                self.labels[index] = Some(self.cells.len());
            }
            chain.push(self.cells.len());
            self.cells.push(Cell::new(kind, size, row));
        }
        chain.push(spec.arc.to);
        self.chains[index] = chain;
    }

    fn connect(&mut self) {
        self.up = vec![Vec::new(); self.cells.len()];
        self.down = vec![Vec::new(); self.cells.len()];
        for chain in &self.chains {
            for pair in chain.windows(2) {
                self.down[pair[0]].push(pair[1]);
                self.up[pair[1]].push(pair[0]);
            }
        }
        for neighbours in self.up.iter_mut().chain(&mut self.down) {
            neighbours.sort_unstable();
            neighbours.dedup();
        }
    }
}

impl Cell {
    fn new(kind: Kind, size: Size, row: usize) -> Self {
        Self { kind, size, row, x: 0, y: 0 }
    }
}

/// The row of each rank, with a row more after every rank that a label follows.
fn rows_of_ranks(ranks: &[usize], specs: &[Spec]) -> Vec<usize> {
    let mut labelled = vec![false; ranks.iter().max().map_or(0, |&most| most + 1)];
    for spec in specs.iter().filter(|spec| spec.label.is_some()) {
        let rank = if spec.turned { ranks[spec.arc.to] - 1 } else { ranks[spec.arc.from] };
        labelled[rank] = true;
    }
    let mut row = 0;
    let rows = labelled.iter().map(|&labelled| {
        let this = row;
        row += if labelled { 2 } else { 1 };
        this
    });
    rows.collect()
}
