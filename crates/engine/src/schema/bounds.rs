//! The bounds of a JSON Schema from outside: its size, its references, and how deep and how wide it expands.
//!
//! A schema is a graph: subschemas and references are its edges. The cost of checking a value follows from the size of
//! that graph when every reference is replaced by its target. A reference back to a schema that contains it is not
//! followed: such a schema is bounded by the depth of the value and by the deadline. It must descend into the value
//! before it comes back to itself, since otherwise it would never end.

use super::Error;
use super::guard::pattern_memory;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ptr::from_ref;

/// Bytes of JSON of a schema.
pub const MAX_BYTES: usize = 64 * 1024;
/// References in a schema.
pub const MAX_REFERENCES: usize = 500;
/// Schemas inside each other, through references too.
pub const MAX_DEPTH: usize = 32;
/// Schemas after every reference is replaced by its target.
pub const MAX_EXPANSION: u64 = 10_000;
/// Regular expressions in a schema.
pub const MAX_PATTERNS: usize = 100;

/// The subschemas that a keyword holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A schema, or a list of schemas.
    Direct,
    /// Schemas by name.
    Named,
}

/// What a keyword with subschemas applies them to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// The same value.
    Here,
    /// Parts of the value.
    Inside,
    /// Nothing: they are there to be referred to.
    Nowhere,
}

pub fn keyword(name: &str) -> Option<(Shape, Applies)> {
    Some(match name {
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => (Shape::Direct, Applies::Here),
        "items"
        | "prefixItems"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema" => (Shape::Direct, Applies::Inside),
        "properties" | "patternProperties" => (Shape::Named, Applies::Inside),
        "dependentSchemas" | "dependencies" => (Shape::Named, Applies::Here),
        "$defs" | "definitions" => (Shape::Named, Applies::Nowhere),
        _ => return None,
    })
}

pub fn is_reference(name: &str) -> bool {
    matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// Keywords whose values are data, even where they look like schemas.
fn is_data(name: &str) -> bool {
    matches!(name, "enum" | "const" | "default" | "examples" | "required" | "type")
}

/// Checks a schema whose JSON has `bytes` bytes. Returns the approximate memory of its regular expressions.
pub fn check(root: &Value, bytes: usize) -> Result<usize, Error> {
    if bytes > MAX_BYTES {
        let message = format!("the schema has {bytes} bytes of JSON; at most {MAX_BYTES} are allowed");
        return Err(bound("", message, "split the input, or check less of it"));
    }
    let Counts { references, patterns, pattern_memory, anchors } = count(root)?;
    let patterns = patterns.len();
    if references > MAX_REFERENCES {
        let message = format!("the schema has {references} references; at most {MAX_REFERENCES} are allowed");
        return Err(bound("", message, "write schemas that are used once where they are used"));
    }
    if patterns > MAX_PATTERNS {
        let message = format!("the schema has {patterns} regular expressions; at most {MAX_PATTERNS} are allowed");
        return Err(bound("", message, "check less of the text, for example with `enum` or `maxLength`"));
    }
    let mut walk = Walk { targets: Targets { root, anchors }, known: HashMap::new(), found: Vec::new() };
    walk.visit(Subschema { schema: root, path: String::new() }, 0)?;
    walk.check_cycles()?;
    Ok(pattern_memory)
}

fn bound(path: &str, message: String, hint: &str) -> Error {
    Error::Bound { path: path.into(), message: format!("{message}; {hint}") }
}

struct Counts<'a> {
    references: usize,
    /// The regular expressions and their paths.
    patterns: Vec<(&'a str, String)>,
    pattern_memory: usize,
    anchors: HashMap<&'a str, Subschema<'a>>,
}

/// Counts references and patterns, and finds the anchors. Without recursion: the depth is not checked yet.
fn count(root: &Value) -> Result<Counts<'_>, Error> {
    let mut counts = Counts { references: 0, patterns: Vec::new(), pattern_memory: 0, anchors: HashMap::new() };
    let mut open = vec![Subschema { schema: root, path: String::new() }];
    while let Some(place) = open.pop() {
        match place.schema {
            Value::Object(map) => {
                counts.references += map.iter().filter(|(name, value)| is_reference(name) && value.is_string()).count();
                let pattern = map.get("pattern").and_then(Value::as_str).map(|pattern| (pattern, "pattern"));
                let names = map.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
                let names = names.map(|pattern| (pattern.as_str(), "patternProperties"));
                for (pattern, keyword) in pattern.into_iter().chain(names) {
                    counts.patterns.push((pattern, format!("{}/{keyword}", place.path)));
                    counts.pattern_memory += pattern_memory(pattern);
                }
                for name in ["$anchor", "$dynamicAnchor"] {
                    let Some(anchor) = map.get(name).and_then(Value::as_str) else { continue };
                    match counts.anchors.entry(anchor) {
                        Entry::Vacant(entry) => drop(entry.insert(place.clone())),
                        Entry::Occupied(entry) if entry.get().path == place.path => {}
                        Entry::Occupied(_) => {
                            let message = format!("the anchor {anchor:?} is there twice; rename one of the two");
                            return Err(Error::Invalid { path: place.path, message });
                        }
                    }
                }
                open.extend(map.iter().map(|(name, value)| place.child(name, value)));
            }
            Value::Array(list) => {
                open.extend(list.iter().enumerate().map(|(ix, value)| place.child(&ix.to_string(), value)));
            }
            _ => {}
        }
    }
    Ok(counts)
}

