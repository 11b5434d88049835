//! Tool calls: parse the arguments, call one command, return the result.

use super::proxied::{self, Other};
use super::runs::{self, Detail};
use super::tools::Named;
use super::{Client, asked, bounds, exposed, gates, reviews, tasks, text, verbs, words};
use crate::app::App;
use crate::body::{printable, shallow, typed, within};
use crate::error::Problem;
use crate::view::*;
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use stepwell_engine::commands::{
    self as engine, Decision, Defining, Right, Source, Started, State, Trigger, When, WorkflowQuery, page_size,
};
use stepwell_engine::schema::OwnSchema;
use stepwell_engine::upstream::Offered;
use stepwell_engine::{Caller, Checked, Error};

/// Maximum number of errors in arguments that are reported.
const MOST_FAULTS: usize = 20;
/// Arguments with arbitrary content, which other schemas check.
const FREE: [&str; 5] = ["definition", "input", "data", "calls", "answers"];

/// The caller and the capabilities of its client.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub app: &'a App,
    pub caller: &'a Caller,
    pub client: Client,
}

#[derive(Deserialize)]
struct Define {
    definition: Value,
    #[serde(default)]
    check_only: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct List {
    query: Option<String>,
    #[serde(default)]
    deleted: bool,
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Start {
    workflow: String,
    input: Option<Value>,
    wait_seconds: Option<f64>,
    idempotency_key: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    at: Option<String>,
    delay: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    run_id: String,
    #[serde(default)]
    wait_seconds: f64,
    max_bytes: Option<usize>,
}

#[derive(Deserialize)]
struct ListRuns {
    #[serde(default)]
    status: Vec<String>,
    workflow: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    run_id: Option<String>,
    step_name: Option<String>,
    step_id: Option<String>,
    comment: Option<String>,
    data: Option<Value>,
    input: Option<Value>,
    digest: Option<String>,
}

#[derive(Deserialize)]
struct Cancel {
    run_id: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Events {
    run_id: String,
    #[serde(default)]
    after: i64,
    limit: Option<u32>,
}

impl Call<'_> {
    /// Failures are results rather than protocol errors, because agents read results.
    pub async fn tool(self, name: &str, arguments: Value) -> Result<CallToolResponse, ErrorData> {
        let answer = match Named::parse(name) {
            Some(named) => self.named(named, arguments).await,
            None => match proxied::find(self.app, self.caller, name).await {
                Ok(Some(Other::Workflow(exposed))) => self.exposed(&exposed, arguments).await,
                Ok(Some(Other::Tool(offered))) => self.proxied(&offered, arguments).await,
                // Does not reveal which tools others have.
                Ok(None) | Err(Error::Forbidden { .. }) => {
                    return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None));
                }
                Err(error) => Err(error.into()),
            },
        };
        Ok(answer.unwrap_or_else(|problem| text::refusal(&problem).into()))
    }

    async fn named(self, named: Named, mut arguments: Value) -> Result<CallToolResponse, Problem> {
        self.caller.check(named.right())?;
        check(self.app, named, &mut arguments)?;
        let result = match named {
            Named::Help => verbs::help(&typed(arguments)?)?,
            Named::Tools => self.tools(typed(arguments)?).await?,
            Named::Diff => self.diff(typed(arguments)?).await?,
            Named::Simulate => self.simulate(typed(arguments)?).await?,
            Named::Schedule => self.schedule(typed(arguments)?).await?,
            Named::Wait => self.wait(typed(arguments)?).await?,
            Named::StepResult => self.step_result(typed(arguments)?).await?,
            Named::Deliver => self.deliver(typed(arguments)?).await?,
            Named::Retry => self.retry(typed(arguments)?).await?,
            Named::Rerun => return self.rerun(typed(arguments)?).await,
            Named::Define => self.define(typed(arguments)?).await?,
            Named::ListDefinitions => self.list_definitions(typed(arguments)?).await?,
            Named::Start => return self.start(typed(arguments)?).await,
            Named::Status => self.status(typed(arguments)?).await?,
            Named::ListRuns => self.list_runs(typed(arguments)?).await?,
            Named::Approve => self.answer(typed(arguments)?, true).await?,
            Named::Deny => self.answer(typed(arguments)?, false).await?,
            Named::Cancel => self.cancel(typed(arguments)?).await?,
            Named::Events => self.events(typed(arguments)?).await?,
            Named::Reviews => reviews::list(self.app, self.caller, typed(arguments)?).await?,
        };
        Ok(result.into())
    }

