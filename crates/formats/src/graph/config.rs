//! Reads what a node does, from its type and its configuration as editors write it.

use super::{condition, variable};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::kinds::{self, ParsedKind, Rules};
use crate::source::Value;
use serde_json::{Value as Json, json};
use stepwell_core::graph::{Each, Handle, Kind, OnItemError, ScopeIx, Sleep};
use stepwell_core::limits;
use stepwell_core::template::Template;
use stepwell_core::time::Millis;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeType {
    Start,
    End,
    Javascript,
    Query,
    Condition,
    Delay,
    Loop,
    Http,
    Tool,
    Approval,
    Webhook,
    Workflow,
}

const TYPES: [(&str, NodeType); 13] = [
    ("start", NodeType::Start),
    ("end", NodeType::End),
    ("javascript", NodeType::Javascript),
    ("dataQuery", NodeType::Query),
    ("condition", NodeType::Condition),
    ("switch", NodeType::Condition),
    ("delay", NodeType::Delay),
    ("loop", NodeType::Loop),
    ("http", NodeType::Http),
    ("tool", NodeType::Tool),
    ("approval", NodeType::Approval),
    ("wait_for_webhook", NodeType::Webhook),
    ("workflow", NodeType::Workflow),
];

/// The fields of all node types: one of these on another type is misplaced rather than unknown.
pub const NODE_FIELDS: [&str; 54] = [
    "code",
    "timeoutSeconds",
    "memory",
    "branches",
    "defaultBranch",
    "delayType",
    "delayMinutes",
    "delaySeconds",
    "delayMs",
    "delayVariable",
    "untilTime",
    "sourceVariable",
    "itemVariable",
    "indexVariable",
    "maxIterations",
    "dataQueryID",
    "connection",
    "sql",
    "inputValues",
    "params",
    "status",
    "outputParameters",
    "url",
    "method",
    "headers",
    "body",
    "tool",
    "args",
    "approvers",
    "message",
    "on_timeout",
    "escalate_to",
    "form",
    "allow_self",
    "timeout",
    "workflow",
    "input",
    "retries",
    "maxAttempts",
    "retry",
    "at_most_once",
    "maxParallel",
    "onItemError",
    "approvals",
    "escalate_after",
    "notify",
    "write",
    "max_rows",
    "saved",
    "toolName",
    "on_unknown",
    "max_attempts",
    "retry_attempts",
    "timeout_s",
];

impl NodeType {
    pub fn read<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<NodeType> {
        let name = draft.text(field)?;
        let found = TYPES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        if found.is_none() {
            let fault = Fault::new(code::UNKNOWN_NODE_TYPE, format!("{} is not a node type", quoted(name)));
            let names = || TYPES.iter().map(|(name, _)| *name);
            let near = draft.near(name, names());
            let hint = near.unwrap_or_else(|| format!("known: {}", names().collect::<Vec<_>>().join(", ")));
            draft.fault(&field.place, fault.hint(hint));
        }
        found
    }

    pub fn name(self) -> &'static str {
        TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Whether a disabled node of this type still decides where its edges lead.
    pub fn keeps_shape(self) -> bool {
        matches!(self, NodeType::Condition | NodeType::Loop | NodeType::Start | NodeType::End)
    }
}

/// The default branch of a condition.
#[derive(Clone, Copy)]
pub struct DefaultBranch<'d> {
    pub handle: Handle,
    /// Its own name, from `defaultBranch`.
    pub name: Option<&'d str>,
}

/// What affects how a node is read beyond its own configuration.
#[derive(Clone, Copy)]
pub struct NodeFlags {
    /// An edge leaves from the default branch.
    pub default_edge: bool,
    pub disabled: bool,
}

