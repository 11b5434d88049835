//! Reads the fields of an object by name, and reports unknown ones.

use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::source::{Entry, Node, Value, join_key};
use crate::vocabulary::{ANY, Object, Shape, UNKNOWN, WORKFLOW};
use stepwell_core::quote::quote;

/// An object being read. A field that was not taken is reported as a fault by [`Fields::finish`].
pub struct Fields<'d> {
    pub place: Place,
    /// What fields there are.
    object: &'static Object,
    /// The shape of values under the author's own names.
    inner: &'static Shape,
    layers: Vec<Layer<'d>>,
    /// All requested names, for suggestions.
    known: Vec<&'static str>,
}

/// One of several objects that are read as one.
struct Layer<'d> {
    entries: &'d [Entry],
    path: String,
    used: Vec<bool>,
}

/// A field that was found.
#[derive(Clone)]
pub struct Field<'d> {
    pub node: &'d Node,
    pub place: Place,
    pub shape: &'static Shape,
}

impl<'d> Fields<'d> {
    pub fn of_root(root: &'d Node, draft: &mut Draft<'d>) -> Option<Fields<'d>> {
        static ROOT: Shape = Shape::Object(&WORKFLOW);
        let place = Place { path: String::new(), span: root.span };
        Fields::of(&Field { node: root, place, shape: &ROOT }, draft)
    }

    pub fn of(field: &Field<'d>, draft: &mut Draft<'d>) -> Option<Fields<'d>> {
        let Value::Map(entries) = &field.node.value else {
            draft.wrong_type(field, "an object");
            return None;
        };
        let layer = Layer { entries, path: field.place.path.clone(), used: vec![false; entries.len()] };
        let (object, inner) = (field.shape.object().unwrap_or(&UNKNOWN), field.shape.inner());
        Some(Fields { place: field.place.clone(), object, inner, layers: vec![layer], known: Vec::new() })
    }

    /// Adds the fields of another object to this one; the first object that has a field wins.
    pub fn add_layer(&mut self, field: &Field<'d>, draft: &mut Draft<'d>) {
        if let Some(mut more) = Fields::of(field, draft) {
            self.layers.append(&mut more.layers);
        }
    }

    /// The field, unless it is absent or null.
    pub fn take(&mut self, name: &'static str) -> Option<Field<'d>> {
        self.take_raw(name).filter(|field| !field.node.is_null())
    }

    /// The field, even if it is null.
    pub fn take_raw(&mut self, name: &'static str) -> Option<Field<'d>> {
        let shape = self.object.find(name).map(|def| &def.shape);
        // The tests of the schema find fields that are read but not described.
        #[cfg(test)]
        assert!(shape.is_some() || self.object.open, "`{name}` of `{}` is missing in `vocabulary/`", self.object.name);
        self.find(name, shape.unwrap_or(&ANY))
    }

    fn find(&mut self, name: &'static str, shape: &'static Shape) -> Option<Field<'d>> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        let mut found = None;
        for layer in &mut self.layers {
            for (entry, used) in layer.entries.iter().zip(&mut layer.used) {
                if entry.key == name {
                    *used = true;
                    found = found.or_else(|| Some(field(entry, &layer.path, shape)));
                }
            }
        }
        found
    }

    /// Takes the field that exists under one of several spellings; two of them are a fault.
    pub fn take_one(&mut self, names: &[&'static str], draft: &mut Draft<'d>) -> Option<(&'static str, Field<'d>)> {
        let mut found: Option<(&'static str, Field<'d>)> = None;
        for name in names {
            let Some(field) = self.take(name) else { continue };
            match &found {
                None => found = Some((name, field)),
                Some((first, _)) => {
                    let message = format!("`{name}` has the same meaning as `{first}`");
                    draft.fault(&field.place, Fault::new(code::NOT_ALLOWED, message).hint("keep one of them"));
                }
            }
        }
        found
    }

    /// Whether the field exists and is not null; does not take it.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|node| !node.is_null())
    }

    pub fn has_raw(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn get(&self, name: &str) -> Option<&'d Node> {
        let mut entries = self.layers.iter().flat_map(|layer| layer.entries);
        entries.find(|entry| entry.key == name).map(|entry| &entry.value)
    }

    /// The names of all existing fields.
    pub fn names(&self) -> impl Iterator<Item = &'d str> {
        self.layers.iter().flat_map(|layer| layer.entries).map(|entry| entry.key.as_str())
    }

    /// All entries, in order, for objects whose keys are the author's own names.
    pub fn into_entries(self) -> impl Iterator<Item = (&'d Entry, Field<'d>)> {
        let inner = self.inner;
        self.layers
            .into_iter()
            .flat_map(move |layer| layer.entries.iter().map(move |entry| (entry, field(entry, &layer.path, inner))))
    }

    /// The place of the key itself.
    pub fn key_place(&self, name: &str) -> Place {
        for layer in &self.layers {
            if let Some(entry) = layer.entries.iter().find(|entry| entry.key == name) {
                return key_place(entry, &layer.path);
            }
        }
        self.place.clone()
    }

    /// Takes fields that the engine does not use.
    pub fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            self.find(name, &ANY);
        }
        self.known.retain(|known| !names.contains(known));
    }

    /// Stops the check for unknown fields, where another fault means that they cannot be judged.
    pub fn ignore_rest(&mut self) {
        for layer in &mut self.layers {
            layer.used.fill(true);
        }
    }

    /// Reports the remaining fields as unknown. `elsewhere` are names that exist, but not in `what`.
    pub fn finish(self, draft: &mut Draft<'d>, what: &str, elsewhere: &[&str]) {
        for layer in &self.layers {
            let left = layer.entries.iter().zip(&layer.used).filter(|(_, used)| !**used);
            for (entry, _) in left {
                // Some programs set a known field to null instead of leaving it out.
                if entry.value.is_null() && elsewhere.contains(&entry.key.as_str()) {
                    continue;
                }
                let fault = self.unknown(draft, &entry.key, what, elsewhere);
                draft.fault(&key_place(entry, &layer.path), fault);
            }
        }
    }

    fn unknown(&self, draft: &Draft<'_>, key: &str, what: &str, elsewhere: &[&str]) -> Fault {
        if elsewhere.contains(&key) {
            return Fault::new(code::NOT_ALLOWED, format!("{what} cannot have `{key}`"));
        }
        let fault = Fault::new(code::UNKNOWN_FIELD, format!("{what} has no field {}", quoted(key)));
        match draft.near(key, self.known.iter().copied()) {
            Some(near) => fault.hint(near),
            None if self.known.len() <= 12 => fault.hint(format!("known here: {}", self.known.join(", "))),
            None => fault,
        }
    }
}

fn field<'d>(entry: &'d Entry, parent: &str, shape: &'static Shape) -> Field<'d> {
    let span = entry.value.span.or(entry.key_span);
    Field { node: &entry.value, place: Place { path: join_key(parent, &entry.key), span }, shape }
}

fn key_place(entry: &Entry, parent: &str) -> Place {
    Place { path: join_key(parent, &entry.key), span: entry.key_span }
}

/// Quotes a name for messages, and truncates it if it is very long.
pub fn quoted(name: &str) -> String {
    const SHOWN: usize = 60;
    match name.char_indices().nth(SHOWN) {
        Some((at, _)) => quote(&format!("{}…", &name[..at])),
        None => quote(name),
    }
}
