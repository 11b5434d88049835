//! Condition nodes: branches with rules or expressions, tested in order, and a default.

use super::Ends;
use super::config::{DefaultBranch, NodeFlags};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::kinds::{self, ParsedKind, Rules};
use crate::source::Value;
use serde_json::Value as Json;
use std::collections::HashSet;
use std::sync::Arc;
use stepwell_core::expr::{Operator, Pattern};
use stepwell_core::graph::{Arm, Handle, Kind, Rule, Test};
use stepwell_core::template::Template;

const MAX_RULES: usize = 1_000;

/// The nodes with an edge from their default branch (`default` or `else`).
pub fn with_default_edge<'d>(edges: &[Option<Ends<'d>>]) -> HashSet<&'d str> {
    let otherwise = |edge: &&Ends<'d>| {
        let handle = edge.handle.as_ref().and_then(|field| field.node.as_str());
        matches!(handle, Some("default" | "else"))
    };
    edges.iter().flatten().filter(otherwise).filter_map(|edge| edge.from.node.as_str()).collect()
}

/// Reads a condition. A disabled one always takes the default branch.
pub fn read<'d>(
    draft: &mut Draft<'d>,
    fields: &mut Fields<'d>,
    flags: NodeFlags,
    rules: &Rules,
) -> (ParsedKind<'d>, Option<DefaultBranch<'d>>) {
    let default_name =
        fields.take("defaultBranch").and_then(|field| draft.text(&field)).filter(|name| !name.is_empty());
    let mut arms = Vec::new();
    let mut handles: Vec<Arc<str>> = Vec::new();
    let branches = fields.take("branches");
    if branches.is_none() {
        kinds::missing(draft, fields, "branches");
    }
    let items = branches.map(|field| (draft.items(&field), field));
    for item in items.map(|(items, field)| kinds::at_most(draft, items, &field)).unwrap_or_default() {
        let Some(mut entry) = Fields::of(&item, draft) else { continue };
        entry.ignore(&["label", "color", "position"]);
        let Some(field) = entry.take("id") else {
            kinds::missing(draft, &entry, "id");
            continue;
        };
        let Some(id) = draft.constant_text(&field) else { continue };
        let is_default = default_name == Some(id);
        let test = test(draft, &mut entry, is_default, rules);
        entry.finish(draft, "a branch", &[]);
        if handles.iter().any(|handle| &**handle == id) {
            let fault = Fault::new(code::DUPLICATE_NAME, format!("another branch has the id {}", quoted(id)));
            draft.fault_in_shape(&field.place, fault);
            continue;
        }
        let handle = kinds::name_handle(&mut handles, id);
        if let Some(test) = test {
            arms.push(Arm { handle, test });
        }
    }
    if flags.disabled {
        arms.clear();
    }
    let default = default_name.map(|name| (name, Some(name))).or(flags.default_edge.then_some(("default", None)));
    let default = default.map(|(name, own)| {
        let existing = handles.iter().position(|handle| &**handle == name);
        let handle = match existing {
            Some(n) => Handle(Handle::FIRST_NAMED + n as u16),
            None => kinds::name_handle(&mut handles, name),
        };
        // A branch that is called "default" but not set as `defaultBranch` is an ordinary branch.
        if own.is_some() || existing.is_none() {
            arms.push(Arm { handle, test: Test::Always });
        }
        DefaultBranch { handle, name: own }
    });
    (ParsedKind { kind: Kind::Condition { arms }, handles, body: None }, default)
}

