//! Text that spans several lines of a document: maps its bytes to lines.

use super::{Mark, Span};

/// Where the words of one line begin, in the text and in the document.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    offset: u32,
    mark: Mark,
}

/// Locates `text` in the lines of the document that `span` covers. `None` if it is not there word for word, for example
/// because it was written with escapes.
pub fn locate(text: &str, span: Span, document: &[&str], quoted: bool) -> Option<Box<[Line]>> {
    let mut found = Vec::new();
    let mut rest = text;
    for number in span.start.line..=span.end.line {
        let Some(whole) = document.get(number as usize - 1) else { break };
        let from = if number == span.start.line { byte_of(whole, span.start.column) + usize::from(quoted) } else { 0 };
        let to = match number == span.end.line {
            true => byte_of(whole, span.end.column).saturating_sub(usize::from(quoted)),
            false => whole.len(),
        };
        let part = whole.get(from..to).unwrap_or_default();
        let words = part.trim();
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        if words.is_empty() {
            continue;
        }
        let indent = part.len() - part.trim_start().len();
        let column = whole[..from + indent].chars().count() as u32 + 1;
        found.push(Line { offset: (text.len() - rest.len()) as u32, mark: Mark { line: number, column } });
        rest = rest.strip_prefix(words)?;
    }
    rest.trim_start().is_empty().then(|| found.into_boxed_slice())
}

/// The span of a byte range of the text, limited to one line.
pub fn within(lines: &[Line], text: &str, start: usize, end: usize) -> Option<Span> {
    let next = lines.partition_point(|line| line.offset as usize <= start);
    let line = lines.get(next.checked_sub(1)?)?;
    let end = lines.get(next).map_or(end, |next| end.min(next.offset as usize));
    let chars = |from: usize, to: usize| Some(text.get(from..to)?.chars().count() as u32);
    let column = line.mark.column + chars(line.offset as usize, start)?;
    let width = text.get(start..end).map_or(1, |found| found.trim_end().chars().count().max(1)) as u32;
    let mark = Mark { line: line.mark.line, column };
    Some(Span { start: mark, end: Mark { column: column + width, ..mark } })
}

fn byte_of(line: &str, column: u32) -> usize {
    line.char_indices().nth(column as usize - 1).map_or(line.len(), |(at, _)| at)
}