pub fn read<'d>(
    draft: &mut Draft<'d>,
    fields: &mut Fields<'d>,
    kind: NodeType,
    flags: NodeFlags,
    rules: &Rules,
) -> (ParsedKind<'d>, Option<DefaultBranch<'d>>) {
    let made = match kind {
        NodeType::Condition => return condition::read(draft, fields, flags, rules),
        NodeType::Start => {
            let output = json!({"started": true, "inputReceived": "{{input}}"});
            ParsedKind::of(Kind::Pass { output: Template::parse(&output, rules.grammar).ok() })
        }
        NodeType::End => end(draft, fields, flags.disabled, rules),
        NodeType::Javascript => kinds::javascript(draft, fields, "code"),
        NodeType::Query => kinds::query(draft, fields, rules),
        NodeType::Delay => delay(draft, fields, rules),
        NodeType::Loop => each(draft, fields, flags.disabled, rules),
        NodeType::Http => kinds::http(draft, fields, rules),
        NodeType::Tool => kinds::tool(draft, fields, rules),
        NodeType::Approval if fields.has("approval") => kinds::gate(draft, fields, rules),
        NodeType::Approval => kinds::flat_gate(draft, fields, rules),
        NodeType::Webhook if fields.has("wait_for_webhook") => kinds::webhook(draft, fields),
        NodeType::Webhook => ParsedKind::of(Kind::Webhook { timeout: kinds::webhook_timeout(draft, fields) }),
        NodeType::Workflow => kinds::child(draft, fields, rules),
    };
    (made, None)
}

/// `status, outputParameters: [{name, sourceVariable}]`.
fn end<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, disabled: bool, rules: &Rules) -> ParsedKind<'d> {
    if let Some(field) = fields.take("status") {
        draft.choice(&field, &[("success", ()), ("failure", ()), ("completed", ()), ("failed", ())]);
    }
    let mut outputs = Vec::new();
    let parameters = fields.take("outputParameters").map(|field| draft.items(&field)).unwrap_or_default();
    for item in parameters {
        let Some(mut entry) = Fields::of(&item, draft) else { continue };
        entry.ignore(&["id", "type", "description"]);
        let name = entry.take("name");
        let source = entry.take_one(&["sourceVariable", "value"], draft);
        for (field, given) in [("name", name.is_some()), ("sourceVariable", source.is_some())] {
            if !given {
                kinds::missing(draft, &entry, field);
            }
        }
        entry.finish(draft, "an output parameter", &[]);
        let (Some(name), Some((spelling, source))) = (name, source) else { continue };
        let template = match spelling {
            "value" => draft.template(&source, rules.grammar),
            // A variable of a branch that was not taken is null here: an end node collects what exists.
            _ => source_variable(draft, &source, rules, " ?? null"),
        };
        let (Some(name), Some(template)) = (draft.constant_text(&name), template) else { continue };
        outputs.push((name.into(), template));
    }
    if disabled {
        outputs.clear();
    }
    ParsedKind::of(Kind::End { outputs })
}

/// `items`, `ctx.items`, `input.items` or `{{…}}`: a variable that is read when the node starts.
fn source_variable<'d>(draft: &mut Draft<'d>, field: &Field<'d>, rules: &Rules, or: &str) -> Option<Template> {
    const ROOTS: [&str; 8] = ["ctx", "input", "trigger", "steps", "tasks", "item", "index", "vars"];
    let text = draft.text(field)?.trim();
    if text.contains("{{") {
        return draft.template(field, rules.grammar);
    }
    // Check the text as written, so that a fault points into it. A bare name is a variable.
    let expr = draft.expr(field, rules.grammar)?;
    let is_root = |root: &str| root != "vars" || draft.has_vars;
    let bare = expr.as_path().is_some_and(|path| !ROOTS.iter().any(|root| is_root(root) && path.begins_with(root)));
    let path = if bare { format!("ctx.{text}") } else { text.to_owned() };
    Template::parse(&Json::String(format!("{{{{{path}{or}}}}}")), rules.grammar).ok()
}

