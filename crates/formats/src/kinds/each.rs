//! Steps that contain or choose other steps: for_each, child workflows, conditions.

use super::calls::missing;
use super::{ParsedKind, Rules};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use serde_json::json;
use std::sync::Arc;
use stepwell_core::graph::{Arm, Each, Handle, Kind, OnItemError, ScopeIx, Test};
use stepwell_core::limits;
use stepwell_core::template::Template;

/// Entries of one condition or branch.
const MAX_ENTRIES: usize = 256;

/// `for_each, max_parallel, on_item_error, tasks, output`.
pub fn for_each<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let items = fields.take("for_each").and_then(|field| match &field.node.value {
        Value::List(_) => draft.template(&field, rules.grammar),
        Value::String(text) if text.trim().starts_with("{{") => draft.template(&field, rules.grammar),
        Value::String(text) => {
            let fault = Fault::new(code::WRONG_TYPE, "a list, or a template that results in one, is needed here");
            draft.fault(&field.place, fault.hint(format!("write \"{{{{{}}}}}\"", text.trim())));
            None
        }
        _ => {
            draft.wrong_type(&field, "a list, or a template that results in one,");
            None
        }
    });
    let parallel = fields.take("max_parallel").and_then(|field| draft.integer(&field, 1..=limits::MAX_ITERATIONS));
    let on_item_error = fields
        .take("on_item_error")
        .and_then(|field| draft.choice(&field, &[("stop", OnItemError::Stop), ("continue", OnItemError::Continue)]));
    let output = fields.take("output").and_then(|field| draft.template(&field, rules.grammar));
    let body = fields.take("tasks");
    if body.is_none() {
        draft.fault_in_shape(
            &fields.place,
            Fault::new(code::EMPTY_BODY, "a for_each needs `tasks` to run for each item"),
        );
    }
    let each = Each {
        items: items.unwrap_or_else(|| Template::constant(json!([]))),
        max_parallel: parallel.unwrap_or(limits::DEFAULT_PARALLEL),
        on_item_error: on_item_error.unwrap_or(OnItemError::Stop),
        limit: limits::MAX_ITERATIONS,
        output,
        item_variable: None,
        index_variable: None,
        body: ScopeIx::ROOT,
    };
    ParsedKind { kind: Kind::Each(each), handles: Vec::new(), body }
}

/// `workflow: name, input`. The name is constant, so that the workflows that a workflow can start are known.
pub fn child<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let workflow = match fields.take("workflow") {
        Some(field) => draft.constant_text(&field).unwrap_or_default(),
        None => {
            missing(draft, fields, "workflow");
            ""
        }
    };
    let input = fields.take("input").and_then(|field| draft.template(&field, rules.grammar));
    let input = input.unwrap_or_else(|| Template::constant(json!({})));
    ParsedKind::of(Kind::Child { workflow: workflow.trim().into(), input })
}

/// `condition: [{id, if}]`: the first entry that holds, or has no `if`, becomes the step's body.
pub fn condition<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let mut arms = Vec::new();
    let mut handles: Vec<Arc<str>> = Vec::new();
    let entries = fields.take("condition").map(|field| (draft.items(&field), field));
    if let Some((items, field)) = &entries
        && items.is_empty()
        && matches!(field.node.value, Value::List(_))
    {
        draft.fault(&field.place, Fault::new(code::BAD_VALUE, "a condition needs at least one entry"));
    }
    let mut default = false;
    let items = entries.map(|(items, field)| at_most(draft, items, &field)).unwrap_or_default();
    for item in items {
        let Some(mut entry) = Fields::of(&item, draft) else { continue };
        let id = match entry.take("id") {
            Some(field) => draft.constant_text(&field).map(|id| (id, field)),
            None => {
                missing(draft, &entry, "id");
                None
            }
        };
        if default {
            unreachable(draft, &item);
        }
        let test = match entry.take("if") {
            None => {
                default = true;
                Some(Test::Always)
            }
            Some(field) => draft.expr(&field, rules.grammar).map(Test::Expr),
        };
        entry.finish(draft, "a condition's entry", &[]);
        let (Some((id, field)), Some(test)) = (id, test) else { continue };
        if handles.iter().any(|handle| &**handle == id) {
            draft.fault(
                &field.place,
                Fault::new(code::DUPLICATE_NAME, format!("another entry has the id {}", quoted(id))),
            );
            continue;
        }
        arms.push(Arm { handle: name_handle(&mut handles, id), test });
    }
    ParsedKind { kind: Kind::Condition { arms }, handles, body: None }
}

/// Adds a named handle. Callers truncate their lists with [`at_most`], so the number fits.
pub fn name_handle(handles: &mut Vec<Arc<str>>, name: &str) -> Handle {
    handles.push(name.into());
    Handle(Handle::FIRST_NAMED - 1 + handles.len() as u16)
}

/// The entries of a condition or branch, truncated to [`MAX_ENTRIES`].
pub fn at_most<'d>(draft: &mut Draft<'d>, mut entries: Vec<Field<'d>>, whole: &Field<'d>) -> Vec<Field<'d>> {
    if entries.len() > MAX_ENTRIES {
        let message = format!("a step has at most {MAX_ENTRIES} branches");
        draft.fault_in_shape(&whole.place, Fault::new(code::LIMIT_STEPS, message));
        entries.truncate(MAX_ENTRIES);
    }
    entries
}

pub fn unreachable<'d>(draft: &mut Draft<'d>, entry: &Field<'d>) {
    let fault = Fault::new(code::UNREACHABLE_BRANCH, "this entry is never reached: an earlier one always matches");
    draft.fault(&entry.place, fault.hint("put the entry without `if` last"));
}
