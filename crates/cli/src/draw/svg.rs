//! A workflow as a standalone SVG file: no scripts, no external fonts, with light and dark colours.

mod measure;
mod style;

use std::collections::BTreeSet;
use std::fmt::Write;

use super::layout::{Layout, Path, Point, Rect, lay_out};
use super::palette::Family;
use super::scopes::{Scopes, Visit};
use super::{EdgeStyle, Node, Outline, chars};
use measure::{HEADER, LABEL_COLUMNS, NAME_COLUMNS, Pixels, SUBTITLE_COLUMNS, text_width, title_parts};

const MARGIN: i64 = 28;
const HEADING: i64 = 36;
const CORNER: i64 = 8;
const ARROW: i64 = 8;

pub fn render(drawing: &Outline) -> String {
    let scopes = Scopes::new(drawing);
    let layout = lay_out(drawing, &scopes, &Pixels::new());
    let mut picture = Picture { drawing, scopes: &scopes, layout: &layout, out: String::new() };
    picture.draw();
    picture.out
}

/// The layout in pixels, for formats that only need coordinates.
pub fn lay_out_pixels(drawing: &Outline, scopes: &Scopes) -> Layout {
    lay_out(drawing, scopes, &Pixels::new())
}

struct Picture<'a> {
    drawing: &'a Outline,
    scopes: &'a Scopes,
    layout: &'a Layout,
    out: String,
}

impl Picture<'_> {
    fn draw(&mut self) {
        let name = chars::fit(&self.drawing.name, 80);
        let inner = self.layout.size.width.max(text_width(&name, 16));
        let (width, height) = (inner + 2 * MARGIN, self.layout.size.height + 2 * MARGIN + HEADING);
        self.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{}</style>\n",
            chars::xml(&name),
            style::sheet(&self.families()),
        ));
        self.add(format_args!(
            "<rect class=\"sw-page\" width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"sw-heading\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n",
            MARGIN + 12,
            chars::xml(&name),
        ));
        let left = MARGIN + (inner - self.layout.size.width) / 2;
        self.add(format_args!("<g transform=\"translate({left} {})\">\n", MARGIN + HEADING));
        let count = self.drawing.nodes.len();
        let mut paths: Vec<Vec<&Path>> = vec![Vec::new(); count + 1];
        for path in &self.layout.paths {
            paths[path.scope.unwrap_or(count)].push(path);
        }
        self.edges(&paths[count]);
        for visit in self.scopes.walk() {
            match visit {
                Visit::Leaf(node) => self.leaf(node),
                Visit::Open(scope) => {
                    self.open(scope);
                    self.edges(&paths[scope]);
                }
                Visit::Close(_) => self.add(format_args!("</g>\n")),
            }
        }
        self.add(format_args!("</g>\n</svg>\n"));
    }

    fn add(&mut self, text: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
    }

    fn families(&self) -> BTreeSet<Family> {
        let nodes = self.drawing.nodes.iter().enumerate();
        nodes.map(|(index, node)| self.family(index, node)).collect()
    }

    fn family(&self, index: usize, node: &Node) -> Family {
        if self.scopes.is_scope(index) { Family::Scope } else { Family::of(&node.kind) }
    }

    fn leaf(&mut self, index: usize) {
        let (node, area) = (&self.drawing.nodes[index], self.layout.boxes[index]);
        let Rect { x, y, width, height } = area;
        let family = self.family(index, node);
        let round = if family == Family::End { height / 2 } else { CORNER };
        self.add(format_args!(
            "<g class=\"sw-node sw-{}\"><title>{}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{round}\"/>",
            family.class(),
            tooltip(node),
        ));
        if family != Family::End {
            let bar = height - 20;
            let (x, y) = (x + 9, y + 10);
            self.add(format_args!(
                "<rect class=\"sw-bar\" x=\"{x}\" y=\"{y}\" width=\"4\" height=\"{bar}\" rx=\"2\"/>"
            ));
        }
        let subtitle = chars::fit(&super::subtitle(node), SUBTITLE_COLUMNS);
        let name_y = y + if subtitle.is_empty() { height / 2 + 5 } else { 23 };
        let (left, anchor) = match family {
            Family::End => (x + width / 2, " text-anchor=\"middle\""),
            _ => (x + 22, ""),
        };
        self.add(format_args!(
            "<text class=\"sw-name\" x=\"{left}\" y=\"{name_y}\"{anchor}>{}</text>",
            chars::xml(&chars::fit(&node.name, NAME_COLUMNS)),
        ));
        if !subtitle.is_empty() {
            self.add(format_args!(
                "<text class=\"sw-sub\" x=\"{left}\" y=\"{}\"{anchor}>{}</text>",
                y + 41,
                chars::xml(&subtitle),
            ));
        }
        self.add(format_args!("</g>\n"));
    }

    /// The frame of a scope; what it holds follows inside its group.
    fn open(&mut self, index: usize) {
        let (node, area) = (&self.drawing.nodes[index], self.layout.boxes[index]);
        let Rect { x, y, width, height } = area;
        let (kind, name, detail) = title_parts(node);
        self.add(format_args!(
            "<g class=\"sw-frame sw-scope\"><title>{}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"12\"/>\
             <path class=\"sw-rule\" d=\"M{x} {rule}H{}\"/>\
             <text x=\"{}\" y=\"{}\"><tspan class=\"sw-kind\">{}</tspan> \
             <tspan class=\"sw-name\">{}</tspan> <tspan class=\"sw-sub\">{}</tspan></text>\n",
            tooltip(node),
            area.right(),
            x + 14,
            y + 22,
            chars::xml(&kind),
            chars::xml(&name),
            chars::xml(&detail),
            rule = y + HEADER,
        ));
    }

    fn edges(&mut self, paths: &[&Path]) {
        let mut heads = BTreeSet::new();
        // Error edges last, so that they are on top where lines overlap.
        let mut paths = paths.to_vec();
        paths.sort_by_key(|path| self.drawing.edges[path.edge].style == EdgeStyle::Error);
        for path in &paths {
            let class = self.edge_class(path);
            let line = style::rounded(&path.points, CORNER, if path.arrow { ARROW - 1 } else { 0 });
            let said = chars::xml(&chars::fit(&self.drawing.edges[path.edge].label, 400));
            match path.label {
                None if !said.is_empty() => {
                    self.add(format_args!("<path class=\"sw-edge{class}\" d=\"{line}\"><title>{said}</title></path>\n"))
                }
                _ => self.add(format_args!("<path class=\"sw-edge{class}\" d=\"{line}\"/>\n")),
            }
            if let [.., before, last] = path.points[..]
                && path.arrow
                && heads.insert((last.x, last.y, class))
            {
                let head = style::arrow_head(before, last, ARROW);
                self.add(format_args!("<path class=\"sw-head{class}\" d=\"{head}\"/>\n"));
            }
        }
        for path in paths {
            if let Some((area, label)) = &path.label {
                self.label(*area, label, self.edge_class(path));
            }
        }
    }

    fn label(&mut self, area: Rect, label: &str, class: &str) {
        let Rect { x, y, width, height } = area;
        let middle = Point { x: x + width / 2, y: y + height - 5 };
        self.add(format_args!(
            "<g class=\"sw-label{class}\"><title>{}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"9\"/>\
             <text x=\"{}\" y=\"{}\">{}</text></g>\n",
            chars::xml(&chars::fit(label, 400)),
            middle.x,
            middle.y,
            chars::xml(&chars::fit(label, LABEL_COLUMNS)),
        ));
    }

    fn edge_class(&self, path: &Path) -> &'static str {
        match self.drawing.edges[path.edge].style {
            EdgeStyle::Error => " sw-error",
            EdgeStyle::Back => " sw-back",
            EdgeStyle::Normal if path.back => " sw-back",
            EdgeStyle::Normal => "",
        }
    }
}

