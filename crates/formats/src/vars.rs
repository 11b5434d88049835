//! `vars`: values that are computed once, when a run starts, and read as `vars.NAME`.
//!
//! Not here: what their expressions may name (`core::graph`), and computing them (`core::plan`).

use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use stepwell_core::expr::Grammar;
use stepwell_core::graph::SpecVar;
use stepwell_core::limits;

const MAX_VARS: usize = 100;

pub fn read<'d>(draft: &mut Draft<'d>, field: &Field<'d>, grammar: Grammar) -> Vec<SpecVar> {
    let Some(fields) = Fields::of(field, draft) else { return Vec::new() };
    let entries: Vec<_> = fields.into_entries().collect();
    if entries.len() > MAX_VARS {
        draft.too_many(&field.place, entries.len(), MAX_VARS);
    }
    let mut vars = Vec::new();
    for (entry, value) in entries.into_iter().take(MAX_VARS) {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let name = entry.key.as_str();
        if name.is_empty() || name.len() > limits::MAX_NAME_BYTES || !name.chars().all(plain) {
            let fault = Fault::new(code::BAD_NAME, format!("{} is not a valid name of a var", quoted(name)));
            draft.fault(&value.place, fault.hint("use letters, digits, `_` and `-`"));
        }
        let Some(template) = draft.template(&value, grammar) else { continue };
        let origin = draft.origin(&value.place, Some(value.node));
        vars.push(SpecVar { name: name.into(), value: template, written: value.node.to_json(), origin });
    }
    vars
}
