//! Definitions, compiled once and kept within a bound.

use crate::error::Error;
use jsonschema::Validator;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_core::definition::Definition;
use stepwell_formats::Faults;
use stepwell_store::{DefinitionRow, OrgId, Store};

/// Versions kept in memory. One that is not is read and compiled again.
const MOST: usize = 1_000;

/// Faults of an input that are told at the most.
const MOST_FAULTS: usize = 10;

/// A stored version of a workflow, ready to run.
#[derive(Debug)]
pub struct Compiled {
    pub row: DefinitionRow,
    pub definition: Definition,
    schema: Option<Validator>,
}

impl Compiled {
    /// Refuses an input that the workflow's `input_schema` does not allow, and says where and why.
    pub fn check_input(&self, input: &Value) -> Result<(), Error> {
        check_against(self.schema.as_ref(), input)
    }
}

/// The same, for a definition that is not stored yet.
pub fn check_input(definition: &Definition, input: &Value) -> Result<(), Error> {
    check_against(schema(definition)?.as_ref(), input)
}

fn check_against(schema: Option<&Validator>, input: &Value) -> Result<(), Error> {
    let Some(schema) = schema else { return Ok(()) };
    let faults: Vec<(String, String)> = schema
        .iter_errors(input)
        .take(MOST_FAULTS)
        .map(|fault| (format!("input{}", fault.instance_path()), fault.to_string()))
        .collect();
    let Some((path, first)) = faults.first() else { return Ok(()) };
    let others = faults[1..].iter().map(|(path, message)| format!("; {path}: {message}")).collect::<String>();
    Err(Error::Input { path: path.clone(), message: format!("{first}{others}") })
}

/// Reads the schema of inputs. Nothing is fetched: a schema stands for itself.
pub fn schema(definition: &Definition) -> Result<Option<Validator>, Error> {
    let bad = |error: jsonschema::ValidationError<'_>| Error::Input {
        path: "input_schema".into(),
        message: format!("this is not a JSON Schema that can be used: {error}"),
    };
    definition.input_schema.as_ref().map(jsonschema::validator_for).transpose().map_err(bad)
}

#[derive(Default)]
pub struct Definitions {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<i64, Arc<Compiled>>,
    /// The newest version of a workflow by its name and its `wf_…`, as far as this process knows.
    newest: HashMap<(OrgId, String), i64>,
}

impl Definitions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nothing panics while it holds the definitions")
    }

    pub async fn get(&self, store: &dyn Store, id: i64) -> Result<Arc<Compiled>, Error> {
        if let Some(known) = self.known().by_id.get(&id) {
            return Ok(known.clone());
        }
        let row = store.definition(id).await?;
        let row = row.ok_or_else(|| Error::Broken(format!("the definition {id} of a stored run is gone")))?;
        self.keep(row)
    }

    /// The newest version of a living workflow.
    pub async fn newest(&self, store: &dyn Store, org: OrgId, name: &str) -> Result<Arc<Compiled>, Error> {
        let known = {
            let known = self.known();
            known.newest.get(&(org, name.to_string())).and_then(|id| known.by_id.get(id)).cloned()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let row = store.find_definition(org, name).await?;
        let row = row.ok_or_else(|| Error::NotFound { what: "workflow", name: name.to_string() })?;
        let compiled = self.keep(row)?;
        self.is_newest(&compiled);
        Ok(compiled)
    }

    pub fn is_newest(&self, compiled: &Compiled) {
        let mut known = self.known();
        // Two may have looked at the same time, one before a newer version was there: ids grow.
        for name in [&compiled.row.name, &compiled.row.workflow] {
            let newest = known.newest.entry((compiled.row.org, name.clone())).or_default();
            *newest = compiled.row.id.max(*newest);
        }
    }

    /// The workflow is gone: its name is free.
    pub fn forget(&self, row: &DefinitionRow) {
        let mut known = self.known();
        for name in [&row.name, &row.workflow] {
            known.newest.remove(&(row.org, name.clone()));
        }
    }

    pub fn keep(&self, row: DefinitionRow) -> Result<Arc<Compiled>, Error> {
        let definition = read(&row.source).map_err(|faults| {
            Error::Broken(format!("version {} of workflow {:?} cannot be read: {faults}", row.version, row.name))
        })?;
        let schema = schema(&definition)?;
        let compiled = Arc::new(Compiled { row, definition, schema });
        let mut known = self.known();
        if known.by_id.len() >= MOST {
            *known = Known::default();
        }
        known.by_id.insert(compiled.row.id, compiled.clone());
        Ok(compiled)
    }
}

/// Reads a definition as it was stored: the text its author wrote, JSON or YAML.
pub fn read(source: &str) -> Result<Definition, Faults> {
    // YAML may look like JSON at first; a good definition is good in one of the two.
    stepwell_formats::read(source.as_bytes(), None)
        .or_else(|faults| stepwell_formats::read(source.as_bytes(), Some("stored.yaml")).map_err(|_| faults))
}
