//! The tools: their names, their schemas, and the right that each requires.

use super::{bounds, exposed, gates, help, proxied};
use crate::app::App;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_engine::commands::Right;
use stepwell_engine::{Caller, Error};

/// The fixed tools, independent of workflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    Help,
    Tools,
    Define,
    Diff,
    Simulate,
    ListDefinitions,
    Start,
    Status,
    Wait,
    StepResult,
    ListRuns,
    Approve,
    Deny,
    Deliver,
    Cancel,
    Retry,
    Rerun,
    Events,
    Schedule,
    Reviews,
}

/// A definition that is complete.
const EXAMPLE: &str = r#"{"name": "order", "tasks": {"pay": {"url": "https://pay.example/charges", "body": {"cents": "{{input.cents}}"}, "retries": 3}, "ok": {"needs": ["pay"], "approval": {"message": "Ship {{input.id}}?", "timeout": "2d"}}, "ship": {"needs": ["ok"], "tool": "log", "args": {"message": "{{tasks.pay.body.id}}"}}}}"#;

impl Named {
    pub const ALL: [Named; 20] = [
        Named::Help,
        Named::Tools,
        Named::Define,
        Named::Diff,
        Named::Simulate,
        Named::ListDefinitions,
        Named::Start,
        Named::Status,
        Named::Wait,
        Named::StepResult,
        Named::ListRuns,
        Named::Approve,
        Named::Deny,
        Named::Deliver,
        Named::Cancel,
        Named::Retry,
        Named::Rerun,
        Named::Events,
        Named::Schedule,
        Named::Reviews,
    ];

