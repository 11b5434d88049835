//! Random definitions of the flow dialect.

use super::drawn::{Node, Shape, Way, draw};
use super::{Rng, expressions};
use serde_json::{Map, Value, json};

pub fn flow(rng: &mut Rng, size: usize) -> Value {
    let drawing = draw(rng, false, "start", size);
    let readable = drawing.readable();
    let mut flow = Map::new();
    for node in &drawing.nodes {
        let calls = |name: &&String| drawing.nodes.iter().any(|other| other.name == **name && is_call(other));
        let before: Vec<String> = readable[&node.name].iter().filter(calls).cloned().collect();
        let mut step = kind(rng, node);
        let routes = failure(rng, node, &mut step);
        // A template that fails and ends the run while another step finishes immediately would be a race.
        arguments(rng, &mut step, &before, routes || drawing.sequential);
        transition(rng, node, &mut step, &before);
        flow.insert(node.name.clone(), Value::Object(step));
    }
    Value::Object(flow)
}

/// Whether the node is a call. Forks without a tool are not; `kind` uses the same rule.
fn is_call(node: &Node) -> bool {
    !node.gate && node.shape != Shape::Fork && !is_other(node)
}

/// Steps of the kinds that flow shares with tasks; nothing reads their results.
fn is_other(node: &Node) -> bool {
    node.shape == Shape::Step && !node.gate && node.name.ends_with(['3', '7'])
}

fn other_kind(rng: &mut Rng) -> Map<String, Value> {
    let step = match rng.below(6) {
        0 => json!({"sleep": "5s"}),
        1 => json!({"wait_for_webhook": {}}),
        2 => json!({"wait_for_webhook": {"timeout": "1h"}}),
        3 => json!({"workflow": "child", "retries": rng.below(2)}),
        _ => {
            let mut tasks = json!({"x": {"tool": "echo", "retries": rng.below(2)}});
            if rng.chance(50) {
                tasks["y"] = json!({"tool": "echo", "retries": 0, "needs": ["x"]});
            }
            let on_item_error = rng.pick(&["stop", "continue"]).to_string();
            let items = rng.pick(&["{{input.items}}", "{{input.items}}", "{{input.empty}}"]).to_string();
            json!({"for_each": items, "max_parallel": 1 + rng.below(3), "on_item_error": on_item_error, "tasks": tasks})
        }
    };
    step.as_object().cloned().unwrap_or_default()
}

fn kind(rng: &mut Rng, node: &Node) -> Map<String, Value> {
    if is_other(node) {
        return other_kind(rng);
    }
    let mut step = Map::new();
    if node.gate && !node.calls {
        step.insert("tool".into(), Value::Null);
        step.insert("notify_user".into(), json!("boss"));
        if rng.chance(50) {
            step.insert("timeout_s".into(), json!(60));
        }
    } else if node.shape != Shape::Fork || rng.chance(50) {
        step.insert("tool".into(), json!("echo"));
        if rng.chance(80) {
            step.insert("retries".into(), json!(rng.below(4)));
        }
    }
    step
}

/// Writes `on_error`. Returns whether a failure leads anywhere but to the end of the run.
fn failure(rng: &mut Rng, node: &Node, step: &mut Map<String, Value>) -> bool {
    let plain = node.arrows.iter().find(|arrow| matches!(arrow.way, Way::Plain | Way::Implied));
    let value = match node.arrows.iter().find(|arrow| arrow.way == Way::Error) {
        Some(error) => match plain {
            Some(plain) if plain.way == Way::Implied && plain.to == error.to => json!("continue"),
            Some(plain) if plain.to == error.to && rng.chance(60) => json!("continue"),
            _ => json!(error.to),
        },
        // No successor: the failure waits for the end of the other paths.
        None if node.done && rng.chance(10) => json!("continue"),
        None if node.shape == Shape::Fork && step.contains_key("tool") && rng.chance(20) => json!("continue"),
        None => return false,
    };
    step.insert("on_error".into(), value);
    true
}

fn arguments(rng: &mut Rng, step: &mut Map<String, Value>, before: &[String], may_break: bool) {
    if !step.get("tool").is_some_and(Value::is_string) {
        return;
    }
    let name = if before.is_empty() { None } else { Some(rng.pick(before)) };
    let template = match (rng.below(10), name) {
        (0 | 1, _) => "{{input.n}}".to_string(),
        (2, _) => "{{input.nope}}".to_string(),
        (3 | 4, Some(name)) => format!("{{{{steps.{name}.body.v ?? 0}}}}"),
        (5, Some(name)) if may_break => format!("{{{{steps.{name}.body.v}}}}"),
        (6, Some(name)) if may_break && rng.chance(30) => format!("{{{{steps.{name}.body.nope}}}}"),
        (6..=8, _) => format!("{{{{{}}}}}", expressions::number(rng, &numbers(before), 3)),
        (9, _) => format!("{{{{{}}}}}", expressions::text(rng, &numbers(before))),
        _ => return,
    };
    step.insert("args".into(), json!({"x": template}));
}

/// Names that stand for numbers.
fn numbers(before: &[String]) -> Vec<String> {
    let fixed = ["input.n".to_string(), "vars.v0".to_string()];
    fixed.into_iter().chain(before.iter().map(|name| format!("(steps.{name}.body.v ?? 0)"))).collect()
}

fn transition(rng: &mut Rng, node: &Node, step: &mut Map<String, Value>, before: &[String]) {
    let arrows = |way: Way| node.arrows.iter().filter(move |arrow| arrow.way == way);
    match node.shape {
        Shape::Choice => {
            let entries: Vec<_> = arrows(Way::Branch).collect();
            let default = rng.chance(85);
            let entries = entries.iter().enumerate().map(|(i, arrow)| match default && i + 1 == entries.len() {
                true => json!({"then": arrow.to}),
                false => json!({"if": condition(rng, node, before), "then": arrow.to}),
            });
            step.insert("branch".into(), entries.collect());
        }
        Shape::Fork => {
            step.insert("parallel".into(), arrows(Way::Plain).map(|arrow| json!(arrow.to)).collect());
            if let Some(join) = &node.join {
                step.insert("join".into(), json!(join));
            }
        }
        Shape::Step | Shape::Each => {
            if let Some(next) = arrows(Way::Plain).next() {
                step.insert(if rng.chance(75) { "next" } else { "join" }.into(), json!(next.to));
            }
            if node.done {
                step.insert("done".into(), json!(true));
            }
        }
    }
}

fn condition(rng: &mut Rng, node: &Node, before: &[String]) -> String {
    if !before.is_empty() && rng.chance(10) {
        let name = rng.pick(before);
        return format!("steps.{name}.{}", rng.pick(&["status == 'success'", "status != 'success'", "body.v == 1"]));
    }
    if node.gate && !node.calls {
        return rng
            .pick(&["result == approved", "result == denied", "result == \"approved\"", "result != denied"])
            .to_string();
    }
    if rng.chance(15) {
        return expressions::condition(rng, &numbers(before));
    }
    let conditions = [
        "result.v + 1 >= 3",
        "result.v * 2 == vars.v0",
        "result.v % 2 == 1",
        "result == true",
        "result == false",
        "result == a",
        "result == \"a\"",
        "result != true",
        "result != nil",
        "result.v == 1",
        "result.v >= 2",
        "result.v < 2",
        "result.v <= 2",
    ];
    rng.pick(&conditions).to_string()
}
