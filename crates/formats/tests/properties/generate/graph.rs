//! Random definitions of the graph dialect.

use super::drawn::{Drawing, Node, Shape, Way, draw};
use super::{Rng, expressions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Nodes and edges.
pub fn graph(rng: &mut Rng, size: usize) -> (Value, Value) {
    let drawing = draw(rng, true, "s0", size);
    let kinds: BTreeMap<String, Kind> = drawing.nodes.iter().map(|node| (node.name.clone(), kind(rng, node))).collect();
    let readable = drawing.readable();
    let mut writer = Writer { rng, drawing: &drawing, kinds: &kinds, nodes: Vec::new(), edges: Vec::new() };
    writer.node("start", "start", json!({}));
    writer.edge("start", None, "s0");
    for node in &drawing.nodes {
        let before: Vec<String> = readable[&node.name].iter().cloned().collect();
        writer.write(node, &before);
    }
    (Value::Array(writer.nodes), Value::Array(writer.edges))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Javascript,
    Tool,
    Http,
    Delay,
    Wait,
    Gate,
    Child,
    Disabled,
    Condition,
    Each,
}

fn kind(rng: &mut Rng, node: &Node) -> Kind {
    match node.shape {
        Shape::Choice => Kind::Condition,
        Shape::Each => Kind::Each,
        _ if node.calls => Kind::Javascript,
        _ if node.gate => Kind::Gate,
        _ => rng.weighted(&[
            (40, Kind::Javascript),
            (18, Kind::Tool),
            (10, Kind::Http),
            (8, Kind::Delay),
            (8, Kind::Wait),
            (6, Kind::Child),
            (8, Kind::Disabled),
        ]),
    }
}

/// Only these write a variable that others read.
fn has_variable(kind: Kind) -> bool {
    matches!(kind, Kind::Javascript | Kind::Tool)
}

struct Writer<'a> {
    rng: &'a mut Rng,
    drawing: &'a Drawing,
    kinds: &'a BTreeMap<String, Kind>,
    nodes: Vec<Value>,
    edges: Vec<Value>,
}

