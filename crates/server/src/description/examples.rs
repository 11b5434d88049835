//! Examples for the requests and responses that a reader meets first.

use super::{operations, schemas};
use serde_json::{Value, json};

const DEFINITION: &str = "name: hello\ntasks:\n  greet: {tool: echo, args: {text: \"Hello, {{input.name ?? 'world'}}!\"}}\n\
    output: \"{{tasks.greet.body.text}}\"\n";

fn definition() -> Value {
    json!({
        "name": "hello",
        "tasks": {"greet": {"tool": "echo", "args": {"text": "Hello, {{input.name ?? 'world'}}!"}}},
        "output": "{{tasks.greet.body.text}}",
    })
}

/// A request body by operation.
fn bodies() -> Vec<(&'static str, Value)> {
    vec![
        ("triggerWorkflow", json!({"name": "Ann"})),
        ("rerunRun", json!({"name": "Bob"})),
        ("callTrigger", json!({"order": 4711})),
        ("deliverCallback", json!({"status": "paid"})),
        ("deliverToStep", json!({"status": "paid"})),
        ("startTestRun", json!({"definition": definition(), "input": {"name": "Ann"}})),
        ("cancelRun", json!({"reason": "wrong order"})),
        ("retryRun", json!({"newest": true})),
        ("labelRun", json!({"labels": {"customer": "acme"}})),
        ("cancelRuns", json!({"filter": {"workflow": "hello", "status": "running"}, "reason": "wrong input"})),
        ("retryRuns", json!({"filter": {"workflow": "hello", "status": "failed"}})),
        ("approveStep", json!({"comment": "go ahead", "data": {"amount": 12}})),
        ("denyStep", json!({"comment": "too expensive"})),
        ("approveStepById", json!({"comment": "go ahead"})),
        ("denyStepById", json!({"comment": "too expensive"})),
        ("settleStep", json!({"verdict": "happened", "output": {"id": "ch_1"}})),
        ("finishStep", json!({"status": "failed", "error": "the card is gone", "comment": "called the bank"})),
        ("putSecret", json!({"value": "s3cret-value", "hosts": ["api.example.com"]})),
        ("putConnection", json!({"url": "postgres://app:{{secrets.DB_PASSWORD}}@db.example.com/shop", "rows": 100})),
        ("putQuery", json!({"connection": "shop", "sql": "select * from orders where id = :id", "params": {"id": 1}})),
        ("putPolicy", json!({"calls": "tool:pay.*", "when": "args.amount > 500", "effect": "deny", "mode": "log"})),
        ("testPolicies", json!({"policies": {"large": {"calls": "tool:pay.*", "effect": "deny"}}, "since": "7d"})),
        ("createUser", json!({"name": "ann", "roles": ["operator"]})),
        ("createKey", json!({"name": "ci", "grants": ["workflow.read", "workflow.run"]})),
        ("createChannel", json!({"name": "team", "medium": "slack", "url": "https://hooks.slack.com/services/T/B/x"})),
        ("updatePreferences", json!({"browser": ["gate_opened", "run_failed"]})),
        ("updateWorkflow", json!({"enabled": false})),
        ("pauseWorkflow", json!({"key": "acme"})),
        ("updateKey", json!({"paused": true})),
        ("acceptMcpTools", json!({"tools": [{"tool": "read_file", "digest": "6c1f…"}]})),
        ("createOrganisation", json!({"name": "acme", "plan": "starter"})),
        ("setPlan", json!({"plan": "starter"})),
        ("acceptReview", json!({"digest": "6c1f…", "comment": "fine"})),
        ("refuseReview", json!({"digest": "6c1f…", "comment": "ask before it mails customers"})),
        ("createApprovalLink", json!({"user": "ann"})),
        ("updateUser", json!({"roles": ["operator", "finance"]})),
        ("resumeWorkflow", json!({"key": "acme"})),
        ("cancelRunOfWorkflow", json!({"reason": "wrong order"})),
        ("createSchedule", json!({"cron": "0 8 * * 1-5", "timezone": "Europe/Paris", "input": {"name": "Ann"}})),
        ("putRole", json!({"grants": ["workflow.read", "workflow.approve"]})),
    ]
}

