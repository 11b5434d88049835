//! The fields of every definition, whatever its dialect: name, triggers, limits, output. Also chooses the dialect.

use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::{Node, Value};
use crate::{code, flow, graph, tasks, trigger, vars};
use std::collections::BTreeMap;
use stepwell_core::definition::{Concurrency, Definition, WhenFull};
use stepwell_core::expr::{Grammar, Var};
use stepwell_core::graph::{Dialect, Graph, Spec};
use stepwell_core::limits;
use stepwell_core::time::Millis;

const MAX_DESCRIPTION_BYTES: usize = 16 * 1024;
const MAX_LABELS: usize = 100;
const MAX_HOSTS: usize = 1_000;
/// The highest concurrency limit that a workflow can set.
const MAX_CONCURRENCY: u32 = 1_000_000;

pub fn read<'d>(draft: &mut Draft<'d>, mut fields: Fields<'d>, root: &'d Node) -> Option<Definition> {
    let name = name(draft, &mut fields);
    let description = description(draft, &mut fields);
    let triggers = trigger::read(draft, &mut fields);
    let max_duration = max_duration(draft, &mut fields);
    let retention = fields.take("retention").and_then(|field| draft.lasting(&field));
    let concurrency = fields.take("concurrency").and_then(|field| concurrency(draft, &field));
    let input_schema = fields.take("input_schema").inspect(|field| check_schema(draft, field));
    let enabled = draft.flag(&mut fields, "enabled", true);
    let expose_as_tool = draft.flag(&mut fields, "expose_as_tool", false);
    let allow_hosts = fields.take("allow_hosts").map(|field| hosts(draft, &field)).unwrap_or_default();
    let labels = fields.take("labels").map(|field| labels(draft, &field)).unwrap_or_default();
    let iterations = fields.take("max_iterations");
    let iterations = iterations.and_then(|field| draft.integer(&field, 1..=limits::MAX_ITERATIONS));
    let output = fields.take("output");
    let (vars, defaults) = (fields.take("vars"), fields.take("defaults"));
    draft.has_vars = vars.is_some();
    let dialect = steps(draft, &mut fields, defaults);
    let grammar = if dialect == Some(Dialect::Flow) { Grammar::Flow } else { Grammar::Standard };
    let vars = vars.map(|field| vars::read(draft, &field, grammar)).unwrap_or_default();
    let output = output.and_then(|field| Some((draft.template(&field, grammar)?, field)));
    let output = output.map(|(template, field)| (template, draft.origin(&field.place, Some(field.node))));
    fields.finish(draft, "a workflow", &[]);

    let origin = draft.origin(&Place { path: String::new(), span: root.span }, None);
    let spec = Spec {
        dialect: dialect?,
        origin,
        steps: std::mem::take(&mut draft.steps),
        edges: std::mem::take(&mut draft.edges),
        output,
        vars,
        max_iterations: iterations.unwrap_or(limits::DEFAULT_ITERATIONS),
    };
    if draft.is_broken() {
        // Names can still be checked if they are complete.
        if spec.steps.len() < limits::MAX_STEPS {
            draft.add_graph_faults(Graph::name_faults(spec));
        }
        return None;
    }
    let mut graph = Graph::build(spec).map_err(|faults| draft.add_graph_faults(faults)).ok()?;
    draft.add_graph_warnings(std::mem::take(&mut graph.warnings));
    Some(Definition {
        name: name?,
        description,
        triggers,
        max_duration,
        retention: retention.unwrap_or(limits::DEFAULT_RETENTION),
        concurrency,
        input_schema: input_schema.map(|field| field.node.to_json()),
        enabled,
        expose_as_tool,
        allow_hosts,
        labels,
        graph,
    })
}

/// Reads the steps, which are written in exactly one of the three dialects.
fn steps<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, defaults: Option<Field<'d>>) -> Option<Dialect> {
    let given: Vec<&str> = ["tasks", "flow", "nodes"].into_iter().filter(|name| fields.has(name)).collect();
    if let Some(second) = given.get(1) {
        let message = format!("`{second}` cannot be combined with `{}`", given[0]);
        let fault =
            Fault::new(code::MANY_DIALECTS, message).hint("write the steps as one of tasks, flow, or nodes and edges");
        draft.fault_in_shape(&fields.key_place(second), fault);
        fields.ignore(&["tasks", "flow", "nodes", "edges", "workflowOptions", "viewport"]);
        return None;
    }
    let (found, tasks, flow) = (given.first().copied(), fields.take("tasks"), fields.take("flow"));
    match found {
        Some("tasks") => {
            tasks::read(draft, &tasks?, defaults);
            Some(Dialect::Tasks)
        }
        Some("flow") => {
            flow::read(draft, &flow?, defaults);
            Some(Dialect::Flow)
        }
        Some(_) => {
            graph::read(draft, fields, defaults);
            Some(Dialect::Graph)
        }
        None => {
            let fault = Fault::new(code::NO_DIALECT, "the workflow has no steps");
            let fault = if fields.get("start").is_some_and(|node| matches!(node.value, Value::Map(_))) {
                fields.ignore_rest();
                fault.hint("put the steps under `flow:`, and a `name:` beside it")
            } else {
                fault.hint("write them as `tasks`, as `flow`, or as `nodes` and `edges`")
            };
            fields.ignore(&["nodes", "edges"]);
            draft.fault_in_shape(&fields.place.clone(), fault);
            None
        }
    }
}