/// The full description of a node, for tooltips and screen readers.
fn tooltip(node: &Node) -> String {
    let subtitle = super::subtitle(node);
    let all = if subtitle.is_empty() { node.name.clone() } else { format!("{}: {subtitle}", node.name) };
    chars::xml(&chars::fit(&all, 400))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn names_cannot_bring_markup_of_their_own() {
        let hostile = "</text><script>alert(1)</script>\"'&\u{1b}";
        let mut drawing = samples::polling();
        drawing.name = hostile.to_owned();
        for node in &mut drawing.nodes {
            (node.name, node.kind, node.detail) = (hostile.into(), hostile.into(), hostile.into());
        }
        for edge in &mut drawing.edges {
            edge.label = hostile.to_owned();
        }
        let drawn = render(&drawing);
        assert!(!drawn.contains("<script") && !drawn.contains('\u{1b}'));
        assert!(drawn.contains("&lt;/text&gt;&lt;script&gt;alert(1)"));
    }

    #[test]
    fn every_node_has_a_title_and_every_scope_a_group_around_its_body() {
        let drawn = render(&samples::nested());
        assert!(drawn.contains("<title>list: http · GET /users</title>"));
        let scope = drawn.split("<g class=\"sw-frame sw-scope\">").nth(1).unwrap_or_default();
        let (open, body) = scope.split_once("<title>load").unwrap_or_default();
        assert!(open.contains("sw-edge") && body.contains("<title>report"));
        assert_eq!(drawn.matches("<g ").count(), drawn.matches("</g>").count());
    }

    #[test]
    fn a_way_back_is_dashed_and_ends_in_an_arrow_head() {
        let drawn = render(&samples::polling());
        assert_eq!(drawn.matches("class=\"sw-edge sw-back\"").count(), 1);
        assert_eq!(drawn.matches("class=\"sw-head sw-back\"").count(), 1);
    }

    #[test]
    fn the_label_of_a_step_that_leads_to_itself_is_its_title() {
        let mut drawing = samples::chain(1);
        drawing.edges.push(samples::edge(0, 0, "again & again"));
        assert!(render(&drawing).contains("<title>again &amp; again</title></path>"));
    }

    #[test]
    fn lines_that_join_share_one_arrow_head() {
        let drawn = render(&samples::fan(5));
        assert_eq!(drawn.matches("class=\"sw-edge\"").count(), 10);
        assert_eq!(drawn.matches("class=\"sw-head\"").count(), 6);
    }

    #[test]
    fn nothing_is_fetched_and_nothing_runs() {
        let drawn = render(&samples::random(5, 30));
        for forbidden in ["<script", "@import", "url(", "href", "<image", "@font-face"] {
            assert!(!drawn.contains(forbidden), "{forbidden}");
        }
    }
}
