//! Approval gates: who may answer, what they see, and what happens without an answer.

use super::{ParsedKind, Rules};
use crate::code;
use crate::common::check_schema;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields};
use crate::source::Value;
use crate::values::{Input, Lasts, Unit};
use stepwell_core::graph::{Gate, Kind, OnTimeout};
use stepwell_core::template::Template;
use stepwell_core::time::Millis;

/// The most approvals that a gate can require.
const MAX_APPROVALS: u32 = 100;

/// `approval: {…}` or `approval: true`, and flow's short form `notify_user` and `timeout_s` beside it.
pub fn gate<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let approval = fields.take("approval");
    let mut inner = match &approval {
        Some(Field { node, .. }) if matches!(node.value, Value::Bool(true)) => None,
        Some(field) => Fields::of(field, draft),
        None => None,
    };
    let mut input = Input::default();
    let mut gate = match &mut inner {
        Some(inner) => gate_fields(draft, inner, &mut input),
        None => empty(),
    };
    if let Some(field) = fields.take("notify_user") {
        people(draft, &field);
        input.put("notify", field);
    }
    if let Some(field) = fields.take("timeout_s") {
        gate.timeout = draft.timeout(&field, Unit::Seconds, Lasts::Answer);
    }
    if let Some(mut inner) = inner {
        escalation(draft, &mut inner, &mut gate);
        inner.finish(draft, "an approval", &[]);
    }
    gate.ask = input.parse(draft, rules.grammar);
    ParsedKind::of(Kind::Gate(gate))
}

/// A gate whose fields are mixed with those of its step, as in a graph node.
pub fn flat_gate<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let mut input = Input::default();
    let mut gate = gate_fields(draft, fields, &mut input);
    escalation(draft, fields, &mut gate);
    gate.ask = input.parse(draft, rules.grammar);
    ParsedKind::of(Kind::Gate(gate))
}

fn empty() -> Gate {
    Gate {
        ask: Template::constant(serde_json::Value::Null),
        timeout: None,
        on_timeout: OnTimeout::Deny,
        escalate_after: None,
        approvals: 1,
    }
}

fn gate_fields<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, input: &mut Input<'d>) -> Gate {
    let mut gate = empty();
    if let Some(field) = fields.take("message")
        && draft.text(&field).is_some()
    {
        input.put("message", field);
    }
    for name in ["approvers", "escalate_to", "notify"] {
        if let Some(field) = fields.take(name) {
            people(draft, &field);
            input.put(name, field);
        }
    }
    if let Some(field) = fields.take("form") {
        check_schema(draft, &field);
        input.put("form", field);
    }
    if let Some(field) = fields.take("allow_self")
        && draft.boolean(&field).is_some()
    {
        input.put("allow_self", field);
    }
    if let Some(field) = fields.take("approvals") {
        gate.approvals = draft.integer(&field, 1..=MAX_APPROVALS).unwrap_or(1);
    }
    if let Some(field) = fields.take("timeout") {
        gate.timeout = draft.timeout(&field, Unit::Millis, Lasts::Answer);
    }
    if let Some(field) = fields.take("on_timeout") {
        // `escalate_to` with a `timeout` escalates anyway; `escalate` here requires `escalate_to`.
        let choices = [("deny", Some(OnTimeout::Deny)), ("approve", Some(OnTimeout::Approve)), ("escalate", None)];
        let chosen = draft.choice(&field, &choices).unwrap_or(Some(OnTimeout::Deny));
        gate.on_timeout = chosen.unwrap_or(OnTimeout::Deny);
        if chosen.is_none() && !fields.has("escalate_to") {
            let fault = Fault::new(code::NOT_ALLOWED, "`escalate` needs `escalate_to`");
            draft.fault(&field.place, fault.hint("name the next approvers in `escalate_to`"));
        }
    }
    gate
}

/// Reads when the gate escalates. Must be called after everything that sets the gate's timeout.
fn escalation<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, gate: &mut Gate) {
    let escalates = fields.has("escalate_to");
    if escalates && gate.timeout.is_none() && !fields.has("escalate_after") {
        let place = fields.key_place("escalate_to");
        let fault = Fault::new(code::NOT_ALLOWED, "`escalate_to` needs a time to escalate");
        draft.fault(&place, fault.hint("add `timeout` or `escalate_after`"));
    }
    match fields.take("escalate_after") {
        Some(field) if !escalates => {
            let fault = Fault::new(code::NOT_ALLOWED, "`escalate_after` needs `escalate_to`");
            draft.fault(&field.place, fault);
        }
        Some(field) => {
            gate.escalate_after = draft.positive_lasting(&field);
            if gate.escalate_after.zip(gate.timeout).is_some_and(|(after, timeout)| after >= timeout) {
                let fault = Fault::new(code::NOT_ALLOWED, "the gate times out before it escalates");
                draft.fault(&field.place, fault.hint("make it shorter than `timeout`"));
            }
        }
        // The first and the next approvers each get the whole `timeout`; the planner counts both from the opening of
        // the gate.
        None if escalates => {
            gate.escalate_after = gate.timeout;
            gate.timeout = gate.timeout.map(|timeout| Millis((2 * timeout.0).min(Millis::MAX.0)));
        }
        None => {}
    }
}

/// One name, a list of names, or a template that results in either.
fn people<'d>(draft: &mut Draft<'d>, field: &Field<'d>) {
    for item in draft.one_or_more(field) {
        if draft.text(&item).is_some_and(|name| name.trim().is_empty()) {
            draft.fault(&item.place, Fault::new(code::BAD_VALUE, "this must not be empty"));
        }
    }
}
