//! Builds YAML 1.2 from the events of `saphyr-parser`, which scans iteratively and in linear time (measured on some
//! 270,000 repeated patterns; it limits flow nesting to 255, and we limit all nesting).
//!
//! Aliases are copies, charged before they are made. Tags other than the core ones, several documents and keys that are
//! not scalars are rejected. Merge keys (`<<`) are supported, because people use them.

use super::guard::{self, Guard};
use super::{Entry, Flaw, Mark, Meter, Node, Span, TOO_DEEP, Value, lines, scalar};
use crate::code;
use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, ScanError, Span as RawSpan, Tag};
use std::collections::HashMap;
use stepwell_core::limits;

/// The merge key: its value provides entries of another object.
pub const MERGE: &str = "<<";

pub fn read(text: &str) -> Result<Node, Flaw> {
    if guard::has_few_indicators(text) {
        return build(text, Parser::new_from_str(text), None);
    }
    let guard = Guard::new(text);
    build(text, Parser::new_from_iter(guard.chars()), Some(&guard))
}

fn build<'i, I: Input>(text: &str, mut parser: Parser<'i, I>, guard: Option<&Guard<'_>>) -> Result<Node, Flaw> {
    let mut builder = Builder {
        text,
        lines: None,
        open: Vec::new(),
        anchors: HashMap::new(),
        meter: Meter::default(),
        root: None,
        last: Mark::START,
    };
    let mut documents = 0;
    while let Some(event) = parser.next_event() {
        if guard.is_some_and(Guard::has_tripped) {
            return Err(too_many_tokens(builder.last));
        }
        let (event, span) = event.map_err(|error| broken(&error))?;
        builder.last = marked(&span.end);
        guard.iter().for_each(|guard| guard.passed(&event, span));
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                return Err(Flaw::new(code::MANY_DOCUMENTS, "a second document begins here", spanned(span))
                    .hint("put each workflow into its own file"));
            }
        }
        builder.event(event, span)?;
    }
    builder.root.ok_or_else(|| Flaw::new(code::EMPTY_DOCUMENT, "the document is empty", Span::at(Mark::START)))
}

struct Builder<'t> {
    text: &'t str,
    /// The lines of the text, computed when first needed.
    lines: Option<Vec<&'t str>>,
    open: Vec<Frame>,
    anchors: HashMap<usize, Anchor>,
    meter: Meter,
    root: Option<Node>,
    /// The end of the last event.
    last: Mark,
}

struct Frame {
    start: Mark,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map(Vec<Entry>, Option<(String, Span)>),
}

/// A finished node that aliases copy, and the cost of a copy.
struct Anchor {
    node: Node,
    size: Size,
}

