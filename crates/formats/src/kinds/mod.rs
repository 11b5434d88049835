//! The step types, shared by the three dialects. Each reads its own fields and returns a [`Kind`], even after a fault,
//! so that the names of the step exist.

mod calls;
mod defaults;
mod each;
mod gate;
mod http;
mod retry;
mod waits;

pub use calls::{javascript, missing, query, tool};
pub use defaults::Defaults;
pub use each::{at_most, child, condition, for_each, name_handle, unreachable};
pub use gate::{flat_gate, gate};
pub use http::http;
pub use retry::attempts;
pub use waits::{sleep, until, webhook, webhook_timeout};

use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields};
use serde_json::Value as Json;
use std::sync::Arc;
use stepwell_core::expr::Grammar;
use stepwell_core::graph::{Call, Kind, Retry};
use stepwell_core::nearest::nearest;
use stepwell_core::template::Template;
use stepwell_core::time::Millis;

/// How dialects differ in reading a step.
#[derive(Clone)]
pub struct Rules {
    pub grammar: Grammar,
    /// The retry policy of calls that set none.
    pub retry: Retry,
    /// Whether that policy retries every failure of a tool, or only those that the executor considers worthwhile.
    pub tool_errors: bool,
    /// The timeout of calls that set none.
    pub timeout: fn(Call) -> Millis,
    /// What the author wrote for all steps.
    pub defaults: Defaults,
}

/// A kind that was read, with what remains to be processed.
pub struct ParsedKind<'d> {
    pub kind: Kind,
    /// Names of the handles, starting at the first named one.
    pub handles: Vec<Arc<str>>,
    /// The `tasks` of a for_each, read once the step itself has an index.
    pub body: Option<Field<'d>>,
}

impl ParsedKind<'_> {
    pub fn of(kind: Kind) -> Self {
        ParsedKind { kind, handles: Vec::new(), body: None }
    }

    /// A placeholder for a step that could not be read.
    pub fn placeholder() -> Self {
        ParsedKind::of(Kind::Pass { output: None })
    }
}

/// The fields that decide a step's type in tasks and flow.
pub const TYPES: [&str; 11] = [
    "url",
    "tool",
    "javascript",
    "query",
    "condition",
    "sleep",
    "until",
    "wait_for_webhook",
    "approval",
    "for_each",
    "workflow",
];

/// The fields of all kinds of step: one of these on another kind is misplaced rather than unknown.
pub const STEP_FIELDS: [&str; 42] = [
    "url",
    "method",
    "headers",
    "body",
    "form",
    "tool",
    "args",
    "javascript",
    "memory",
    "query",
    "condition",
    "sleep",
    "until",
    "wait_for_webhook",
    "approval",
    "notify_user",
    "timeout_s",
    "for_each",
    "max_parallel",
    "on_item_error",
    "tasks",
    "output",
    "workflow",
    "input",
    "timeout",
    "retries",
    "retry_attempts",
    "maxAttempts",
    "retry",
    "at_most_once",
    "on_unknown",
    "needs",
    "if",
    "next",
    "branch",
    "parallel",
    "join",
    "on_error",
    "done",
    "name",
    "max_attempts",
    "timeoutSeconds",
];

/// Describes a step of this kind in a message; a placeholder for a broken step has no type.
pub fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Pass { .. } => "a step".into(),
        kind => format!("a step of type {}", kind.name()),
    }
}

/// Reads the kind of a step whose type is given by one of its fields.
pub fn read<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let present: Vec<&'static str> = TYPES.into_iter().filter(|name| fields.has(name)).collect();
    let Some(&first) = present.first() else {
        no_type(draft, fields);
        return ParsedKind::placeholder();
    };
    if let Some(second) = present.get(1) {
        let message = format!("a step has one type, but this one has both `{first}` and `{second}`");
        let fault = Fault::new(code::MANY_STEP_TYPES, message).hint("split it into two steps");
        draft.fault(&fields.key_place(second), fault);
        let made =
            if present.contains(&"for_each") { for_each(draft, fields, rules) } else { ParsedKind::placeholder() };
        fields.ignore_rest();
        return made;
    }
    match first {
        "url" => http(draft, fields, rules),
        "tool" => tool(draft, fields, rules),
        "javascript" => javascript(draft, fields, "javascript"),
        "query" => match fields.take("query").and_then(|field| Fields::of(&field, draft)) {
            Some(mut inner) => {
                let made = query(draft, &mut inner, rules);
                inner.finish(draft, "a query", &[]);
                made
            }
            None => ParsedKind::of(Kind::Call { call: Call::Query, input: Template::constant(Json::Null) }),
        },
        "condition" => condition(draft, fields, rules),
        "sleep" | "until" => sleep(draft, fields, rules),
        "wait_for_webhook" => webhook(draft, fields),
        "approval" => gate(draft, fields, rules),
        "for_each" => for_each(draft, fields, rules),
        _ => child(draft, fields, rules),
    }
}

/// The most fields of a step that are compared with the types if it has none.
const MAX_COMPARED: usize = 100;

fn no_type<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>) {
    for name in TYPES {
        fields.take_raw(name);
    }
    if ["method", "headers", "body", "form"].iter().any(|name| fields.has(name)) {
        let fault = Fault::new(code::MISSING_URL, "an HTTP step needs a `url`");
        draft.fault(&fields.place, fault);
        // A misspelt `url` is among the remaining fields, which are reported as unknown.
        fields.ignore(&["method", "headers", "body", "form"]);
        return;
    }
    // A misspelt type is reported as an unknown field, with the right spelling.
    let misspelt =
        fields.names().take(MAX_COMPARED).any(|name| !STEP_FIELDS.contains(&name) && nearest(name, TYPES).is_some());
    if !misspelt {
        let fault = Fault::new(code::NO_STEP_TYPE, "this step has no type");
        draft.fault(&fields.place, fault.hint(format!("give it one of {}", TYPES.join(", "))));
    }
}
