//! Fills the holes of a template with a run's data, and the slots of the result with secrets.

use super::url::{Filled, Inserted};
use super::{HoleIx, Node, Part, Template, push_pointer};
use crate::expr::{Bounded, Dotted, Expr, Found, Missing, Names, Path, Percent, Segment, Val};
use crate::value::VALUE_WEIGHT;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::Arc;

/// The most that the values of one template may weigh together; see [`crate::value::weight`].
const MAX_WEIGHT: usize = 16 * 1024 * 1024;
/// Nesting of a resolved value. The reader of stored values accepts 128 levels, including an envelope.
const MAX_RESULT_DEPTH: usize = 120;

/// A resolved template.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// Contains secrets by name only, so it can be stored and shown.
    pub value: Arc<Value>,
    /// In the order of their positions.
    pub secrets: Vec<SecretSlot>,
}

/// A template of which not everything is known yet.
#[derive(Clone, PartialEq, Debug)]
pub struct PartlyResolved {
    /// A hole that is not known stays as written.
    pub value: Value,
    /// Pointers to the strings that contain such a hole, in the order of their positions.
    pub unknown: Vec<String>,
}

/// A place in the value where a secret is filled in when the call is made; the value itself contains `{{secrets.NAME}}`
/// there. Only these spans are ever replaced, so data that merely looks like a slot is never filled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SecretSlot {
    /// An RFC 6901 pointer to a string.
    pub pointer: String,
    /// Byte range in that string.
    pub start: usize,
    pub end: usize,
    pub name: Box<str>,
}

impl Resolved {
    /// A copy with the secrets filled in. The error names a secret that is unknown, or whose slot is not in the value.
    pub fn reveal(&self, secret: impl Fn(&str) -> Option<String>) -> Result<Value, String> {
        let mut value = Value::clone(&self.value);
        // Backwards, so that a secret does not move the slots before it.
        for slot in self.secrets.iter().rev() {
            let unknown = || slot.name.to_string();
            let revealed = secret(&slot.name).ok_or_else(unknown)?;
            let Some(Value::String(text)) = value.pointer_mut(&slot.pointer) else { return Err(unknown()) };
            if text.get(slot.start..slot.end) != Some(placeholder(&slot.name).as_str()) {
                return Err(unknown());
            }
            text.replace_range(slot.start..slot.end, &revealed);
        }
        Ok(value)
    }
}

fn placeholder(name: &str) -> String {
    format!("{{{{{}}}}}", Dotted(&["secrets", name].map(|key| Segment::Key(key.into()))))
}

impl Template {
    /// Resolves a step's input. A constant is shared, not copied.
    pub fn resolve(&self, names: &dyn Names) -> Result<Resolved, Missing> {
        if let Node::Constant(value) = &self.root {
            return Ok(Resolved { value: value.clone(), secrets: Vec::new() });
        }
        let mut resolver = Resolver::new(self, names, Reading::Template);
        let value = resolver.node(&self.root);
        names.spend(MAX_WEIGHT - resolver.weight_left);
        Ok(Resolved { value: Arc::new(value?), secrets: resolver.secrets })
    }

    /// Resolves what is known already, to show it to a person.
    pub fn resolve_known(
        &self,
        names: &dyn Names,
        is_known: &dyn Fn(&Expr) -> bool,
    ) -> Result<PartlyResolved, Missing> {
        let mut resolver = Resolver { is_known: Some(is_known), ..Resolver::new(self, names, Reading::Template) };
        let value = resolver.node(&self.root);
        names.spend(MAX_WEIGHT - resolver.weight_left);
        Ok(PartlyResolved { value: value?, unknown: resolver.unknown })
    }

