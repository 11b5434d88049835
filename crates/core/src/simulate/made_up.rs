//! Results for calls that are not made: they have the fields that the definition reads of them.

use crate::expr::{Expr, Path, Segment, StepIx, Var};
use crate::graph::{Arm, Graph, Kind, ScopeIx, Sleep, Step, Test};
use crate::template::Template;
use serde_json::{Map, Value};

/// A list that is read at a higher index than this is made up without its items.
const MAX_INDEX: u32 = 20;
/// Nesting of for_each steps whose items are made up.
const MAX_NESTED: usize = 4;

/// A result of a step: what the definition reads of it is there, as text that says where it would come from.
pub fn made_up(graph: &Graph, step: StepIx) -> Value {
    let name = &graph.step(step).def.name;
    let read = reads(graph).filter_map(|path| match path.var {
        Var::Step(of) if of == step => after_body(path.rest()),
        Var::Ctx(number) if graph.step(step).variable == Some(number) => Some(path.rest()),
        _ => None,
    });
    let mut body = Value::Null;
    read.for_each(|rest| fill(&mut body, rest, name));
    for (scope, place) in lists(graph, step) {
        put_items(&mut body, place, &item(graph, scope, MAX_NESTED));
    }
    body
}

/// An input with the fields that the definition reads.
pub fn input(graph: &Graph) -> Value {
    let mut input = Value::Object(Map::new());
    let vars = graph.vars.iter().flat_map(|(_, template)| template.exprs()).flat_map(Expr::paths);
    reads(graph).chain(vars).filter_map(after_input).for_each(|rest| fill(&mut input, rest, "input"));
    for (scope, path) in each_items(graph) {
        if let Some(rest) = after_input(path) {
            put_items(&mut input, rest, &item(graph, scope, MAX_NESTED));
        }
    }
    input
}

/// What is read of the run's input.
fn after_input(path: &Path) -> Option<&[Segment]> {
    match (path.var, path.rest()) {
        (Var::Input, rest) => Some(rest),
        (Var::Trigger, [Segment::Key(field), rest @ ..]) if &**field == "body" => Some(rest),
        _ => None,
    }
}

/// One item of a for_each, with what its steps read of it.
fn item(graph: &Graph, scope: ScopeIx, depth: usize) -> Value {
    let mut value = Value::Null;
    let read = reads(graph).filter(|path| path.var == Var::Item(scope.0));
    read.for_each(|path| fill(&mut value, path.rest(), "item"));
    for (inner, path) in each_items(graph).filter(|_| depth > 0) {
        if path.var == Var::Item(scope.0) {
            put_items(&mut value, path.rest(), &item(graph, inner, depth - 1));
        }
    }
    if value.is_null() { "made up".into() } else { value }
}

/// The for_each steps whose items are a part of the step's result.
fn lists(graph: &Graph, step: StepIx) -> impl Iterator<Item = (ScopeIx, &[Segment])> {
    each_items(graph).filter_map(move |(scope, path)| match path.var {
        Var::Step(of) if of == step => Some((scope, after_body(path.rest())?)),
        Var::Ctx(number) if graph.step(step).variable == Some(number) => Some((scope, path.rest())),
        _ => None,
    })
}

fn each_items(graph: &Graph) -> impl Iterator<Item = (ScopeIx, &Path)> {
    graph.steps.iter().filter_map(|step| match &step.def.kind {
        Kind::Each(each) => Some((each.body, each.items.as_expr()?.as_path()?)),
        _ => None,
    })
}

/// What is read of a step's result.
fn after_body(rest: &[Segment]) -> Option<&[Segment]> {
    match rest {
        [Segment::Key(field), rest @ ..] if ["body", "result", "output"].contains(&&**field) => Some(rest),
        _ => None,
    }
}

/// Adds a text at a place, unless something is there.
fn fill(value: &mut Value, rest: &[Segment], name: &str) {
    if let Some(place) = place(value, rest).filter(|place| place.is_null()) {
        let path = crate::expr::Dotted(rest).to_string();
        let field = path.trim_start_matches('.');
        *place = format!("made up: {name}{}{field}", if field.is_empty() { "" } else { "." }).into();
    }
}

/// Makes a list of a place: one item, or as many as are read by their number, each with the fields of an item.
fn put_items(value: &mut Value, rest: &[Segment], item: &Value) {
    let Some(place) = place(value, rest) else { return };
    let Value::Array(items) = place else {
        *place = Value::Array(vec![item.clone()]);
        return;
    };
    for there in items {
        match (there, item) {
            (Value::Object(fields), Value::Object(wanted)) => {
                for (name, field) in wanted {
                    fields.entry(name.as_str()).or_insert_with(|| field.clone());
                }
            }
            (there @ Value::Null, item) => *there = item.clone(),
            _ => {}
        }
    }
}

/// A place in a value, with what leads there. `None` if something else is on the way.
fn place<'v>(mut value: &'v mut Value, rest: &[Segment]) -> Option<&'v mut Value> {
    for segment in rest {
        value = match segment {
            Segment::Key(key) => {
                if !value.is_object() && !is_made_up(value) {
                    return None;
                }
                if !value.is_object() {
                    *value = Value::Object(Map::new());
                }
                value.as_object_mut()?.entry(&**key).or_insert(Value::Null)
            }
            Segment::Index(index) => {
                if *index > MAX_INDEX || !value.is_array() && !is_made_up(value) {
                    return None;
                }
                if !value.is_array() {
                    *value = Value::Array(Vec::new());
                }
                let list = value.as_array_mut()?;
                let most = list.len().max(*index as usize + 1);
                list.resize(most, Value::Null);
                list.get_mut(*index as usize)?
            }
        };
    }
    Some(value)
}

/// Whether a text or nothing is here, which a longer path takes the place of.
fn is_made_up(value: &Value) -> bool {
    matches!(value, Value::Null | Value::String(_))
}

/// All paths that the definition reads.
fn reads(graph: &Graph) -> impl Iterator<Item = &Path> {
    let steps = graph.steps.iter().flat_map(|step| of_step(step));
    steps.chain(graph.output.iter().flat_map(Template::exprs)).flat_map(Expr::paths)
}

fn of_step(step: &Step) -> Vec<&Expr> {
    let def = &step.def;
    let mut found: Vec<&Expr> = def.condition.iter().collect();
    def.branches.iter().for_each(|arm| of_arm(arm, &mut found));
    match &def.kind {
        Kind::Call { input, .. } | Kind::Child { input, .. } => found.extend(input.exprs()),
        Kind::Pass { output } => found.extend(output.iter().flat_map(Template::exprs)),
        Kind::Condition { arms } => arms.iter().for_each(|arm| of_arm(arm, &mut found)),
        Kind::End { outputs } => found.extend(outputs.iter().flat_map(|(_, output)| output.exprs())),
        Kind::Sleep(Sleep::ForValue(value) | Sleep::Until(value)) => found.extend(value.exprs()),
        Kind::Gate(gate) => found.extend(gate.ask.exprs()),
        Kind::Each(each) => found.extend(each.output.iter().flat_map(Template::exprs)),
        Kind::Sleep(Sleep::For(_)) | Kind::Webhook { .. } | Kind::Loop { .. } => {}
    }
    found
}

fn of_arm<'e>(arm: &'e Arm, found: &mut Vec<&'e Expr>) {
    match &arm.test {
        Test::Always => {}
        Test::Expr(expr) => found.push(expr),
        Test::Rules { rules, .. } => {
            found.extend(rules.iter().flat_map(|rule| rule.left.exprs().chain(rule.right.exprs())));
        }
    }
}
