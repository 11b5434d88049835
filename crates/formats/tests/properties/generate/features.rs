//! The features that a definition uses, so that a test can report its coverage.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// A cycle drawn with `next`, `branch` or edges.
    pub loops: bool,
    /// A step with more than one in-edge.
    pub joins: bool,
    pub forks: bool,
    /// `branch`, or a condition node.
    pub branches: bool,
    pub ifs: bool,
    /// A step that sets its own attempts.
    pub retries: bool,
    pub gates: bool,
    pub for_each: bool,
    pub nested_for_each: bool,
    pub any: bool,
    /// `on_error`, or an edge for failures or denials.
    pub error_routes: bool,
    /// A failure may end the run at once.
    pub aborts: bool,
    pub waits: bool,
    pub sleeps: bool,
    pub children: bool,
    pub templates: bool,
    pub vars: bool,
    pub defaults: bool,
    pub arithmetic: bool,
    pub functions: bool,
    pub now: bool,
    pub disabled: bool,
}

pub fn find(definition: &Value) -> Features {
    let mut found = Features::default();
    walk(definition, 0, &mut found);
    found.defaults = definition.get("defaults").is_some();
    let steps = ["tasks", "flow", "nodes"].map(|name| definition[name].to_string()).concat();
    found.vars = steps.contains("vars.");
    found.arithmetic = [" + ", " - ", " * ", " / ", " % "].iter().any(|sign| steps.contains(sign));
    found.functions = ["sum(", "len(", "round(", "sort(", "join(", "date(", "split("].iter().any(|f| steps.contains(f));
    found.now = steps.contains("now");
    let arrows = arrows(definition);
    let mut ways_in: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ways_out: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for arrow in &arrows {
        *ways_in.entry(&arrow.to).or_default() += 1;
        *ways_out.entry((&arrow.from, &arrow.handle)).or_default() += 1;
    }
    found.joins |= ways_in.values().any(|count| *count > 1);
    found.forks |= ways_out.values().any(|count| *count > 1);
    found.loops = has_cycle(&arrows);
    found.nested_for_each |= has_nested_loop_node(definition);
    found.aborts |= definition["flow"]
        .as_object()
        .is_some_and(|flow| flow.values().any(|step| step.get("on_error").is_none() && step.get("tool").is_some()));
    found
}

fn walk(value: &Value, each_depth: usize, found: &mut Features) {
    match value {
        Value::Object(map) => {
            let has = |key: &str| map.contains_key(key);
            let is = |key: &str, wanted: &str| map.get(key).and_then(Value::as_str) == Some(wanted);
            let each = has("for_each") || is("nodeType", "loop");
            found.for_each |= each;
            found.nested_for_each |= has("for_each") && each_depth > 0;
            found.ifs |= has("if") && !has("then");
            found.branches |= has("branch") || is("nodeType", "condition");
            found.retries |= has("retries") || has("maxAttempts");
            found.gates |= has("approval") || has("notify_user") || is("nodeType", "approval");
            found.any |= is("joinMode", "any");
            found.error_routes |= has("on_error") || is("sourceHandle", "error") || is("sourceHandle", "denied");
            found.aborts |= is("errorHandling", "fail_workflow");
            found.waits |= has("wait_for_webhook") || is("nodeType", "wait_for_webhook");
            found.sleeps |= has("sleep") || is("nodeType", "delay");
            found.children |= has("workflow") || is("nodeType", "workflow");
            found.disabled |= has("isDisabled");
            map.values().for_each(|value| walk(value, each_depth + usize::from(each), found));
        }
        Value::Array(list) => list.iter().for_each(|value| walk(value, each_depth, found)),
        Value::String(text) => found.templates |= text.contains("{{"),
        _ => {}
    }
}

struct Arrow {
    from: String,
    handle: String,
    to: String,
}

/// Every arrow of a definition, whatever its dialect, except from a graph loop's body back to the loop.
fn arrows(definition: &Value) -> Vec<Arrow> {
    let mut found = Vec::new();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let mut add = |from: &str, handle: &str, to: &Value| {
        found.push(Arrow { from: from.to_string(), handle: handle.to_string(), to: text(to) });
    };
    needs(&definition["tasks"], &mut add);
    for (name, step) in definition["flow"].as_object().into_iter().flatten() {
        ["next", "join"].iter().filter_map(|key| step.get(key)).for_each(|to| add(name, "next", to));
        step["parallel"].as_array().into_iter().flatten().for_each(|to| add(name, "parallel", to));
        let entries = step["branch"].as_array().into_iter().flatten().enumerate();
        entries.for_each(|(i, entry)| add(name, &format!("branch{i}"), &entry["then"]));
        step.get("on_error").filter(|to| *to != "continue").into_iter().for_each(|to| add(name, "error", to));
    }
    let is_each = |id: &Value| {
        let mut nodes = definition["nodes"].as_array().into_iter().flatten();
        nodes.any(|node| node["nodeID"] == *id && node["nodeType"] == "loop")
    };
    for edge in definition["edges"].as_array().into_iter().flatten() {
        let handle = match edge["sourceHandle"].as_str() {
            None | Some("output" | "success" | "default") => "success",
            Some(handle) => handle,
        };
        if handle != "loop" || !is_each(&edge["upstreamNodeID"]) {
            add(&text(&edge["upstreamNodeID"]), handle, &edge["downstreamNodeID"]);
        }
    }
    found
}

/// Whether the `loop` handle of a loop node reaches another loop node before it returns.
fn has_nested_loop_node(definition: &Value) -> bool {
    let edges = || definition["edges"].as_array().into_iter().flatten();
    let nodes = definition["nodes"].as_array().into_iter().flatten();
    let loops: Vec<&Value> = nodes.filter(|node| node["nodeType"] == "loop").map(|node| &node["nodeID"]).collect();
    loops.iter().any(|outer| {
        let inside = edges().filter(|edge| edge["upstreamNodeID"] == **outer && edge["sourceHandle"] == "loop");
        let mut todo: Vec<&Value> = inside.map(|edge| &edge["downstreamNodeID"]).collect();
        let mut seen = vec![*outer];
        while let Some(from) = todo.pop() {
            if !seen.contains(&from) {
                seen.push(from);
                todo.extend(
                    edges().filter(|edge| edge["upstreamNodeID"] == *from).map(|edge| &edge["downstreamNodeID"]),
                );
            }
        }
        seen[1..].iter().any(|name| loops.contains(name))
    })
}

fn needs(tasks: &Value, add: &mut impl FnMut(&str, &str, &Value)) {
    for (name, step) in tasks.as_object().into_iter().flatten() {
        let before = step["needs"].as_array().into_iter().flatten();
        before.for_each(|need| add(need.as_str().unwrap_or_default(), "success", &Value::from(name.as_str())));
        needs(&step["tasks"], add);
    }
}

fn has_cycle(arrows: &[Arrow]) -> bool {
    let reaches_itself = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut todo = vec![start];
        while let Some(from) = todo.pop() {
            for arrow in arrows.iter().filter(|arrow| arrow.from == from) {
                if arrow.to == start {
                    return true;
                }
                if seen.insert(arrow.to.as_str()) {
                    todo.push(&arrow.to);
                }
            }
        }
        false
    };
    arrows.iter().any(|arrow| reaches_itself(&arrow.from))
}
