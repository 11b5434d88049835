//! The tasks dialect: a map of steps, each with its `needs` and an optional `if`.
//!
//! A need is a success edge. Without `if`, a step runs when every need succeeded; with `if`, it waits until all needs
//! have ended, whatever their outcome, and the condition decides. This module also reads the bodies of for_each steps,
//! in every dialect.

use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::kinds::{self, Defaults, ParsedKind, Rules};
use crate::source::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use stepwell_core::expr::{Expr, Grammar};
use stepwell_core::graph::{Call, Handle, Join, Retry, SpecStep, StepDef};
use stepwell_core::limits;
use stepwell_core::time::Millis;

/// Default attempts: the first and five retries, after 1 s, 2 s, 4 s …
const ATTEMPTS: u32 = 6;

pub fn read<'d>(draft: &mut Draft<'d>, field: &Field<'d>, defaults: Option<Field<'d>>) {
    let retry = Retry::exponential(ATTEMPTS, Millis::SECOND);
    let timeout = call_timeout;
    let rules = Rules { grammar: Grammar::Standard, retry, tool_errors: false, timeout, defaults: Defaults::default() };
    let rules = rules.with_defaults(draft, defaults);
    body(draft, field, None, &rules);
}

/// The default timeout of a call, in tasks and graph.
pub fn call_timeout(call: Call) -> Millis {
    match call {
        Call::Http | Call::Javascript | Call::Query => Millis::from_secs(30),
        Call::Tool => Millis::from_secs(120),
    }
}

/// Reads the `tasks` of a for_each step in any dialect, under the rules of the steps around it.
pub fn nested<'d>(draft: &mut Draft<'d>, field: &Field<'d>, parent: usize, rules: &Rules) {
    let depth = std::iter::successors(Some(parent), |&i| draft.steps[i].parent).count();
    if depth > limits::MAX_SCOPE_DEPTH {
        let message = format!("loops are nested more than {} deep", limits::MAX_SCOPE_DEPTH);
        let fault = Fault::new(code::LIMIT_DEPTH, message).hint("move the inner part into a separate workflow");
        draft.fault_in_shape(&field.place, fault);
        return;
    }
    body(draft, field, Some(parent), rules);
}

/// A step that was read, with its needs, which become edges once all names are known.
struct ParsedStep<'d> {
    index: usize,
    name: &'d str,
    needs: Vec<Field<'d>>,
}

impl<'d> ParsedStep<'d> {
    fn placeholder(index: usize, name: &'d str) -> ParsedStep<'d> {
        ParsedStep { index, name, needs: Vec::new() }
    }
}

/// Adds a placeholder for a step that could not be read, so that its name is not reported as unknown.
pub fn placeholder(draft: &mut Draft<'_>, name: &str, place: &Place, parent: Option<usize>) -> Option<usize> {
    draft.break_shape();
    let def = StepDef::new(name, ParsedKind::placeholder().kind);
    let origin = draft.origin(place, None);
    draft.add_step(SpecStep { def, origin, parent, entry: true, aliases: Vec::new() })
}

fn body<'d>(draft: &mut Draft<'d>, field: &Field<'d>, parent: Option<usize>, rules: &Rules) {
    let Some(fields) = Fields::of(field, draft) else { return draft.break_shape() };
    if fields.names().next().is_none() {
        let fault = Fault::new(code::EMPTY_BODY, "there are no tasks here").hint("add at least one task");
        draft.fault_in_shape(&field.place, fault);
    }
    let mut read: Vec<ParsedStep<'d>> = Vec::new();
    for (entry, field) in fields.into_entries() {
        let place = Place { span: entry.key_span.or(field.place.span), ..field.place.clone() };
        draft.step_name(&entry.key, &place);
        let step = match Fields::of(&field, draft) {
            Some(fields) => step(draft, Entry { name: &entry.key, field, fields, parent }, rules),
            None => {
                placeholder(draft, &entry.key, &place, parent).map(|index| ParsedStep::placeholder(index, &entry.key))
            }
        };
        match step {
            Some(step) => read.push(step),
            None => return,
        }
    }
    connect(draft, &read);
}

/// An entry of a map of tasks.
struct Entry<'d> {
    name: &'d str,
    field: Field<'d>,
    fields: Fields<'d>,
    /// The for_each step around it.
    parent: Option<usize>,
}

