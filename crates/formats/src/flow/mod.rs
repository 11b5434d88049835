//! The flow dialect: a map of steps, each with its transition: `next`, `branch`, `parallel`, `join` or `done`.
//!
//! `next` and `join` are the same edge; a step waits for every path that can still reach it. A failure ends the run
//! unless `on_error` is set. `next` may lead back: the builder turns that into a loop.
//!
//! This file reads the steps; `routes.rs` turns their transitions into edges, `forks.rs` rejects forks half out of a
//! loop.

mod forks;
mod routes;

use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::kinds::{self, Defaults, ParsedKind, Rules};
use crate::source::Value;
use crate::tasks;
use std::sync::Arc;
use stepwell_core::expr::Grammar;
use stepwell_core::graph::{Arm, Backoff, Call, Handle, Join, Kind, OnFail, Retry, SpecStep, StepDef, Test};
use stepwell_core::time::Millis;

const TIMEOUT: Millis = Millis::from_secs(120);
const ATTEMPTS: u32 = 3;
/// The default delays between attempts. The third is used by steps that ask for more attempts.
const PAUSES: [Millis; 3] = [Millis::from_secs(30), Millis::from_secs(120), Millis::from_secs(300)];

fn rules() -> Rules {
    let backoff = Backoff::List(PAUSES.to_vec());
    let retry = Retry { attempts: ATTEMPTS, backoff, jitter: false, on: Vec::new() };
    let timeout = |_: Call| TIMEOUT;
    Rules { grammar: Grammar::Flow, retry, tool_errors: true, timeout, defaults: Defaults::default() }
}

/// A step that was read, with its transitions.
struct ParsedStep<'d> {
    index: usize,
    key: &'d str,
    transition: Transition<'d>,
    /// Targets of surplus transitions.
    beside: Vec<Field<'d>>,
    on_error: Option<Field<'d>>,
}

impl<'d> ParsedStep<'d> {
    fn placeholder(index: usize, key: &'d str) -> ParsedStep<'d> {
        ParsedStep { index, key, transition: Transition::Done, beside: Vec::new(), on_error: None }
    }
}

enum Transition<'d> {
    /// No transition: an open end.
    Open,
    Done,
    Next(Field<'d>),
    /// The handle and target of every entry.
    Branch(Vec<(Handle, Field<'d>)>),
    Parallel {
        branches: Vec<Field<'d>>,
        join: Option<Field<'d>>,
    },
}

pub fn read<'d>(draft: &mut Draft<'d>, field: &Field<'d>, defaults: Option<Field<'d>>) {
    let Some(fields) = Fields::of(field, draft) else { return draft.break_shape() };
    if !fields.has("start") {
        let fault = Fault::new("no-start", "no step can start first").hint("name the first step `start`");
        draft.fault_in_shape(&field.place, fault);
    }
    let rules = rules().with_defaults(draft, defaults);
    let mut read: Vec<ParsedStep<'d>> = Vec::new();
    for (entry, field) in fields.into_entries() {
        let place = Place { span: entry.key_span.or(field.place.span), ..field.place.clone() };
        draft.step_name(&entry.key, &place);
        let step = match Fields::of(&field, draft) {
            Some(fields) => step(draft, &entry.key, &field, fields, &rules),
            None => tasks::placeholder(draft, &entry.key, &place, None)
                .map(|index| ParsedStep::placeholder(index, &entry.key)),
        };
        match step {
            Some(step) => read.push(step),
            None => return,
        }
    }
    routes::connect(draft, &read);
}

fn step<'d>(
    draft: &mut Draft<'d>,
    key: &'d str,
    field: &Field<'d>,
    mut fields: Fields<'d>,
    rules: &Rules,
) -> Option<ParsedStep<'d>> {
    let (name, aliases) = names(draft, key, &mut fields);
    if let Some(description) = fields.take("description") {
        draft.text(&description);
    }
    let mut branches = Branches::default();
    let (transition, beside) = transition(draft, &mut fields, &mut branches, rules);
    let on_error = fields.take("on_error").filter(|field| draft.text(field).is_some_and(|text| text != "fail"));
    let ParsedKind { kind, body, .. } = kind(draft, &mut fields, rules);
    let attempts = kinds::attempts(draft, &mut fields, &kind, rules);
    fields.finish(draft, &kinds::describe(&kind), &kinds::STEP_FIELDS);