#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    text: usize,
    depth: usize,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, raw: RawSpan) -> Result<(), Flaw> {
        let span = spanned(raw);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(1, text.len(), span)?;
                let span = self.without_comment(span, style, &text);
                if self.wants_key() {
                    return self.key(&text, style, span);
                }
                let value = scalar_value(&text, style, tag.as_deref(), span);
                let value = value.unwrap_or_else(|flaw| Value::Bad(Box::new(flaw)));
                let lines = self.lines_of(span, style, &text);
                self.finish(Node { value, span: Some(span), lines }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                let items = Items::List(Vec::new());
                self.begin(Frame { start: span.start, anchor, items }, tag.as_deref(), span)
            }
            Event::MappingStart(anchor, tag) => {
                let items = Items::Map(Vec::new(), None);
                self.begin(Frame { start: span.start, anchor, items }, tag.as_deref(), span)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.open.pop() else { return Ok(()) };
                let value = match frame.items {
                    Items::List(items) => Value::List(items),
                    Items::Map(entries, _) => Value::Map(merge(entries)),
                };
                let node = Node::new(value, Some(Span { start: frame.start, end: span.end }));
                self.finish(node, frame.anchor)
            }
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                Ok(())
            }
        }
    }

    fn begin(&mut self, frame: Frame, tag: Option<&Tag>, span: Span) -> Result<(), Flaw> {
        self.charge(1, 0, span)?;
        if self.wants_key() {
            return Err(bad_key("a key is plain text, not an object or a list", span)
                .hint("put text with {{…}} in quotes: \"{{…}}\""));
        }
        if self.open.len() >= limits::MAX_DEPTH {
            return Err(Flaw::new(TOO_DEEP.0, TOO_DEEP.1, span));
        }
        let kind = if matches!(frame.items, Items::List(_)) { "seq" } else { "map" };
        if tag.is_some_and(|tag| core_tag(tag) != Some(kind)) {
            return Err(bad_tag(span));
        }
        self.open.push(frame);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Flaw> {
        if self.wants_key() {
            return Err(bad_key("a key cannot be an alias", span));
        }
        let Some(Anchor { node, size }) = self.anchors.get(&anchor) else {
            return Err(Flaw::new(code::BAD_ALIAS, "this alias is inside the value it refers to", span));
        };
        let size = *size;
        // Charge first: a few lines of nested aliases can request more memory than there is.
        self.meter.charge(size.nodes, size.text).map_err(|(code, message)| Flaw::new(code, message, span))?;
        if self.open.len() + size.depth > limits::MAX_DEPTH {
            return Err(Flaw::new(TOO_DEEP.0, TOO_DEEP.1, span));
        }
        let node = Node::new(node.value.clone(), Some(span));
        self.finish(node, 0)
    }

    fn key(&mut self, text: &str, style: ScalarStyle, span: Span) -> Result<(), Flaw> {
        if text.is_empty() && style == ScalarStyle::Plain {
            return Err(bad_key("a key is missing before this `:`", span));
        }
        if let Some(Frame { items: Items::Map(_, key), .. }) = self.open.last_mut() {
            *key = Some((text.to_owned(), span));
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Frame { items: Items::Map(_, None), .. }))
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Flaw> {
        if anchor > 0 {
            let size = measure(&node);
            let span = node.span.unwrap_or(Span::at(Mark::START));
            self.charge(size.nodes, size.text, span)?;
            self.anchors.insert(anchor, Anchor { node: node.clone(), size });
        }
        match self.open.last_mut().map(|frame| &mut frame.items) {
            None => self.root = Some(node),
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map(entries, key)) => {
                if let Some((key, span)) = key.take() {
                    entries.push(Entry { key, key_span: Some(span), value: node });
                }
            }
        }
        Ok(())
    }

    fn charge(&mut self, nodes: usize, text: usize, span: Span) -> Result<(), Flaw> {
        self.meter.charge(nodes, text).map_err(|(code, message)| Flaw::new(code, message, span))
    }

    /// The scanner extends a quoted scalar over the comment after it; an excerpt should not underline the comment.
    fn without_comment(&mut self, span: Span, style: ScalarStyle, text: &str) -> Span {
        const LONG_LINE: usize = 4_096;
        let quote = match style {
            ScalarStyle::SingleQuoted => '\'',
            ScalarStyle::DoubleQuoted => '"',
            _ => return span,
        };
        let width = span.end.column.saturating_sub(span.start.column) as usize;
        if span.start.line != span.end.line || width <= text.chars().count() + 2 {
            return span;
        }
        let Some(line) = self.lines().get(span.start.line as usize - 1).filter(|line| line.len() < LONG_LINE) else {
            return span;
        };
        let shown: Vec<char> = line.chars().skip(span.start.column as usize - 1).take(width).collect();
        let hash = shown.windows(2).rposition(|pair| pair[0].is_whitespace() && pair[1] == '#').unwrap_or(shown.len());
        match shown[..hash].iter().rposition(|c| *c == quote) {
            Some(last) if last > 0 => {
                Span { end: Mark { column: span.start.column + last as u32 + 1, ..span.end }, ..span }
            }
            _ => span,
        }
    }

    fn lines_of(&mut self, span: Span, style: ScalarStyle, text: &str) -> Option<Box<[lines::Line]>> {
        if span.start.line == span.end.line {
            return None;
        }
        let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
        lines::locate(text, span, self.lines(), quoted)
    }

    fn lines(&mut self) -> &[&str] {
        let source = self.text;
        self.lines.get_or_insert_with(|| split_lines(source))
    }
}

