//! Definitions of the three dialects, turned into nested scopes (design, section 2.1, "Compile").
//!
//! Reads what `generate.rs` writes, and similar simple definitions. It trusts its input: a definition that the
//! validator rejects may panic here.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A scope without cycles: steps and the edges that start at them.
#[derive(Default)]
pub struct Scope {
    pub steps: Vec<Step>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Join {
    Every,
    Some,
    Any,
    Settled,
}

pub struct Step {
    pub name: String,
    pub kind: Kind,
    pub join: Join,
    pub condition: Option<String>,
    /// Whether a failure without a route ends the run.
    pub aborts: bool,
    /// Flow's `on_error: continue`: a failure is never unhandled.
    pub tolerates: bool,
    pub attempts: u32,
    /// Every failure is retried, not only those that the call considers worthwhile.
    pub stubborn: bool,
    pub at_most_once: bool,
    pub templates: Vec<String>,
    /// Graph: the `ctx` variable of the output.
    pub variable: Option<String>,
    /// Flow: the condition of each `branch` entry; entry `i` is the handle `branch:i`.
    pub branches: Vec<Option<String>>,
}

pub enum Kind {
    Call,
    Child,
    Sleep,
    Webhook {
        expires: bool,
    },
    Gate {
        expires: bool,
    },
    /// Finishes immediately: start, end, disabled, pass-through.
    Instant,
    Choice {
        branches: Vec<(String, Test)>,
        default: Option<String>,
    },
    Cycle {
        body: Scope,
        limit: usize,
    },
    Each(Each),
}

#[derive(Default)]
pub struct Each {
    pub items: String,
    pub body: Scope,
    pub width: usize,
    pub stops: bool,
    pub limit: usize,
    pub item: Option<String>,
    pub index: Option<String>,
}

/// When a branch of a graph condition matches.
pub enum Test {
    Expression(String),
    Rules { all: bool, rules: Vec<Rule> },
}

pub struct Rule {
    pub left: Value,
    pub operator: String,
    pub right: Value,
}

/// One drawn edge. Seen from the scope of a loop it may start at the loop step, though drawn from a step inside.
pub struct Edge {
    pub id: usize,
    pub from: usize,
    pub handle: String,
    pub to: Target,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Step(usize),
    /// To the header of the loop whose body this scope is, or back to the `each` step.
    Back,
    /// Out of the loop whose body this scope is.
    Leave,
}

pub fn compile(definition: &Value) -> Scope {
    let limit = definition["max_iterations"].as_u64().unwrap_or(1000) as usize;
    if let Some(tasks) = definition["tasks"].as_object() {
        return tasks_scope(tasks);
    }
    match definition["flow"].as_object() {
        Some(flow) => flow_scope(flow, limit),
        None => graph_scope(definition, limit),
    }
}

/// A step with defaults.
fn plain(name: &str, kind: Kind, fields: &Map<String, Value>) -> Step {
    Step {
        name: name.to_string(),
        kind,
        join: Join::Some,
        condition: None,
        aborts: false,
        tolerates: false,
        attempts: 1,
        stubborn: asked_attempts(fields).is_some(),
        at_most_once: fields.get("at_most_once") == Some(&Value::Bool(true)),
        templates: templates(fields),
        variable: None,
        branches: Vec::new(),
    }
}

fn asked_attempts(fields: &Map<String, Value>) -> Option<u32> {
    let number = |key: &str| fields.get(key).and_then(Value::as_u64).map(|n| n as u32);
    number("retries").or(number("retry_attempts")).map(|n| n + 1).or(number("maxAttempts"))
}

fn attempts(fields: &Map<String, Value>, kind: &Kind, default: u32) -> u32 {
    let asked = asked_attempts(fields);
    match kind {
        Kind::Call => asked.unwrap_or(default),
        Kind::Child => asked.unwrap_or(1),
        _ => 1,
    }
}

/// All strings with `{{` in the fields that are resolved when the step starts.
fn templates(fields: &Map<String, Value>) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if text.contains("{{") => found.push(text.clone()),
            Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
            Value::Object(map) => map.values().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for key in ["url", "headers", "body", "args", "input", "approval", "message"] {
        if let Some(value) = fields.get(key) {
            collect(value, &mut found);
        }
    }
    found
}

fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key).and_then(Value::as_str).map(String::from)
}

fn tasks_scope(tasks: &Map<String, Value>) -> Scope {
    let mut flat = Flat::default();
    for (name, fields) in tasks {
        let fields = fields.as_object().expect("a step is an object");
        let kind = tasks_kind(fields);
        let mut step = plain(name, kind, fields);
        step.attempts = attempts(fields, &step.kind, 6);
        step.condition = text(fields, "if");
        step.join = if step.condition.is_some() { Join::Settled } else { Join::Every };
        flat.add(step);
        for need in fields.get("needs").and_then(Value::as_array).into_iter().flatten() {
            flat.edge(need.as_str().expect("a need is a name"), "success", name);
        }
    }
    flat.nest(1)
}

fn tasks_kind(fields: &Map<String, Value>) -> Kind {
    let expires = |key: &str| fields[key].get("timeout").is_some();
    if fields.contains_key("sleep") || fields.contains_key("until") {
        Kind::Sleep
    } else if fields.contains_key("wait_for_webhook") {
        Kind::Webhook { expires: expires("wait_for_webhook") }
    } else if fields.contains_key("approval") {
        Kind::Gate { expires: expires("approval") }
    } else if fields.contains_key("workflow") {
        Kind::Child
    } else if let Some(items) = text(fields, "for_each") {
        Kind::Each(Each {
            items,
            body: tasks_scope(fields["tasks"].as_object().expect("a body")),
            width: fields.get("max_parallel").and_then(Value::as_u64).unwrap_or(10) as usize,
            stops: text(fields, "on_item_error").as_deref() != Some("continue"),
            limit: usize::MAX,
            item: None,
            index: None,
        })
    } else {
        Kind::Call
    }
}

fn flow_scope(flow: &Map<String, Value>, limit: usize) -> Scope {
    let alias = flow["start"].get("name").and_then(Value::as_str).unwrap_or("start");
    let real = |name: &Value| {
        let name = name.as_str().expect("a transition names a step");
        if name == alias && !flow.contains_key(name) { "start".to_string() } else { name.to_string() }
    };
    let mut flat = Flat { entries: vec!["start".to_string()], loops_abort: true, ..Flat::default() };
    for (name, fields) in flow {
        let fields = fields.as_object().expect("a step is an object");
        flat.add(flow_step(name, fields));
        if let Some(next) = fields.get("next") {
            flat.edge(name, "success", &real(next));
        }
        let forks = fields.get("parallel").and_then(Value::as_array);
        for fork in forks.into_iter().flatten() {
            flat.edge(name, "success", &real(fork));
        }
        if let (Some(join), None) = (fields.get("join"), forks) {
            flat.edge(name, "success", &real(join));
        }
        for (i, entry) in fields.get("branch").and_then(Value::as_array).into_iter().flatten().enumerate() {
            flat.edge(name, &format!("branch:{i}"), &real(&entry["then"]));
        }
        if let Some(handler) = fields.get("on_error").filter(|handler| *handler != "continue") {
            flat.edge(name, "error", &real(handler));
        }
    }
    let joins = flow.iter().filter(|(_, fields)| fields.get("parallel").is_some() && fields.get("join").is_some());
    join_open_ends(&mut flat, flow, joins.map(|(name, fields)| (name.clone(), real(&fields["join"]))).collect());
    for (name, fields) in flow.iter().filter(|(_, fields)| fields["on_error"] == "continue") {
        let targets: Vec<String> =
            flat.from(name).filter(|edge| edge.handle == "success").map(|e| e.to.clone()).collect();
        targets.iter().for_each(|to| flat.edge(name, "error", to));
        debug_assert!(fields.get("branch").is_none());
    }
    flat.nest(limit)
}

