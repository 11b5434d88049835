//! JSON with `{{expression}}` holes, parsed once when the workflow is defined.
//!
//! A string that is exactly one hole keeps the type of its value. Inside text a value becomes text: a string unchanged,
//! null as the empty string, anything else as compact JSON. `\{{` stands for a literal `{{`, and `\\{{` for a backslash
//! before a hole; elsewhere a backslash is literal. Keys are literal.
//!
//! Templates are strict: a path that leads nowhere fails unless `??` provides a default; see [`crate::expr`].
//!
//! Expressions cannot compute with secrets: `{{secrets.NAME}}` stands alone in its hole and stays in the resolved value
//! as written, with a [`SecretSlot`] that records where. The secret is filled in when the call is made.
//!
//! Not here: name resolution. The graph builder binds the paths of [`Template::holes_mut`].

mod resolve;
mod scan;
mod url;

pub use crate::expr::Grammar as Mode;
pub use resolve::{PartlyResolved, Resolved, SecretSlot};

use crate::expr::{Expr, Span};
use scan::Piece;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Nesting of lists and objects in a template.
pub const MAX_DEPTH: usize = 64;
/// Values and holes in a template.
pub const MAX_NODES: usize = 100_000;
/// Faults reported for one template.
const MAX_FAULTS: usize = 100;

#[derive(Clone, Debug)]
pub struct Template {
    root: Node,
    holes: Vec<Hole>,
}

/// An expression and its position in the template.
#[derive(Clone, Debug)]
pub struct Hole {
    /// JSON pointer of the string in the template.
    pub pointer: Box<str>,
    /// Where the expression's source begins in that string; its spans are relative to this.
    pub offset: u32,
    pub expr: Expr,
}

#[derive(Clone, Debug)]
enum Node {
    Constant(Arc<Value>),
    Hole(HoleIx),
    Text(Vec<Part>),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Hole(HoleIx),
    /// In the path or query of a URL.
    UrlHole(HoleIx, url::Filled),
}

#[derive(Clone, Copy, Debug)]
struct HoleIx(usize);

/// A fault in a template. `span` is a range in the string that `pointer` leads to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct TemplateFault {
    pub pointer: String,
    pub span: Span,
    pub message: String,
    pub hint: Option<String>,
}

impl fmt::Display for TemplateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl Template {
    /// Parses a template. Returns all faults at once, up to a hundred.
    pub fn parse(value: &Value, mode: Mode) -> Result<Template, Vec<TemplateFault>> {
        let (template, faults) = Template::parse_lenient(value, mode);
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }

    /// Parses a template and leaves out its faulty parts, so that the names in the rest can still be checked.
    pub fn parse_lenient(value: &Value, mode: Mode) -> (Template, Vec<TemplateFault>) {
        let mut parser = Parser { mode, pointer: String::new(), nodes: 0, holes: Vec::new(), faults: Vec::new() };
        let root = parser.node(value, 0);
        (Template { root, holes: parser.holes }, parser.faults)
    }

    /// A template without holes: what looks like a hole is text.
    pub fn constant(value: Value) -> Template {
        Template { root: Node::Constant(Arc::new(value)), holes: Vec::new() }
    }

    pub fn is_constant(&self) -> bool {
        matches!(self.root, Node::Constant(_))
    }

    /// The value, if the template has no holes.
    pub fn as_constant(&self) -> Option<&Value> {
        if let Node::Constant(value) = &self.root { Some(value) } else { None }
    }

    /// The value of a field, if the template is an object and the field has no holes.
    pub fn constant_field(&self, name: &str) -> Option<&Value> {
        match &self.root {
            Node::Constant(value) => value.get(name),
            Node::Object(fields) => fields.iter().find(|(field, _)| field == name).and_then(|(_, node)| match node {
                Node::Constant(value) => Some(&**value),
                Node::Hole(_) | Node::Text(_) | Node::List(_) | Node::Object(_) => None,
            }),
            Node::Hole(_) | Node::Text(_) | Node::List(_) => None,
        }
    }

    /// The template with null in place of everything that has holes: what is known before a run.
    pub fn known(&self) -> Value {
        fn known(node: &Node) -> Value {
            match node {
                Node::Constant(value) => (**value).clone(),
                Node::Hole(_) | Node::Text(_) => Value::Null,
                Node::List(items) => Value::Array(items.iter().map(known).collect()),
                Node::Object(fields) => fields.iter().map(|(name, node)| (name.clone(), known(node))).collect(),
            }
        }
        known(&self.root)
    }

    /// The expression, if the template is exactly one hole.
    pub fn as_expr(&self) -> Option<&Expr> {
        if let Node::Hole(ix) = self.root { Some(&self.holes[ix.0].expr) } else { None }
    }

    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.holes.iter().map(|hole| &hole.expr)
    }

    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.holes.iter_mut().map(|hole| &mut hole.expr)
    }

    pub fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// The holes, for binding, with their positions for messages.
    pub fn holes_mut(&mut self) -> &mut [Hole] {
        &mut self.holes
    }
}

struct Parser {
    mode: Mode,
    /// The pointer of the value being parsed.
    pointer: String,
    nodes: usize,
    holes: Vec<Hole>,
    faults: Vec<TemplateFault>,
}

