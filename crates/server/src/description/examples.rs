//! Examples for the requests and responses that a reader meets first.

use super::operations;
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
        ("putPolicy", json!({"calls": "tool:pay.*", "effect": "require_approval", "approvers": ["finance"]})),
        ("createUser", json!({"name": "ann", "roles": ["operator"]})),
        ("createKey", json!({"name": "ci", "grants": ["workflow.read", "workflow.run"]})),
        ("createChannel", json!({"name": "team", "medium": "slack", "url": "https://hooks.slack.com/services/T/B/x"})),
        ("updatePreferences", json!({"browser": ["gate_opened", "run_failed"]})),
        ("updateWorkflow", json!({"enabled": false})),
        ("pauseWorkflow", json!({"key": "acme"})),
        ("putRole", json!({"grants": ["workflow.read", "workflow.approve"]})),
    ]
}

pub fn add(api: &mut Value) {
    let bodies = bodies();
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
    }
}