    /// Resolves an operand of a condition: a path that leads nowhere is null, and a secret is an error.
    pub fn read<'a>(&'a self, names: &'a dyn Names) -> Result<Val<'a>, Missing> {
        match &self.root {
            Node::Constant(value) => Ok(Val::Json(value)),
            Node::Hole(ix) => self.holes[ix.0].expr.read(names),
            other => {
                let mut resolver = Resolver::new(self, names, Reading::Condition);
                let value = resolver.node(other);
                names.spend(MAX_WEIGHT - resolver.weight_left);
                value.map(Val::Owned)
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Template,
    Condition,
}

struct Resolver<'a> {
    template: &'a Template,
    names: &'a dyn Names,
    reading: Reading,
    /// `None` if all is known.
    is_known: Option<&'a dyn Fn(&Expr) -> bool>,
    unknown: Vec<String>,
    secrets: Vec<SecretSlot>,
    /// The pointer of the node being resolved.
    pointer: String,
    depth: usize,
    weight_left: usize,
}

enum Filling<'a> {
    Value(Val<'a>),
    Secret(&'a Path),
    /// The source of an expression whose value is not known yet.
    Unknown(&'a str),
}

impl<'a> Resolver<'a> {
    fn new(template: &'a Template, names: &'a dyn Names, reading: Reading) -> Resolver<'a> {
        Resolver {
            template,
            names,
            reading,
            is_known: None,
            unknown: Vec::new(),
            secrets: Vec::new(),
            pointer: String::new(),
            depth: 0,
            weight_left: MAX_WEIGHT,
        }
    }

    fn node(&mut self, node: &Node) -> Result<Value, Missing> {
        match node {
            Node::Constant(value) => Ok(Value::clone(value)),
            Node::Hole(ix) => match self.fill(*ix)? {
                Filling::Value(value) => self.weighed(value),
                Filling::Secret(path) => {
                    let mut text = Bounded::new();
                    self.slot(path, &mut text)?;
                    Ok(String::from(text).into())
                }
                Filling::Unknown(source) => {
                    self.note_unknown();
                    Ok(format!("{{{{{source}}}}}").into())
                }
            },
            Node::Text(parts) => self.text(parts),
            Node::List(nodes) => {
                let nodes = nodes.iter().enumerate();
                nodes.map(|(n, node)| self.inside(&n.to_string(), node)).collect()
            }
            Node::Object(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, node) in entries {
                    map.insert(key.clone(), self.inside(key, node)?);
                }
                Ok(Value::Object(map))
            }
        }
    }

    fn inside(&mut self, key: &str, node: &Node) -> Result<Value, Missing> {
        if let Node::Constant(value) = node {
            return Ok(Value::clone(value));
        }
        let length = self.pointer.len();
        push_pointer(&mut self.pointer, key);
        self.depth += 1;
        let value = self.node(node);
        self.depth -= 1;
        self.pointer.truncate(length);
        value
    }

    fn fill(&self, ix: HoleIx) -> Result<Filling<'a>, Missing> {
        let expr = &self.template.holes[ix.0].expr;
        if self.is_known.is_some_and(|is_known| !is_known(expr)) {
            return Ok(Filling::Unknown(expr.source()));
        }
        match self.reading {
            Reading::Condition => expr.read(self.names).map(Filling::Value),
            Reading::Template => match expr.as_path() {
                Some(path) if path.begins_with("secrets") && matches!(self.names.find(path), Found::Secret) => {
                    Ok(Filling::Secret(path))
                }
                _ => expr.value(self.names).map(Filling::Value),
            },
        }
    }

    fn text(&mut self, parts: &[Part]) -> Result<Value, Missing> {
        let too_large = |_| Missing::TooLarge { limit: "4 MB of text" };
        let mut text = Bounded::new();
        let mut in_url = Vec::new();
        for part in parts {
            let (ix, filled) = match part {
                Part::Literal(literal) => {
                    text.write_str(literal).map_err(too_large)?;
                    continue;
                }
                Part::Hole(ix) => (*ix, None),
                Part::UrlHole(ix, filled) => (*ix, Some(*filled)),
            };
            let start = text.len();
            match (self.fill(ix)?, filled) {
                (Filling::Value(value), Some(Filled::Encode)) => {
                    value.write_text(&mut Percent(&mut text)).map_err(too_large)?;
                }
                (Filling::Value(value), _) => value.write_text(&mut text).map_err(too_large)?,
                // As stored: a secret is not data of a run, and is often a part of a path.
                (Filling::Secret(path), _) => {
                    self.slot(path, &mut text)?;
                    continue;
                }
                (Filling::Unknown(source), _) => {
                    self.note_unknown();
                    write!(text, "{{{{{source}}}}}").map_err(too_large)?;
                    continue;
                }
            }
            if let Some(filled) = filled {
                let source = self.template.holes[ix.0].expr.source();
                in_url.push(Inserted { filled, start, end: text.len(), source });
            }
        }
        self.spend(text.len())?;
        let text = String::from(text);
        in_url.iter().try_for_each(|inserted| inserted.check(&text))?;
        Ok(text.into())
    }

    fn note_unknown(&mut self) {
        if self.unknown.last() != Some(&self.pointer) {
            self.unknown.push(self.pointer.clone());
        }
    }

    fn slot(&mut self, path: &Path, text: &mut Bounded) -> Result<(), Missing> {
        let name = path.key(1).unwrap_or_default();
        let start = text.len();
        text.write_str(&placeholder(name)).map_err(|_| Missing::TooLarge { limit: "4 MB of text" })?;
        let pointer = self.pointer.clone();
        self.secrets.push(SecretSlot { pointer, start, end: text.len(), name: name.into() });
        Ok(())
    }

    fn weighed(&mut self, value: Val<'_>) -> Result<Value, Missing> {
        match &value {
            Val::Json(value) => self.weigh(value, self.depth)?,
            Val::Owned(value) => self.weigh(value, self.depth)?,
            Val::Str(text) => self.spend(text.len())?,
            Val::Null | Val::Bool(_) | Val::Int(_) => {}
        }
        Ok(value.into_json())
    }

    /// Weighs a value before it is copied: a small template can reference a large body many times.
    fn weigh(&mut self, value: &Value, depth: usize) -> Result<(), Missing> {
        if depth > MAX_RESULT_DEPTH {
            return Err(Missing::TooLarge { limit: "120 levels of nesting" });
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.spend(0),
            Value::String(text) => self.spend(text.len()),
            Value::Array(items) => {
                self.spend(0)?;
                items.iter().try_for_each(|item| self.weigh(item, depth + 1))
            }
            Value::Object(map) => {
                self.spend(0)?;
                map.iter().try_for_each(|(key, item)| {
                    self.spend(key.len())?;
                    self.weigh(item, depth + 1)
                })
            }
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Missing> {
        let left = self.weight_left.checked_sub(bytes + VALUE_WEIGHT);
        self.weight_left = left.ok_or(Missing::TooLarge { limit: "16 MB" })?;
        Ok(())
    }
}
