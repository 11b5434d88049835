//! A place inside a text value of a document, such as a line of code: where it is in the document.

use crate::fault::Fault;
use crate::source::{self, Node, Span, Value};

/// A place in a text value, by line and column from 1.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    pub text: &'a str,
    pub line: usize,
    pub column: usize,
}

impl Passage<'_> {
    /// The byte of the text at which it is. A column past the end of its line means the end.
    fn offset(&self) -> Option<usize> {
        let lines = self.text.split_inclusive('\n');
        let start: usize = lines.clone().take(self.line.checked_sub(1)?).map(str::len).sum();
        let line = lines.clone().nth(self.line - 1)?.trim_end_matches(['\r', '\n']);
        let column = self.column.saturating_sub(1);
        Some(start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at))
    }

    fn span(&self, root: &Node, name: &str) -> Option<Span> {
        let node = find(root, self.text, name)?;
        let offset = self.offset()?;
        node.within(offset, offset + 1)
    }
}

/// The value with this text: the one below the name, if there are several.
fn find<'d>(root: &'d Node, text: &str, name: &str) -> Option<&'d Node> {
    let mut found = None;
    let mut open = vec![(root, false)];
    while let Some((node, named)) = open.pop() {
        match &node.value {
            Value::String(value) if value == text && named => return Some(node),
            Value::String(value) if value == text => found = Some(node),
            Value::Map(entries) => {
                let own = entries.iter().any(|entry| entry.value.as_str() == Some(name));
                let inner = entries.iter().rev().map(|entry| (&entry.value, named || own || entry.key == name));
                open.extend(inner);
            }
            Value::List(items) => open.extend(items.iter().rev().map(|item| (item, named))),
            _ => {}
        }
    }
    found
}

impl Fault {
    /// Points to a place in a value of the document. The fault's path names the step that has the value.
    pub fn in_text(self, document: &str, passage: Passage<'_>) -> Fault {
        let Ok(read) = source::read(document.as_bytes(), None) else { return self };
        let name = self.path.rsplit('.').next().unwrap_or_default();
        let span = passage.span(&read.root, name);
        let path = self.path.clone();
        if span.is_some() { self.place(path, span) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &str, line: usize, column: usize, expected: Option<(u32, u32)>) {
        let text = "const a = 1\nreturn a +\n";
        let fault = Fault::of("x", "b".into(), "wrong".into());
        let fault = fault.in_text(document, Passage { text, line, column });
        assert_eq!(fault.line.zip(fault.column), expected, "{document}");
    }

    #[test]
    fn a_place_in_code_is_a_place_in_the_document() {
        let block = "tasks:\n  a:\n    javascript: |\n      const a = 1\n      return a +\n  b:\n    javascript: |\n      \
                     const a = 1\n      return a +\n";
        check(block, 2, 10, Some((9, 16)));
        check(block, 1, 1, Some((8, 7)));
        // Escapes hide where the line is, so the value is pointed to.
        check("{\"b\": {\"javascript\": \"const a = 1\\nreturn a +\\n\"}}", 2, 10, Some((1, 22)));
        check("tasks: {b: {javascript: return 1}}", 1, 1, None);
    }
}