/// Lines as the scanner counts them.
fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        lines.extend(line.split('\r'));
    }
    lines
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Result<Value, Flaw> {
    let plain = || scalar::plain(text).map_err(|why| Flaw::new(code::BAD_NUMBER, why, span));
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain() } else { Ok(Value::String(text.to_owned())) };
    };
    let value = match core_tag(tag) {
        Some("str") => return Ok(Value::String(text.to_owned())),
        Some("int" | "float" | "bool" | "null") => plain()?,
        _ => return Err(bad_tag(span)),
    };
    let fits = match (core_tag(tag), &value) {
        (Some("int"), Value::Number(n)) => !n.is_f64(),
        (Some("float"), Value::Number(_)) | (Some("bool"), Value::Bool(_)) | (Some("null"), Value::Null) => true,
        _ => false,
    };
    if fits { Ok(value) } else { Err(Flaw::new(code::BAD_TAG, "the value does not fit its tag", span)) }
}

/// The name of a core tag; the non-specific `!` means text.
fn core_tag(tag: &Tag) -> Option<&str> {
    const CORE: &str = "tag:yaml.org,2002:";
    match (tag.handle.as_str(), tag.suffix.as_str()) {
        ("", "!") | ("!", "") => Some("str"),
        (CORE, name) => Some(name),
        ("", full) => full.strip_prefix(CORE),
        _ => None,
    }
}

/// Appends the entries of `<<` to the map. The map's own entries win, then the earlier source. If `<<` is invalid, it
/// stays, with the flaw as its value.
fn merge(mut entries: Vec<Entry>) -> Vec<Entry> {
    let Some(at) = entries.iter().position(|entry| entry.key == MERGE) else { return entries };
    let Entry { key_span, value, .. } = entries.remove(at);
    let mut flaws = Vec::new();
    let mut wrong = |code, message: &str, hint: &str, span: Option<Span>| {
        let flaw = Flaw::new(code, message, span.unwrap_or(Span::at(Mark::START))).hint(hint);
        let value = Node::new(Value::Bad(Box::new(flaw)), span);
        flaws.push(Entry { key: MERGE.into(), key_span: span, value });
    };
    entries.retain(|entry| {
        if entry.key == MERGE {
            wrong(code::DUPLICATE_KEY, "`<<` is written twice here", "write it once, with a list", entry.key_span);
        }
        entry.key != MERGE
    });
    let sources = match value.value {
        Value::List(items) => items,
        _ => vec![value],
    };
    let mut seen: std::collections::HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for source in sources {
        let Value::Map(more) = source.value else {
            let message = "`<<` takes an object, or a list of objects";
            wrong(code::BAD_ALIAS, message, "write `<<: *name`, or `<<: [*one, *other]`", key_span);
            break;
        };
        entries.extend(more.into_iter().filter(|entry| seen.insert(entry.key.clone())));
    }
    entries.append(&mut flaws);
    entries
}

/// The recursion is bounded, because the node was built under the depth limit.
fn measure(node: &Node) -> Size {
    let add = |size: Size, inner: Size| Size {
        nodes: size.nodes + inner.nodes,
        text: size.text + inner.text,
        depth: size.depth.max(inner.depth + 1),
    };
    match &node.value {
        Value::String(text) => Size { nodes: 1, text: text.len(), depth: 0 },
        Value::List(items) => items.iter().map(measure).fold(Size { nodes: 1, text: 0, depth: 1 }, add),
        Value::Map(entries) => entries.iter().fold(Size { nodes: 1, text: 0, depth: 1 }, |size, entry| {
            let mut inner = measure(&entry.value);
            inner.text += entry.key.len();
            inner.nodes += 1;
            add(size, inner)
        }),
        _ => Size { nodes: 1, ..Size::default() },
    }
}

fn bad_key(message: &str, span: Span) -> Flaw {
    Flaw::new(code::BAD_KEY, message, span)
}

fn bad_tag(span: Span) -> Flaw {
    Flaw::new(code::BAD_TAG, "this tag is not supported", span)
        .hint("remove it; only the core tags (!!str …) are supported")
}