    async fn define(self, define: Define) -> Result<CallToolResult, Problem> {
        let text = match define.definition {
            Value::String(text) => text,
            object => object.to_string(),
        };
        let source = Source { text: &text, file: None };
        if define.check_only {
            let checked = self.app.engine.workflows(self.caller).check_only(source).await?;
            let warnings = self.warned(&checked).await?;
            let name = checked.definition.name;
            let mut text = format!("The definition of {name:?} is valid. Nothing was stored.");
            let mut shown = json!({"name": name, "valid": true, "changed": false});
            add_warnings(&mut shown, &mut text, &warnings);
            return Ok(text::result(shown, text));
        }
        let workflows = self.app.engine.workflows(self.caller);
        let checked = workflows.check(source).await?;
        let warnings = self.warned(&checked).await?;
        let defining = Defining { reason: define.reason, ..Defining::default() };
        let defined = workflows.define_checked(checked, defining).await?;
        let row = &defined.compiled.row;
        let tool = match defined.compiled.definition.expose_as_tool && self.caller.may(Named::Start.right()) {
            true => exposed::list(self.app, self.caller).await?.into_iter().find(|one| one.compiled.row.id == row.id),
            false => None,
        };
        let tool = tool.map(|exposed| exposed.name);
        let mut text = reviews::stored(&defined);
        if let Some(tool) = &tool {
            text += &format!(" The tool {tool} starts it too.");
        }
        let earlier = defined.before.as_ref().map(|(id, at)| json!({"id": id, "deleted_at": Instant(*at)}));
        if let Some((id, _)) = &defined.before {
            text += &format!(" An older workflow of that name was deleted: {id}.");
        }
        let mut shown = json!({"name": row.name, "valid": true, "id": row.workflow, "version": row.version,
            "changed": defined.changed, "tool": tool, "earlier": earlier, "review": reviews::brief(&defined)});
        add_warnings(&mut shown, &mut text, &warnings);
        Ok(text::result(shown, text))
    }

    /// What is suspicious, and what the definition uses that is not here, as far as the caller may know.
    async fn warned(self, checked: &Checked) -> Result<Vec<stepwell_formats::Fault>, Problem> {
        let mut warnings = checked.warnings.clone();
        if self.caller.may(Right::Read) {
            warnings.extend(self.app.engine.workflows(self.caller).missing(checked).await?);
        }
        Ok(warnings)
    }

    async fn list_definitions(self, list: List) -> Result<CallToolResult, Problem> {
        let limit = page_size(list.limit, LISTED)?;
        let query =
            WorkflowQuery { text: list.query, deleted: list.deleted, cursor: list.cursor, limit, ..Default::default() };
        let page = self.app.engine.workflows(self.caller).page(query).await?;
        let (mut found, mut lines) = (Vec::new(), String::new());
        for (compiled, State { enabled, deleted_at, .. }) in &page.workflows {
            let (row, definition) = (&compiled.row, &compiled.definition);
            let about = definition.description.as_deref().unwrap_or("no description");
            let first: String = about.lines().next().unwrap_or_default().chars().take(200).collect();
            lines += &format!("\n- {}{}: {first}", row.name, if *enabled { "" } else { " (disabled)" });
            found.push(json!({"name": row.name, "id": row.workflow, "version": row.version,
                "description": first, "enabled": enabled, "dialect": definition.graph.dialect.name(),
                "input_schema": definition.input_schema, "deleted_at": deleted_at.map(Instant)}));
        }
        let (found, cut) = page_of(found, usize::MAX, "name");
        let next = cut.or(page.next);
        let text = match found.len() {
            0 => "No workflows match. Create one with workflow_define.".to_string(),
            count => format!("{count} workflow{}:{lines}", plural(count)),
        };
        Ok(text::result(json!({"workflows": found, "next": next}), text))
    }

