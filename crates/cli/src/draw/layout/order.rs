//! The order of the cells in each row: sweeps down and up that pull each cell between its neighbours.
//!
//! A fixed number of sweeps keeps it deterministic and bounded; big bodies get fewer.

use super::grid::Grid;

pub fn reduce_crossings(grid: &mut Grid) {
    first_order(grid);
    let mut best = grid.rows.clone();
    let mut fewest = crossings(grid);
    let size = grid.cells.len();
    let (sweeps, swap) = match size {
        0..=600 => (24, true),
        601..=6_000 => (8, false),
        _ => (3, false),
    };
    for sweep in 0..sweeps {
        if fewest == 0 {
            break;
        }
        let mut position = positions(grid);
        let ties_reversed = sweep % 4 >= 2;
        if sweep % 2 == 0 {
            let sweep = Sweep::Up { ties_reversed };
            (0..grid.rows.len()).for_each(|row| sort_row(grid, row, sweep, &mut position));
        } else {
            let sweep = Sweep::Down { ties_reversed };
            (0..grid.rows.len()).rev().for_each(|row| sort_row(grid, row, sweep, &mut position));
        }
        if swap {
            swap_neighbours(grid);
        }
        let found = crossings(grid);
        if found < fewest {
            fewest = found;
            best.clone_from(&grid.rows);
        }
    }
    grid.rows = best;
}

#[derive(Clone, Copy)]
enum Sweep {
    Up { ties_reversed: bool },
    Down { ties_reversed: bool },
}

/// Depth first from the top in file order: trees come out without any crossing.
fn first_order(grid: &mut Grid) {
    let mut seen = vec![false; grid.cells.len()];
    let mut starts: Vec<usize> = (0..grid.cells.len()).collect();
    starts.sort_by_key(|&cell| grid.cells[cell].row);
    let mut stack = Vec::new();
    for start in starts {
        stack.push(start);
        while let Some(cell) = stack.pop() {
            if !std::mem::replace(&mut seen[cell], true) {
                grid.rows[grid.cells[cell].row].push(cell);
                stack.extend(grid.down[cell].iter().rev());
            }
        }
    }
}

fn positions(grid: &Grid) -> Vec<usize> {
    let mut position = vec![0; grid.cells.len()];
    for row in &grid.rows {
        for (index, &cell) in row.iter().enumerate() {
            position[cell] = index;
        }
    }
    position
}

/// Sorts one row by where its neighbours in the row that it looks at stand.
fn sort_row(grid: &mut Grid, row: usize, sweep: Sweep, position: &mut [usize]) {
    let (neighbours, ties_reversed) = match sweep {
        Sweep::Up { ties_reversed } => (&grid.up, ties_reversed),
        Sweep::Down { ties_reversed } => (&grid.down, ties_reversed),
    };
    let centre = |cell: usize| {
        let near = &neighbours[cell];
        let sum: usize = near.iter().map(|&n| position[n]).sum();
        (!near.is_empty()).then(|| sum as f64 / near.len() as f64)
    };
    // Cells with nothing on that side keep their place; the others fill the places between.
    let mut moving: Vec<(f64, usize)> = grid.rows[row].iter().filter_map(|&cell| Some((centre(cell)?, cell))).collect();
    if ties_reversed {
        moving.reverse();
    }
    moving.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut moved = moving.into_iter().map(|(_, cell)| cell);
    for (index, cell) in grid.rows[row].iter_mut().enumerate() {
        if !neighbours[*cell].is_empty() {
            *cell = moved.next().unwrap_or(*cell);
        }
        position[*cell] = index;
    }
}

/// Swaps cells side by side while that removes crossings with the rows above and below.
fn swap_neighbours(grid: &mut Grid) {
    let mut position = positions(grid);
    for _ in 0..4 {
        let mut better = false;
        for row in 0..grid.rows.len() {
            for index in 1..grid.rows[row].len() {
                let (a, b) = (grid.rows[row][index - 1], grid.rows[row][index]);
                let cost = |a: usize, b: usize| {
                    inversions(&grid.up[a], &grid.up[b], &position)
                        + inversions(&grid.down[a], &grid.down[b], &position)
                };
                if cost(b, a) < cost(a, b) {
                    grid.rows[row].swap(index - 1, index);
                    position.swap(a, b);
                    better = true;
                }
            }
        }
        if !better {
            return;
        }
    }
}

/// Pairs of edges that cross when the cell of `left` stands before that of `right`.
fn inversions(left: &[usize], right: &[usize], position: &[usize]) -> usize {
    let pairs = left.iter().flat_map(|l| right.iter().map(move |r| (l, r)));
    pairs.filter(|&(&l, &r)| position[l] > position[r]).count()
}

/// All crossings between neighbouring rows, counted with a Fenwick tree.
fn crossings(grid: &Grid) -> usize {
    let position = positions(grid);
    let mut total = 0;
    let mut tree = Vec::new();
    let mut targets = Vec::new();
    for (row, below) in grid.rows.iter().zip(grid.rows.iter().skip(1)) {
        tree.clear();
        tree.resize(below.len() + 1, 0usize);
        let mut seen = 0;
        for &cell in row {
            targets.clear();
            targets.extend(grid.down[cell].iter().map(|&to| position[to]));
            for &target in &targets {
                let mut before = 0;
                let mut at = target + 1;
                while at > 0 {
                    before += tree[at];
                    at &= at - 1;
                }
                total += seen - before;
            }
            for &target in &targets {
                seen += 1;
                let mut at = target + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::super::super::EdgeStyle;
    use super::super::Size;
    use super::super::grid::Spec;
    use super::super::rank::Arc;
    use super::*;

    fn grid(ranks: &[usize], arcs: &[(usize, usize)]) -> Grid {
        let spec = |&(from, to): &(usize, usize)| Spec {
            arc: Arc { from, to },
            style: EdgeStyle::Normal,
            label: None,
            turned: false,
        };
        let specs: Vec<Spec> = arcs.iter().map(spec).collect();
        Grid::new(&vec![Size { width: 5, height: 3 }; ranks.len()], ranks, &specs)
    }

    #[test]
    fn swapped_pairs_are_uncrossed() {
        let mut grid = grid(&[0, 0, 1, 1], &[(0, 3), (1, 2)]);
        grid.rows = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(crossings(&grid), 1);
        grid.rows = vec![Vec::new(), Vec::new()];
        reduce_crossings(&mut grid);
        assert_eq!(crossings(&grid), 0);
    }

    #[test]
    fn a_complete_pair_of_rows_keeps_the_order_of_the_file() {
        let mut grid = grid(&[0, 0, 1, 1], &[(0, 2), (0, 3), (1, 2), (1, 3)]);
        reduce_crossings(&mut grid);
        assert_eq!((crossings(&grid), grid.rows), (1, vec![vec![0, 1], vec![2, 3]]));
    }

    #[test]
    fn a_long_edge_takes_one_cell_in_every_row_it_passes() {
        let grid = grid(&[0, 1, 2, 3], &[(0, 1), (1, 2), (2, 3), (0, 3)]);
        assert_eq!(grid.chains[3].len(), 4);
        assert_eq!(grid.cells.len(), 6);
    }
}