fn too_many_tokens(after: Mark) -> Flaw {
    let message = format!(
        "more than {} of the characters , [ ] {{ }} : ? & * ! follow here before a value is complete",
        guard::MAX_INDICATORS
    );
    Flaw::new(code::LIMIT_NODES, message, Span::at(after))
        .hint("write long lists and objects in block style, long text as a block scalar (`|`), or use JSON")
}

fn broken(error: &ScanError) -> Flaw {
    let message = format!("not valid YAML: {}", error.info());
    let flaw = Flaw::new(code::BAD_YAML, message, Span::at(marked(error.marker())));
    match error.info() {
        info if info.contains("recursion limit") => Flaw::new(TOO_DEEP.0, TOO_DEEP.1, Span::at(marked(error.marker()))),
        info if info.contains("mapping values are not allowed") => {
            flaw.hint("put text with `: ` in quotes, and indent the keys of an object equally")
        }
        info if info.contains("unknown anchor") => Flaw { code: code::BAD_ALIAS, ..flaw },
        info if info.contains("tab") => flaw.hint("indent with spaces"),
        _ => flaw,
    }
}

fn marked(mark: &Marker) -> Mark {
    let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Mark { line: narrow(mark.line()).max(1), column: narrow(mark.col()).saturating_add(1) }
}

fn spanned(span: RawSpan) -> Span {
    let (start, end) = (marked(&span.start), marked(&span.end));
    if end > start { Span { start, end } } else { Span::at(start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let show = |flaw: &Flaw| format!("{} {:?}", flaw.code, flaw.span.map(|s| (s.start.line, s.start.column)));
        let found = match read(text) {
            Ok(mut node) => match super::super::collect_flaws(&mut node).list.first() {
                Some(flaw) => show(flaw),
                None => node.to_json().to_string(),
            },
            Err(flaw) => show(&flaw),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn scalars_lists_and_objects_become_values() {
        check("a: 1\nb: [x, 'y', \"z\\n\"]\nc:\n  - d: ~\n", r#"{"a":1,"b":["x","y","z\n"],"c":[{"d":null}]}"#);
        check("a: !!str 12\nb: ! 7\nc: !!int 3\n", r#"{"a":"12","b":"7","c":3}"#);
        check("200: ok\nyes: 1\n", r#"{"200":"ok","yes":1}"#);
        check("a: |\n  x\n  y\n", r#"{"a":"x\ny\n"}"#);
    }

    #[test]
    fn aliases_and_merge_keys_copy_and_the_map_itself_wins() {
        check(
            "a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\n",
            r#"{"a":{"p":1,"q":2},"b":{"p":1,"q":2},"c":{"q":3,"p":1}}"#,
        );
        check(
            "a: &x {p: 1}\nb: &y {p: 2, r: 4}\nc: {<<: [*x, *y]}\n",
            r#"{"a":{"p":1},"b":{"p":2,"r":4},"c":{"p":1,"r":4}}"#,
        );
        check("a: {<<: 3}", "bad-alias Some((1, 5))");
        check("a: &x [*x]", "bad-alias Some((1, 8))");
        check("a: *x", "bad-alias Some((1, 4))");
    }

    #[test]
    fn unsupported_yaml_is_rejected_at_its_position() {
        check("a: 1\n---\nb: 2\n", "many-documents Some((2, 1))");
        check("a: !secret x\n", "bad-tag Some((1, 4))");
        check("a: !!int x\n", "bad-tag Some((1, 4))");
        check("url: {{trigger.body.url}}\n", "bad-key Some((1, 7))");
        check("? [a]\n: b\n", "bad-key Some((1, 3))");
        check("a: b: c\n", "bad-yaml Some((1, 5))");
        check("a: .inf\n", "bad-number Some((1, 4))");
        check("# nothing\n", "empty-document Some((1, 1))");
    }

    #[test]
    fn a_quoted_scalar_ends_before_its_comment() {
        let Ok(node) = read("a: 'x''y' # why 'so'\n") else { panic!("valid") };
        let span = node.get("a").and_then(|n| n.span).expect("has a span");
        assert_eq!((span.start.column, span.end.column), (4, 10));
    }
}