    let def = StepDef {
        join: Join::Some,
        on_fail: match on_error.as_ref().map(|field| field.node.as_str()) {
            None => OnFail::Abort,
            Some(Some("continue")) => OnFail::Tolerate,
            Some(_) => OnFail::Route,
        },
        retry: attempts.retry,
        timeout: attempts.timeout,
        bound: attempts.bound,
        at_most_once: attempts.at_most_once,
        branches: branches.arms,
        handles: branches.handles,
        done: matches!(transition, Transition::Done),
        written: Arc::new(rules.written(crate::values::written(field.node))),
        ..StepDef::new(name, kind)
    };
    let origin = draft.origin(&field.place, Some(field.node));
    let index = draft.add_step(SpecStep { def, origin, parent: None, entry: key == "start", aliases })?;
    if let Some(body) = body {
        tasks::nested(draft, &body, index, rules);
    }
    Some(ParsedStep { index, key, transition, beside, on_error })
}

/// The first step is identified by its `name`, with `start` as an alias. Elsewhere `name` only repeats the key.
fn names<'d>(draft: &mut Draft<'d>, key: &'d str, fields: &mut Fields<'d>) -> (&'d str, Vec<String>) {
    let Some(field) = fields.take("name") else { return (key, Vec::new()) };
    let Some(name) = draft.text(&field) else { return (key, Vec::new()) };
    if name == key {
        return (key, Vec::new());
    }
    if key == "start" {
        draft.step_name(name, &field.place);
        return (name, vec!["start".into()]);
    }
    let message = format!("the name {} differs from the key {}", quoted(name), quoted(key));
    let fault = Fault::new(code::NAME_MISMATCH, message).hint("a step is identified by its key; remove `name`");
    draft.fault(&field.place, fault);
    (key, Vec::new())
}

/// Reads the kind. Flow has two more kinds: a gate, which is a step without a tool, and a fork, which does nothing
/// itself.
fn kind<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let typed = kinds::TYPES.iter().any(|name| fields.has(name) && *name != "approval");
    let null_tool = fields.has_raw("tool") && !fields.has("tool");
    let asks = ["approval", "notify_user", "timeout_s"].iter().any(|name| fields.has(name));
    if !typed && (null_tool || asks) {
        fields.take_raw("tool");
        if let Some(args) = fields.take("args")
            && !matches!(&args.node.value, Value::Map(entries) if entries.is_empty())
        {
            let fault = Fault::new(code::NOT_ALLOWED, "an approval gate calls no tool, so it cannot have `args`");
            draft.fault(&args.place, fault.hint("put text for the approver into approval.message"));
        }
        return kinds::gate(draft, fields, rules);
    }
    if !typed && fields.has("parallel") {
        return ParsedKind::of(Kind::Pass { output: None });
    }
    if let Some(field) = fields.take("condition") {
        let fault = Fault::new(code::NOT_ALLOWED, "a flow uses `branch`, not a condition step");
        draft.fault(&field.place, fault);
        fields.ignore_rest();
        return ParsedKind::placeholder();
    }
    kinds::read(draft, fields, rules)
}

/// The arms of a `branch`, and the names of their handles.
#[derive(Default)]
struct Branches {
    arms: Vec<Arm>,
    handles: Vec<Arc<str>>,
}

