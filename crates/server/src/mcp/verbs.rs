//! What can be done with runs and versions beside starting, answering and cancelling.

use super::call::{Call, page_of};
use super::runs::{self, Detail};
use super::{bounds, help, text};
use crate::error::Problem;
use crate::view::{CatalogueTool, Step};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stepwell_engine::commands::{Retry, Right, Source, StepQuery};

#[derive(Deserialize)]
pub struct Help {
    topic: Option<String>,
}

#[derive(Deserialize)]
pub struct Tools {
    query: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
pub struct Wait {
    run_id: String,
    wait_seconds: Option<f64>,
}

#[derive(Deserialize)]
pub struct StepResult {
    run_id: String,
    step_name: Option<String>,
    what: Option<String>,
    #[serde(default)]
    offset: usize,
    max_bytes: Option<usize>,
}

#[derive(Deserialize)]
pub struct Deliver {
    run_id: String,
    step_name: String,
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
pub struct Again {
    run_id: String,
    #[serde(default)]
    newest: bool,
    input: Option<Value>,
    wait_seconds: Option<f64>,
}

#[derive(Deserialize)]
pub struct Diff {
    workflow: String,
    from: Option<u32>,
    to: Option<u32>,
    definition: Option<Value>,
}

pub fn help(asked: &Help) -> Result<CallToolResult, Problem> {
    let text = help::about(asked.topic.as_deref().unwrap_or(help::TOPICS[0].0))?;
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
}

impl Call<'_> {
    /// The tools that steps may call.
    pub async fn tools(self, asked: Tools) -> Result<CallToolResult, Problem> {
        let all = self.app.engine.mcp_servers(self.caller).catalogue().await?.into_iter().map(CatalogueTool::from);
        let word = asked.query.unwrap_or_default().to_lowercase();
        let found = all
            .filter(|tool| tool.name.to_lowercase().contains(&word) || tool.description.to_lowercase().contains(&word));
        let after = asked.cursor.unwrap_or_default();
        let found = found.filter(|tool| after.is_empty() || tool.name > after).map(|tool| json!(tool));
        let limit = asked.limit.unwrap_or(50) as usize;
        let (shown, next) = page_of(found.collect(), limit, "name");
        let line = |tool: &Value| {
            let may = if tool["allowed"] == true { "" } else { " (not with this key)" };
            let reads = if tool["read_only"] == true { " [reads]" } else { "" };
            format!(
                "\n- {}{reads}{may}: {}",
                tool["name"].as_str().unwrap_or_default(),
                tool["description"].as_str().unwrap_or_default()
            )
        };
        let text = match shown.len() {
            0 => "No tools match.".to_string(),
            count => format!(
                "{count} tool{}:{}",
                if count == 1 { "" } else { "s" },
                shown.iter().map(line).collect::<String>()
            ),
        };
        Ok(text::result(json!({"tools": shown, "next": next}), text))
    }

    pub async fn wait(self, asked: Wait) -> Result<CallToolResult, Problem> {
        let wait = asked.wait_seconds.map_or(runs::LONGEST_WAIT, super::call::seconds);
        runs::wait(self.app, self.caller, &asked.run_id, wait).await?;
        Ok(runs::read(self.app, self.caller, &asked.run_id).await?.shown(Detail::Brief))
    }

    /// A page of a value as JSON text.
    pub async fn step_result(self, asked: StepResult) -> Result<CallToolResult, Problem> {
        let state = runs::read(self.app, self.caller, &asked.run_id).await?;
        let what = asked.what.as_deref().unwrap_or("output");
        let value = match &asked.step_name {
            None => match what {
                "input" => Some(state.run.input.clone()),
                "error" => state.run.error.as_ref().map(|error| json!(error)),
                _ => state.run.output.clone(),
            },
            Some(name) => {
                let step = state.run.tasks.0.iter().find(|(path, step)| path == name || step.id == *name);
                let (path, step) = step.ok_or_else(|| Problem::not_found(format!("the run has no step {name:?}")))?;
                let whole = match step.is_omitted && self.caller.may(Right::Read) {
                    true => self.whole_step(&state.run.id, path).await?,
                    false => None,
                };
                let step = whole.as_ref().unwrap_or(step);
                match what {
                    "input" => step.input.clone(),
                    "error" => step.error.as_ref().map(|error| json!(error)),
                    _ => step.output.clone(),
                }
            }
        };
        let Some(value) = value else {
            return Err(Problem::not_found(format!("it has no {what} (the run is {})", state.run.status)));
        };
        let whole = value.to_string();
        let most = asked.max_bytes.unwrap_or(bounds::TEXT);
        let start = whole.floor_char_boundary(asked.offset.min(whole.len()));
        let end = whole.floor_char_boundary(whole.len().min(start + most));
        let next = (end < whole.len()).then_some(end);
        let page = &whole[start..end];
        let more = next.map(|next| format!("\n(bytes {start} to {end} of {}; go on with offset {next})", whole.len()));
        // Once as text for clients that show only that; the structured content says where it is.
        let mut result =
            CallToolResult::success(vec![ContentBlock::text(format!("{page}{}", more.unwrap_or_default()))]);
        result.structured_content = Some(json!({"text": page, "offset": start, "next": next, "total": whole.len()}));
        Ok(result)
    }