impl Writer<'_> {
    fn node(&mut self, name: &str, kind: &str, config: Value) {
        let position = json!({"x": 0, "y": 0});
        self.nodes.push(json!({"nodeID": name, "nodeType": kind, "nodeConfig": config, "position": position}));
    }

    fn edge(&mut self, from: &str, handle: Option<&str>, to: &str) {
        let id = format!("e{}", self.edges.len());
        let mut edge = json!({"edgeID": id, "upstreamNodeID": from, "downstreamNodeID": to});
        if let Some(handle) = handle {
            edge["sourceHandle"] = json!(handle);
        }
        self.edges.push(edge);
    }

    fn write(&mut self, node: &Node, before: &[String]) {
        let kind = self.kinds[&node.name];
        let mut config = Map::new();
        if node.any {
            config.insert("joinMode".into(), json!("any"));
        } else if self.rng.chance(10) {
            config.insert("joinMode".into(), json!("all"));
        }
        let type_name = self.configure(node, kind, before, &mut config);
        let mut default = None;
        if kind == Kind::Condition {
            default = self.branches(node, before, &mut config);
        }
        self.node(&node.name, type_name, Value::Object(config));
        self.arrows(node, default);
    }

    /// Writes the fields of this kind of node and returns its type in the dialect.
    fn configure(
        &mut self,
        node: &Node,
        kind: Kind,
        before: &[String],
        config: &mut Map<String, Value>,
    ) -> &'static str {
        let mut put = |fields: Value| config.extend(fields.as_object().cloned().unwrap_or_default());
        let type_name = match kind {
            Kind::Javascript => {
                put(json!({"code": "return 1", "outputVariable": format!("v_{}", node.name)}));
                "javascript"
            }
            Kind::Tool => {
                put(json!({"tool": "echo", "outputVariable": format!("v_{}", node.name)}));
                "tool"
            }
            Kind::Http => {
                put(json!({"url": "https://example.com/do"}));
                "http"
            }
            Kind::Delay => {
                put(json!({"delayType": "fixed", "delaySeconds": 5}));
                "delay"
            }
            Kind::Wait => {
                put(if self.rng.chance(50) { json!({"timeout": "1h"}) } else { json!({}) });
                "wait_for_webhook"
            }
            Kind::Gate => {
                put(json!({"message": "ok?"}));
                put(if self.rng.chance(50) { json!({"timeout": "1h"}) } else { json!({}) });
                "approval"
            }
            Kind::Child => {
                put(json!({"workflow": "child"}));
                "workflow"
            }
            Kind::Disabled => {
                put(json!({"code": "return 1", "isDisabled": true}));
                "javascript"
            }
            Kind::Condition => "condition",
            Kind::Each => {
                let source = self.rng.weighted(&[(85, "input.items"), (9, "input.empty"), (6, "input.n")]);
                put(json!({"sourceVariable": source, "itemVariable": format!("it_{}", node.name)}));
                if self.rng.chance(10) {
                    put(json!({"maxIterations": 2}));
                }
                "loop"
            }
        };
        if matches!(kind, Kind::Javascript | Kind::Tool | Kind::Http) {
            self.policy(node, kind, before, config);
        }
        type_name
    }

    /// Attempts, error handling and a template.
    fn policy(&mut self, node: &Node, kind: Kind, before: &[String], config: &mut Map<String, Value>) {
        match self.rng.below(10) {
            0..4 => config.insert("retries".into(), json!(self.rng.below(4))),
            4..8 => config.insert("maxAttempts".into(), json!(1 + self.rng.below(3))),
            _ => None,
        };
        let routed = node.arrows.iter().any(|arrow| arrow.way == Way::Error);
        let aborts = self.rng.chance(if routed { 2 } else { 8 });
        if aborts {
            config.insert("errorHandling".into(), json!("fail_workflow"));
        } else if self.rng.chance(15) {
            config.insert("errorHandling".into(), json!("continue"));
        }
        if kind == Kind::Javascript {
            return;
        }
        let written: Vec<&String> = before.iter().filter(|name| has_variable(self.kinds[*name])).collect();
        let name = if written.is_empty() { None } else { Some((*self.rng.pick(&written)).clone()) };
        let mut numbers = vec!["input.n".to_string(), "vars.v0".to_string()];
        numbers.extend(written.iter().map(|name| format!("(ctx.v_{name}.v ?? 0)")));
        let template = match (self.rng.below(13), name) {
            (0 | 1, _) => "{{ctx.input.n}}".to_string(),
            (2, _) => "n is {{input.n}}".to_string(),
            (3 | 4, Some(name)) => format!("{{{{ctx.v_{name}.v ?? 0}}}}"),
            (5 | 6, Some(name)) if !aborts => format!("{{{{ctx.v_{name}.v}}}}"),
            (7, Some(name)) if !aborts && self.rng.chance(30) => format!("{{{{steps.{name}.body.nope}}}}"),
            (8..=10, _) => format!("{{{{{}}}}}", expressions::number(self.rng, &numbers, 3)),
            (11 | 12, _) => format!("{{{{{}}}}}", expressions::text(self.rng, &numbers)),
            _ => return,
        };
        config.insert(if kind == Kind::Tool { "args" } else { "body" }.into(), json!({"x": template}));
    }

    /// The branches of a condition. Returns the index of the default arrow, if there is one.
    fn branches(&mut self, node: &Node, before: &[String], config: &mut Map<String, Value>) -> Option<usize> {
        let arms = node.arrows.iter().filter(|arrow| arrow.way == Way::Branch).count();
        let default = self.rng.chance(75).then_some(arms - 1);
        let mut branches = Vec::new();
        for arm in (0..arms).filter(|arm| Some(*arm) != default) {
            let mut branch = json!({"id": format!("b{arm}"), "label": format!("arm {arm}")});
            if self.rng.chance(50) {
                branch["condition"] = json!(self.expression(node, before));
            } else {
                let rules: Vec<Value> = (0..1 + self.rng.below(2)).map(|_| self.rule(node, before)).collect();
                if rules.len() > 1 || self.rng.chance(30) {
                    branch["conditionLogic"] = json!(self.rng.pick(&["AND", "OR"]));
                }
                branch["conditions"] = json!(rules);
            }
            branches.push(branch);
        }
        config.insert("branches".into(), json!(branches));
        if default.is_some() {
            config.insert("defaultBranch".into(), json!("else"));
        }
        default
    }

    /// A variable to test: of the call right before a loop's condition, of the item, or of any earlier call.
    fn variable(&mut self, node: &Node, before: &[String]) -> (String, bool) {
        let last = self.drawing.nodes.iter().find(|other| {
            node.calls && other.calls && other.arrows.iter().any(|arrow| arrow.to == node.name && !arrow.back)
        });
        if let Some(last) = last
            && self.rng.chance(80)
        {
            return (format!("ctx.v_{}", last.name), true);
        }
        let around = self.drawing.each_around(node);
        if !around.is_empty() && self.rng.chance(30) {
            return (format!("ctx.it_{}", self.rng.pick(&around)), false);
        }
        let written: Vec<&String> = before.iter().filter(|name| has_variable(self.kinds[*name])).collect();
        match written.is_empty() {
            true => ("ctx.input.n".to_string(), false),
            false => (format!("ctx.v_{}", self.rng.pick(&written)), true),
        }
    }

    fn expression(&mut self, node: &Node, before: &[String]) -> String {
        if !before.is_empty() && self.rng.chance(25) {
            let statuses = ["success", "failed", "skipped", "timeout"];
            let sign = self.rng.pick(&["==", "!="]);
            let readable: Vec<&String> = before.iter().filter(|name| self.kinds[*name] != Kind::Wait).collect();
            if !readable.is_empty() {
                let name = self.rng.pick(&readable);
                return format!("steps.{name}.status {sign} '{}'", self.rng.pick(&statuses));
            }
        }
        let (variable, object) = self.variable(node, before);
        let value = self.rng.below(4);
        let sign = *self.rng.pick(&["==", ">", "<=", "!=", ">="]);
        match (object, self.rng.below(4)) {
            (true, 0) => format!("{variable} == {}", self.rng.pick(&["true", "'a'"])),
            (true, 1) => format!("{variable}.v {sign} {value} && {variable} != false"),
            (true, 2) => format!("{variable}.v + vars.v0 {sign} {value}"),
            (false, 0) => format!("({variable} - 1) * 2 {sign} {value}"),
            (true, _) => format!("{variable}.v {sign} {value}"),
            (false, _) => format!("{variable} {sign} {value}"),
        }
    }

    fn rule(&mut self, node: &Node, before: &[String]) -> Value {
        let (variable, object) = self.variable(node, before);
        let operators = ["equals", "not_equals", "greater_than", "less_than", "greater_or_equal", "less_or_equal"];
        let path = if object { format!("{variable}.v") } else { variable };
        let path = if self.rng.chance(20) { format!("{path} - 1") } else { path };
        json!({
            "leftValue": format!("{{{{{path}}}}}"),
            "operator": self.rng.pick(&operators),
            "rightValue": self.rng.below(4),
        })
    }

    fn arrows(&mut self, node: &Node, default: Option<usize>) {
        let mut arm = 0;
        for arrow in &node.arrows {
            let handle = match arrow.way {
                Way::Branch => {
                    arm += 1;
                    Some(if default == Some(arm - 1) { "else".to_string() } else { format!("b{}", arm - 1) })
                }
                Way::Plain | Way::Implied if node.shape == Shape::Each => {
                    Some(self.rng.pick(&["done", "completed"]).to_string())
                }
                Way::Plain | Way::Implied => {
                    self.rng.pick(&[None, Some("output"), Some("success"), Some("default")]).map(String::from)
                }
                Way::Error => Some("error".to_string()),
                Way::Denied => Some("denied".to_string()),
                Way::Body => Some("loop".to_string()),
            };
            self.edge(&node.name, handle.as_deref(), &arrow.to);
        }
        if node.done && node.each.is_none() && node.shape == Shape::Step && self.rng.chance(60) {
            let end = format!("end_{}", node.name);
            self.node(&end, "end", json!({}));
            self.edge(&node.name, None, &end);
        }
    }
}