/// `delayType: fixed|dynamic|until`, or the type whose field is set.
fn delay<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    #[derive(Clone, Copy, PartialEq)]
    enum Type {
        Fixed,
        Dynamic,
        Until,
    }
    let choices = [("fixed", Type::Fixed), ("dynamic", Type::Dynamic), ("until", Type::Until)];
    let chosen = fields.take("delayType").and_then(|field| draft.choice(&field, &choices));
    let chosen = chosen.unwrap_or(match (fields.has("untilTime"), fields.has("delayVariable")) {
        (true, _) => Type::Until,
        (_, true) => Type::Dynamic,
        _ => Type::Fixed,
    });
    // Editors keep the settings of the other types; only the chosen one counts.
    let (until, variable) = (fields.take("untilTime"), fields.take("delayVariable"));
    let amounts: Vec<(Field<'d>, u64)> = [("delayMinutes", 60_000), ("delaySeconds", 1_000), ("delayMs", 1)]
        .into_iter()
        .filter_map(|(name, unit)| Some((fields.take(name)?, unit)))
        .collect();
    let sleep = match chosen {
        Type::Until => match until {
            Some(field) => kinds::until(draft, &field, rules).map(Sleep::Until),
            None => none(draft, fields, "untilTime"),
        },
        Type::Dynamic => match variable {
            Some(field) => source_variable(draft, &field, rules, "").map(Sleep::ForValue),
            None => none(draft, fields, "delayVariable"),
        },
        Type::Fixed if amounts.is_empty() => none(draft, fields, "delaySeconds"),
        Type::Fixed => {
            let lengths: Vec<f64> = amounts.iter().filter_map(|(field, unit)| amount(draft, field, *unit)).collect();
            let length = Millis::from_secs_f64(lengths.iter().sum::<f64>() / 1_000.0);
            if length.is_none() {
                draft.too_long(&amounts[0].0.place);
            }
            length.map(Sleep::For)
        }
    };
    ParsedKind::of(Kind::Sleep(sleep.unwrap_or(Sleep::For(Millis(0)))))
}

fn none(draft: &mut Draft<'_>, fields: &Fields<'_>, name: &str) -> Option<Sleep> {
    kinds::missing(draft, fields, name);
    None
}

/// Milliseconds, from a number that an editor may have stored as text.
fn amount<'d>(draft: &mut Draft<'d>, field: &Field<'d>, unit: u64) -> Option<f64> {
    let number = match &field.node.value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => {
            draft.wrong_type(field, "a number");
            return None;
        }
    };
    let millis = number.map(|n| n * unit as f64).filter(|n| *n >= 0.0);
    if millis.is_some_and(|n| n > Millis::MAX.0 as f64) {
        draft.too_long(&field.place);
        return None;
    }
    if millis.is_none() {
        let fault = Fault::new(code::BAD_DURATION, "this is not a duration");
        draft.fault(&field.place, fault.hint("a delay known only at run time has delayType `dynamic`"));
    }
    millis
}

/// `sourceVariable, itemVariable, indexVariable, maxIterations`. A disabled loop has no items.
fn each<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, disabled: bool, rules: &Rules) -> ParsedKind<'d> {
    let nothing = || Template::constant(json!([]));
    let items = match fields.take("sourceVariable") {
        Some(field) => source_variable(draft, &field, rules, "").unwrap_or_else(nothing),
        None if disabled => nothing(),
        None => {
            kinds::missing(draft, fields, "sourceVariable");
            nothing()
        }
    };
    let limit = fields.take("maxIterations").and_then(|field| draft.integer(&field, 1..=limits::MAX_ITERATIONS));
    let parallel = fields.take("maxParallel").and_then(|field| draft.integer(&field, 1..=limits::MAX_ITERATIONS));
    let choices = [("stop", OnItemError::Stop), ("continue", OnItemError::Continue)];
    let on_item_error = fields.take("onItemError").and_then(|field| draft.choice(&field, &choices));
    ParsedKind::of(Kind::Each(Each {
        items: if disabled { nothing() } else { items },
        max_parallel: parallel.unwrap_or(1),
        on_item_error: on_item_error.unwrap_or(OnItemError::Stop),
        limit: limit.unwrap_or(limits::DEFAULT_ITERATIONS),
        output: None,
        item_variable: variable(draft, fields, "itemVariable"),
        index_variable: variable(draft, fields, "indexVariable"),
        body: ScopeIx::ROOT,
    }))
}