    async fn start(self, start: Start) -> Result<CallToolResponse, Problem> {
        // Most workflows take an object, and REST also turns an empty body into one.
        let input = self.input(&start.workflow, start.input.unwrap_or_else(|| json!({}))).await?;
        let mut trigger = Trigger::new(&start.workflow, input);
        trigger.key = start.idempotency_key.as_deref();
        trigger.labels = start.labels;
        trigger.when = When::parse(start.at.as_deref(), start.delay.as_deref())?;
        let wait = match start.wait_seconds {
            Some(asked) => seconds(asked),
            // A scheduled run does not end soon.
            None if trigger.when.is_some() => Duration::ZERO,
            None => runs::USUAL_WAIT,
        };
        self.begin(trigger, wait).await
    }

    /// The input of a run. Text that holds an object is read as one where the workflow takes an object, and refused
    /// where that is not known: most steps would read fields of it.
    async fn input(self, workflow: &str, input: Value) -> Result<Value, Problem> {
        let Some(text) = object_in(&input) else { return Ok(input) };
        let compiled = self.app.engine.workflows(self.caller).find(workflow).await?;
        let schema = compiled.definition.input_schema.as_ref();
        let kinds = schema.and_then(|schema| schema.get("type"));
        let takes = |kind: &str| match kinds {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(several)) => several.iter().any(|one| one == kind),
            _ => false,
        };
        if takes("string") {
            return Ok(input);
        }
        if takes("object") || schema.is_some_and(|schema| schema.get("properties").is_some()) {
            return read_object(self.app, text);
        }
        let message = "this is text that holds a JSON object; pass the object itself, without quotes around it";
        Err(Problem::input("input", message))
    }

    async fn exposed(self, exposed: &exposed::Exposed, arguments: Value) -> Result<CallToolResponse, Problem> {
        shallow(&arguments, self.app)?;
        let input = exposed.input(arguments);
        self.begin(Trigger::new(&exposed.compiled.row.workflow, input), runs::LONGEST_WAIT).await
    }

    /// A call is a run of one step: if it needs approval, the run waits, not the connection.
    async fn proxied(self, offered: &Offered, arguments: Value) -> Result<CallToolResponse, Problem> {
        shallow(&arguments, self.app)?;
        let started = self.app.engine.mcp_servers(self.caller).call_tool(&offered.name, arguments).await?;
        if self.client.tasks {
            return Ok(tasks::begun(self.app, self.caller, &started.run).await?.into());
        }
        runs::settled(self.app, started.id, runs::LONGEST_WAIT).await?;
        let state = runs::read(self.app, self.caller, &started.run).await?;
        Ok(proxied::result(&state).into())
    }

    /// Starts a run: as a task if the client supports tasks, otherwise waiting for its end.
    async fn begin(self, trigger: Trigger<'_>, wait: Duration) -> Result<CallToolResponse, Problem> {
        let started = self.app.engine.runs(self.caller).trigger(trigger).await?;
        self.begun(started, wait).await
    }

    /// A run that was started, as a task or once it has ended.
    pub(super) async fn begun(self, started: Started, wait: Duration) -> Result<CallToolResponse, Problem> {
        if self.client.tasks {
            return Ok(tasks::begun(self.app, self.caller, &started.run).await?.into());
        }
        runs::settled(self.app, started.id, wait).await?;
        let state = runs::read(self.app, self.caller, &started.run).await?;
        Ok(asked::outcome(&state, self.client))
    }

    async fn status(self, status: Status) -> Result<CallToolResult, Problem> {
        runs::wait(self.app, self.caller, &status.run_id, seconds(status.wait_seconds)).await?;
        let state = runs::read(self.app, self.caller, &status.run_id).await?;
        Ok(state.shown_within(Detail::Full, status.max_bytes.unwrap_or(bounds::STRUCTURED)))
    }

    async fn list_runs(self, list: ListRuns) -> Result<CallToolResult, Problem> {
        let status = Some(list.status.join(",")).filter(|status| !status.is_empty());
        let filters = engine::RunFilters {
            status,
            workflow: list.workflow,
            limit: Some(page_size(list.limit, LISTED)?),
            cursor: list.cursor,
            ..engine::RunFilters::default()
        };
        let page = self.app.engine.runs(self.caller).page(filters.query()?).await?;
        let Page { data: found, next } = Page::<RunSummary>::from(page);
        let lines =
            found.iter().map(|run| format!("\n- {} {:?}: {}, {}", run.id, run.workflow, run.status, run.created_at.0));
        let text = match found.len() {
            0 => "No runs match.".to_string(),
            count => format!("{count} run{}, newest first:{}", plural(count), lines.collect::<String>()),
        };
        Ok(text::result(json!({"runs": found, "next": next}), text))
    }

    async fn answer(self, answer: Answer, approve: bool) -> Result<CallToolResult, Problem> {
        if !gates::may_answer(self.caller) {
            let detail =
                "over MCP, answering a gate requires an explicit grant of workflow.approve: admin does not imply it";
            return Err(Problem::new(axum::http::StatusCode::FORBIDDEN, "forbidden", detail));
        }
        let (run, step) = match (answer.step_id, answer.run_id, answer.step_name) {
            (Some(id), None, None) => {
                step_named(&id).ok_or_else(|| Problem::not_found(format!("there is no step {id:?}")))?
            }
            (None, Some(run), Some(step)) => (run, step),
            _ => return Err(Problem::input("step_name", "pass run_id and step_name, or only step_id")),
        };
        if approve {
            let asked = ApprovalView::from(self.app.engine.gates(self.caller).get(&run, &step).await?);
            if !gates::fits(&asked) {
                let status = axum::http::StatusCode::FORBIDDEN;
                return Err(Problem::new(status, "not-shown", text::elsewhere(&asked)));
            }
        }
        let Answer { comment, data, input, digest, .. } = answer;
        let decision = Decision { approve, comment, data, digest, input };
        self.app.engine.gates(self.caller).answer(&run, &step, decision).await?;
        self.after(&run).await
    }

    async fn cancel(self, cancel: Cancel) -> Result<CallToolResult, Problem> {
        self.app.engine.runs(self.caller).cancel(&cancel.run_id, cancel.reason.as_deref()).await?;
        self.after(&cancel.run_id).await
    }

    /// The state of a run after a change.
    pub(super) async fn after(self, run: &str) -> Result<CallToolResult, Problem> {
        let run = Run::from(self.app.engine.runs(self.caller).get_after_change(run).await?);
        Ok(runs::RunState::without_gates(run, self.caller, self.app).shown(Detail::Brief))
    }

    async fn events(self, events: Events) -> Result<CallToolResult, Problem> {
        let limit = page_size(events.limit, 50)?;
        let found = self.app.engine.runs(self.caller).events(&events.run_id, events.after, limit).await?.events;
        let next = found.last().map(|last| last.version);
        let mut found: Vec<Event> = found.into_iter().map(|event| Event::new(&events.run_id, event)).collect();
        let line = |event: &Event| {
            let step = event.step.as_ref().map(|step| format!(" {step}:")).unwrap_or_default();
            format!("\n- {}{step} {}", event.at.0, words::sentence(event))
        };
        let run = Run::from(self.app.engine.runs(self.caller).get(&events.run_id).await?);
        words::with_answers(&mut found, &run);
        // Both forms within their bounds; a commit is never shown in part.
        let mut shown: Vec<&Event> = Vec::new();
        let (mut bytes, mut length, mut cut) = (0, 0, false);
        for event in &found {
            bytes += bounds::size(&words::event(event)) + 1;
            length += line(event).len();
            cut = bytes > bounds::STRUCTURED - 100 || length > bounds::TEXT - 100;
            if cut {
                let version = event.version;
                shown.retain(|event| event.version < version || found[0].version == version);
                break;
            }
            shown.push(event);
        }
        let next = if cut { shown.last().map(|last| last.version) } else { next };
        let lines: String = shown.iter().map(|event| line(event)).collect();
        let more = if cut { "\nMore follows: pass `next` as `after`." } else { "" };
        let text = match shown.len() {
            0 => "No further events.".to_string(),
            count => format!("{count} event{}:{lines}{more}", plural(count)),
        };
        let shown: Vec<Value> = shown.into_iter().map(words::event).collect();
        Ok(text::result(json!({"events": shown, "next": next}), text))
    }
}

