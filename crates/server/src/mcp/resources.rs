//! Runs and workflows as resources: `stepwell://runs/{id}` and `stepwell://workflows/{name}`.

use crate::app::App;
use crate::error::Problem;
use crate::view::{Run, RunSummary, WorkflowSummary};
use reqwest::Url;
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use stepwell_engine::commands::{Right, RunQuery};
use stepwell_engine::{Caller, Error};

const RUNS: &str = "stepwell://runs";
const WORKFLOWS: &str = "stepwell://workflows";
const JSON: &str = "application/json";
/// Number of runs listed, newest first. Older ones can still be read.
const LISTED: u32 = 20;

pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{RUNS}/{{id}}"), "run")
            .with_title("A run")
            .with_description("The state of a run: its steps with input, output and errors, and what it waits for")
            .with_mime_type(JSON),
        ResourceTemplate::new(format!("{WORKFLOWS}/{{name}}"), "workflow")
            .with_title("A workflow")
            .with_description("The newest version of a workflow, with the source of its definition")
            .with_mime_type(JSON),
    ]
}

/// The workflows, and the newest runs.
pub async fn list(app: &App, caller: &Caller) -> Result<Vec<Resource>, Error> {
    if !caller.may(Right::Read) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for row in app.engine.workflows(caller).list().await? {
        let resource = Resource::new(address(WORKFLOWS, &row.name), format!("workflow {}", row.name));
        found.push(resource.with_mime_type(JSON));
    }
    let page = app.engine.runs(caller).page(RunQuery { limit: LISTED, ..RunQuery::default() }).await?;
    for run in page.runs.into_iter().map(RunSummary::from) {
        let about = format!("{} of {:?}, {}", run.status, run.workflow, run.created_at.0);
        let resource = Resource::new(address(RUNS, &run.id), format!("run {}", run.id));
        found.push(resource.with_description(about).with_mime_type(JSON));
    }
    Ok(found)
}

pub async fn read(app: &App, caller: &Caller, uri: &str) -> Result<ResourceContents, ErrorData> {
    let none = || ErrorData::resource_not_found(format!("there is no resource {uri:?}"), None);
    let text = match (name(RUNS, uri), name(WORKFLOWS, uri)) {
        (Some(run), _) => app.engine.runs(caller).get(&run).await.map(|view| json!(Run::from(view))),
        (_, Some(workflow)) => self::workflow(app, caller, &workflow).await,
        (None, None) => return Err(none()),
    };
    match text {
        Ok(text) => Ok(ResourceContents::text(format!("{text:#}"), uri).with_mime_type(JSON)),
        Err(Error::NotFound { .. }) => Err(none()),
        Err(error) => Err(super::failed(Problem::from(error))),
    }
}

async fn workflow(app: &App, caller: &Caller, name: &str) -> Result<serde_json::Value, Error> {
    let compiled = app.engine.workflows(caller).get(name).await?;
    let state = app.engine.workflows(caller).state(&compiled).await?;
    let mut shown = json!(WorkflowSummary::new(&compiled, &state));
    shown["dialect"] = compiled.definition.graph.dialect.name().into();
    shown["input_schema"] = json!(compiled.definition.input_schema);
    shown["source"] = compiled.row.source.as_str().into();
    Ok(shown)
}

/// The URI of a resource. Names may contain spaces and any script.
fn address(base: &str, name: &str) -> String {
    let mut url = Url::parse(base).expect("both are valid URIs");
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push(name);
    }
    url.to_string()
}

/// The name in a URI; `None` if the URI is of another kind.
fn name(base: &str, uri: &str) -> Option<String> {
    let name = uri.strip_prefix(base)?.strip_prefix('/')?;
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                after
            }
            _ => {
                bytes.push(first);
                after
            }
        };
    }
    let name = String::from_utf8(bytes).ok()?;
    (!name.is_empty() && !name.contains(['/', '\0'])).then_some(name)
}

/// The URI of a run.
pub fn of_run(run: &str) -> String {
    address(RUNS, run)
}

/// The run that a URI names.
pub fn run_named(uri: &str) -> Option<String> {
    name(RUNS, uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_name() {
        for word in ["order", "two words", "größe", "日本"] {
            let uri = address(WORKFLOWS, word);
            assert_eq!(name(WORKFLOWS, &uri).as_deref(), Some(word), "{uri}");
            assert_eq!(name(RUNS, &uri), None);
        }
        assert_eq!(address(RUNS, "run_1"), "stepwell://runs/run_1");
        for bad in ["stepwell://runs", "stepwell://runs/", "stepwell://runs/a/b", "stepwell://runs/%0", "x://runs/a"] {
            assert!(name(RUNS, bad).is_none_or(|name| name == "%0"), "{bad}");
        }
        assert_eq!(name(RUNS, "stepwell://runs/%zz"), None);
        assert_eq!(name(RUNS, "stepwell://runs/%ff"), None);
        assert_eq!(name(RUNS, "stepwell://runs/a%00"), None);
    }
}