impl Parser {
    /// The node returned after a fault is never used.
    fn node(&mut self, value: &Value, depth: usize) -> Node {
        if self.faults.len() >= MAX_FAULTS || !self.counted() {
            return nothing();
        }
        if depth > MAX_DEPTH {
            self.fault(Span::default(), format!("the template is nested more than {MAX_DEPTH} deep"), None);
            return nothing();
        }
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                let nodes = items.iter().enumerate();
                let nodes = nodes.map(|(n, item)| self.inside(&n.to_string(), |this| this.node(item, depth + 1)));
                list(nodes.collect())
            }
            Value::Object(map) => {
                let entries = map.iter().map(|(key, item)| {
                    let node = self.inside(key, |this| {
                        this.key(key);
                        this.node(item, depth + 1)
                    });
                    (key.clone(), node)
                });
                object(entries.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Node::Constant(Arc::new(value.clone())),
        }
    }

    fn counted(&mut self) -> bool {
        self.nodes += 1;
        if self.nodes == MAX_NODES + 1 {
            self.fault(Span::default(), format!("the template has more than {MAX_NODES} values"), None);
        }
        self.nodes <= MAX_NODES
    }

    fn inside<T>(&mut self, key: &str, parse: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        push_pointer(&mut self.pointer, key);
        let parsed = parse(self);
        self.pointer.truncate(length);
        parsed
    }

    fn fault(&mut self, span: Span, message: impl Into<String>, hint: Option<String>) {
        if self.faults.len() < MAX_FAULTS {
            let pointer = self.pointer.clone();
            self.faults.push(TemplateFault { pointer, span, message: message.into(), hint });
        }
    }

    fn key(&mut self, key: &str) {
        if let Some(at) = key.find("{{") {
            let hint = "keys are literal; build the object in a javascript step if a key must vary";
            self.fault(Span::new(at, key.len()), "a key cannot contain `{{`", Some(hint.into()));
        }
    }

    fn text(&mut self, text: &str) -> Node {
        let pieces = match scan::pieces(text) {
            Ok(pieces) => pieces,
            Err(scan::Unclosed { at }) => {
                let hint = "close it with `}}`, or write `\\{{` for two literal braces";
                self.fault(Span::new(at, at + 2), "`{{` is not closed", Some(hint.into()));
                return nothing();
            }
        };
        let parts: Vec<Part> = pieces.into_iter().filter_map(|piece| self.part(piece)).collect();
        match <[Part; 1]>::try_from(parts) {
            Ok([Part::Hole(ix)]) => Node::Hole(ix),
            Ok([Part::Literal(text)]) => Node::Constant(Arc::new(text.into())),
            Ok([part @ Part::UrlHole(..)]) => Node::Text(vec![part]),
            Err(parts) if parts.is_empty() => Node::Constant(Arc::new("".into())),
            Err(parts) => Node::Text(parts),
        }
    }

    fn part(&mut self, piece: Piece<'_>) -> Option<Part> {
        let (source, offset) = match piece {
            Piece::Literal(text) => return Some(Part::Literal(text)),
            Piece::Hole { source, offset } => (source, offset as u32),
        };
        if !self.counted() {
            return None;
        }
        match Expr::parse(source, self.mode) {
            Ok(expr) => {
                self.check_secrets(&expr, offset);
                self.holes.push(Hole { pointer: self.pointer.as_str().into(), offset, expr });
                Some(Part::Hole(HoleIx(self.holes.len() - 1)))
            }
            Err(error) => {
                self.fault(error.at.shifted(offset), error.message, error.hint);
                None
            }
        }
    }

    fn check_secrets(&mut self, expr: &Expr, offset: u32) {
        let alone = expr.as_path().is_some_and(|path| path.segments.len() == 2 && path.key(1).is_some());
        for path in expr.paths().filter(|path| !alone && path.begins_with("secrets")) {
            let message = "a secret must stand alone in its braces, because its value is not known here";
            self.fault(path.span.shifted(offset), message, Some("write {{secrets.NAME}}".into()));
        }
    }
}

fn nothing() -> Node {
    Node::Constant(Arc::new(Value::Null))
}

/// Folds into one constant if all items are constant, so that resolving does not visit them.
fn list(nodes: Vec<Node>) -> Node {
    if !nodes.iter().all(|node| matches!(node, Node::Constant(_))) {
        return Node::List(nodes);
    }
    let items = nodes.into_iter().filter_map(Node::into_constant).collect();
    Node::Constant(Arc::new(Value::Array(items)))
}

fn object(entries: Vec<(String, Node)>) -> Node {
    if !entries.iter().all(|(_, node)| matches!(node, Node::Constant(_))) {
        return Node::Object(entries);
    }
    let entries = entries.into_iter().filter_map(|(key, node)| Some((key, node.into_constant()?))).collect();
    Node::Constant(Arc::new(Value::Object(entries)))
}

impl Node {
    fn into_constant(self) -> Option<Value> {
        if let Node::Constant(value) = self { Some(Arc::unwrap_or_clone(value)) } else { None }
    }
}

/// Appends one token to an RFC 6901 pointer.
fn push_pointer(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

#[cfg(test)]
mod tests;