    /// A step with the payloads that the view of its run leaves out.
    async fn whole_step(self, run: &str, path: &str) -> Result<Option<Step>, Problem> {
        let query = StepQuery { path: Some(path.into()), limit: 1, ..StepQuery::default() };
        let page = self.app.engine.runs(self.caller).steps(run, &query).await?;
        Ok(page.steps.into_iter().next().map(|step| Step::with_path(run, step).1))
    }

    pub async fn deliver(self, asked: Deliver) -> Result<CallToolResult, Problem> {
        self.app.engine.steps(self.caller).deliver_to(&asked.run_id, &asked.step_name, asked.body).await?;
        self.after(&asked.run_id).await
    }

    pub async fn retry(self, asked: Again) -> Result<CallToolResult, Problem> {
        let onto = if asked.newest { Retry::Newest } else { Retry::SameVersion };
        self.app.engine.runs(self.caller).retry(&asked.run_id, onto).await?;
        let wait = asked.wait_seconds.map_or(runs::USUAL_WAIT, super::call::seconds);
        runs::wait(self.app, self.caller, &asked.run_id, wait).await?;
        Ok(runs::read(self.app, self.caller, &asked.run_id).await?.shown(Detail::Brief))
    }

    pub async fn rerun(self, asked: Again) -> Result<CallToolResponse, Problem> {
        let started = self.app.engine.runs(self.caller).rerun(&asked.run_id, asked.input).await?;
        self.begun(started, asked.wait_seconds.map_or(runs::USUAL_WAIT, super::call::seconds)).await
    }

    /// What changed between two versions, or in a definition that is not stored.
    pub async fn diff(self, asked: Diff) -> Result<CallToolResult, Problem> {
        let workflows = self.app.engine.workflows(self.caller);
        let newest = workflows.find(&asked.workflow).await?;
        let (to, new) = match asked.definition {
            Some(definition) => {
                let text = match definition {
                    Value::String(text) => text,
                    object => object.to_string(),
                };
                let checked = workflows.check(Source { text: &text, file: None }).await?;
                (None, document(&checked.text))
            }
            None => {
                let to = asked.to.unwrap_or(newest.row.version);
                (Some(to), document(&workflows.version(&asked.workflow, to).await?.row.source))
            }
        };
        let from = asked.from.unwrap_or(to.map_or(newest.row.version, |to| to.saturating_sub(1).max(1)));
        let old = document(&workflows.version(&asked.workflow, from).await?.row.source);
        let (fields, steps) = changes(&old, &new);
        let changed = !fields.is_empty() || !steps.is_empty();
        let named = |map: &Map<String, Value>| {
            map.iter().map(|(name, change)| format!("\n- {name}: {}", sort_of(change))).collect::<String>()
        };
        let other = to.map_or("the definition".to_string(), |to| format!("version {to}"));
        let text = match changed {
            false => format!("Version {from} and {other} are the same."),
            true => format!("From version {from} to {other}:{}{}", named(&fields), named(&steps)),
        };
        Ok(text::result(json!({"changed": changed, "from": from, "to": to, "fields": fields, "steps": steps}), text))
    }
}

fn document(source: &str) -> Value {
    stepwell_formats::document(source.as_bytes(), None).unwrap_or_default()
}

fn sort_of(change: &Value) -> &'static str {
    match (change.get("from"), change.get("to")) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    }
}

/// The changed fields, and the changed steps by name, each with what it was and is.
fn changes(old: &Value, new: &Value) -> (Map<String, Value>, Map<String, Value>) {
    const STEPS: [&str; 4] = ["tasks", "flow", "nodes", "edges"];
    let around = |value: &Value| {
        let fields = value.as_object().cloned().unwrap_or_default();
        fields.into_iter().filter(|(name, _)| !STEPS.contains(&name.as_str())).collect::<Map<_, _>>()
    };
    (compared(&around(old), &around(new)), compared(&steps(old), &steps(new)))
}

fn steps(definition: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    for name in ["tasks", "flow"] {
        found.extend(definition[name].as_object().cloned().unwrap_or_default());
    }
    for node in definition["nodes"].as_array().into_iter().flatten() {
        let id = node.get("nodeID").or(node.get("id")).and_then(Value::as_str).unwrap_or_default();
        found.insert(id.to_string(), node.clone());
    }
    for edge in definition["edges"].as_array().into_iter().flatten() {
        let end = |names: [&str; 2]| names.iter().find_map(|name| edge.get(*name)?.as_str()).unwrap_or_default();
        let handle =
            edge.get("sourceHandle").and_then(Value::as_str).map(|handle| format!(" ({handle})")).unwrap_or_default();
        let name = format!("{}{handle} → {}", end(["upstreamNodeID", "source"]), end(["downstreamNodeID", "target"]));
        found.insert(name, json!("edge"));
    }
    found
}

fn compared(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    for (name, was) in old {
        match new.get(name) {
            Some(is) if is == was => {}
            Some(is) => drop(found.insert(name.clone(), json!({"from": was, "to": is}))),
            None => drop(found.insert(name.clone(), json!({"from": was}))),
        }
    }
    for (name, is) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        found.insert(name.clone(), json!({"to": is}));
    }
    found
}
