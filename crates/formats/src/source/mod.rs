//! Text becomes a tree of [`Node`]s that remember where they were written. JSON and YAML meet here; after this layer
//! nobody knows which it was.
//!
//! Everything a hostile document could blow up is bounded before memory is spent: bytes, depth, values after aliases
//! are expanded, and the text those values hold.
//!
//! Not here: what any field means.

mod json;
mod scalar;
mod yaml;

use crate::code;
use serde_json::Number;
use std::collections::HashSet;
use stepwell_core::limits;

/// A place in the text: line and column from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark {
    pub line: u32,
    pub column: u32,
}

impl Mark {
    pub const START: Mark = Mark { line: 1, column: 1 };
}

/// From the first character to just after the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub start: Mark,
    pub end: Mark,
}

impl Span {
    pub fn at(mark: Mark) -> Span {
        Span { start: mark, end: Mark { line: mark.line, column: mark.column + 1 } }
    }
}

/// A value and where it was written; `span` is absent when the document came as a value already.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: Value,
    pub span: Option<Span>,
}

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub key_span: Option<Span>,
    pub value: Node,
}

/// Something wrong with the text itself, before any field is looked at.
#[derive(Debug)]
pub struct Flaw {
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
    pub path: String,
    pub span: Option<Span>,
}

