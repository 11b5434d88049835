//! Reads the fields of an object by name. Unknown keys are errors that suggest the nearest known name.

use serde_json::{Map, Value};
use stepwell_core::nearest::nearest;

/// An object being read. Each error starts with `: ` and its path.
pub struct Fields<'v> {
    path: String,
    map: &'v Map<String, Value>,
    known: Vec<&'static str>,
    faults: Vec<String>,
}

/// An error in a value, with a hint how to fix it.
pub type Wrong = String;

/// Reads an object and returns the errors in it.
pub fn object(value: &Value, path: &str, read: impl FnOnce(&mut Fields<'_>)) -> Vec<String> {
    let Value::Object(map) = value else { return vec![fault(path, &needed("an object", value))] };
    let mut fields = Fields { path: path.into(), map, known: Vec::new(), faults: Vec::new() };
    read(&mut fields);
    fields.finish()
}

impl<'v> Fields<'v> {
    /// The value of a field, unless it is absent or null.
    pub fn get(&mut self, name: &'static str) -> Option<&'v Value> {
        self.known.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub fn take<T>(&mut self, name: &'static str, read: impl FnOnce(&Value) -> Result<T, Wrong>) -> Option<T> {
        let value = self.get(name)?;
        read(value).map_err(|wrong| self.fault(name, &wrong)).ok()
    }

    /// Sets the target unless the field is absent.
    pub fn set<T>(&mut self, name: &'static str, to: &mut T, read: impl FnOnce(&Value) -> Result<T, Wrong>) {
        if let Some(value) = self.take(name, read) {
            *to = value;
        }
    }

    /// A list. The error of an item has the item's path.
    pub fn list<T>(&mut self, name: &'static str, read: impl Fn(&Value) -> Result<T, Wrong>) -> Vec<T> {
        let items = match self.get(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.fault(name, &needed("a list", other));
                return Vec::new();
            }
        };
        let mut good = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            match read(item) {
                Ok(item) => good.push(item),
                Err(wrong) => self.fault(&format!("{name}[{n}]"), &wrong),
            }
        }
        good
    }

    pub fn section(&mut self, name: &'static str, read: impl FnOnce(&mut Fields<'_>)) {
        if let Some(value) = self.get(name) {
            self.faults.extend(object(value, &join(&self.path, name), read));
        }
    }

    /// An object whose keys are names chosen by the author.
    pub fn named(&mut self, name: &'static str, mut read: impl FnMut(&str, &Value, &str) -> Vec<String>) {
        let map = match self.get(name) {
            None => return,
            Some(Value::Object(map)) => map,
            Some(other) => return self.fault(name, &needed("an object", other)),
        };
        let path = join(&self.path, name);
        for (key, value) in map {
            self.faults.extend(read(key, value, &join(&path, key)));
        }
    }

    pub fn fault(&mut self, name: &str, wrong: &str) {
        let path = if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) };
        self.faults.push(fault(&path, wrong));
    }

    fn finish(mut self) -> Vec<String> {
        for key in self.map.keys().filter(|key| !self.known.contains(&key.as_str())) {
            let hint = match nearest(key, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", self.known.join(", ")),
            };
            self.faults.push(fault(&join(&self.path, key), &format!("there is no such key; {hint}")));
        }
        self.faults
    }
}

pub fn fault(path: &str, wrong: &str) -> String {
    if path.is_empty() { format!(": {wrong}") } else { format!(": {path}: {wrong}") }
}

/// `wanted` starts with an article.
pub fn needed(wanted: &str, found: &Value) -> Wrong {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("{wanted} is needed here, not {found}")
}

fn join(parent: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (plain, parent.is_empty()) {
        (true, true) => key.into(),
        (true, false) => format!("{parent}.{key}"),
        (false, _) => format!("{parent}[{:?}]", key.chars().take(60).collect::<String>()),
    }
}
