//! The space between two rows: where edges leave and reach boxes, and on which track each one runs sideways.
//!
//! Cells with the same targets share one net, so a fan is one bus and a join is another, and two lines meet
//! only where their edges do: anything else that touches is a plain crossing.

use std::collections::{BTreeMap, BTreeSet};

use super::super::EdgeStyle;
use super::Gaps;
use super::grid::{Cell, Grid, Kind};
use super::tracks::{self, Span};

/// One edge's way from a row to the next.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    pub from: usize,
    pub to: usize,
    /// Style, and whether the edge runs upwards: what differs is not drawn as one line.
    pub class: Class,
}

pub type Class = (EdgeStyle, bool);

/// How a wire runs: down from `from_x`, along the track, down to `to_x`; straight without a track.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub from_x: i64,
    pub to_x: i64,
    pub track: Option<usize>,
}

/// Runs for `wires`, in their order, and the number of tracks. May move passing edges a little sideways.
pub fn route(grid: &mut Grid, wires: &[Wire], gaps: &Gaps) -> (Vec<Run>, usize) {
    let (mut nets, net_of) = nets(grid, wires, gaps);
    set_ports(grid, &mut nets, gaps);
    align_ports(grid, &mut nets, gaps);
    let mut order = tracks::arrange(&spans(&nets));
    for _ in 0..6 {
        let Some((net, column)) = order.overlap else {
            break;
        };
        if !nudge(grid, &mut nets, net, column, gaps) {
            break;
        }
        order = tracks::arrange(&spans(&nets));
    }
    let (levels, tracks) = order.levels(&spans(&nets), gaps.port / 2);
    let run = |(wire, &net): (&Wire, &usize)| Run {
        from_x: nets[net].top[&wire.from],
        to_x: nets[net].bottom[&wire.to],
        track: levels[net],
    };
    (wires.iter().zip(&net_of).map(run).collect(), tracks)
}

/// Wires drawn as one line: all of `top` lead to all of `bottom`. Columns by cell.
#[derive(Debug, Default)]
struct Net {
    top: BTreeMap<usize, i64>,
    bottom: BTreeMap<usize, i64>,
}

fn spans(nets: &[Net]) -> Vec<Span> {
    let columns = |side: &BTreeMap<usize, i64>| side.values().copied().collect();
    nets.iter().map(|net| Span::new(columns(&net.top), columns(&net.bottom))).collect()
}

/// Groups wires into nets; the second value is the net of each wire.
fn nets(grid: &Grid, wires: &[Wire], gaps: &Gaps) -> (Vec<Net>, Vec<usize>) {
    let class = |wire: &Wire| {
        if gaps.split_styles { wire.class } else { (EdgeStyle::Normal, false) }
    };
    let mut targets: BTreeMap<(usize, Class), BTreeSet<usize>> = BTreeMap::new();
    for wire in wires {
        targets.entry((wire.from, class(wire))).or_default().insert(wire.to);
    }
    let mut nets: Vec<Net> = Vec::new();
    let mut known = BTreeMap::new();
    let mut of_source = BTreeMap::new();
    for ((from, class), targets) in targets {
        let columns: BTreeMap<usize, i64> = targets.iter().map(|&to| (to, grid.cells[to].x)).collect();
        let net = *known.entry((class, targets)).or_insert_with(|| {
            nets.push(Net { bottom: columns, ..Net::default() });
            nets.len() - 1
        });
        nets[net].top.insert(from, grid.cells[from].x);
        of_source.insert((from, class), net);
    }
    let net_of = wires.iter().map(|wire| of_source[&(wire.from, class(wire))]).collect();
    (nets, net_of)
}

/// Spreads the nets at each box along its border, left to right as they come.
fn set_ports(grid: &Grid, nets: &mut [Net], gaps: &Gaps) {
    let mut leaving: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut reaching: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, net) in nets.iter().enumerate() {
        net.top.keys().for_each(|&cell| leaving.entry(cell).or_default().push(index));
        net.bottom.keys().for_each(|&cell| reaching.entry(cell).or_default().push(index));
    }
    let mut ports = Vec::new();
    for (at_top, cells) in [(true, leaving), (false, reaching)] {
        for (cell, here) in cells.into_iter().filter(|(_, here)| here.len() > 1) {
            let far = |net: usize| if at_top { &nets[net].bottom } else { &nets[net].top };
            let centre = |net: usize| {
                let columns = far(net);
                columns.values().sum::<i64>() / columns.len().max(1) as i64
            };
            let mut here = here;
            here.sort_by_key(|&net| (centre(net), net));
            let x = grid.cells[cell].x;
            let straight = here.iter().position(|&net| far(net).values().any(|&other| other == x));
            let columns = spread(&grid.cells[cell], here.len(), straight, gaps);
            ports.extend(here.into_iter().zip(columns).map(|(net, x)| (net, at_top, cell, x)));
        }
    }
    for (net, at_top, cell, x) in ports {
        let side = if at_top { &mut nets[net].top } else { &mut nets[net].bottom };
        side.insert(cell, x);
    }
}

