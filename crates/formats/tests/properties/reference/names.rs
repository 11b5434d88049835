//! Name resolution inside a run: conditions, templates, and the step that a name refers to.

use super::compile::{Kind, Rule, Scope, Step, Test};
use super::expr::{self, Mode, dig};
use super::{Place, Row, Run, body};
use serde_json::{Value, json};
use std::cmp::Ordering;

impl Run {
    pub(super) fn branch(&self, place: &Place, step: &Step, result: &Value) -> Option<String> {
        let lookup = |path: &[String]| self.lookup(place, path, Some(result));
        let found = step.branches.iter().position(|condition| match condition {
            Some(condition) => expr::flow_holds(condition, result, &lookup),
            None => true,
        });
        found.map(|entry| format!("branch:{entry}"))
    }

    pub(super) fn matches(&self, place: &Place, test: &Test) -> bool {
        let lookup = |path: &[String]| self.lookup(place, path, None);
        match test {
            Test::Expression(text) => expr::holds(text, &lookup),
            Test::Rules { all: true, rules } => rules.iter().all(|rule| rule_holds(rule, &lookup)),
            Test::Rules { all: false, rules } => rules.iter().any(|rule| rule_holds(rule, &lookup)),
        }
    }

    /// The value of a template; `None` if something in it is missing.
    pub(super) fn render(&self, place: &Place, template: &str) -> Option<Value> {
        let mode = if self.is_flow { Mode::FlowTemplate } else { Mode::Template };
        expr::render(template, mode, &|path| self.lookup(place, path, None))
    }

    /// The value of a name seen from a step of this instance.
    pub(super) fn lookup(&self, place: &Place, path: &[String], result: Option<&Value>) -> Option<Value> {
        let (first, rest) = path.split_first()?;
        match (first.as_str(), rest) {
            ("tasks" | "steps", [name, field, rest @ ..]) => {
                let (row, is_wait) = self.find(place, name)?;
                match field.as_str() {
                    "status" if is_wait && row.ended() == Some("success") => Some(json!("received")),
                    "status" => row.ended().map(Value::from),
                    "status_code" => Some(Value::Null),
                    "body" => dig(&row.body, rest),
                    _ => None,
                }
            }
            ("input", rest) => dig(&self.input, rest),
            ("trigger", [body, rest @ ..]) if body == "body" => dig(&self.input, rest),
            ("ctx", [variable, rest @ ..]) if variable == "input" => dig(&self.input, rest),
            ("ctx", [variable, rest @ ..]) => dig(self.written(variable)?, rest),
            ("vars", rest) => dig(self.vars.as_ref()?, rest),
            ("now", []) => Some(json!(self.now)),
            ("result", rest) => dig(result?, rest),
            ("wait", _) => Some(json!("https://example.com/wh")),
            ("item", rest) => self.item(place).and_then(|(_, item)| dig(&item, rest)),
            ("index", []) => self.item(place).map(|(index, _)| json!(index)),
            _ => None,
        }
    }

    /// The position and item of the innermost for_each around this instance.
    fn item(&self, place: &Place) -> Option<(usize, Value)> {
        let outer = place.outer.as_ref()?;
        match outer.place.step(outer.step).kind {
            Kind::Each(_) => {
                let row = self.row(outer.place, outer.step);
                Some((outer.instance, row.items[outer.instance].clone()))
            }
            _ => self.item(outer.place),
        }
    }

    /// The latest finished instance of a step, else its latest skipped one: this pass, earlier ones, then outward.
    fn find(&self, place: &Place, name: &str) -> Option<(&Row, bool)> {
        let mut skipped = None;
        let mut here = Some(place);
        while let Some(level) = here {
            for prefix in visible(level) {
                match self.latest(level.scope, &prefix, name) {
                    Some(found) if found.0.ended() != Some("skipped") => return Some(found),
                    found => skipped = skipped.or(found),
                }
            }
            here = level.outer.as_ref().map(|outer| outer.place);
        }
        skipped
    }

    /// The same within one instance and the sequences inside it.
    fn latest(&self, scope: &Scope, prefix: &str, name: &str) -> Option<(&Row, bool)> {
        let mut skipped = None;
        for step in &scope.steps {
            let path = format!("{prefix}{}", step.name);
            let Some(row) = self.rows.get(&path) else { continue };
            if step.name == name {
                let is_wait = matches!(step.kind, Kind::Webhook { .. });
                return row.ended().filter(|status| *status != "cancelled").map(|_| (row, is_wait));
            }
            let Some(body) = body(step).filter(|_| in_sequence(&step.kind)) else { continue };
            for instance in (0..row.instances.len()).rev() {
                match self.latest(body, &format!("{path}[{instance}]."), name) {
                    Some(found) if found.0.ended() != Some("skipped") => return Some(found),
                    found => skipped = skipped.or(found),
                }
            }
        }
        skipped
    }
}

fn in_sequence(kind: &Kind) -> bool {
    match kind {
        Kind::Cycle { .. } => true,
        Kind::Each(each) => each.width == 1,
        _ => false,
    }
}

/// The instances that a step of this one can see: itself and, where they run one after another, the earlier ones.
fn visible(place: &Place) -> Vec<String> {
    let Some(outer) = &place.outer else { return vec![place.prefix.clone()] };
    let first = if in_sequence(&outer.place.step(outer.step).kind) { 0 } else { outer.instance };
    let path = outer.place.path(outer.step);
    (first..=outer.instance).rev().map(|instance| format!("{path}[{instance}].")).collect()
}

/// One line of a graph condition; a value that leads nowhere is null.
fn rule_holds(rule: &Rule, lookup: &expr::Lookup) -> bool {
    let value = |value: &Value| match value {
        Value::String(text) if text.contains("{{") => expr::render(text, Mode::Condition, lookup).unwrap_or_default(),
        other => other.clone(),
    };
    let (left, right) = (value(&rule.left), value(&rule.right));
    let order = expr::order(&left, &right);
    match rule.operator.as_str() {
        "equals" => expr::equal(&left, &right),
        "not_equals" => !expr::equal(&left, &right),
        "greater_than" => order == Some(Ordering::Greater),
        "less_than" => order == Some(Ordering::Less),
        "greater_or_equal" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        "less_or_equal" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        operator => panic!("the reference does not know the operator {operator:?}"),
    }
}