/// How many entries a list has unless asked for more.
const LISTED: u32 = 20;

/// As many entries as fit, and the cursor of the next ones if some do not. Entries are too large only by themselves.
pub(super) fn page_of(entries: Vec<Value>, limit: usize, cursor: &str) -> (Vec<Value>, Option<String>) {
    let count = entries.len();
    let (mut kept, mut used) = (Vec::new(), 0);
    for entry in entries.into_iter().take(limit) {
        let entry = bounds::fit(entry, bounds::STRUCTURED / 4);
        used += bounds::size(&entry) + 1;
        if used > bounds::STRUCTURED - 200 {
            break;
        }
        kept.push(entry);
    }
    let last = kept.last().and_then(|last: &Value| last[cursor].as_str().map(str::to_string));
    let next = last.filter(|_| kept.len() < count);
    (kept, next)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

pub(super) fn seconds(wait: f64) -> Duration {
    Duration::try_from_secs_f64(wait).unwrap_or_default().min(runs::LONGEST_WAIT)
}

/// Reports everything wrong with the arguments of a call.
fn check(app: &App, named: Named, arguments: &mut Value) -> Result<(), Problem> {
    shallow(arguments, app)?;
    read_objects(app, arguments)?;
    let schema = OwnSchema::compile(&named.input()).expect("a test compiles every schema");
    let errors: Vec<FaultView> = schema.faults(arguments).take(MOST_FAULTS).map(FaultView::from).collect();
    if let Some(first) = errors.first() {
        let Problem { detail, .. } = Problem::input(&first.path, first.message.clone());
        let detail = format!("invalid arguments for {}: {detail}", named.name());
        let status = axum::http::StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem { errors, ..Problem::new(status, "invalid-input", detail) });
    }
    let fields = arguments.as_object().into_iter().flatten();
    { fields }.filter(|(name, _)| !FREE.contains(&name.as_str())).try_for_each(|(_, value)| printable(value))
}

