//! Renders faults for people: one line each, then the source line with carets under the faulty part.
//!
//! The excerpt is untrusted text: control characters and characters that reorder text are replaced, so that printing a
//! fault never affects a terminal.

use crate::fault::{Fault, Faults, Severity};
use std::fmt::Write;
use stepwell_core::quote::is_invisible;

/// The most characters of a source line that are shown.
const WIDTH: usize = 100;

impl Faults {
    /// Renders all faults. `text` is the document they were found in, `file` its name.
    pub fn render(&self, file: &str, text: &str) -> String {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = lines(text);
        let mut out = String::new();
        for fault in &self.list {
            head(&mut out, file, fault);
            excerpt(&mut out, fault, &lines);
        }
        if self.more > 0 {
            let _ = writeln!(out, "… and {} more", self.more);
        }
        for warning in &self.warnings {
            head(&mut out, file, warning);
            excerpt(&mut out, warning, &lines);
        }
        out
    }
}

/// Renders warnings alone, as [`Faults::render`] does.
pub fn render_warnings(warnings: &[Fault], file: &str, text: &str) -> String {
    Faults { list: warnings.to_vec(), more: 0, warnings: Vec::new() }.render(file, text)
}

fn head(out: &mut String, file: &str, fault: &Fault) {
    out.push_str(&sanitize(file));
    if let (Some(line), Some(column)) = (fault.line, fault.column) {
        let _ = write!(out, ":{line}:{column}");
    }
    let warning = if fault.severity == Severity::Warning { "warning: " } else { "" };
    let _ = writeln!(out, ": {warning}{}  [{}]", sanitize(&fault.to_string()), fault.code);
}

fn excerpt(out: &mut String, fault: &Fault, lines: &[&str]) {
    let (Some(line), Some(column)) = (fault.line, fault.column) else { return };
    let Some(source) = lines.get(line as usize - 1) else { return };
    let length = source.chars().count();
    let start = (column as usize - 1).min(length);
    let end = match (fault.end_line, fault.end_column) {
        (Some(end_line), Some(end)) if end_line == line => (end as usize - 1).clamp(start + 1, length.max(start + 1)),
        // For a value over several lines, show the first line.
        _ => length.max(start + 1),
    };
    // Truncate a long line around the caret, with a third of the width before it.
    let from = if length <= WIDTH { 0 } else { start.saturating_sub(WIDTH / 3) };
    let shown: Vec<char> = source.chars().skip(from).take(WIDTH).map(visible).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if from + WIDTH < length { "…" } else { "" };
    let columns = |chars: &[char]| chars.iter().copied().map(width).sum::<usize>();
    let (left, rest) = shown.split_at((start - from).min(shown.len()));
    let carets = columns(&rest[..(end - start).min(rest.len())]).max(1);
    let number = line.to_string();
    let row = format!(" {number} | {before}{}{after}", String::from_iter(&shown).trim_end());
    let _ = writeln!(out, "{}", row.trim_end());
    let indent = " ".repeat(columns(left) + before.chars().count());
    let _ = writeln!(out, " {} | {indent}{}", " ".repeat(number.len()), "^".repeat(carets));
}

/// The number of terminal columns of a character: two for East Asian characters and emoji, none for combining accents.
fn width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{1fa70}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

fn lines(text: &str) -> Vec<&str> {
    let unix = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    unix.flat_map(|line| line.split('\r')).collect()
}

fn sanitize(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Replaces characters that a terminal acts on, and tabs.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if is_invisible(c) => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Mark, Span};
    use std::ops::Range;

    fn check(text: &str, line: u32, columns: Range<u32>, expected: &str) {
        let span = Span { start: Mark { line, column: columns.start }, end: Mark { line, column: columns.end } };
        let fault = Fault::new("some-code", "wrong").place("a.b".into(), Some(span));
        assert_eq!(Faults::of(vec![fault], 0).render("f.yaml", text), expected);
    }

    #[test]
    fn a_fault_shows_its_line_with_carets_under_it() {
        check("one\ntwo: three\n", 2, 6..11, "f.yaml:2:6: a.b: wrong  [some-code]\n 2 | two: three\n   |      ^^^^^\n");
        check("a\r\n\tb\rc", 3, 1..2, "f.yaml:3:1: a.b: wrong  [some-code]\n 3 | c\n   | ^\n");
    }

    #[test]
    fn carets_align_with_wide_characters_and_accents() {
        check("日本: é 語x", 1, 7..8, "f.yaml:1:7: a.b: wrong  [some-code]\n 1 | 日本: é 語x\n   |         ^^\n");
        check("🚀e\u{301}: x", 1, 6..7, "f.yaml:1:6: a.b: wrong  [some-code]\n 1 | 🚀e\u{301}: x\n   |      ^\n");
    }

    #[test]
    fn a_long_line_is_truncated_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let fault = Fault::new("c", "m");
        let span = Span { start: Mark { line: 1, column: 501 }, end: Mark { line: 1, column: 502 } };
        let out = Faults::of(vec![fault.place(String::new(), Some(span))], 3).render("f", &text);
        let rows: Vec<&str> = out.lines().collect();
        assert!(rows[1].starts_with(" 1 | …aaa") && rows[1].ends_with("bbb…"));
        assert_eq!(rows[1].chars().position(|c| c == 'X'), rows[2].chars().position(|c| c == '^'));
        assert_eq!(rows[3], "… and 3 more");
    }

    #[test]
    fn the_excerpt_contains_no_terminal_control_characters() {
        check(
            "\u{1b}[2J\u{202e}x\u{9b}y",
            1,
            1..2,
            "f.yaml:1:1: a.b: wrong  [some-code]\n 1 | \u{fffd}[2J\u{fffd}x\u{fffd}y\n   | ^\n",
        );
    }

    #[test]
    fn a_position_outside_the_text_has_no_excerpt() {
        check("x", 9, 1..2, "f.yaml:9:1: a.b: wrong  [some-code]\n");
        check("x", 1, 50..60, "f.yaml:1:50: a.b: wrong  [some-code]\n 1 | x\n   |  ^\n");
    }
}