/// `None` for the default branch, which needs no test.
fn test<'d>(draft: &mut Draft<'d>, entry: &mut Fields<'d>, is_default: bool, rules: &Rules) -> Option<Test> {
    let logic = entry.take_one(&["conditionLogic", "logic"], draft).map(|(_, field)| field);
    let choices = [("AND", true), ("OR", false), ("and", true), ("or", false)];
    let all = logic.and_then(|field| draft.choice(&field, &choices)).unwrap_or(true);
    let (single, list) = (entry.take("condition"), entry.take("conditions"));
    let single = single.filter(|field| !matches!(&field.node.value, Value::String(text) if text.trim().is_empty()));
    let list = list.filter(|field| !matches!(&field.node.value, Value::List(items) if items.is_empty()));
    match (single, list) {
        (Some(field), Some(_)) => {
            let fault = Fault::new(code::NOT_ALLOWED, "a branch has `condition` or `conditions`, not both");
            draft.fault(&field.place, fault);
            None
        }
        (Some(field), None) => match &field.node.value {
            Value::Map(_) => rule(draft, &field, rules).map(|rule| Test::Rules { all, rules: vec![rule] }),
            _ => draft.expr(&field, rules.grammar).map(Test::Expr),
        },
        (None, Some(field)) => {
            let items = draft.items(&field);
            if items.len() > MAX_RULES {
                let message = format!("a branch has at most {MAX_RULES} conditions");
                draft.fault(&field.place, Fault::new(code::LIMIT_STEPS, message));
            }
            let rules = items.iter().take(MAX_RULES).filter_map(|item| rule(draft, item, rules)).collect();
            Some(Test::Rules { all, rules })
        }
        (None, None) if is_default => None,
        (None, None) => {
            let fault = Fault::new(code::MISSING_FIELD, "the branch has no condition");
            draft.fault(&entry.place.clone(), fault.hint("name it in `defaultBranch` if it is the default"));
            None
        }
    }
}

fn rule<'d>(draft: &mut Draft<'d>, field: &Field<'d>, rules: &Rules) -> Option<Rule> {
    let mut fields = Fields::of(field, draft)?;
    fields.ignore(&["id"]);
    let operator = match fields.take("operator") {
        Some(field) => operator(draft, &field),
        None => {
            kinds::missing(draft, &fields, "operator");
            None
        }
    };
    let (left, right) = (fields.take("leftValue"), fields.take("rightValue"));
    fields.finish(draft, "a condition", &[]);
    let operator = operator?;
    let Some(left) = left else {
        draft.fault(&field.place, Fault::new(code::MISSING_FIELD, "`leftValue` is missing"));
        return None;
    };
    let left_template = match (operator, left.node.as_str()) {
        // With this operator the text is the expression itself, with or without braces.
        (Operator::Expression, Some(text)) if !text.contains("{{") => {
            draft.expr(&left, rules.grammar)?;
            Template::parse(&Json::String(format!("{{{{{text}}}}}")), rules.grammar).ok()?
        }
        _ => draft.template(&left, rules.grammar)?,
    };
    let right_template = match &right {
        Some(right) if operator.takes_right() => draft.template(right, rules.grammar)?,
        _ => Template::constant(Json::Null),
    };
    let mut pattern = None;
    if operator == Operator::MatchesRegex
        && let Some(text) = right_template.as_constant()
    {
        pattern = match text.as_str().map(Pattern::new) {
            Some(Ok(pattern)) => Some(pattern),
            other => {
                let why = other.and_then(Result::err).map_or("a pattern is needed here".into(), |e| e.to_string());
                let place = right.as_ref().map_or(&field.place, |right| &right.place);
                draft.fault(place, Fault::new(code::BAD_PATTERN, why));
                None
            }
        };
    }
    Some(Rule { left: left_template, operator, right: right_template, pattern })
}

fn operator<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<Operator> {
    let name = draft.text(field)?;
    let found = Operator::parse(name);
    if found.is_none() {
        let fault = Fault::new(code::BAD_VALUE, format!("{} is not an operator", quoted(name)));
        let near = draft.near(name, Operator::names().iter().copied());
        let hint = near.unwrap_or_else(|| format!("known: {}", Operator::names().join(", ")));
        draft.fault(&field.place, fault.hint(hint));
    }
    found
}