/// Reads `labels` that came as the text of an object, as some models write all objects.
fn read_objects(app: &App, arguments: &mut Value) -> Result<(), Problem> {
    let Some(labels) = arguments.get_mut("labels") else { return Ok(()) };
    if let Some(text) = object_in(labels) {
        *labels = read_object(app, text)?;
    }
    Ok(())
}

/// The text that holds an object, if this is one.
fn object_in(value: &Value) -> Option<&str> {
    let text = value.as_str()?.trim();
    // Reads the text without building a tree of it.
    let is_object = text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    is_object.then_some(text)
}

/// Reads an object from text, which is checked against the limits before a tree is built.
fn read_object(app: &App, text: &str) -> Result<Value, Problem> {
    within(text.as_bytes(), app, 0)?;
    serde_json::from_str(text).map_err(|error| Problem::input("", error.to_string()))
}

/// What is suspicious in a definition that is valid.
fn add_warnings(shown: &mut Value, text: &mut String, warnings: &[stepwell_formats::Fault]) {
    if warnings.is_empty() {
        return;
    }
    shown["warnings"] = warnings.iter().map(|warning| json!(FaultView::from(warning))).collect();
    text.push_str("\nIt is probably not all that you mean:");
    for warning in warnings {
        text.push_str(&format!("\n- {warning}"));
    }
}
