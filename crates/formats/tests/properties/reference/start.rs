//! How a run starts (docs/definitions.md, "Vars" and "Defaults"; docs/semantics.md, "Vars and time").

use super::expr::{self, Mode, dig};
use super::{Place, Reference, Run, compile};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

impl Reference {
    /// Starts a run that makes about `budget` decisions per input.
    pub fn start(definition: &Value, input: &Value, budget: u32, now: &str) -> Reference {
        let root = compile::compile(&with_defaults(definition));
        let vars = definition["vars"].as_object().into_iter().flatten();
        let run = Run {
            input: input.clone(),
            now: now.to_string(),
            to_compute: vars.map(|(name, value)| (name.clone(), value.clone())).collect(),
            vars: None,
            is_flow: definition.get("flow").is_some(),
            writes: Vec::new(),
            rows: BTreeMap::new(),
            status: "running",
            order_mattered: false,
            budget,
        };
        let mut reference = Reference { root, run };
        let place = Place::root(&reference.root);
        reference.run.open(&place);
        if reference.run.compute_vars() {
            reference.run.settle(&place);
        }
        reference
    }

    /// The last template of each step and what it came to.
    pub fn rendered(&self) -> BTreeMap<&str, &Value> {
        self.run.rows.iter().filter_map(|(path, row)| Some((path.as_str(), row.rendered.last()?))).collect()
    }
}

impl Run {
    /// Computes the vars unless they were computed before. One without a value fails the run. Returns whether it goes
    /// on.
    pub(super) fn compute_vars(&mut self) -> bool {
        if self.vars.is_some() || self.to_compute.is_empty() {
            return true;
        }
        let mode = if self.is_flow { Mode::FlowTemplate } else { Mode::Template };
        let mut vars = json!({});
        for (name, template) in &self.to_compute {
            let lookup = |path: &[String]| match path[0].as_str() {
                "vars" => dig(&vars, &path[1..]),
                "input" => dig(&self.input, &path[1..]),
                "trigger" if path[1] == "body" => dig(&self.input, &path[2..]),
                "now" => Some(Value::from(self.now.as_str())),
                other => panic!("a var cannot read {other}"),
            };
            let value = match template {
                Value::String(text) => expr::render(text, mode, &lookup),
                constant => Some(constant.clone()),
            };
            let Some(value) = value else { return !self.abort("failed") };
            vars[name] = value;
        }
        self.vars = Some(vars);
        true
    }
}

/// The definition with its defaults written into every call that does not set the same itself.
fn with_defaults(definition: &Value) -> Value {
    let mut definition = definition.clone();
    let Some(Value::Object(defaults)) = definition.get("defaults").cloned() else { return definition };
    for steps in ["tasks", "flow"] {
        fill_all(&mut definition[steps], &defaults);
    }
    for node in definition["nodes"].as_array_mut().into_iter().flatten() {
        let calls = matches!(node["nodeType"].as_str(), Some("http" | "tool" | "javascript" | "dataQuery"));
        let http = node["nodeType"] == "http";
        if let Some(config) = node["nodeConfig"].as_object_mut().filter(|_| calls) {
            fill(config, http, &defaults);
        }
    }
    definition
}

fn fill_all(steps: &mut Value, defaults: &Map<String, Value>) {
    for step in steps.as_object_mut().into_iter().flat_map(|steps| steps.values_mut()) {
        if let Some(body) = step.get_mut("tasks") {
            fill_all(body, defaults);
        }
        let calls = step.get("url").is_some() || step.get("tool").is_some_and(Value::is_string);
        let http = step.get("url").is_some();
        if let Some(fields) = step.as_object_mut().filter(|_| calls) {
            fill(fields, http, defaults);
        }
    }
}

fn fill(fields: &mut Map<String, Value>, http: bool, defaults: &Map<String, Value>) {
    let attempts = ["retries", "maxAttempts"];
    let own = attempts.iter().any(|name| fields.contains_key(*name)) || fields.contains_key("at_most_once");
    for (name, value) in defaults {
        let applies = match name.as_str() {
            "retries" | "maxAttempts" => !own,
            "headers" => http,
            _ => false,
        };
        if applies && !fields.contains_key(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
}
