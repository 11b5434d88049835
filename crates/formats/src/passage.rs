//! A place inside a text value of a document, such as a line of code: where it is in the document.

use crate::fault::Fault;
use crate::source::{self, Node, Span, Value, join_key};

/// A place in a text value, by line and column from 1.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    pub text: &'a str,
    pub line: usize,
    pub column: usize,
}

impl Passage<'_> {
    /// The byte of the text at which it is. A column past the end of its line means the end, and so does a line past the
    /// last: code that is cut short is wrong there.
    fn offset(&self) -> usize {
        let before = self.line.saturating_sub(1);
        let mut lines = self.text.split_inclusive('\n');
        let start: usize = lines.by_ref().take(before).map(str::len).sum();
        let Some(line) = lines.next() else { return self.text.trim_end().len() };
        let line = line.trim_end_matches(['\r', '\n']);
        let column = self.column.saturating_sub(1);
        start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
    }

    fn place(&self, root: &Node, name: &str) -> Option<(String, Span)> {
        let mut search = Search { text: self.text, name, at: Vec::new(), found: None };
        search.visit(root, false);
        let (node, path) = search.found?;
        let offset = self.offset();
        Some((path, node.within(offset, offset + 1)?))
    }
}

/// Looks for the value with a text: the one below the name, if there are several.
struct Search<'d, 't> {
    text: &'t str,
    name: &'t str,
    at: Vec<Part<'d>>,
    found: Option<(&'d Node, String)>,
}

enum Part<'d> {
    Key(&'d str),
    Item(usize),
}

impl<'d> Search<'d, '_> {
    /// Whether the value is found. Recursive, because the reader limits the depth of a document.
    fn visit(&mut self, node: &'d Node, named: bool) -> bool {
        match &node.value {
            Value::String(value) if value == self.text => {
                if named || self.found.is_none() {
                    self.found = Some((node, self.path()));
                }
                named
            }
            Value::Map(entries) => {
                let named = named || entries.iter().any(|entry| entry.value.as_str() == Some(self.name));
                entries.iter().any(|entry| {
                    let named = named || entry.key == self.name;
                    self.inside(Part::Key(&entry.key), &entry.value, named)
                })
            }
            Value::List(items) => items.iter().enumerate().any(|(n, item)| self.inside(Part::Item(n), item, named)),
            _ => false,
        }
    }

    fn inside(&mut self, part: Part<'d>, node: &'d Node, named: bool) -> bool {
        self.at.push(part);
        let found = self.visit(node, named);
        self.at.pop();
        found
    }

    fn path(&self) -> String {
        self.at.iter().fold(String::new(), |path, part| match part {
            Part::Key(key) => join_key(&path, key),
            Part::Item(n) => format!("{path}[{n}]"),
        })
    }
}

impl Fault {
    /// Points to a place in a value of the document. Before, the path of the fault is that of the step with the value.
    pub fn in_text(self, document: &str, passage: Passage<'_>) -> Fault {
        let Ok(read) = source::read(document.as_bytes(), None) else { return self };
        let name = self.path.rsplit('.').next().unwrap_or_default();
        match passage.place(&read.root, name) {
            Some((path, span)) => self.place(path, Some(span)),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(document: &str, line: usize, column: usize, expected: Option<(u32, u32, &str)>) {
        let text = "const a = 1\nreturn a +\n";
        let fault = Fault::of("x", "each.b".into(), "wrong".into());
        let fault = fault.in_text(document, Passage { text, line, column });
        let found = fault.line.zip(fault.column).map(|(line, column)| (line, column, fault.path.as_str()));
        assert_eq!(found, expected, "{document}");
    }

    #[test]
    fn a_place_in_code_is_a_place_in_the_document() {
        let block = "tasks:\n  a:\n    javascript: |\n      const a = 1\n      return a +\n  b:\n    javascript: |\n      \
                     const a = 1\n      return a +\n";
        check(block, 2, 10, Some((9, 16, "tasks.b.javascript")));
        check(block, 1, 1, Some((8, 7, "tasks.b.javascript")));
        check(block, 3, 1, Some((9, 17, "tasks.b.javascript")));
        // Escapes hide where the line is, so the value is pointed to.
        let node = "{\"nodes\": [{\"id\": \"b\", \"code\": \"const a = 1\\nreturn a +\\n\"}]}";
        check(node, 2, 10, Some((1, 32, "nodes[0].code")));
        check("tasks: {b: {javascript: return 1}}", 1, 1, None);
    }
}