fn step<'d>(draft: &mut Draft<'d>, entry: Entry<'d>, rules: &Rules) -> Option<ParsedStep<'d>> {
    let Entry { name, field, mut fields, parent } = entry;
    let needs = fields.take("needs").map(|needs| needed(draft, &needs)).unwrap_or_default();
    let condition = fields.take("if");
    let written_if = condition.is_some();
    let condition: Option<Expr> = condition.and_then(|field| draft.expr(&field, rules.grammar));
    if let Some(description) = fields.take("description") {
        draft.text(&description);
    }
    let ParsedKind { kind, handles, body } = kinds::read(draft, &mut fields, rules);
    let attempts = kinds::attempts(draft, &mut fields, &kind, rules);
    fields.finish(draft, &kinds::describe(&kind), &kinds::STEP_FIELDS);

    let def = StepDef {
        join: if written_if { Join::Settled } else { Join::Every },
        condition,
        retry: attempts.retry,
        timeout: attempts.timeout,
        bound: attempts.bound,
        at_most_once: attempts.at_most_once,
        handles,
        written: Arc::new(rules.written(crate::values::written(field.node))),
        ..StepDef::new(name, kind)
    };
    let origin = draft.origin(&field.place, Some(field.node));
    let entry = needs.is_empty();
    let index = draft.add_step(SpecStep { def, origin, parent, entry, aliases: Vec::new() })?;
    if let Some(body) = body {
        nested(draft, &body, index, rules);
    }
    Some(ParsedStep { index, name, needs })
}

fn needed<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Vec<Field<'d>> {
    if !matches!(field.node.value, Value::List(_) | Value::String(_)) {
        draft.break_shape();
    }
    draft.one_or_more(field)
}

fn connect<'d>(draft: &mut Draft<'d>, read: &[ParsedStep<'d>]) {
    let by_name: HashMap<&str, usize> = read.iter().enumerate().map(|(i, step)| (step.name, i)).collect();
    // The needs of each step as positions in `read`, with their places, for cycle detection.
    let mut needs: Vec<Vec<(usize, Place)>> = Vec::with_capacity(read.len());
    for step in read {
        let mut known: Vec<(usize, Place)> = Vec::new();
        let mut seen = HashSet::new();
        for need in &step.needs {
            let Some(name) = draft.text(need) else {
                draft.break_shape();
                continue;
            };
            let Some(&other) = by_name.get(name) else {
                draft.unknown_step(name, &need.place, read.iter().map(|step| step.name));
                continue;
            };
            if name == step.name {
                let fault = Fault::new(code::SELF_NEED, format!("{} needs itself", quoted(name)));
                draft.fault_in_shape(&need.place, fault);
            } else if !seen.insert(other) {
                let message = format!("{} is already needed here", quoted(name));
                draft.fault(&need.place, Fault::new(code::DUPLICATE_NAME, message).hint("name it once"));
            } else {
                draft.add_edge(read[other].index, Handle::SUCCESS, step.index, &need.place);
                known.push((other, need.place.clone()));
            }
        }
        needs.push(known);
    }
    find_cycles(draft, read, &needs);
}

/// Searches the needs depth first, with an explicit stack; a need that leads back onto the stack closes a cycle.
fn find_cycles(draft: &mut Draft<'_>, read: &[ParsedStep<'_>], needs: &[Vec<(usize, Place)>]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        New,
        Open,
        Done,
    }
    let mut seen = vec![Seen::New; needs.len()];
    for root in 0..needs.len() {
        let mut walk = Vec::new();
        if seen[root] == Seen::New {
            seen[root] = Seen::Open;
            walk.push((root, 0));
        }
        while let Some((at, next)) = walk.last_mut() {
            let Some((to, place)) = needs[*at].get(*next) else {
                seen[*at] = Seen::Done;
                walk.pop();
                continue;
            };
            *next += 1;
            match seen[*to] {
                Seen::Done => {}
                Seen::New => {
                    seen[*to] = Seen::Open;
                    walk.push((*to, 0));
                }
                Seen::Open if draft.is_full() => {}
                Seen::Open => {
                    let from = walk.iter().position(|(step, _)| step == to).unwrap_or(0);
                    let steps: Vec<usize> = walk[from..].iter().map(|(step, _)| *step).collect();
                    draft.fault_in_shape(place, cycle(read, &steps));
                }
            }
        }
    }
}

fn cycle(read: &[ParsedStep<'_>], steps: &[usize]) -> Fault {
    const SHOWN: usize = 10;
    let mut names: Vec<String> = steps.iter().take(SHOWN).map(|&step| quoted(read[step].name)).collect();
    if steps.len() > SHOWN {
        names.push("…".into());
    }
    names.extend(steps.first().map(|&step| quoted(read[step].name)));
    Fault::new(code::CYCLE, format!("these tasks need each other: {}", names.join(" → ")))
        .hint("read an arrow as \"needs\"; remove one of them")
}