fn flow_step(name: &str, fields: &Map<String, Value>) -> Step {
    let has = |key: &str| fields.contains_key(key);
    let expires = has("timeout_s") || fields.get("approval").is_some_and(|gate| gate.get("timeout").is_some());
    let kind = match fields.get("tool") {
        Some(Value::String(_)) => Kind::Call,
        Some(_) => Kind::Gate { expires },
        None if has("notify_user") || has("timeout_s") || has("approval") => Kind::Gate { expires },
        None if ["sleep", "wait_for_webhook", "workflow", "for_each"].into_iter().any(has) => tasks_kind(fields),
        None => Kind::Instant,
    };
    let mut step = plain(name, kind, fields);
    step.attempts = attempts(fields, &step.kind, 3);
    step.stubborn |= has("tool");
    step.aborts = !has("on_error");
    step.tolerates = fields.get("on_error").is_some_and(|handler| handler == "continue");
    let entries = fields.get("branch").and_then(Value::as_array).into_iter().flatten();
    step.branches = entries.map(|entry| entry.get("if").and_then(Value::as_str).map(String::from)).collect();
    step
}

/// `parallel` with `join`: every open end of the branches gets an edge to the join step, innermost forks first.
fn join_open_ends(flat: &mut Flat, flow: &Map<String, Value>, mut joins: Vec<(String, String)>) {
    let branches = |flat: &Flat, fork: &str, join: &str| -> BTreeSet<String> {
        let starts = flat.from(fork).filter(|edge| edge.handle == "success").map(|edge| edge.to.clone()).collect();
        flat.reach(starts, |name| name != join)
    };
    joins.sort_by_key(|(fork, join)| branches(flat, fork, join).len());
    for (fork, join) in joins {
        for name in branches(flat, &fork, &join) {
            let transitions = ["next", "branch", "parallel", "join", "done"];
            let open = !transitions.iter().any(|key| flow[&name].get(key).is_some());
            if open && !flat.from(&name).any(|edge| edge.handle == "success") {
                flat.edge(&name, "success", &join);
            }
        }
    }
}

fn graph_scope(definition: &Value, limit: usize) -> Scope {
    let either = |value: &Value, ours: &str, theirs: &str| -> Value {
        value.get(ours).or(value.get(theirs)).cloned().unwrap_or_default()
    };
    let mut flat = Flat::default();
    for node in definition["nodes"].as_array().expect("nodes") {
        let name = either(node, "nodeID", "id");
        let kind = either(node, "nodeType", "type");
        let config = either(node, "nodeConfig", "data");
        let config = config.as_object().cloned().unwrap_or_default();
        flat.add(graph_step(name.as_str().expect("an id"), kind.as_str().expect("a type"), &config));
        if kind == "start" {
            flat.entries.push(name.as_str().expect("an id").to_string());
        }
    }
    for edge in definition["edges"].as_array().expect("edges") {
        let (from, to) = (either(edge, "upstreamNodeID", "source"), either(edge, "downstreamNodeID", "target"));
        let handle = match edge["sourceHandle"].as_str() {
            None | Some("output" | "success" | "default" | "done" | "completed") => "success",
            Some(handle) => handle,
        };
        flat.edge(from.as_str().expect("from"), handle, to.as_str().expect("to"));
    }
    flat.nest(limit)
}