/// Lets a net between two cells run straight where a box is wide enough to take it off its middle.
fn align_ports(grid: &Grid, nets: &mut [Net], gaps: &Gaps) {
    let mut taken: BTreeMap<(bool, usize), Vec<(usize, i64)>> = BTreeMap::new();
    for (index, net) in nets.iter().enumerate() {
        for (at_top, side) in [(true, &net.top), (false, &net.bottom)] {
            for (&cell, &x) in side {
                taken.entry((at_top, cell)).or_default().push((index, x));
            }
        }
    }
    for (index, net) in nets.iter_mut().enumerate() {
        let (Some((&from, &top)), Some((&to, &bottom))) = (net.top.first_key_value(), net.bottom.first_key_value())
        else {
            continue;
        };
        let single = net.top.len() == 1 && net.bottom.len() == 1;
        if !single || top == bottom || (top - bottom).abs() > 2 * gaps.port {
            continue;
        }
        let takes = |at_top: bool, cell: usize, x: i64| {
            let place = &grid.cells[cell];
            let room = place.left().min(place.right()) - 1 - gaps.corner;
            let others = taken.get(&(at_top, cell)).into_iter().flatten();
            let mut others = others.filter(|(net, _)| *net != index);
            place.kind == Kind::Item
                && (x - place.x).abs() <= room
                && others.all(|(_, other)| (other - x).abs() * 2 > gaps.port)
        };
        let (at_top, cell, x) = if takes(false, to, top) {
            (false, to, top)
        } else if takes(true, from, bottom) {
            (true, from, bottom)
        } else {
            continue;
        };
        let side = if at_top { &mut net.top } else { &mut net.bottom };
        side.insert(cell, x);
        for port in taken.entry((at_top, cell)).or_default() {
            if port.0 == index {
                port.1 = x;
            }
        }
    }
}

/// Columns for `count` ports, with the straight one in the middle of the box.
fn spread(cell: &Cell, count: usize, straight: Option<usize>, gaps: &Gaps) -> Vec<i64> {
    let count = count as i64;
    let room = (cell.left().min(cell.right()) - gaps.corner).max(0);
    if cell.kind != Kind::Item || room * 2 < count - 1 {
        return vec![cell.x; count as usize];
    }
    let middle = straight.map_or((count - 1) * gaps.port / 2, |index| index as i64 * gaps.port);
    let fits = middle <= room && (count - 1) * gaps.port - middle <= room;
    let column = |index: i64| {
        if fits { index * gaps.port - middle } else { index * 2 * room / (count - 1) - room }
    };
    (0..count).map(|index| cell.x + column(index)).collect()
}

/// Moves where a net comes down to a column that is free, if there is one near.
fn nudge(grid: &mut Grid, nets: &mut [Net], net: usize, column: i64, gaps: &Gaps) -> bool {
    let mut used = BTreeSet::new();
    for net in nets.iter() {
        used.extend(net.top.values().chain(net.bottom.values()).copied());
    }
    let Some((&cell, _)) = nets[net].bottom.iter().find(|(_, x)| **x == column) else {
        return false;
    };
    let place = &grid.cells[cell];
    let (step, reach) = match place.kind {
        Kind::Item => (gaps.port, place.left().min(place.right()) - gaps.corner),
        Kind::Bend | Kind::Label => ((gaps.bend / 2).max(1), (gaps.bend / 2).max(1)),
    };
    let middle = place.x;
    let columns = [step, -step, step * 2, -step * 2, step / 2, -step / 2].map(|by| column + by);
    let free = |x: &i64| (x - middle).abs() <= reach && !used.contains(x);
    let Some(x) = columns.into_iter().find(free) else { return false };
    if place.kind != Kind::Item {
        grid.cells[cell].x = x;
    }
    nets[net].bottom.insert(cell, x);
    true
}