fn name<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> Option<String> {
    // A graph from an editor has a `title`; a person may write both.
    let title = fields.take("title");
    let Some(field) = fields.take("name").or(title) else {
        draft.fault(&fields.place, Fault::new(code::MISSING_FIELD, "the workflow has no `name`"));
        return None;
    };
    let name = draft.text(&field)?;
    let bad = |c: char| c.is_control() || "/\\?#%\"<>".contains(c);
    let fault = if name.trim().is_empty() {
        Fault::new(code::BAD_NAME, "the name must not be empty")
    } else if name.trim() != name {
        Fault::new(code::BAD_NAME, "the name begins or ends with a space")
    } else if name.len() > limits::MAX_NAME_BYTES {
        Fault::new(code::BAD_NAME, format!("the name has more than {} bytes", limits::MAX_NAME_BYTES))
    } else if let Some(c) = name.chars().find(|&c| bad(c)) {
        Fault::new(
            code::BAD_NAME,
            format!("the name contains {}, which is not allowed in a URL", quoted(&c.to_string())),
        )
    } else if name.starts_with("wf_") {
        Fault::new(code::RESERVED_NAME, "a name cannot begin with `wf_`, the prefix of ids")
    } else {
        return Some(name.to_owned());
    };
    draft.fault(&field.place, fault);
    None
}

fn description<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> Option<String> {
    let field = fields.take("description")?;
    let text = draft.text(&field)?;
    if text.len() > MAX_DESCRIPTION_BYTES {
        let message = format!("a description has at most {MAX_DESCRIPTION_BYTES} bytes");
        draft.fault(&field.place, Fault::new(code::BAD_VALUE, message));
    }
    Some(text.to_owned())
}

fn max_duration<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) -> Millis {
    let field = fields.take_one(&["max_duration", "max_duration_seconds"], draft);
    let length = field.and_then(|(_, field)| draft.positive_lasting(&field));
    length.unwrap_or(limits::DEFAULT_MAX_DURATION)
}

fn concurrency<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Concurrency> {
    if let Value::Number(_) = field.node.value {
        let limit = draft.integer(field, 1..=MAX_CONCURRENCY)?;
        return Some(Concurrency { limit, key: None, when_full: WhenFull::Queue });
    }
    let mut inner = Fields::of(field, draft)?;
    let limit = match inner.take("limit") {
        Some(field) => draft.integer(&field, 1..=MAX_CONCURRENCY),
        None => {
            draft.fault(&field.place, Fault::new(code::MISSING_FIELD, "`limit` is missing"));
            None
        }
    };
    let key = inner.take("key").and_then(|field| {
        let mut key = draft.template(&field, Grammar::Standard)?;
        // The key is evaluated before the run has steps: only its input is known.
        for path in key.exprs_mut().flat_map(|expr| expr.paths_mut()) {
            let var = match path.key(0) {
                Some("trigger") if matches!(path.key(1), Some("body" | "headers" | "query")) => Var::Trigger,
                Some("input") => Var::Input,
                _ => {
                    let message = format!(
                        "{path}: a concurrency key can read only `input`, `trigger.body`, `trigger.headers` and \
                         `trigger.query`"
                    );
                    draft.fault(&field.place, Fault::new("misplaced-name", message));
                    continue;
                }
            };
            path.bind(var, 1);
        }
        Some(key)
    });
    let choices = [("queue", WhenFull::Queue), ("skip", WhenFull::Skip), ("cancel_oldest", WhenFull::CancelOldest)];
    let when_full = inner.take("when_full").and_then(|field| draft.choice(&field, &choices));
    inner.finish(draft, "`concurrency`", &[]);
    Some(Concurrency { limit: limit?, key, when_full: when_full.unwrap_or(WhenFull::Queue) })
}

/// Checks the basic shape of a JSON Schema. The validator that uses it does the full check.
pub fn check_schema<'d>(draft: &mut Draft<'d>, field: &Field<'d>) {
    const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
    if matches!(field.node.value, Value::Bool(_)) {
        return;
    }
    let Some(mut fields) = Fields::of(field, draft) else { return };
    if let Some(kind) = fields.take("type") {
        for item in draft.one_or_more(&kind) {
            if let Some(text) = draft.text(&item)
                && !TYPES.contains(&text)
            {
                let fault = Fault::new(code::BAD_SCHEMA, format!("{} is not a JSON Schema type", quoted(text)));
                draft.fault(&item.place, fault.hint(format!("known: {}", TYPES.join(", "))));
            }
        }
    }
    if let Some(properties) = fields.take("properties")
        && let Some(properties) = Fields::of(&properties, draft)
    {
        for (_, property) in properties.into_entries() {
            check_schema(draft, &property);
        }
    }
    if let Some(required) = fields.take("required") {
        for item in draft.items(&required) {
            draft.text(&item);
        }
    }
    if let Some(items) = fields.take("items") {
        check_schema(draft, &items);
    }
}

fn hosts<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Vec<String> {
    let items = draft.one_or_more(field);
    let mut hosts = Vec::new();
    for item in draft.at_most(items, MAX_HOSTS) {
        let item = &item;
        let Some(host) = draft.text(item) else { continue };
        let name = host.strip_prefix("*.").unwrap_or(host);
        let good = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        if name.is_empty() || !name.chars().all(good) {
            let fault = Fault::new(code::BAD_HOST, format!("{} is not a host", quoted(host)));
            draft.fault(&item.place, fault.hint("write a host without scheme and path, such as api.example.com"));
            continue;
        }
        hosts.push(host.to_ascii_lowercase());
    }
    hosts
}

fn labels<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(fields) = Fields::of(field, draft) else { return labels };
    let entries: Vec<_> = fields.into_entries().collect();
    if entries.len() > MAX_LABELS {
        draft.too_many(&field.place, entries.len(), MAX_LABELS);
    }
    for (entry, value) in entries.into_iter().take(MAX_LABELS) {
        let text = match &value.node.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => {
                draft.wrong_type(&value, "text");
                continue;
            }
        };
        labels.insert(entry.key.clone(), text);
    }
    labels
}