    pub fn parse(name: &str) -> Option<Named> {
        Named::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Named::Help => "workflow_help",
            Named::Tools => "tools_list",
            Named::Define => "workflow_define",
            Named::Diff => "workflow_diff",
            Named::Simulate => "workflow_simulate",
            Named::ListDefinitions => "workflow_list_definitions",
            Named::Start => "workflow_start",
            Named::Status => "workflow_status",
            Named::Wait => "workflow_wait",
            Named::StepResult => "step_result",
            Named::ListRuns => "workflow_list_runs",
            Named::Approve => "workflow_approve",
            Named::Deny => "workflow_deny",
            Named::Deliver => "workflow_deliver",
            Named::Cancel => "workflow_cancel",
            Named::Retry => "workflow_retry",
            Named::Rerun => "workflow_rerun",
            Named::Events => "workflow_events",
            Named::Schedule => "workflow_schedule",
            Named::Reviews => "workflow_reviews",
        }
    }

    pub fn right(self) -> Right {
        match self {
            Named::Help | Named::Tools | Named::Define => Right::Define,
            Named::Start | Named::Cancel | Named::Deliver | Named::Retry | Named::Rerun | Named::Schedule => Right::Run,
            Named::Approve | Named::Deny => Right::Approve,
            Named::Diff
            | Named::Simulate
            | Named::ListDefinitions
            | Named::Status
            | Named::Wait
            | Named::StepResult
            | Named::ListRuns
            | Named::Events
            | Named::Reviews => Right::Read,
        }
    }

    fn is_for(self, caller: &Caller) -> bool {
        match self {
            Named::Approve | Named::Deny => gates::may_answer(caller),
            _ => caller.may(self.right()),
        }
    }

    /// Title and description.
    fn about(self) -> (&'static str, String) {
        let (title, about) = match self {
            Named::Help => (
                "Learn the format",
                "How to write definitions, a topic at a time. Read `dialects` before the first one.",
            ),
            Named::Tools => (
                "List tools for steps",
                "The tools that steps may call here: name, arguments, whether read-only, whether you may.",
            ),
            Named::Define => {
                let about = format!(
                    "Store a workflow definition, or the next version if its name is taken: an object, or YAML or JSON \
                     text. All errors are reported at once, with hints. See workflow_help. A complete one: {EXAMPLE}"
                );
                return ("Define a workflow", about);
            }
            Named::Diff => {
                ("Compare versions", "What changed between two versions of a workflow, or in a new definition.")
            }
            Named::Simulate => (
                "Try without calling",
                "Dry run of a workflow or a definition: nothing is called. Results are made up unless given: \
                 calls: {\"pay\": {\"body\": {\"id\": 7}}}, {\"error\": \"…\"} or \"timeout\"; answers: {\"ok\": \"deny\"}.",
            ),
            Named::ListDefinitions => {
                ("List workflows", "The workflows that can be started, with their input schemas.")
            }
            Named::Start => (
                "Start a run",
                "Start a run. It is on disk before this returns and continues by itself: follow it with workflow_wait.",
            ),
            Named::Status => (
                "Read a run",
                "A run: its steps with input, output and errors, what it waits for, who can continue it.",
            ),
            Named::Wait => {
                ("Wait for a run", "Wait until a run ends or waits for a person, at most 20 s. Call it again.")
            }
            Named::StepResult => {
                ("Read a result", "The output (or input, error) of a step or run as JSON text, in pages.")
            }
            Named::ListRuns => ("List runs", "Runs, newest first."),
            Named::Approve => (
                "Approve at a gate",
                "Approve what a run asks at a gate. The digest from workflow_status covers exactly what was shown.",
            ),
            Named::Deny => {
                ("Deny at a gate", "Deny what a run asks at a gate. Unless the workflow handles it, the run ends.")
            }
            Named::Deliver => ("Deliver to a step", "Deliver a body to a step that waits for a webhook."),
            Named::Cancel => ("Cancel a run", "Stop a running run. Effects of finished steps are not undone."),
            Named::Retry => {
                ("Retry a run", "Continue a run that did not complete: failed and cancelled steps run again.")
            }
            Named::Rerun => ("Run again", "Start a new run with the input of another, or with a new input."),
            Named::Events => ("Read a run's log", "What happened to a run, oldest first."),
            Named::Schedule => (
                "Schedule runs",
                "Add a cron schedule to a workflow, remove one, or (with neither) list them. It has this key's rights.",
            ),
            Named::Reviews => (
                "Read reviews",
                "What became of versions that agents wrote: accepted, refused or still open, with the comment.",
            ),
        };
        (title, about.to_string())
    }

    /// Hints about the behaviour.
    fn annotations(self) -> ToolAnnotations {
        let changes = || ToolAnnotations::new().read_only(false).open_world(false);
        match self {
            Named::Define => changes().destructive(false).idempotent(true),
            Named::Start | Named::Retry | Named::Rerun | Named::Deliver | Named::Schedule => {
                ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
            }
            Named::Approve | Named::Deny => changes().destructive(true).idempotent(false),
            Named::Cancel => changes().destructive(true).idempotent(true),
            _ => ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
        }
    }

    /// JSON Schema of the arguments.
    pub fn input(self) -> Value {
        let run_id = json!({"type": "string", "description": "run_…"});
        let step = json!({"type": "string", "description": "Name or path"});
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 20});
        let cursor = json!({"type": "string", "description": "`next` of an earlier result"});
        let wait = |usual: u32| json!({"type": "number", "minimum": 0, "maximum": 20, "default": usual});
        let max_bytes =
            json!({"type": "integer", "minimum": 1_000, "maximum": bounds::MOST, "default": bounds::STRUCTURED});
        let input = json!({"description": "Matches the workflow's input_schema"});
        let fields = match self {
            Named::Help => {
                let topics: Vec<&str> = help::TOPICS.iter().map(|(name, _)| *name).collect();
                json!({"topic": {"enum": topics, "default": "dialects"}})
            }
            Named::Tools => json!({
                "query": {"type": "string", "description": "Part of the name or description"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
                "cursor": cursor,
            }),
            Named::Define => json!({
                "definition": {"type": ["object", "string"]},
                "check_only": {"type": "boolean", "default": false, "description": "Only report errors; store nothing"},
                "reason": {"type": "string", "description": "Why, for the person who reviews it"},
            }),
            Named::Diff => json!({
                "workflow": {"type": "string"},
                "from": {"type": "integer", "minimum": 1, "description": "Default: the version before `to`"},
                "to": {"type": "integer", "minimum": 1, "description": "Default: the newest"},
                "definition": {"type": ["object", "string"], "description": "Compared instead of `to`"},
            }),
            Named::Simulate => json!({
                "workflow": {"type": "string"},
                "definition": {"type": ["object", "string"], "description": "Instead of workflow"},
                "input": input,
                "calls": {"type": "object"},
                "answers": {"type": "object"},
            }),
            Named::Schedule => json!({
                "workflow": {"type": "string"},
                "cron": {"type": "string", "description": "Such as 0 8 * * 1-5"},
                "timezone": {"type": "string", "default": "UTC"},
                "input": input,
                "remove": {"type": "string", "description": "Id of a schedule"},
            }),
            Named::ListDefinitions => json!({
                "query": {"type": "string", "description": "Part of the name"},
                "deleted": {"type": "boolean", "default": false},
                "limit": limit,
                "cursor": cursor,
            }),
            Named::Start => json!({
                "workflow": {"type": "string", "description": "Name or id"},
                "input": input,
                "wait_seconds": wait(5),
                "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 255,
                    "description": "The same key starts one run only: pass one to retry safely"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "at": {"type": "string", "description":
                    "When the run begins, such as 2026-12-24T18:00:00+01:00; until then it is scheduled"},
                "delay": {"type": "string", "description": "How long until the run begins, such as 90m; instead of at"},
            }),
            Named::Status => json!({"run_id": run_id, "wait_seconds": wait(0), "max_bytes": max_bytes}),
            Named::Wait => json!({"run_id": run_id, "wait_seconds": wait(20)}),
            Named::StepResult => json!({
                "run_id": run_id,
                "step_name": {"type": "string", "description": "Name or path; without it, the run's own"},
                "what": {"enum": ["output", "input", "error"], "default": "output"},
                "offset": {"type": "integer", "minimum": 0, "default": 0},
                "max_bytes": {"type": "integer", "minimum": 1_000, "maximum": bounds::MOST, "default": bounds::TEXT},
            }),
            Named::ListRuns => json!({
                "status": {"type": "array", "items": {"enum":
                    ["scheduled", "queued", "running", "paused", "completed", "failed", "cancelled", "timeout"]}},
                "workflow": {"type": "string", "description": "Name or id"},
                "limit": limit,
                "cursor": cursor,
            }),
            Named::Approve | Named::Deny => json!({
                "run_id": run_id,
                "step_name": step,
                "step_id": {"type": "string", "description": "step_…; replaces run_id and step_name"},
                "comment": {"type": "string"},
                "data": {"description": "Data for the gate's form"},
                "input": {"type": "object", "description": "Approve with changes: the whole changed input of a held call"},
                "digest": {"type": "string", "description": "Digest of what was shown, from workflow_status"},
            }),
            Named::Deliver => json!({"run_id": run_id, "step_name": step, "body": {}}),
            Named::Cancel => json!({"run_id": run_id, "reason": {"type": "string"}}),
            Named::Retry => json!({
                "run_id": run_id,
                "newest": {"type": "boolean", "default": false, "description": "On the newest version of the workflow"},
                "wait_seconds": wait(5),
            }),
            Named::Rerun => json!({"run_id": run_id, "input": input, "wait_seconds": wait(5)}),
            Named::Events => json!({
                "run_id": run_id,
                "after": {"type": "integer", "minimum": 0, "default": 0, "description": "`next` of an earlier result"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50},
            }),
            Named::Reviews => json!({"review": {"type": "string", "description": "Only this one, rev_…"}}),
        };
        let required: &[&str] = match self {
            Named::Define => &["definition"],
            Named::Start | Named::Diff | Named::Schedule => &["workflow"],
            Named::Deliver => &["run_id", "step_name"],
            Named::Status
            | Named::Wait
            | Named::StepResult
            | Named::Cancel
            | Named::Retry
            | Named::Rerun
            | Named::Events => &["run_id"],
            Named::Help
            | Named::Tools
            | Named::Simulate
            | Named::ListDefinitions
            | Named::ListRuns
            | Named::Approve
            | Named::Deny
            | Named::Reviews => &[],
        };
        json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
    }

    /// JSON Schema of the structured content, if there is any. Short, because every client keeps it in its context.
    fn output(self) -> Option<Value> {
        let page = |name: &str| {
            json!({"type": "object", "required": [name],
                "properties": {name: {"type": "array"}, "next": {"type": ["string", "integer", "null"]}}})
        };
        Some(match self {
            Named::Help => return None,
            Named::Define => json!({"type": "object", "required": ["valid"], "properties": {
                "name": {"type": "string"}, "valid": {"type": "boolean"}, "version": {"type": "integer"},
                "changed": {"type": "boolean"}, "warnings": {"type": "array"}}}),
            Named::Diff => json!({"type": "object", "properties": {
                "changed": {"type": "boolean"}, "steps": {"type": "object"}}}),
            Named::Tools => page("tools"),
            Named::ListDefinitions => page("workflows"),
            Named::ListRuns => page("runs"),
            Named::Events => page("events"),
            Named::Reviews => page("reviews"),
            Named::Schedule => page("schedules"),
            Named::Simulate => json!({"type": "object", "required": ["status", "path"], "properties": {
                "status": {"type": "string"}, "path": {"type": "array"}, "made_up": {"type": "object"}}}),
            Named::StepResult => json!({"type": "object", "required": ["text", "total"], "properties": {
                "text": {"type": "string"}, "total": {"type": "integer"}, "next": {"type": ["integer", "null"]}}}),
            Named::Start
            | Named::Status
            | Named::Wait
            | Named::Approve
            | Named::Deny
            | Named::Deliver
            | Named::Cancel
            | Named::Retry
            | Named::Rerun => run_schema(),
        })
    }

    pub fn tool(self) -> Tool {
        let (title, description) = self.about();
        let mut tool = Tool::new(self.name(), description, object(self.input()));
        tool.title = Some(title.into());
        tool.output_schema = self.output().map(object);
        tool.annotations = Some(self.annotations());
        tool
    }
}

