//! A unified diff of two texts.

use std::fmt::Write;

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// Maximum pairs of lines to compare; anything larger is shown as replaced.
const MOST: usize = 4_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The hunks of the diff, without the two header lines. Empty if the texts are equal.
pub fn unified(old: &str, new: &str) -> String {
    let lines = compare(&split(old), &split(new));
    let changed: Vec<usize> = (0..lines.len()).filter(|n| !matches!(lines[*n], Line::Same(_))).collect();
    let mut text = String::new();
    let mut next = 0;
    while next < changed.len() {
        let first = changed[next].saturating_sub(CONTEXT);
        // Changes whose context overlaps share a hunk.
        while next + 1 < changed.len() && changed[next + 1] - changed[next] <= 2 * CONTEXT {
            next += 1;
        }
        let end = (changed[next] + CONTEXT + 1).min(lines.len());
        hunk(&mut text, &lines, first, end);
        next += 1;
    }
    text
}

/// Keeps the line breaks, so that a missing one at the end shows.
fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn hunk(text: &mut String, lines: &[Line], first: usize, end: usize) {
    let old = |lines: &[Line]| lines.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new = |lines: &[Line]| lines.iter().filter(|line| !matches!(line, Line::Old(_))).count();
    let (before, shown) = (&lines[..first], &lines[first..end]);
    let range = |before: usize, count: usize| match count {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{count}", before + 1),
    };
    let _ = writeln!(text, "@@ -{} +{} @@", range(old(before), old(shown)), range(new(before), new(shown)));
    for line in shown {
        let (mark, line) = match line {
            Line::Same(line) => (' ', line),
            Line::Old(line) => ('-', line),
            Line::New(line) => ('+', line),
        };
        let _ = write!(text, "{mark}{line}");
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let mut lines: Vec<Line> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(&old[head..old.len() - tail], &new[head..new.len() - tail]));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// By the longest common subsequence.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let removed = |line: &&'a str| Line::Old(line);
    let added = |line: &&'a str| Line::New(line);
    if old.len().saturating_mul(new.len()) > MOST {
        return old.iter().map(removed).chain(new.iter().map(added)).collect();
    }
    let width = new.len() + 1;
    let mut longest = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = if old[i] == new[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if longest[(i + 1) * width + j] >= longest[i * width + j + 1] {
            lines.push(Line::Old(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines.extend(old[i..].iter().map(removed));
    lines.extend(new[j..].iter().map(added));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_their_context() {
        let check = |old: &str, new: &str, expected: &str| assert_eq!(unified(old, new), expected);
        check("a\nb\n", "a\nb\n", "");
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        check("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
    }

    #[test]
    fn distant_changes_get_separate_hunks() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("2\n3\n", "2\nthree\n").replace("\n18\n", "\n");
        let text = unified(&old, &new);
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("@@")).collect();
        assert_eq!(heads, ["@@ -1,6 +1,6 @@", "@@ -15,6 +15,5 @@"], "{text}");
    }

    #[test]
    fn texts_too_long_to_compare_are_shown_as_replaced() {
        let many = |word: &str| (0..3_000).map(|n| format!("{word}{n}\n")).collect::<String>();
        assert_eq!(unified(&many("a"), &many("b")).lines().count(), 6_001);
    }
}