fn graph_step(name: &str, kind: &str, config: &Map<String, Value>) -> Step {
    let expires = ["timeout", "approval", "wait_for_webhook"].iter().any(|key| match config.get(*key) {
        Some(Value::Object(inner)) => inner.contains_key("timeout"),
        other => *key == "timeout" && other.is_some(),
    });
    let disabled = config.get("isDisabled") == Some(&Value::Bool(true));
    let kind = match kind {
        _ if disabled => Kind::Instant,
        "start" | "end" => Kind::Instant,
        "delay" => Kind::Sleep,
        "wait_for_webhook" => Kind::Webhook { expires },
        "approval" => Kind::Gate { expires },
        "workflow" => Kind::Child,
        "condition" => Kind::Choice {
            branches: config["branches"].as_array().expect("branches").iter().map(graph_branch).collect(),
            default: text(config, "defaultBranch"),
        },
        "loop" => Kind::Each(Each {
            items: format!("{{{{{}}}}}", text(config, "sourceVariable").expect("a source")),
            width: 1,
            stops: true,
            limit: config.get("maxIterations").and_then(Value::as_u64).unwrap_or(1000) as usize,
            item: text(config, "itemVariable"),
            index: text(config, "indexVariable"),
            body: Scope::default(),
        }),
        _ => Kind::Call,
    };
    let mut step = plain(name, kind, config);
    step.attempts = attempts(config, &step.kind, 3);
    step.variable = text(config, "outputVariable").filter(|_| !disabled);
    step.aborts = text(config, "errorHandling").as_deref() == Some("fail_workflow");
    if disabled {
        step.templates.clear();
    }
    if text(config, "joinMode").as_deref() == Some("any") {
        step.join = Join::Any;
    }
    step
}

fn graph_branch(branch: &Value) -> (String, Test) {
    let id = branch["id"].as_str().expect("a branch has an id").to_string();
    if let Some(expression) = branch["condition"].as_str() {
        return (id, Test::Expression(expression.to_string()));
    }
    let rules = branch["conditions"].as_array().expect("conditions").iter().map(|rule| Rule {
        left: rule["leftValue"].clone(),
        operator: rule["operator"].as_str().expect("an operator").to_string(),
        right: rule["rightValue"].clone(),
    });
    (id, Test::Rules { all: branch["conditionLogic"] != "OR", rules: rules.collect() })
}

/// A definition before loops are found: a flat list of all steps and edges.
#[derive(Default)]
struct Flat {
    names: Vec<String>,
    steps: BTreeMap<String, Step>,
    edges: Vec<FlatEdge>,
    entries: Vec<String>,
    /// Flow: a loop step that fails ends the run.
    loops_abort: bool,
}

#[derive(Clone)]
struct FlatEdge {
    id: usize,
    from: String,
    handle: String,
    to: String,
}

impl Flat {
    fn add(&mut self, step: Step) {
        self.names.push(step.name.clone());
        self.steps.insert(step.name.clone(), step);
    }

    fn edge(&mut self, from: &str, handle: &str, to: &str) {
        let id = self.edges.len();
        self.edges.push(FlatEdge { id, from: from.to_string(), handle: handle.to_string(), to: to.to_string() });
    }

    fn from(&self, name: &str) -> impl Iterator<Item = &FlatEdge> {
        self.edges.iter().filter(move |edge| edge.from == name)
    }

    /// The starts and everything reachable from there, limited by `inside`.
    fn reach(&self, starts: Vec<String>, inside: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut todo = starts;
        while let Some(name) = todo.pop() {
            if inside(&name) && found.insert(name.clone()) {
                todo.extend(self.from(&name).map(|edge| edge.to.clone()));
            }
        }
        found
    }

    fn nest(mut self, limit: usize) -> Scope {
        let names = std::mem::take(&mut self.names);
        let entries = self.entries.clone();
        self.scope(Part { names, header: None, entries: &entries, limit })
    }