/// A schema and the JSON Pointer to it.
#[derive(Clone)]
pub struct Subschema<'a> {
    pub schema: &'a Value,
    path: String,
}

impl<'a> Subschema<'a> {
    fn child(&self, token: &str, schema: &'a Value) -> Subschema<'a> {
        Subschema { schema, path: format!("{}/{}", self.path, token.replace('~', "~0").replace('/', "~1")) }
    }

    /// The schemas below it that a keyword holds.
    fn held(&self, name: &str, value: &'a Value, shape: Shape) -> Vec<Subschema<'a>> {
        let holder = self.child(name, value);
        match (shape, value) {
            (Shape::Direct, Value::Array(list)) => {
                list.iter().enumerate().map(|(ix, schema)| holder.child(&ix.to_string(), schema)).collect()
            }
            (Shape::Direct, _) => vec![holder],
            // Dependencies may be lists of names.
            (Shape::Named, Value::Object(map)) => {
                map.iter().filter(|(_, schema)| !schema.is_array()).map(|(name, it)| holder.child(name, it)).collect()
            }
            (Shape::Named, _) => Vec::new(),
        }
    }
}

/// Where the references of a schema lead.
pub struct Targets<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, Subschema<'a>>,
}

impl<'a> Targets<'a> {
    pub fn new(root: &'a Value) -> Result<Targets<'a>, Error> {
        Ok(Targets { root, anchors: count(root)?.anchors })
    }

    /// The target of a reference with this keyword, or why there is none.
    pub fn find(&self, keyword_name: &str, reference: &str) -> Result<Subschema<'a>, &'static str> {
        const OUTSIDE: &str = "points outside the schema; only references that begin with `#` are followed";
        const NOWHERE: &str = "points to nothing in the schema; use the path of a schema, such as `#/$defs/name`";
        if keyword_name == "$recursiveRef" && reference != "#" {
            return Err("must be `#`");
        }
        let fragment = decode(reference.strip_prefix('#').ok_or(OUTSIDE)?).ok_or(NOWHERE)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self.anchors.get(&*fragment).cloned().ok_or(NOWHERE);
        }
        // Whether the next token is a keyword of a schema, a name or an index below one, or anything.
        enum Next {
            Keyword,
            Name,
            Anything,
        }
        let mut place = Subschema { schema: self.root, path: String::new() };
        let mut next = Next::Keyword;
        for token in fragment.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            next = match next {
                Next::Keyword if is_data(&token) => return Err("points to data, which is not a schema"),
                Next::Keyword => match keyword(&token) {
                    Some((Shape::Named, _)) => Next::Name,
                    Some((Shape::Direct, _)) if place.schema.get(&token).is_some_and(Value::is_array) => Next::Name,
                    Some((Shape::Direct, _)) => Next::Keyword,
                    None => Next::Anything,
                },
                Next::Name => Next::Keyword,
                Next::Anything => Next::Anything,
            };
            let value = match place.schema {
                Value::Object(map) => map.get(&token),
                Value::Array(list) => token.parse().ok().and_then(|ix: usize| list.get(ix)),
                _ => None,
            };
            place = place.child(&token, value.ok_or(NOWHERE)?);
        }
        match place.schema {
            Value::Object(_) | Value::Bool(_) if !matches!(next, Next::Name) => Ok(place),
            _ => Err(NOWHERE),
        }
    }
}

/// What is known about a schema: nothing more while the walk is inside it.
enum Known {
    Open,
    /// How many schemas it expands to, and how deep.
    Done {
        expansion: u64,
        height: usize,
    },
}