/// What responses consist of, by schema.
fn returned() -> Vec<(&'static str, Value)> {
    let run = json!({
        "run_id": "run_01k3v6x0x8f7m2", "id": "run_01k3v6x0x8f7m2", "workflow_id": "wf_01k3v6wq4n9c1d", "workflow": "hello",
        "workflow_version": 2, "status": "completed", "created_by": "ann", "created_at": "2026-02-22T10:00:00.000Z",
        "started_at": "2026-02-22T10:00:00.002Z", "finished_at": "2026-02-22T10:00:00.009Z", "labels": {"team": "sales"},
    });
    let with = |more: Value| {
        let mut all = run.clone();
        let fields = more.as_object().into_iter().flatten();
        fields.for_each(|(name, value)| all[name] = value.clone());
        all
    };
    let step = json!({
        "id": "step_01k3v6x0x8f7m2_Z3JlZXQ", "kind": "tool", "status": "success", "attempt": 1, "duration_ms": 3,
        "started_at": "2026-02-22T10:00:00.003Z", "finished_at": "2026-02-22T10:00:00.006Z",
        "input": {"tool": "echo", "args": {"text": "Hello, Ann!"}}, "output": {"body": {"text": "Hello, Ann!"}},
        "error": null,
    });
    vec![
        (
            "Run",
            with(json!({
                "input": {"name": "Ann"}, "output": "Hello, Ann!", "error": null, "waiting_for": [],
                "tasks": {"greet": step}, "generation": 0, "version": 4,
            })),
        ),
        ("RunSummary", with(json!({"child": false}))),
        ("Step", step.clone()),
        (
            "Triggered",
            json!({
                "run_id": "run_01k3v6x0x8f7m2", "workflow_id": "wf_01k3v6wq4n9c1d", "workflow": "hello",
                "workflow_version": 2, "status": "running", "started_at": "2026-02-22T10:00:00.002Z",
            }),
        ),
        (
            "WorkflowSummary",
            json!({
                "id": "wf_01k3v6wq4n9c1d", "name": "hello", "trigger": "cron", "triggers": ["cron"], "task_count": 1,
                "enabled": true, "paused": false, "version": 2, "labels": {"team": "sales"}, "created_by": "ann",
                "inserted_at": "2026-02-20T09:30:00.000Z", "updated_at": "2026-02-21T16:05:00.000Z",
            }),
        ),
        (
            "Approval",
            json!({
                "id": "step_01k3v6x0x8f7m2_YXNr", "run_id": "run_01k3v6x0x8f7m2", "step": "ask", "workflow": "order",
                "attempt": 1, "created_by": "ann", "asked_by": "ann", "kind": "approval", "mine": true,
                "since": "2026-02-22T10:00:01.000Z",
                "until": "2026-02-24T10:00:01.000Z", "on_timeout": "deny", "digest": "6c1f…",
                "asks": {"message": "Ship order 4711?", "approvers": ["finance"], "calls": [
                    {"step": "ship", "kind": "tool", "tool": "ship_order", "input": {"order": 4711}},
                ]},
            }),
        ),
        (
            "ScheduleSummary",
            json!({
                "id": "schedule_01k3v6z2", "workflow": "hello", "cron": "0 8 * * 1-5", "timezone": "Europe/Paris",
                "next": ["2026-02-23T07:00:00.000Z"], "last": "2026-02-20T07:00:00.000Z",
                "last_run_id": "run_01k3t2c0x8f7m2",
            }),
        ),
        (
            "Secret",
            json!({
                "id": "secret_01k3v6y8", "name": "PAY_KEY", "hosts": ["api.example.com"], "version": 2, "masked": true,
                "sealed_with": "1f0c", "created_at": "2026-01-05T12:00:00.000Z",
                "changed_at": "2026-02-05T12:00:00.000Z", "changed_by": "ann",
            }),
        ),
        (
            "User",
            json!({
                "id": "user_01k3v6p1", "name": "ann", "roles": ["operator"], "grants": [], "disabled": false,
                "created_at": "2026-01-05T12:00:00.000Z", "created_by": "admin",
            }),
        ),
        (
            "Key",
            json!({
                "id": "key_01k3v6q9", "name": "ci", "user": "ann", "agent": false, "start": "sw_57hYnK", "paused": false,
                "grants": ["workflow.read", "workflow.run"], "created_at": "2026-01-05T12:00:00.000Z", "created_by": "ann",
            }),
        ),
        (
            "Audit",
            json!({
                "id": 4711, "at": "2026-02-22T10:00:00.000Z", "by": "ann", "action": "run.cancel",
                "target": "run_01k3v6x0x8f7m2", "detail": {"reason": "wrong order"}, "hash": "674dcee479115b78…",
            }),
        ),
    ]
}

pub fn add(api: &mut Value) {
    let bodies = bodies();
    for (name, example) in returned() {
        schemas(api)[name]["example"] = example;
    }
    for (_, operation) in operations(api) {
        let id = operation["operationId"].as_str().unwrap_or_default().to_string();
        let example = bodies.iter().find(|(name, _)| *name == id).map(|(_, body)| body);
        let Some(content) = operation.get_mut("requestBody").and_then(|body| body["content"].as_object_mut()) else {
            continue;
        };
        let takes_definition = content.contains_key("application/yaml");
        if let Some(json) = content.get_mut("application/json") {
            match example {
                Some(example) => json["example"] = example.clone(),
                None if takes_definition => json["example"] = definition(),
                None => {}
            }
        }
        if let Some(yaml) = content.get_mut("application/yaml") {
            yaml["example"] = DEFINITION.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::description;
    use super::*;
    use stepwell_engine::schema::OwnSchema;

    /// An example that the server would refuse misleads.
    #[test]
    fn examples_fit_their_schemas() {
        let mut api = description().clone();
        let components = json!({"schemas": api["components"]["schemas"]});
        let mut seen = 0;
        for (name, operation) in operations(&mut api) {
            let Some(body) = operation.get("requestBody").and_then(|body| body.pointer("/content/application~1json"))
            else {
                continue;
            };
            let Some(example) = body.get("example") else { continue };
            let mut schema = body["schema"].clone();
            schema["components"] = components.clone();
            let schema = OwnSchema::compile(&schema).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let faults: Vec<_> = schema.faults(example).map(|fault| fault.message).collect();
            assert!(faults.is_empty(), "{name}: {faults:?}");
            seen += 1;
        }
        assert!(seen >= bodies().len(), "{seen}");
        for (name, example) in returned() {
            let reference = json!({"$ref": format!("#/components/schemas/{name}"), "components": components});
            let schema = OwnSchema::compile(&reference).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let faults: Vec<_> = schema.faults(&example).map(|fault| fault.message).collect();
            assert!(faults.is_empty(), "{name}: {faults:?}");
        }
    }

    /// A body that a reader has to guess is not described.
    #[test]
    fn every_body_of_a_request_has_an_example() {
        let mut api = description().clone();
        for (name, operation) in operations(&mut api) {
            for (kind, body) in
                operation.get("requestBody").and_then(|body| body["content"].as_object()).into_iter().flatten()
            {
                let is_plain = kind != "application/json" && kind != "application/yaml";
                assert!(is_plain || body.get("example").is_some(), "{name}: {kind}");
            }
        }
    }
}