impl Flaw {
    pub fn new(code: &'static str, message: impl Into<String>, span: Span) -> Flaw {
        Flaw { code, message: message.into(), hint: None, path: String::new(), span: Some(span) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Flaw {
        self.hint = Some(hint.into());
        self
    }
}

/// Reads a document. The extension of `file` decides the format, else how the text begins.
pub fn read(bytes: &[u8], file: Option<&str>) -> Result<Node, Vec<Flaw>> {
    let text = decode(bytes).map_err(|flaw| vec![flaw])?;
    let node = if is_json(text, file) { json::read(text) } else { yaml::read(text) }.map_err(|flaw| vec![flaw])?;
    check(&node)?;
    Ok(node)
}

/// Takes a document that arrived as a value, under the same limits.
pub fn from_value(value: &serde_json::Value) -> Result<Node, Vec<Flaw>> {
    let mut meter = Meter::default();
    convert(value, 0, &mut meter).map_err(|(code, message)| {
        vec![Flaw { code, message: message.into(), hint: None, path: String::new(), span: None }]
    })
}

/// The text without its byte order mark, if it is text that a person can have written.
pub fn decode(bytes: &[u8]) -> Result<&str, Flaw> {
    let start = Span::at(Mark::START);
    if bytes.len() > limits::MAX_DOCUMENT_BYTES {
        let message =
            format!("the document has {} bytes; at most {} are read", bytes.len(), limits::MAX_DOCUMENT_BYTES);
        return Err(Flaw::new(code::LIMIT_BYTES, message, start));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(Flaw::new(code::NOT_UTF8, "the document is UTF-16", start).hint("save it as UTF-8"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        Flaw::new(code::NOT_UTF8, "the document is not UTF-8 from here on", Span::at(end_of(good)))
            .hint("save it as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // NUL would end the YAML scanner's input silently; no format allows the others raw.
    let control = |c: char| (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || c == '\u{7f}';
    if let Some(at) = text.find(control) {
        let found = text[at..].chars().next().unwrap_or_default() as u32;
        let message = format!("the control character U+{found:04X} is not allowed in a document");
        return Err(Flaw::new(code::BAD_CHARACTER, message, Span::at(end_of(&text[..at]))));
    }
    if text.trim().is_empty() {
        return Err(Flaw::new(code::EMPTY_DOCUMENT, "the document is empty", start));
    }
    Ok(text)
}

fn is_json(text: &str, file: Option<&str>) -> bool {
    let extension = file.and_then(|f| f.rsplit_once('.')).map(|(_, e)| e.to_ascii_lowercase());
    match extension.as_deref() {
        Some("json") => true,
        Some("yaml" | "yml") => false,
        // `{name: …}` is YAML written in braces; JSON has its keys in quotes.
        _ => match text.trim_start().strip_prefix('{') {
            Some(rest) => rest.trim_start().starts_with(['"', '}']),
            None => text.trim_start().starts_with('['),
        },
    }
}

/// Where the next character after `text` stands.
fn end_of(text: &str) -> Mark {
    let mut mark = Mark::START;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' || (c == '\r' && chars.peek() != Some(&'\n')) {
            mark = Mark { line: mark.line + 1, column: 1 };
        } else {
            mark.column += 1;
        }
    }
    mark
}

/// Counts what a document costs while it is being read.
#[derive(Default)]
struct Meter {
    nodes: usize,
    text: usize,
}

impl Meter {
    fn charge(&mut self, nodes: usize, text: usize) -> Result<(), (&'static str, &'static str)> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.text = self.text.saturating_add(text);
        if self.nodes > limits::MAX_NODES {
            return Err((code::LIMIT_NODES, "the document holds too many values"));
        }
        if self.text > limits::MAX_DOCUMENT_BYTES {
            return Err((code::LIMIT_NODES, "the document holds too much text once aliases are expanded"));
        }
        Ok(())
    }
}

const TOO_DEEP: (&str, &str) = (code::LIMIT_DEPTH, "objects and lists are nested too deeply here");

fn convert(value: &serde_json::Value, depth: usize, meter: &mut Meter) -> Result<Node, (&'static str, &'static str)> {
    use serde_json::Value as Json;
    meter.charge(1, 0)?;
    if depth >= limits::MAX_DEPTH && (value.is_array() || value.is_object()) {
        return Err(TOO_DEEP);
    }
    let value = match value {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(n) => Value::Number(n.clone()),
        Json::String(s) => {
            meter.charge(0, s.len())?;
            Value::String(s.clone())
        }
        Json::Array(items) => {
            Value::List(items.iter().map(|item| convert(item, depth + 1, meter)).collect::<Result<_, _>>()?)
        }
        Json::Object(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map {
                meter.charge(0, key.len())?;
                entries.push(Entry { key: key.clone(), key_span: None, value: convert(value, depth + 1, meter)? });
            }
            Value::Map(entries)
        }
    };
    Ok(Node { value, span: None })
}

/// Keys written twice, everywhere in the tree. Readers keep both; the first would win silently.
fn check(root: &Node) -> Result<(), Vec<Flaw>> {
    let mut flaws = Vec::new();
    let mut open = vec![(root, String::new())];
    while let Some((node, path)) = open.pop() {
        match &node.value {
            Value::Map(entries) => {
                let mut seen = HashSet::with_capacity(entries.len());
                for entry in entries {
                    let path = join_key(&path, &entry.key);
                    if !seen.insert(entry.key.as_str()) {
                        let message = format!("{:?} is written twice here", entry.key);
                        let span = entry.key_span;
                        let hint = Some("keep one of the two".into());
                        flaws.push(Flaw { code: code::DUPLICATE_KEY, message, hint, path: path.clone(), span });
                    }
                    if matches!(entry.value.value, Value::Map(_) | Value::List(_)) {
                        open.push((&entry.value, path));
                    }
                }
            }
            Value::List(items) => {
                for (n, item) in items.iter().enumerate() {
                    if matches!(item.value, Value::Map(_) | Value::List(_)) {
                        open.push((item, format!("{path}[{n}]")));
                    }
                }
            }
            _ => {}
        }
    }
    if flaws.is_empty() { Ok(()) } else { Err(flaws) }
}

/// `parent.key`, or `parent["odd key"]` when the key would make the path unreadable.
pub fn join_key(parent: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
    match (plain, parent.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{parent}.{key}"),
        (false, _) => {
            let mut short: String = key.chars().take(limits::MAX_NAME_BYTES).collect();
            if short.len() < key.len() {
                short.push('…');
            }
            format!("{parent}[{short:?}]")
        }
    }
}

/// A place in a literal block (`|`), whose lines stand in the document one by one. Folded text has fewer line breaks
/// than lines, so it is not mistaken for one.
fn within_block(span: Span, text: &str, start: usize, end: usize) -> Option<Span> {
    let breaks = text.bytes().filter(|b| *b == b'\n').count();
    if breaks != (span.end.line - span.start.line) as usize {
        return None;
    }
    let before = text.get(..start)?;
    let line = span.start.line + before.bytes().filter(|b| *b == b'\n').count() as u32;
    let column = span.start.column + before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32;
    let width = text.get(start..end)?.lines().next().map_or(1, |first| first.chars().count().max(1)) as u32;
    Some(Span { start: Mark { line, column }, end: Mark { line, column: column + width } })
}

impl Node {
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(n) => Json::Number(n.clone()),
            Value::String(s) => Json::String(s.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect()),
        }
    }

    /// What a person would call this value in a message.
    pub fn describe(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|e| e.key == key).map(|e| &e.value),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The span of some bytes of this text, when the text stands in the document character by character.
    pub fn within(&self, start: usize, end: usize) -> Option<Span> {
        let (span, text) = (self.span?, self.as_str()?);
        if span.start.line != span.end.line {
            return Some(within_block(span, text, start, end).unwrap_or(span));
        }
        let width = (span.end.column.saturating_sub(span.start.column)) as usize;
        let length = text.chars().count();
        let quote = match width.checked_sub(length) {
            Some(0) => 0,
            Some(2) => 1,
            _ => return Some(span),
        };
        let chars = |to: usize| text.get(..to).map_or(length, |t| t.chars().count()) as u32;
        let place = |chars: u32| Mark { line: span.start.line, column: span.start.column + quote + chars };
        let (from, to) = (chars(start), chars(end).max(chars(start) + 1));
        Some(Span { start: place(from), end: place(to) })
    }
}