struct Walk<'a> {
    targets: Targets<'a>,
    /// By the address of the schema.
    known: HashMap<*const Value, Known>,
    found: Vec<Subschema<'a>>,
}

impl<'a> Walk<'a> {
    /// The expansion and the height of a schema.
    fn visit(&mut self, place: Subschema<'a>, depth: usize) -> Result<(u64, usize), Error> {
        let too_deep = |path: &str| {
            let message = format!("schemas are nested more than {MAX_DEPTH} deep, references included");
            bound(path, message, "flatten the schema")
        };
        if depth > MAX_DEPTH {
            return Err(too_deep(&place.path));
        }
        let id = from_ref(place.schema);
        match self.known.get(&id) {
            Some(Known::Open) => return Ok((1, 0)),
            Some(Known::Done { height, .. }) if depth + height > MAX_DEPTH => return Err(too_deep(&place.path)),
            Some(Known::Done { expansion, height }) => return Ok((*expansion, *height)),
            None => self.known.insert(id, Known::Open),
        };
        let (mut expansion, mut height) = (1_u64, 0);
        for (_, next) in self.edges(&place)? {
            let (more, below) = self.visit(next, depth + 1)?;
            (expansion, height) = (expansion.saturating_add(more), height.max(below + 1));
        }
        if expansion > MAX_EXPANSION {
            let message = format!("the schema expands to more than {MAX_EXPANSION} schemas");
            return Err(bound(&place.path, message, "refer to the same schema less often"));
        }
        self.known.insert(id, Known::Done { expansion, height });
        self.found.push(place);
        Ok((expansion, height))
    }

    /// The schemas that apply with this one: those inside it, and those it refers to.
    fn edges(&self, place: &Subschema<'a>) -> Result<Vec<(Applies, Subschema<'a>)>, Error> {
        let Value::Object(map) = place.schema else { return Ok(Vec::new()) };
        if !place.path.is_empty() && ["$id", "id"].iter().any(|name| map.get(*name).is_some_and(Value::is_string)) {
            let message = "a schema inside another cannot have an id; use `$anchor`, or refer to it by its path";
            return Err(Error::Invalid { path: place.path.clone(), message: message.into() });
        }
        let mut edges = Vec::new();
        for (name, value) in map {
            if let (true, Some(reference)) = (is_reference(name), value.as_str()) {
                let target = self.targets.find(name, reference).map_err(|why| {
                    let message = format!("the reference {reference:?} {why}");
                    Error::Invalid { path: place.child(name, value).path, message }
                })?;
                edges.push((Applies::Here, target));
            }
            match keyword(name) {
                Some((_, Applies::Nowhere)) | None => {}
                Some((shape, applies)) => {
                    edges.extend(place.held(name, value, shape).into_iter().map(|held| (applies, held)));
                }
            }
        }
        Ok(edges)
    }

    /// Refuses a schema that applies itself to the same value, or that a chain of more than [`MAX_DEPTH`] leads to.
    fn check_cycles(&self) -> Result<(), Error> {
        let mut open = HashMap::new();
        self.found.iter().try_for_each(|place| self.check_cycle(place, &mut open, 0))
    }

    /// `open` has the schemas that were seen: true while the walk is inside them.
    fn check_cycle(
        &self,
        place: &Subschema<'a>,
        open: &mut HashMap<*const Value, bool>,
        depth: usize,
    ) -> Result<(), Error> {
        let id = from_ref(place.schema);
        match open.get(&id) {
            Some(false) => return Ok(()),
            Some(true) => {
                let message = "the schema applies itself to the same value, so checking a value would never end";
                return Err(bound(&place.path, message.into(), "refer to it from `properties` or `items`"));
            }
            None if depth > MAX_DEPTH => {
                let message = format!("more than {MAX_DEPTH} schemas apply to the same value one through another");
                return Err(bound(&place.path, message, "flatten the schema"));
            }
            None => open.insert(id, true),
        };
        for (_, next) in self.edges(place)?.into_iter().filter(|(applies, _)| *applies == Applies::Here) {
            self.check_cycle(&next, open, depth + 1)?;
        }
        open.insert(id, false);
        Ok(())
    }
}

/// Decodes `%41` in a fragment. `None` if it is not UTF-8 then.
fn decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

/// The regular expressions of a schema and their paths.
pub fn patterns(root: &Value) -> Vec<(&str, String)> {
    count(root).map(|counts| counts.patterns).unwrap_or_default()
}
