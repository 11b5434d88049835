//! Compiled definitions, in a bounded cache.

use crate::access::{Access, ByEpoch};
use crate::error::Error;
use crate::schema::{self, Schema};
use crate::secrets::is_name;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use stepwell_core::definition::Definition;
use stepwell_core::expr::Expr;
use stepwell_core::graph::{Call, Graph, Kind, Step};
use stepwell_core::template::Template;
use stepwell_formats::{Fault, Faults};
use stepwell_store::{DefinitionRow, OrgId, Store};

/// The most versions in the cache, and the most bytes of their source, of which a version takes several times as much
/// memory. A full cache is cleared.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 32 << 20;

/// The most faults of an input that are reported.
const MOST_FAULTS: usize = 10;

/// A definition that was read.
pub struct Checked {
    pub definition: Definition,
    /// The source text, as the author wrote it.
    pub text: String,
    /// What is suspicious but not wrong.
    pub warnings: Vec<Fault>,
    schema: InputSchema,
}

/// The `input_schema`, or why it cannot be used: a stored definition may be older than the bounds of schemas.
type InputSchema = Option<Result<Schema, schema::Error>>;

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl Checked {
    pub fn new(definition: Definition, text: &str) -> Checked {
        let schema = definition.input_schema.as_ref().map(Schema::bounded);
        Checked { definition, text: text.to_string(), warnings: Vec::new(), schema }
    }

    /// Refuses schemas that cannot be used: the `input_schema`, and the forms of gates.
    pub async fn check_schemas(&self) -> Result<(), Error> {
        if let Some(schema) = self.definition.input_schema.as_ref() {
            schema::check(schema).await.map_err(|error| error.at("input_schema", "input"))?;
        }
        for (path, form) in forms(&self.definition) {
            schema::check(form).await.map_err(|error| error.at(&format!("{path}.form"), "data"))?;
        }
        Ok(())
    }

    /// Refuses an input that the workflow's `input_schema` does not allow. The error lists the paths and reasons.
    pub async fn check_input(&self, input: &Arc<Value>) -> Result<(), Error> {
        check_against(&self.schema, input).await
    }
}

/// A stored version of a workflow, ready to run.
pub struct Compiled {
    pub row: DefinitionRow,
    pub definition: Definition,
    schema: InputSchema,
    /// Names of all secrets that its steps use.
    pub secrets: Arc<[Box<str>]>,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").field("row", &self.row).finish_non_exhaustive()
    }
}

impl Compiled {
    /// Refuses an input that the workflow's `input_schema` does not allow. The error lists the paths and reasons.
    pub async fn check_input(&self, input: &Arc<Value>) -> Result<(), Error> {
        check_against(&self.schema, input).await
    }
}

async fn check_against(schema: &InputSchema, input: &Arc<Value>) -> Result<(), Error> {
    let faults = match schema {
        None => return Ok(()),
        Some(Ok(schema)) => schema.faults(input.clone(), MOST_FAULTS).await,
        Some(Err(error)) => Err(error.clone()),
    };
    let faults = faults.map_err(|error| error.at("input_schema", "input"))?.into_iter();
    let faults: Vec<(String, String)> = faults.map(|fault| (format!("input{}", fault.path), fault.message)).collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::Inputs(faults)) }
}

/// The names of all secrets that its steps use.
pub fn secrets(definition: &Definition) -> Arc<[Box<str>]> {
    let inputs = definition.graph.steps.iter().filter_map(|step| match &step.def.kind {
        Kind::Call { input, .. } => Some(input),
        _ => None,
    });
    let paths = inputs.flat_map(Template::exprs).filter_map(Expr::as_path);
    let mut names: BTreeSet<&str> =
        paths.filter(|path| path.begins_with("secrets")).filter_map(|path| path.key(1)).collect();
    for (_, input) in code(definition) {
        names.extend(in_code(input["code"].as_str().unwrap_or_default()));
    }
    names.into_iter().map(Into::into).collect()
}

/// The constant inputs of javascript steps, with the paths of the steps.
pub fn code(definition: &Definition) -> impl Iterator<Item = (String, &Value)> {
    let graph = &definition.graph;
    graph.steps.iter().filter_map(|step| match &step.def.kind {
        Kind::Call { call: Call::Javascript, input } => Some((path(graph, step), input.as_constant()?)),
        _ => None,
    })
}

/// The constant forms of gates, with the paths of the steps.
fn forms(definition: &Definition) -> impl Iterator<Item = (String, &Value)> {
    let graph = &definition.graph;
    graph.steps.iter().filter_map(|step| match &step.def.kind {
        Kind::Gate(gate) => Some((path(graph, step), gate.ask.constant_field("form")?)),
        _ => None,
    })
}

/// The path of a step, without iterations.
fn path(graph: &Graph, step: &Step) -> String {
    let owner = graph.scopes[step.scope.0 as usize].owner;
    let before = owner.map(|owner| path(graph, graph.step(owner)) + ".").unwrap_or_default();
    before + &step.def.name
}

/// The secrets that code uses as `secrets.NAME` or `secrets["NAME"]`.
fn in_code(code: &str) -> impl Iterator<Item = &str> {
    code.split("secrets").skip(1).filter_map(|rest| {
        let name = rest.trim_start_matches(|c: char| c.is_whitespace() || "?.[\"'`".contains(c));
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        (name.len() < rest.len() && is_name(&name[..end])).then(|| &name[..end])
    })
}

