//! Parses text into a tree of [`Node`]s with positions. JSON and YAML both end up here; later layers do not know the
//! format.
//!
//! Everything that a hostile document could inflate is bounded before memory is used: bytes, depth, values after alias
//! expansion, and the text in those values.
//!
//! After a flaw that leaves the rest readable (a number too large, a duplicate key), reading continues.
//!
//! Not here: the meaning of fields.

mod guard;
mod json;
mod lines;
mod scalar;
mod yaml;

use crate::code;
use lines::Line;
use serde_json::Number;
use std::collections::HashSet;
use stepwell_core::limits;
use stepwell_core::quote::quote;

/// A place in the text: line and column from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Mark {
    pub line: u32,
    pub column: u32,
}

impl Mark {
    pub const START: Mark = Mark { line: 1, column: 1 };
}

/// A range from the first character to just after the last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    pub start: Mark,
    pub end: Mark,
}

impl Span {
    pub fn at(mark: Mark) -> Span {
        Span { start: mark, end: Mark { line: mark.line, column: mark.column + 1 } }
    }
}

/// A value and where it was written; `span` is `None` if the document came as a value.
#[derive(Clone, Debug)]
pub struct Node {
    pub value: Value,
    pub span: Option<Span>,
    /// For text over several lines: the position of each line.
    lines: Option<Box<[Line]>>,
}

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// A placeholder for something that could not be read; only the flaw is reported for this place.
    Bad(Box<Flaw>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub key_span: Option<Span>,
    pub value: Node,
}

/// A fault of the text itself, found before any field is read.
#[derive(Clone, Debug)]
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

/// A document as far as it could be read, and its flaws.
pub struct Read {
    pub root: Node,
    pub flaws: Flaws,
}

/// Flaws that leave the rest readable. Flaws beyond a limit are only counted.
#[derive(Default)]
pub struct Flaws {
    pub list: Vec<Flaw>,
    pub more: usize,
    /// The places of values that could not be read.
    pub places: HashSet<Span>,
    seen: HashSet<(&'static str, Span)>,
}

impl Flaws {
    fn add(&mut self, flaw: Flaw) {
        // The value of an anchor appears again at each of its aliases.
        if flaw.span.is_some_and(|span| !self.seen.insert((flaw.code, span))) {
            return;
        }
        if self.list.len() < 2 * limits::MAX_FAULTS {
            self.list.push(flaw);
        } else {
            self.more += 1;
        }
    }
}

/// Reads a document. The extension of `file` decides the format; without one, the beginning of the text does.
pub fn read(bytes: &[u8], file: Option<&str>) -> Result<Read, Flaw> {
    let text = decode(bytes)?;
    let mut root = if is_json(text, file) { json::read(text) } else { yaml::read(text) }?;
    let flaws = collect_flaws(&mut root);
    Ok(Read { root, flaws })
}

/// Converts a document that is already a value, under the same limits.
pub fn from_value(value: &serde_json::Value) -> Result<Node, Flaw> {
    let mut meter = Meter::default();
    convert(value, 0, &mut meter).map_err(|(code, message)| Flaw {
        code,
        message: message.into(),
        hint: None,
        path: String::new(),
        span: None,
    })
}

/// Decodes the text without its byte order mark, and rejects what is not text.
pub fn decode(bytes: &[u8]) -> Result<&str, Flaw> {
    let start = Span::at(Mark::START);
    if bytes.len() > limits::MAX_DOCUMENT_BYTES {
        // Callers stop reading at the limit, so the actual size is unknown.
        let message = format!("the document has more than {} bytes", limits::MAX_DOCUMENT_BYTES);
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
        // `{name: …}` is YAML in flow style; JSON keys are quoted.
        _ => match text.trim_start().strip_prefix('{') {
            Some(rest) => rest.trim_start().starts_with(['"', '}']),
            None => text.trim_start().starts_with('['),
        },
    }
}

/// The position of the next character after `text`.
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

/// Counts the cost of a document while it is being read.
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
            return Err((code::LIMIT_NODES, "the document contains too many values"));
        }
        if self.text > limits::MAX_DOCUMENT_BYTES {
            return Err((code::LIMIT_NODES, "the document contains too much text after alias expansion"));
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
    Ok(Node::new(value, None))
}

/// Collects the flaws in the tree and removes faulty entries; of a duplicate key, the first entry is kept.
fn collect_flaws(root: &mut Node) -> Flaws {
    let mut flaws = Flaws::default();
    let mut open = vec![(root, String::new())];
    while let Some((node, path)) = open.pop() {
        match &mut node.value {
            Value::Bad(flaw) => {
                flaws.places.extend(node.span);
                flaws.add(Flaw { path, ..(**flaw).clone() });
            }
            Value::Map(entries) => {
                drop_repeated(entries, &path, &mut flaws);
                let inner = entries.iter_mut().rev().filter(|entry| entry.value.may_contain_flaws());
                open.extend(inner.map(|entry| (&mut entry.value, join_key(&path, &entry.key))));
            }
            Value::List(items) => {
                let inner = items.iter_mut().enumerate().rev().filter(|(_, item)| item.may_contain_flaws());
                open.extend(inner.map(|(n, item)| (item, format!("{path}[{n}]"))));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    flaws
}

fn drop_repeated(entries: &mut Vec<Entry>, path: &str, flaws: &mut Flaws) {
    let mut seen = HashSet::with_capacity(entries.len());
    let repeated: Vec<bool> = entries.iter().map(|entry| !seen.insert(entry.key.as_str())).collect();
    let mut repeated = repeated.into_iter();
    entries.retain(|entry| {
        let repeated = repeated.next() == Some(true);
        if repeated {
            let message = format!("{} is written twice here", quote(&entry.key));
            let (path, hint) = (join_key(path, &entry.key), Some("keep one of the two".into()));
            flaws.add(Flaw { code: code::DUPLICATE_KEY, message, hint, path, span: entry.key_span });
        }
        // A faulty merge key is not a field of the map.
        let merge = match &entry.value.value {
            Value::Bad(flaw) if entry.key == yaml::MERGE => Some(flaw),
            _ => None,
        };
        if let Some(flaw) = merge {
            flaws.add(Flaw { path: path.to_owned(), ..(**flaw).clone() });
        }
        !repeated && merge.is_none()
    });
}

/// `parent.key`, or `parent["odd key"]` if the key would make the path ambiguous.
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
            format!("{parent}[{}]", quote(&short))
        }
    }
}

impl Node {
    pub fn new(value: Value, span: Option<Span>) -> Node {
        Node { value, span, lines: None }
    }

    fn may_contain_flaws(&self) -> bool {
        matches!(self.value, Value::Map(_) | Value::List(_) | Value::Bad(_))
    }

    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null | Value::Bad(_) => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(n) => Json::Number(n.clone()),
            Value::String(s) => Json::String(s.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect()),
        }
    }

    /// The type of the value, for messages.
    pub fn describe(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "an object",
            Value::Bad(_) => "an invalid value",
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

    /// The span of a byte range of this text, or of the whole text if it is not in the document character by character.
    pub fn within(&self, start: usize, end: usize) -> Option<Span> {
        let (span, text) = (self.span?, self.as_str()?);
        if span.start.line != span.end.line {
            let lines = self.lines.as_deref().unwrap_or_default();
            return Some(lines::within(lines, text, start, end).unwrap_or(span));
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
