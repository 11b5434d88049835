//! A grid of terminal cells: lines join automatically and text is drawn over them.
//!
//! `┼` is a junction; where two lines only cross, the upright one passes over the other.

use super::chars;
use super::layout::{Point, Rect};

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;
const ALL: u8 = UP | DOWN | LEFT | RIGHT;
/// A line turns here, so the lines that meet here are connected.
const TURN: u8 = 16;

/// The shape of a cell, by the sides its lines reach.
const SHAPES: [char; 16] = [' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'];

pub struct Canvas {
    width: usize,
    sides: Vec<u8>,
    /// Column and text, per row.
    words: Vec<Vec<(usize, String)>>,
}

impl Canvas {
    pub fn new(width: i64, height: i64) -> Self {
        let (width, height) = (width.max(0) as usize, height.max(0) as usize);
        Self { width, sides: vec![0; width * height], words: vec![Vec::new(); height] }
    }

    pub fn frame(&mut self, area: Rect) {
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        let corners = [(area.x, area.y), (right, area.y), (right, bottom), (area.x, bottom)];
        let corners = corners.map(|(x, y)| Point { x, y });
        for index in 0..4 {
            self.line(corners[index], corners[(index + 1) % 4]);
            self.add(corners[index], TURN);
        }
    }

    /// Draws a line through `points`, ends included, with right angles only.
    pub fn path(&mut self, points: &[Point]) {
        points.windows(2).for_each(|pair| self.line(pair[0], pair[1]));
        if let [_, inner @ .., _] = points {
            inner.iter().for_each(|&corner| self.add(corner, TURN));
        }
    }

    /// A line down from a border, even if it ends there.
    pub fn join_below(&mut self, at: Point) {
        self.add(at, DOWN);
    }

    fn line(&mut self, from: Point, to: Point) {
        let (dx, dy) = ((to.x - from.x).signum(), (to.y - from.y).signum());
        let (ahead, behind) = match (dx, dy) {
            (1, 0) => (RIGHT, LEFT),
            (-1, 0) => (LEFT, RIGHT),
            (0, 1) => (DOWN, UP),
            (0, -1) => (UP, DOWN),
            _ => return,
        };
        let mut at = from;
        while at != to {
            self.add(at, ahead);
            at = Point { x: at.x + dx, y: at.y + dy };
            self.add(at, behind);
        }
    }

    /// Draws text over any lines; it must be clean and must not overlap other text.
    pub fn write(&mut self, x: i64, y: i64, words: &str) {
        if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y))
            && let Some(row) = self.words.get_mut(y)
        {
            row.push((x, words.to_owned()));
        }
    }

    /// The grid as lines without trailing blanks.
    pub fn finish(mut self) -> String {
        let mut out = String::new();
        for (y, words) in self.words.iter_mut().enumerate() {
            words.sort_by_key(|(x, _)| *x);
            let row = &self.sides[y * self.width..][..self.width];
            let start = out.len();
            let mut x = 0;
            for (column, text) in words {
                // Lines that join end in one arrow head.
                if *column >= x {
                    out.extend(row.iter().take(*column).skip(x).map(|&sides| shape(sides)));
                    out.push_str(text);
                    x = *column + chars::width(text);
                }
            }
            out.extend(row.iter().skip(x).map(|&sides| shape(sides)));
            out.truncate(start + out[start..].trim_end().len());
            out.push('\n');
        }
        out
    }

    fn add(&mut self, at: Point, side: u8) {
        if let (Ok(x), Ok(y)) = (usize::try_from(at.x), usize::try_from(at.y))
            && x < self.width
            && let Some(cell) = self.sides.get_mut(y * self.width + x)
        {
            *cell |= side;
        }
    }
}

fn shape(sides: u8) -> char {
    if sides == ALL { '│' } else { SHAPES[usize::from(sides & ALL)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(points: &[(i64, i64)]) -> Vec<Point> {
        points.iter().map(|&(x, y)| Point { x, y }).collect()
    }

    #[test]
    fn lines_that_turn_where_they_meet_are_joined_and_others_pass_over() {
        let mut canvas = Canvas::new(7, 3);
        canvas.path(&points(&[(0, 1), (6, 1)]));
        canvas.path(&points(&[(1, 0), (1, 2)]));
        canvas.path(&points(&[(4, 0), (4, 2)]));
        canvas.path(&points(&[(4, 0), (4, 1), (6, 1)]));
        assert_eq!(canvas.finish(), " │  │\n─│──┼──\n │  │\n");
    }

    #[test]
    fn wide_words_take_two_columns_each() {
        let mut canvas = Canvas::new(8, 3);
        canvas.frame(Rect { x: 0, y: 0, width: 8, height: 3 });
        canvas.write(2, 1, "注文");
        assert_eq!(canvas.finish(), "┌──────┐\n│ 注文 │\n└──────┘\n");
    }

    #[test]
    fn what_lies_outside_the_sheet_is_not_drawn() {
        let mut canvas = Canvas::new(3, 1);
        canvas.path(&points(&[(-2, 0), (5, 0)]));
        canvas.path(&points(&[(1, -4), (1, 9)]));
        assert_eq!(canvas.finish(), "─│─\n");
    }
}
