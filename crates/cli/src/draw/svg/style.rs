//! The style of the SVG: style sheet, rounded lines and arrow heads.
//!
//! Colours are literal values, repeated for light and dark, because many viewers do not support CSS variables.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::super::layout::Point;
use super::super::palette::Family;

const BASE: &str = "\
text { font-family: ui-sans-serif, system-ui, -apple-system, \"Segoe UI\", Roboto, sans-serif; fill: #0f172a; }
.sw-heading { font-size: 16px; font-weight: 700; }
.sw-name { font-size: 14px; font-weight: 600; }
.sw-sub { font-size: 12px; fill: #64748b; font-weight: 400; }
.sw-kind { font-size: 12px; font-weight: 600; }
.sw-page { fill: #ffffff; }
.sw-node rect { stroke-width: 1.5; }
.sw-frame > rect { stroke-width: 1.25; fill-opacity: 0.7; }
.sw-rule { fill: none; stroke-width: 1; stroke-opacity: 0.35; }
.sw-edge { fill: none; stroke: #94a3b8; stroke-width: 1.75; }
.sw-head { fill: #94a3b8; stroke: none; }
.sw-label rect { fill: #ffffff; stroke: #cbd5e1; }
.sw-label text { font-size: 11px; font-weight: 500; fill: #475569; text-anchor: middle; }
.sw-edge.sw-error { stroke: #dc2626; }
.sw-head.sw-error { fill: #dc2626; }
.sw-label.sw-error rect { stroke: #fca5a5; fill: #fef2f2; }
.sw-label.sw-error text { fill: #b91c1c; }
.sw-edge.sw-back { stroke: #6366f1; stroke-dasharray: 6 4; }
.sw-head.sw-back { fill: #6366f1; }
.sw-label.sw-back text { fill: #4f46e5; }
";

const DARK: &str = "\
text { fill: #e2e8f0; }
.sw-sub { fill: #94a3b8; }
.sw-page { fill: #0b1120; }
.sw-edge { stroke: #64748b; }
.sw-head { fill: #64748b; }
.sw-label rect { fill: #0b1120; stroke: #334155; }
.sw-label text { fill: #cbd5e1; }
.sw-edge.sw-error { stroke: #f87171; }
.sw-head.sw-error { fill: #f87171; }
.sw-label.sw-error rect { stroke: #7f1d1d; fill: #2a1215; }
.sw-label.sw-error text { fill: #fca5a5; }
.sw-edge.sw-back { stroke: #818cf8; }
.sw-head.sw-back { fill: #818cf8; }
.sw-label.sw-back text { fill: #a5b4fc; }
";

/// The style sheet, with colours for the families that appear.
pub fn sheet(families: &BTreeSet<Family>) -> String {
    let mut light = BASE.to_owned();
    let mut dark = DARK.to_owned();
    for family in families {
        let colours = family.colours();
        for (sheet, line, fill) in
            [(&mut light, colours.line, colours.fill), (&mut dark, colours.dark_line, colours.dark_fill)]
        {
            let class = family.class();
            let _ = write!(
                sheet,
                ".sw-{class} > rect {{ fill: {fill}; stroke: {line}; }}\n\
                 .sw-{class} > .sw-bar {{ fill: {line}; stroke: none; }}\n"
            );
            if *family == Family::Scope {
                let _ = write!(sheet, ".sw-scope > .sw-rule {{ stroke: {line}; }}\n.sw-kind {{ fill: {line}; }}\n");
            }
        }
    }
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

/// A path through `points` with its corners rounded, ending `short` of the last point.
pub fn rounded(points: &[Point], radius: i64, short: i64) -> String {
    let mut points = points.to_vec();
    points.dedup();
    if let [.., before, last] = &mut points[..] {
        let (dx, dy) = ((before.x - last.x).signum(), (before.y - last.y).signum());
        // Only along a straight line is a step towards the point before it on the line.
        if dx == 0 || dy == 0 {
            (last.x, last.y) = (last.x + dx * short, last.y + dy * short);
        }
    }
    let mut path = String::new();
    let Some((first, rest)) = points.split_first() else { return path };
    let _ = write!(path, "M{} {}", first.x, first.y);
    for (index, corner) in rest.iter().enumerate() {
        let before = points[index];
        let Some(after) = points.get(index + 2) else {
            let _ = write!(path, "L{} {}", corner.x, corner.y);
            break;
        };
        // Two corners share the line between them.
        let share = |other: &Point, has_corner: bool| {
            let length = (other.x - corner.x).abs() + (other.y - corner.y).abs();
            if has_corner { length / 2 } else { length }
        };
        let room = share(&before, index > 0).min(share(after, index + 3 < points.len()));
        let radius = radius.min(room);
        let towards = |other: &Point| Point {
            x: corner.x + (other.x - corner.x).signum() * radius,
            y: corner.y + (other.y - corner.y).signum() * radius,
        };
        let (start, end) = (towards(&before), towards(after));
        let _ = write!(path, "L{} {}", start.x, start.y);
        let _ = write!(path, "Q{} {} {} {}", corner.x, corner.y, end.x, end.y);
    }
    path
}

/// A triangle with its tip at `tip`, seen from `from`.
pub fn arrow_head(from: Point, tip: Point, length: i64) -> String {
    let (dx, dy) = ((tip.x - from.x).signum(), (tip.y - from.y).signum());
    let (dx, dy) = if dx != 0 && dy != 0 { (0, dy) } else { (dx, dy) };
    let (bx, by) = (tip.x - dx * length, tip.y - dy * length);
    let half = length / 2 + 1;
    let corners = [(bx - dy * half, by + dx * half), (bx + dy * half, by - dx * half)];
    let [(ax, ay), (cx, cy)] = corners;
    format!("M{} {}L{ax} {ay}L{cx} {cy}Z", tip.x, tip.y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corner_is_rounded_and_the_end_makes_room_for_the_arrow_head() {
        let points = [(0, 0), (0, 20), (40, 20), (40, 50)].map(|(x, y)| Point { x, y });
        assert_eq!(rounded(&points, 8, 7), "M0 0L0 12Q0 20 8 20L32 20Q40 20 40 28L40 43");
        assert_eq!(arrow_head(points[2], points[3], 8), "M40 50L35 42L45 42Z");
    }

    #[test]
    fn a_short_line_between_two_corners_is_shared() {
        let points = [(0, 0), (0, 20), (6, 20), (6, 50)].map(|(x, y)| Point { x, y });
        assert_eq!(rounded(&points, 8, 0), "M0 0L0 17Q0 20 3 20L3 20Q6 20 6 23L6 50");
    }

    #[test]
    fn only_families_that_appear_are_styled_for_both_pages() {
        let sheet = sheet(&BTreeSet::from([Family::Http]));
        assert_eq!(sheet.matches(".sw-http > rect").count(), 2);
        assert!(!sheet.contains(".sw-sleep"));
        assert!(sheet.contains("prefers-color-scheme: dark"));
    }
}
