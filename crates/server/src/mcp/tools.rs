//! The tools: their names, their schemas, and the right that each requires.

use super::{exposed, gates, proxied};
use crate::app::App;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_engine::commands::Right;
use stepwell_engine::{Caller, Error};

/// The fixed tools, independent of workflows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    Define,
    ListDefinitions,
    Start,
    Status,
    ListRuns,
    Approve,
    Deny,
    Cancel,
    Events,
    Reviews,
}

impl Named {
    pub const ALL: [Named; 10] = [
        Named::Define,
        Named::ListDefinitions,
        Named::Start,
        Named::Status,
        Named::ListRuns,
        Named::Approve,
        Named::Deny,
        Named::Cancel,
        Named::Events,
        Named::Reviews,
    ];

    pub fn parse(name: &str) -> Option<Named> {
        Named::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Named::Define => "workflow_define",
            Named::ListDefinitions => "workflow_list_definitions",
            Named::Start => "workflow_start",
            Named::Status => "workflow_status",
            Named::ListRuns => "workflow_list_runs",
            Named::Approve => "workflow_approve",
            Named::Deny => "workflow_deny",
            Named::Cancel => "workflow_cancel",
            Named::Events => "workflow_events",
            Named::Reviews => "workflow_reviews",
        }
    }

    pub fn right(self) -> Right {
        match self {
            Named::Define => Right::Define,
            Named::Start | Named::Cancel => Right::Run,
            Named::Approve | Named::Deny => Right::Approve,
            Named::ListDefinitions | Named::Status | Named::ListRuns | Named::Events | Named::Reviews => Right::Read,
        }
    }

    fn is_for(self, caller: &Caller) -> bool {
        match self {
            Named::Approve | Named::Deny => gates::may_answer(caller),
            _ => caller.may(self.right()),
        }
    }

    /// Title, description, and behaviour hints.
    fn about(self) -> (&'static str, &'static str, ToolAnnotations) {
        let reads = || ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
        let changes = || ToolAnnotations::new().read_only(false).open_world(false);
        match self {
            Named::Define => (
                "Define a workflow",
                "Store a workflow definition, or its next version if the name is taken. Accepts all three dialects \
                 (tasks, flow, or nodes and edges), as an object or as YAML or JSON text. All errors are reported at \
                 once, with their locations. The prompt define_workflow documents the format.",
                changes().destructive(false).idempotent(true),
            ),
            Named::ListDefinitions => (
                "List workflows",
                "List the workflows that can be started, by name, with their input schemas.",
                reads(),
            ),
            Named::Start => (
                "Start a run",
                "Start a run of a workflow. The run is on disk before this returns and survives crashes. Waits a while \
                 for its end; a run that has not finished continues by itself: follow it with workflow_status.",
                ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true),
            ),
            Named::Status => (
                "Read a run",
                "The state of a run: its steps with input, output and errors, what it waits for, and who can continue \
                 it.",
                reads(),
            ),
            Named::ListRuns => ("List runs", "List runs, newest first, filtered by status or workflow.", reads()),
            Named::Approve => (
                "Approve at a gate",
                "Approve what a run asks at an approval gate. Pass the digest from workflow_status, so that the \
                 approval covers exactly what was shown.",
                changes().destructive(true).idempotent(false),
            ),
            Named::Deny => (
                "Deny at a gate",
                "Deny what a run asks at an approval gate. Unless the workflow handles it, the run ends.",
                changes().destructive(true).idempotent(false),
            ),
            Named::Cancel => (
                "Cancel a run",
                "Stop a running run. Effects of finished steps are not undone.",
                changes().destructive(true).idempotent(true),
            ),
            Named::Events => ("Read a run's log", "Read everything that happened to a run, oldest first.", reads()),
            Named::Reviews => (
                "Read reviews",
                "What became of the versions and proposals that agents wrote: whether a person accepted or refused \
                 them, and the comment. Only a person answers.",
                reads(),
            ),
        }
    }

    /// JSON Schema of the arguments.
    pub fn input(self) -> Value {
        let run_id = json!({"type": "string", "description": "The run's id, run_…"});
        let limit = json!({"type": "integer", "minimum": 1, "maximum": 200, "default": 50});
        let cursor = json!({"type": "string", "description": "`next` of an earlier result"});
        let fields = match self {
            Named::Define => json!({
                "definition": {"anyOf": [{"type": "object"}, {"type": "string"}],
                    "description": "The definition: an object, or YAML or JSON text"},
                "check_only": {"type": "boolean", "default": false, "description": "Only report errors; store nothing"},
                "reason": {"type": "string", "description": "Why, for the person who reviews it"},
            }),
            Named::ListDefinitions => json!({
                "query": {"type": "string", "description": "Part of the name"},
                "deleted": {"type": "boolean", "default": false, "description": "Deleted workflows instead"},
                "limit": limit,
                "cursor": cursor,
            }),
            Named::Start => json!({
                "workflow": {"type": "string", "description": "Name or id of the workflow"},
                "input": {"description": "The run's input, matching the workflow's input_schema"},
                "wait_seconds": {"type": "number", "minimum": 0, "maximum": 20, "default": 5,
                    "description": "How long to wait for the end"},
                "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 255,
                    "description": "The same key with the same input starts only one run: pass one to retry safely"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "at": {"type": "string", "description":
                    "When the run begins, such as 2026-12-24T18:00:00+01:00; until then it is scheduled"},
                "delay": {"type": "string", "description": "How long until the run begins, such as 90m; instead of at"},
            }),
            Named::Status => json!({
                "run_id": run_id,
                "wait_seconds": {"type": "number", "minimum": 0, "maximum": 20, "default": 0,
                    "description": "How long to wait for the end, or for a gate"},
            }),
            Named::ListRuns => json!({
                "status": {"type": "array", "items": {"type": "string", "enum":
                    ["scheduled", "queued", "running", "paused", "completed", "failed", "cancelled", "timeout"]}},
                "workflow": {"type": "string", "description": "Name or id"},
                "limit": limit,
                "cursor": cursor,
            }),
            Named::Approve | Named::Deny => json!({
                "run_id": run_id,
                "step_name": {"type": "string", "description": "The gate's name or path"},
                "step_id": {"type": "string", "description": "The step's id, step_…; replaces run_id and step_name"},
                "comment": {"type": "string"},
                "data": {"description": "Data for the gate's form"},
                "digest": {"type": "string", "description": "Digest of what was shown, from workflow_status"},
            }),
            Named::Cancel => json!({"run_id": run_id, "reason": {"type": "string"}}),
            Named::Events => json!({
                "run_id": run_id,
                "after": {"type": "integer", "minimum": 0, "default": 0, "description": "`next` of an earlier result"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 200},
            }),
            Named::Reviews => json!({"review": {"type": "string", "description": "Only this one, rev_…"}}),
        };
        let required: &[&str] = match self {
            Named::Define => &["definition"],
            Named::Start => &["workflow"],
            Named::Status | Named::Cancel | Named::Events => &["run_id"],
            Named::ListDefinitions | Named::ListRuns | Named::Approve | Named::Deny | Named::Reviews => &[],
        };
        json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
    }

    /// JSON Schema of the structured content.
    fn output(self) -> Value {
        let page = |name: &str, item: Value| {
            let kinds = json!([{"type": "string"}, {"type": "integer"}, {"type": "null"}]);
            let next = json!({"anyOf": kinds, "description": "Cursor of the next page, if there is one"});
            json!({"type": "object", "required": [name],
                "properties": {name: {"type": "array", "items": item}, "next": next}})
        };
        match self {
            Named::Define => json!({"type": "object", "required": ["name", "valid"], "properties": {
                "name": {"type": "string"},
                "valid": {"type": "boolean"},
                "id": {"type": "string"},
                "version": {"type": "integer"},
                "changed": {"type": "boolean", "description": "False if the newest version was the same"},
                "warnings": {"type": "array", "description": "What is valid but probably not meant"},
                "tool": {"anyOf": [{"type": "string"}, {"type": "null"}],
                    "description": "The tool that starts it, if it is exposed as one"},
                "earlier": {"anyOf": [{"type": "object"}, {"type": "null"}],
                    "description": "The deleted workflow that had this name before"},
                "review": {"anyOf": [{"type": "object"}, {"type": "null"}],
                    "description": "Of what an agent wrote: its id and state (unreviewed, proposed, accepted, refused)"},
            }}),
            Named::ListDefinitions => page(
                "workflows",
                json!({"type": "object", "required": ["name", "id", "version", "enabled"], "properties": {
                    "name": {"type": "string"}, "id": {"type": "string"}, "version": {"type": "integer"},
                    "description": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "enabled": {"type": "boolean"},
                    "input_schema": {"description": "JSON Schema of its input, if it has one"},
                    "deleted_at": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                }}),
            ),
            Named::ListRuns => page(
                "runs",
                json!({"type": "object", "required": ["id", "workflow", "status", "created_at"], "properties": {
                    "id": {"type": "string"}, "workflow": {"type": "string"}, "status": {"type": "string"},
                    "created_at": {"type": "string"}, "created_by": {"type": "string"},
                }}),
            ),
            Named::Events => page(
                "events",
                json!({"type": "object", "required": ["version", "at", "type"], "properties": {
                    "version": {"type": "integer"}, "at": {"type": "string"}, "type": {"type": "string"},
                    "step": {"type": "string"},
                }}),
            ),
            Named::Reviews => page(
                "reviews",
                json!({"type": "object", "required": ["id", "workflow", "state"], "properties": {
                    "id": {"type": "string"}, "workflow": {"type": "string"}, "state": {"type": "string"},
                    "comment": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                }}),
            ),
            Named::Start | Named::Status | Named::Approve | Named::Deny | Named::Cancel => run_schema(),
        }
    }

    fn tool(self) -> Tool {
        let (title, description, annotations) = self.about();
        let mut tool = Tool::new(self.name(), description, object(self.input()));
        tool.title = Some(title.into());
        tool.output_schema = Some(object(self.output()));
        tool.annotations = Some(annotations);
        tool
    }
}

/// The output schema of all tools that return a run.
pub fn run_schema() -> Value {
    json!({"type": "object", "required": ["run_id", "workflow", "status", "finished"], "properties": {
        "run_id": {"type": "string"},
        "workflow": {"type": "string"},
        "workflow_version": {"type": "integer"},
        "status": {"type": "string", "description":
            "scheduled, queued, running, paused, completed, failed, cancelled or timeout"},
        "finished": {"type": "boolean"},
        "output": {"description": "The run's result, once it has one"},
        "error": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "waiting_for": {"type": "array", "items": {"type": "object"}, "description": "What the run waits for"},
        "approvals": {"type": "array", "description": "Open gates, and whether you may answer them (mine)",
            "items": {"type": "object"}},
        "tasks": {"type": "object", "description": "Steps by path, with input, output, errors and attempts"},
    }})
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
            for schema in [named.input(), named.output()] {
                assert!(stepwell_engine::schema::OwnSchema::compile(&schema).is_ok(), "{}", named.name());
                assert_eq!(schema["type"], "object");
            }
        }
        assert_eq!(Named::parse("workflow_destroy"), None);
    }
}