/// The output schema of all tools that return a run.
pub fn run_schema() -> Value {
    json!({"type": "object", "required": ["run_id", "status", "finished"], "properties": {
        "run_id": {"type": "string"}, "status": {"type": "string"}, "finished": {"type": "boolean"}}})
}

/// Converts a schema to an object.
pub fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(fields) => Arc::new(fields),
        _ => Arc::default(),
    }
}

/// All tools that this caller may call.
pub async fn all(app: &App, caller: &Caller) -> Result<Vec<Tool>, Error> {
    let mut tools: Vec<Tool> = Named::ALL.into_iter().filter(|tool| tool.is_for(caller)).map(Named::tool).collect();
    if caller.may(Right::Run) {
        tools.extend(exposed::list(app, caller).await?.iter().map(exposed::Exposed::tool));
        for offered in app.engine.mcp_servers(caller).proxied().await? {
            // If two have the same name, the workflow takes precedence.
            if tools.iter().all(|tool| *tool.name != *offered.name) {
                tools.push(proxied::tool(&offered));
            }
        }
    }
    Ok(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_can_be_used_and_every_name_is_found() {
        for named in Named::ALL {
            assert_eq!(Named::parse(named.name()), Some(named));
            assert!(stepwell_engine::upstream::OWN_TOOLS.contains(&named.name()), "{}", named.name());
            for schema in [Some(named.input()), named.output()].into_iter().flatten() {
                assert!(stepwell_engine::schema::OwnSchema::compile(&schema).is_ok(), "{}", named.name());
                assert_eq!(schema["type"], "object");
            }
        }
        assert_eq!(Named::parse("workflow_destroy"), None);
    }

    #[test]
    fn the_example_in_a_description_is_valid() {
        let checked = stepwell_formats::check(EXAMPLE.as_bytes(), None);
        assert!(checked.definition.is_ok() && checked.warnings.is_empty(), "{checked:?}");
    }

    /// 3.5 bytes to a token: less than what tokenisers of models in use need for JSON.
    #[test]
    fn the_tools_of_a_default_key_take_less_than_4000_tokens() {
        let mine = Named::ALL.into_iter().filter(|named| named.right() != Right::Approve);
        let sizes: Vec<(usize, &str)> =
            mine.map(|named| (json!(named.tool()).to_string().len(), named.name())).collect();
        let bytes: usize = sizes.iter().map(|(size, _)| size).sum();
        println!("tools of a default key: {} tools, {bytes} bytes, about {} tokens", sizes.len(), bytes * 2 / 7);
        assert!(bytes * 2 / 7 < 4_000, "{bytes} bytes: {sizes:?}");
    }
}