#[derive(Default)]
pub struct Definitions {
    by_id: Mutex<Cached>,
    /// The newest version of a workflow, by its name or `wf_…`.
    newest: ByEpoch<(OrgId, String), i64>,
}

/// The versions in the cache.
#[derive(Default)]
struct Cached {
    by_id: HashMap<i64, Arc<Compiled>>,
    bytes: usize,
}

impl Cached {
    /// Counts a source that is cached now. If it does not fit, all others are removed.
    fn make_room(&mut self, source: usize) {
        if self.by_id.len() >= MOST || self.bytes + source > MOST_BYTES {
            self.by_id.clear();
            self.bytes = 0;
        }
        self.bytes += source;
    }
}

impl Definitions {
    fn by_id(&self) -> MutexGuard<'_, Cached> {
        self.by_id.lock().expect("no thread panics while it holds the lock on definitions")
    }

    pub async fn get(&self, store: &dyn Store, id: i64) -> Result<Arc<Compiled>, Error> {
        if let Some(known) = self.by_id().by_id.get(&id) {
            return Ok(known.clone());
        }
        let row = store.definition(id).await?;
        let row = row.ok_or_else(|| Error::Broken(format!("the definition {id} of a stored run does not exist")))?;
        self.keep(row)
    }

    /// The newest version of a workflow that is not deleted. Every new version increments the organisation's epoch.
    pub async fn newest(&self, access: &Access, org: OrgId, name: &str) -> Result<Arc<Compiled>, Error> {
        let epoch = access.epoch(org).await?;
        let key = (org, name.to_string());
        if let Some(known) = self.newest.get(&key, epoch) {
            return self.get(&*access.cluster.store, known).await;
        }
        let row = access.cluster.store.find_definition(org, name).await?;
        let row = row.ok_or_else(|| Error::NotFound { what: "workflow", name: name.to_string() })?;
        let compiled = self.keep(row)?;
        self.newest.put(key, epoch, compiled.row.id);
        Ok(compiled)
    }

    /// Compiles a stored version, unless it is cached.
    pub fn keep(&self, row: DefinitionRow) -> Result<Arc<Compiled>, Error> {
        if let Some(known) = self.by_id().by_id.get(&row.id) {
            return Ok(known.clone());
        }
        let definition = read(&row.source).map_err(|faults| {
            Error::Broken(format!("version {} of workflow {:?} cannot be read: {faults}", row.version, row.name))
        })?;
        let checked = Checked::new(definition, &row.source);
        Ok(self.insert(row, checked))
    }

    /// Caches a stored version that was checked already.
    pub fn insert(&self, row: DefinitionRow, checked: Checked) -> Arc<Compiled> {
        let mut known = self.by_id();
        if let Some(known) = known.by_id.get(&row.id) {
            return known.clone();
        }
        let Checked { definition, schema, .. } = checked;
        let compiled = Arc::new(Compiled { row, secrets: secrets(&definition), definition, schema });
        known.make_room(compiled.row.source.len());
        known.by_id.insert(compiled.row.id, compiled.clone());
        compiled
    }
}

/// Parses a stored definition, which is JSON or YAML.
pub fn read(source: &str) -> Result<Definition, Faults> {
    // YAML can be mistaken for JSON, so try both. A valid definition is valid in one of the two.
    stepwell_formats::read(source.as_bytes(), None)
        .or_else(|faults| stepwell_formats::read(source.as_bytes(), Some("stored.yaml")).map_err(|_| faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_versions_leave_the_cache_when_their_sources_are_too_long_together() {
        let definitions = Definitions::default();
        let text = |n: usize| {
            let space = " ".repeat(MOST_BYTES / 10);
            format!(r#"{{"name": "w{n}", {space}"tasks": {{"a": {{"sleep": 1}}}}}}"#)
        };
        let mut most = 0;
        for n in 0..25 {
            let source = text(n);
            let (workflow, name) = (format!("wf_{n}"), format!("w{n}"));
            let (by, author) = ("ann".to_string(), "local".to_string());
            let (org, at) = (OrgId(1), stepwell_core::time::Time(0));
            let row = DefinitionRow { id: n as i64, workflow, org, name, version: 1, source, by, author, at };
            definitions.keep(row).unwrap();
            let cached = definitions.by_id();
            assert!(cached.by_id.contains_key(&(n as i64)), "the newest is there");
            let bytes: usize = cached.by_id.values().map(|one| one.row.source.len()).sum();
            assert_eq!(bytes, cached.bytes);
            most = most.max(bytes);
        }
        assert!((MOST_BYTES / 2..=MOST_BYTES).contains(&most), "{most} bytes");
    }

    #[test]
    fn secrets_in_code_are_found() {
        let code = "a(secrets.KEY, secrets?.OTHER, secrets [ 'THIRD' ], secrets[name]); const { LOST } = secrets;";
        assert_eq!(in_code(code).collect::<Vec<_>>(), ["KEY", "OTHER", "THIRD", "name"]);
        assert_eq!(in_code("no_secrets_here + secrets").count(), 0);
    }
}
