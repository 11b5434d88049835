//! Definitions, compiled once and kept within a bound.

use crate::cache::ByEpoch;
use crate::engine::Inner;
use crate::error::Error;
use jsonschema::Validator;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_core::definition::Definition;
use stepwell_core::expr::Expr;
use stepwell_core::graph::{Call, Kind};
use stepwell_core::template::Template;
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
    /// Names of all secrets that its steps use.
    pub secrets: Arc<[Box<str>]>,
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
    if faults.is_empty() { Ok(()) } else { Err(Error::Inputs(faults)) }
}

/// Reads the schema of inputs. Nothing is fetched: a schema stands for itself.
pub fn schema(definition: &Definition) -> Result<Option<Validator>, Error> {
    let bad = |error: jsonschema::ValidationError<'_>| Error::Input {
        path: "input_schema".into(),
        message: format!("this is not a JSON Schema that can be used: {error}"),
    };
    definition.input_schema.as_ref().map(jsonschema::validator_for).transpose().map_err(bad)
}

fn secrets(definition: &Definition) -> Arc<[Box<str>]> {
    let inputs = definition.graph.steps.iter().filter_map(|step| match &step.def.kind {
        Kind::Call { input, .. } => Some(input),
        _ => None,
    });
    let paths = inputs.flat_map(Template::exprs).filter_map(Expr::as_path);
    let mut names: BTreeSet<&str> =
        paths.filter(|path| path.begins_with("secrets")).filter_map(|path| path.key(1)).collect();
    let constants = definition.graph.steps.iter().filter_map(|step| match &step.def.kind {
        Kind::Call { call: Call::Javascript, input, .. } => input.as_constant(),
        _ => None,
    });
    names.extend(constants.filter_map(|input| input.get("code")?.as_str()).flat_map(named_in));
    names.into_iter().map(Into::into).collect()
}

/// The secrets that code names as `secrets.NAME` or `secrets["NAME"]`. What it puts together otherwise is not found.
fn named_in(code: &str) -> impl Iterator<Item = &str> {
    code.split("secrets").skip(1).filter_map(|rest| {
        let rest = rest.trim_start().trim_start_matches("?.").trim_start_matches('.').trim_start();
        let rest = rest.strip_prefix('[').map_or(rest, |rest| rest.trim_start().trim_start_matches(['"', '\'', '`']));
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[derive(Default)]
pub struct Definitions {
    by_id: Mutex<HashMap<i64, Arc<Compiled>>>,
    /// The newest version of a workflow by its name and by its `wf_…`.
    newest: ByEpoch<(OrgId, String), Arc<Compiled>>,
}

impl Definitions {
    fn by_id(&self) -> MutexGuard<'_, HashMap<i64, Arc<Compiled>>> {
        self.by_id.lock().expect("nothing panics while it holds the definitions")
    }

    pub async fn get(&self, store: &dyn Store, id: i64) -> Result<Arc<Compiled>, Error> {
        if let Some(known) = self.by_id().get(&id) {
            return Ok(known.clone());
        }
        let row = store.definition(id).await?;
        let row = row.ok_or_else(|| Error::Broken(format!("the definition {id} of a stored run is gone")))?;
        self.keep(row)
    }

    /// The newest version of a living workflow. Every new version moves the organisation's epoch on.
    pub async fn newest(&self, inner: &Inner, org: OrgId, name: &str) -> Result<Arc<Compiled>, Error> {
        let epoch = inner.epoch(org).await?;
        let key = (org, name.to_string());
        if let Some(known) = self.newest.get(&key, epoch) {
            return Ok(known);
        }
        let row = inner.store.find_definition(org, name).await?;
        let row = row.ok_or_else(|| Error::NotFound { what: "workflow", name: name.to_string() })?;
        let compiled = self.keep(row)?;
        self.newest.put(key, epoch, compiled.clone());
        Ok(compiled)
    }

    pub fn keep(&self, row: DefinitionRow) -> Result<Arc<Compiled>, Error> {
        if let Some(known) = self.by_id().get(&row.id) {
            return Ok(known.clone());
        }
        let definition = read(&row.source).map_err(|faults| {
            Error::Broken(format!("version {} of workflow {:?} cannot be read: {faults}", row.version, row.name))
        })?;
        let schema = schema(&definition)?;
        let compiled = Arc::new(Compiled { row, secrets: secrets(&definition), definition, schema });
        let mut known = self.by_id();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(compiled.row.id, compiled.clone());
        Ok(compiled)
    }
}

/// Reads a definition as it was stored: the text its author wrote, JSON or YAML.
pub fn read(source: &str) -> Result<Definition, Faults> {
    // YAML may look like JSON at first; a good definition is good in one of the two.
    stepwell_formats::read(source.as_bytes(), None)
        .or_else(|faults| stepwell_formats::read(source.as_bytes(), Some("stored.yaml")).map_err(|_| faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_code_names_are_found() {
        let code = "fetch(u, {headers: {a: secrets.A, b: secrets['B_2'], c: secrets [\"C\"], d: secrets?.D}}); secrets";
        assert_eq!(named_in(code).collect::<Vec<_>>(), ["A", "B_2", "C", "D"]);
    }
}
