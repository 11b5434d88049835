//! Invariants of every layout, checked on random drawings in pixels and in columns.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{samples, svg, text};
use super::*;

/// Both layouts of a drawing; scopes are the same for both.
fn layouts(drawing: &Outline) -> (Scopes, [Layout; 2]) {
    let scopes = Scopes::new(drawing);
    let both = [svg::lay_out_pixels(drawing, &scopes), text::lay_out_columns(drawing, &scopes)];
    (scopes, both)
}

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom()
}

/// Calls `check` with a description for every random drawing.
fn for_each_layout(check: impl Fn(&Outline, &Scopes, &Layout, &str)) {
    for seed in 0..40 {
        let drawing = samples::random(seed, 1 + seed as usize % 45);
        let (scopes, layouts) = layouts(&drawing);
        for (layout, units) in layouts.iter().zip(["pixels", "columns"]) {
            check(&drawing, &scopes, layout, &format!("seed {seed}, in {units}"));
        }
    }
}

#[test]
fn boxes_in_one_scope_never_overlap_and_never_leave_its_frame() {
    for_each_layout(|drawing, scopes, layout, place| {
        let whole = Rect { width: layout.size.width, height: layout.size.height, ..Rect::default() };
        for (node, area) in layout.boxes.iter().enumerate() {
            let frame = scopes.parent[node].map_or(whole, |scope| layout.boxes[scope]);
            let inside = area.x >= frame.x && area.y >= frame.y;
            assert!(inside && area.right() <= frame.right() && area.bottom() <= frame.bottom(), "{place}");
            let siblings = scopes.members(scopes.parent[node]);
            for &other in siblings.iter().filter(|&&other| other > node) {
                assert!(!overlap(area, &layout.boxes[other]), "{node} on {other}, {place}");
            }
        }
        assert_eq!(layout.boxes.len(), drawing.nodes.len());
    });
}

#[test]
fn labels_and_notes_cover_neither_boxes_nor_each_other() {
    for_each_layout(|_, scopes, layout, place| {
        let labels = layout.paths.iter().filter_map(|path| Some(path.label.as_ref()?.0));
        let words: Vec<Rect> = labels.chain(layout.notes.iter().map(|note| note.area)).collect();
        for (index, area) in words.iter().enumerate() {
            let leaves = (0..layout.boxes.len()).filter(|&node| !scopes.is_scope(node));
            assert!(leaves.clone().all(|node| !overlap(area, &layout.boxes[node])), "{place}");
            assert!(words[index + 1..].iter().all(|other| !overlap(area, other)), "{place}");
        }
    });
}

#[test]
fn edges_run_straight_or_in_right_angles_and_through_no_box() {
    for_each_layout(|_, scopes, layout, place| {
        for path in &layout.paths {
            for pair in path.points.windows(2) {
                assert!(pair[0].x == pair[1].x || pair[0].y == pair[1].y, "{place}");
                let (x, y) = (pair[0].x.min(pair[1].x), pair[0].y.min(pair[1].y));
                let width = (pair[0].x - pair[1].x).abs() + 1;
                let line = Rect { x, y, width, height: (pair[0].y - pair[1].y).abs() };
                let siblings = scopes.members(path.scope).iter();
                let hit = siblings.copied().find(|&node| overlap(&line, &layout.boxes[node]));
                assert_eq!(hit, None, "edge {}, {place}", path.edge);
            }
        }
    });
}

#[test]
fn lines_share_a_way_only_where_every_start_leads_to_every_end() {
    for_each_layout(|drawing, scopes, layout, place| {
        let links = scopes.links(drawing);
        let joined: BTreeSet<_> = links.iter().map(|l| (l.scope, l.from, l.to)).collect();
        let ends: BTreeMap<_, _> = links.iter().map(|l| (l.edge, (l.from, l.to))).collect();
        for (index, a) in layout.paths.iter().enumerate() {
            for b in layout.paths[index + 1..].iter().filter(|b| b.scope == a.scope) {
                let ((from_a, to_a), (from_b, to_b)) = (ends[&a.edge], ends[&b.edge]);
                let both = [(a.scope, from_a, to_b), (a.scope, from_b, to_a)];
                let related = from_a == from_b || to_a == to_b || both.iter().all(|l| joined.contains(l));
                let apart = related || !overlaps(&a.points, &b.points);
                assert!(apart, "edges {} and {}, {place}", a.edge, b.edge);
            }
        }
    });
}

fn overlaps(a: &[Point], b: &[Point]) -> bool {
    let lines = |points: &[Point]| points.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
    let shared = |a: (i64, i64), b: (i64, i64)| a.0.max(a.1).min(b.0.max(b.1)) - a.0.min(a.1).max(b.0.min(b.1));
    lines(a).iter().any(|(p, q)| {
        lines(b).iter().any(|(r, s)| {
            let upright = p.x == q.x && r.x == s.x && p.x == r.x && shared((p.y, q.y), (r.y, s.y)) > 0;
            let flat = p.y == q.y && r.y == s.y && p.y == r.y && shared((p.x, q.x), (r.x, s.x)) > 0;
            upright || flat
        })
    })
}

#[test]
fn every_edge_is_drawn_once() {
    for_each_layout(|drawing, scopes, layout, place| {
        let links = scopes.links(drawing);
        assert_eq!((layout.paths.len(), layout.loose), (links.len(), 0), "{place}");
        assert!(layout.paths.iter().all(|path| path.points.len() >= 2), "{place}");
    });
}

#[test]
fn a_chain_is_straight() {
    let (_, layouts) = layouts(&samples::chain(30));
    for layout in layouts {
        assert!(layout.paths.iter().all(|path| path.points.len() == 2));
        assert_eq!(layout.layers, (0..30).collect::<Vec<_>>());
    }
}

#[test]
fn edges_too_long_to_lead_around_everything_stay_loose() {
    let mut drawing = samples::chain(600);
    drawing.edges.extend((100..400).map(|to| samples::edge(0, to, "")));
    let layout = svg::lay_out_pixels(&drawing, &Scopes::new(&drawing));
    assert!(layout.loose > 0 && layout.loose < 500);
}