/// Reads the transition, and the targets of surplus ones.
fn transition<'d>(
    draft: &mut Draft<'d>,
    fields: &mut Fields<'d>,
    branches: &mut Branches,
    rules: &Rules,
) -> (Transition<'d>, Vec<Field<'d>>) {
    let done = draft.flag(fields, "done", false);
    let (next, branch) = (fields.take("next"), fields.take("branch"));
    let (parallel, join) = (fields.take("parallel"), fields.take("join"));
    let mut said: Vec<&'static str> = Vec::new();
    for (name, given) in [
        ("next", next.is_some()),
        ("branch", branch.is_some()),
        ("parallel", parallel.is_some()),
        // With `parallel`, `join` is where its branches meet.
        ("join", join.is_some() && parallel.is_none()),
        ("done", done),
    ] {
        if given {
            said.push(name);
        }
    }
    if let [first, second, ..] = said[..] {
        let message = format!("a step has one transition, but this one has both `{first}` and `{second}`");
        let fault = Fault::new(code::MANY_TRANSITIONS, message);
        let fault = match (first, second) {
            ("next", "branch") => fault.hint("an entry of `branch` without `if` is the default"),
            _ => fault.hint("keep one of them"),
        };
        draft.fault_in_shape(&fields.key_place(second), fault);
    }
    let next = next.filter(|field| one_target(draft, field));
    let parallel = parallel.map(|field| parallel_entries(draft, &field));
    let mut beside: Vec<Field<'d>> = Vec::new();
    if let Some(field) = branch {
        beside.extend(next.into_iter().chain(parallel.into_iter().flatten()).chain(join));
        return (Transition::Branch(branch_entries(draft, &field, branches, rules)), beside);
    }
    if let Some(branches) = parallel {
        beside.extend(next);
        return (Transition::Parallel { branches, join }, beside);
    }
    let listed = said.iter().any(|name| matches!(*name, "next" | "join"));
    let mut targets = next.into_iter().chain(join.filter(|field| one_target(draft, field)));
    let transition = match targets.next() {
        Some(field) => Transition::Next(field),
        None if done || listed => Transition::Done,
        None => Transition::Open,
    };
    beside.extend(targets);
    (transition, beside)
}

fn one_target<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> bool {
    let one = !matches!(field.node.value, Value::List(_));
    if !one {
        let fault = Fault::new(code::WRONG_TYPE, "one step is needed here, not a list");
        draft.fault_in_shape(&field.place, fault.hint("use `parallel` for several steps at once"));
    }
    one
}

fn parallel_entries<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Vec<Field<'d>> {
    let items = draft.items(field);
    if items.is_empty() {
        draft.break_shape();
    }
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        draft.fault(&field.place, Fault::new(code::BAD_VALUE, "a `parallel` needs at least one step"));
    }
    items
}

/// `[{if, then}, …]`; an entry without `if` (or `else: step`) is the default.
fn branch_entries<'d>(
    draft: &mut Draft<'d>,
    field: &Field<'d>,
    branches: &mut Branches,
    rules: &Rules,
) -> Vec<(Handle, Field<'d>)> {
    let mut targets = Vec::new();
    let mut default = false;
    let items = draft.items(field);
    if items.is_empty() {
        draft.break_shape();
    }
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        draft.fault(&field.place, Fault::new(code::BAD_VALUE, "a `branch` needs at least one entry"));
    }
    for item in kinds::at_most(draft, items, field) {
        let Some(mut entry) = Fields::of(&item, draft) else { continue };
        if default {
            kinds::unreachable(draft, &item);
        }
        let condition = entry.take("if").filter(|field| field.node.as_str().map(str::trim) != Some("else"));
        let target = entry.take_one(&["then", "else", "next"], draft).map(|(_, field)| field);
        let test = match condition {
            None => {
                default = true;
                Some(Test::Always)
            }
            Some(field) => draft.expr(&field, rules.grammar).map(Test::Expr),
        };
        if target.is_none() {
            kinds::missing(draft, &entry, "then");
        }
        entry.finish(draft, "an entry of `branch`", &[]);
        let Some(target) = target else { continue };
        let Some(name) = draft.text(&target) else { continue };
        let name = unique(name, &branches.handles);
        let handle = kinds::name_handle(&mut branches.handles, &name);
        branches.arms.push(Arm { handle, test: test.unwrap_or(Test::Always) });
        targets.push((handle, target));
    }
    targets
}

/// A handle is named after the step it leads to; another handle to the same step adds the number of its entry.
fn unique(name: &str, handles: &[Arc<str>]) -> String {
    let taken = handles.iter().any(|handle| &**handle == name);
    if taken { format!("{name}#{}", handles.len() + 1) } else { name.to_owned() }
}
