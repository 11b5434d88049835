//! Rewrites a schema so that a guard comes before each schema that can apply.
//!
//! The validator calls a schema's keywords in an order of its own, and those of other crates last. But it applies the
//! schemas of an `allOf` in order. So each schema `S` becomes `{"allOf": [guard, S]}`, which means the same. That moves
//! schemas to other paths, so the targets of references are collected in one place and the references are rewritten.

use super::Error;
use super::bounds::{Applies, Shape, Targets, is_reference, keyword};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::ptr::from_ref;

/// The schema with guards. Only for a schema within the bounds.
pub fn guarded(root: &Value, guard: impl Fn(&Map<String, Value>) -> Value) -> Result<Value, Error> {
    let mut rewrite =
        Rewrite { targets: Targets::new(root)?, guard, numbers: HashMap::new(), waiting: VecDeque::new() };
    let first = rewrite.reference(root);
    let mut all = Map::new();
    while let Some((name, schema)) = rewrite.waiting.pop_front() {
        let schema = rewrite.schema(schema)?;
        all.insert(name, schema);
    }
    let mut document = json!({"$ref": first, "$defs": all});
    if let Some(draft) = root.get("$schema") {
        document["$schema"] = draft.clone();
    }
    Ok(document)
}

struct Rewrite<'a, G> {
    targets: Targets<'a>,
    guard: G,
    /// The numbers of the targets of references, by address.
    numbers: HashMap<*const Value, usize>,
    /// Targets that are not rewritten yet.
    waiting: VecDeque<(String, &'a Value)>,
}

impl<'a, G: Fn(&Map<String, Value>) -> Value> Rewrite<'a, G> {
    /// The reference to a target in the new schema.
    fn reference(&mut self, target: &'a Value) -> String {
        let next = self.numbers.len();
        let number = *self.numbers.entry(from_ref(target)).or_insert(next);
        let name = number.to_string();
        let reference = format!("#/$defs/{name}");
        if number == next {
            self.waiting.push_back((name, target));
        }
        reference
    }

    fn schema(&mut self, schema: &'a Value) -> Result<Value, Error> {
        let Value::Object(map) = schema else { return Ok(schema.clone()) };
        let mut new = Map::new();
        for (name, value) in map {
            let value = match (keyword(name), value) {
                (None, Value::String(reference)) if is_reference(name) && name != "$recursiveRef" => {
                    let target = self.targets.find(name, reference);
                    let invalid = |why: &str| Error::Invalid { path: String::new(), message: why.into() };
                    Value::String(self.reference(target.map_err(invalid)?.schema))
                }
                (None, _) if matches!(&**name, "$schema" | "$id" | "$anchor" | "$dynamicAnchor") => continue,
                (None, Value::String(_)) if name == "id" => continue,
                (None, _) => value.clone(),
                (Some((_, Applies::Nowhere)), _) => continue,
                (Some((Shape::Direct, _)), Value::Array(list)) => {
                    Value::Array(list.iter().map(|schema| self.schema(schema)).collect::<Result<_, _>>()?)
                }
                (Some((Shape::Named, _)), Value::Object(named)) => {
                    let entries = named.iter().map(|(name, schema)| Ok((name.clone(), self.schema(schema)?)));
                    Value::Object(entries.collect::<Result<_, Error>>()?)
                }
                (Some(_), value) => self.schema(value)?,
            };
            new.insert(name.clone(), value);
        }
        Ok(json!({"allOf": [(self.guard)(map), new]}))
    }
}