    /// The scope of some of the steps. Extracts the bodies of graph loops first; then each remaining strongly connected
    /// component becomes a loop step, recursively.
    fn scope(&mut self, part: Part) -> Scope {
        let mut names = part.names.clone();
        for (owner, body, entries) in self.each_bodies(&part) {
            names.retain(|name| !body.contains(name));
            self.edges.retain(|edge| edge.from != owner || edge.handle != "loop");
            let body = part.names.iter().filter(|name| body.contains(*name)).cloned().collect();
            let body = self.scope(Part { names: body, header: Some(&owner), entries: &entries, limit: part.limit });
            if let Some(Step { kind: Kind::Each(each), .. }) = self.steps.get_mut(&owner) {
                each.body = body;
            }
        }
        let mut scope = Scope::default();
        let mut owner: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            if owner.contains_key(name) {
                continue;
            }
            let group = self.cycle_through(name, &names, part.header);
            let step = if group.is_empty() {
                self.steps.remove(name).expect("every step has one place")
            } else {
                self.cycle(&group, &names, &part)
            };
            owner.extend(group.into_iter().chain([name.clone()]).map(|name| (name, scope.steps.len())));
            scope.steps.push(step);
        }
        for edge in &self.edges {
            let (Some(&from), to) = (owner.get(&edge.from), owner.get(&edge.to).copied()) else { continue };
            let to = match to {
                _ if Some(edge.to.as_str()) == part.header => Target::Back,
                Some(to) => Target::Step(to),
                None => Target::Leave,
            };
            if to != Target::Step(from) {
                scope.edges.push(Edge { id: edge.id, from, handle: edge.handle.clone(), to });
            }
        }
        scope
    }

    /// The outermost graph loops among these steps: name, body, the steps its `loop` handle leads to.
    fn each_bodies(&self, part: &Part) -> Vec<(String, BTreeSet<String>, Vec<String>)> {
        let mut found = Vec::new();
        for name in &part.names {
            let entries: Vec<String> = self.from(name).filter(|e| e.handle == "loop").map(|e| e.to.clone()).collect();
            if matches!(self.steps[name].kind, Kind::Each(_)) && !entries.is_empty() {
                let body = self.reach(entries.clone(), |step| step != name && part.has(step));
                found.push((name.clone(), body, entries));
            }
        }
        let inner = |name: &str| found.iter().any(|(_, body, _)| body.contains(name));
        found.iter().filter(|(name, _, _)| !inner(name)).cloned().collect()
    }

    /// All steps on a cycle with this one, without the edges to the header of the part.
    fn cycle_through(&self, name: &str, names: &[String], header: Option<&str>) -> BTreeSet<String> {
        let after = |name: &str| {
            let inside = |step: &str| Some(step) != header && names.iter().any(|known| known == step);
            self.reach(self.from(name).map(|edge| edge.to.clone()).collect(), inside)
        };
        let reached = after(name);
        if !reached.contains(name) {
            return BTreeSet::new();
        }
        reached.into_iter().filter(|step| after(step).contains(name)).collect()
    }

    fn cycle(&mut self, group: &BTreeSet<String>, names: &[String], part: &Part) -> Step {
        let entered = |name: &String| {
            part.entries.contains(name)
                || self.edges.iter().any(|e| &e.to == name && !group.contains(&e.from) && names.contains(&e.from))
        };
        let headers: Vec<String> = group.iter().filter(|name| entered(name)).cloned().collect();
        let [header] = &headers[..] else { panic!("not a natural loop: entered at {headers:?}") };
        let join = self.steps[header].join;
        let inside = names.iter().filter(|name| group.contains(*name)).cloned().collect();
        let body = self.scope(Part { names: inside, header: Some(header), entries: &[], limit: part.limit });
        let kind = Kind::Cycle { body, limit: part.limit };
        let mut step = plain(&format!("loop:{header}"), kind, &Map::new());
        step.join = join;
        step.aborts = self.loops_abort;
        step
    }
}

/// Some steps of a definition that become one scope.
struct Part<'a> {
    names: Vec<String>,
    /// The step that edges return to: the loop's header, or the graph loop whose body this is.
    header: Option<&'a str>,
    /// Steps that are entered from outside without an edge.
    entries: &'a [String],
    limit: usize,
}

impl Part<'_> {
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}
