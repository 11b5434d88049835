//! Outcomes of steps: scripted with `--on`, else drawn at random from values that the definition looks for.

use super::rng::Rng;
use anyhow::{Context, bail};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::expr::{Expr, Segment, StepIx, Var};
use stepwell_core::graph::{Arm, Each, Gate, Graph, Kind, Sleep, Test};
use stepwell_core::limits;
use stepwell_core::nearest::nearest;
use stepwell_core::template::Template;
use stepwell_core::time::Millis;

#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    Ok(Option<Value>),
    Fail(Option<u16>),
    Timeout,
    Approve,
    Deny,
    Call(Value),
    /// Nothing happens: only a timer or a cancellation moves the step on.
    Never,
}

/// The source of a value; an item is identified by the number of its body's scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Input,
    Step(StepIx),
    Item(u32),
}

struct Part {
    path: Vec<Segment>,
    /// A for_each iterates over it, so it must be a list of such items.
    list_of: Option<u32>,
}

pub struct Script {
    fates: BTreeMap<String, Fate>,
    /// Parts of a value that expressions read.
    read: BTreeMap<Source, Vec<Part>>,
    /// Literals that expressions compare with.
    literals: Vec<Value>,
}

impl Script {
    pub fn parse(given: &[String], graph: &Graph) -> anyhow::Result<Script> {
        let mut fates = BTreeMap::new();
        for text in given {
            let (step, fate) = text.split_once('=').with_context(|| format!("--on {text}: expected STEP=OUTCOME"))?;
            let names = || graph.steps.iter().map(|step| &*step.def.name);
            if !names().any(|name| name == step) {
                let hint = nearest(step, names()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                bail!("--on {text}: no step named {step:?}{hint}");
            }
            let fate = fate_named(fate).with_context(|| format!("--on {text}"))?;
            for kind in graph.steps.iter().filter(|other| &*other.def.name == step).map(|other| &other.def.kind) {
                if !fits(kind, &fate) {
                    bail!("--on {text}: not a possible outcome of a step of kind {}", kind.name());
                }
            }
            fates.insert(step.to_string(), fate);
        }
        let mut script = Script { fates, read: BTreeMap::new(), literals: vec![Value::Bool(true), Value::Bool(false)] };
        script.learn(graph);
        Ok(script)
    }

    pub fn fate(&self, step: &str) -> Option<&Fate> {
        self.fates.get(step)
    }

    fn learn(&mut self, graph: &Graph) {
        for (i, step) in graph.steps.iter().enumerate() {
            let own = StepIx(i as u32);
            step.def.condition.iter().for_each(|expr| self.learn_expr(graph, own, expr, None));
            self.learn_arms(graph, own, &step.def.branches);
            match &step.def.kind {
                Kind::Call { input, .. } | Kind::Child { input, .. } => self.learn_template(graph, own, input),
                Kind::Condition { arms } => self.learn_arms(graph, own, arms),
                Kind::End { outputs } => outputs.iter().for_each(|(_, t)| self.learn_template(graph, own, t)),
                Kind::Sleep(Sleep::ForValue(t) | Sleep::Until(t)) => self.learn_template(graph, own, t),
                Kind::Gate(Gate { ask, .. }) => self.learn_template(graph, own, ask),
                Kind::Each(Each { items, output, body, .. }) => {
                    items.exprs().for_each(|expr| self.learn_expr(graph, own, expr, Some(body.0)));
                    output.iter().for_each(|t| self.learn_template(graph, own, t));
                }
                Kind::Pass { .. } | Kind::Sleep(Sleep::For(_)) | Kind::Webhook { .. } | Kind::Loop { .. } => {}
            }
        }
        graph.output.iter().for_each(|t| self.learn_template(graph, StepIx(0), t));
        graph.vars.iter().for_each(|(_, t)| self.learn_template(graph, StepIx(0), t));
    }

    fn learn_arms(&mut self, graph: &Graph, own: StepIx, arms: &[Arm]) {
        for arm in arms {
            match &arm.test {
                Test::Always => {}
                Test::Expr(expr) => self.learn_expr(graph, own, expr, None),
                Test::Rules { rules, .. } => {
                    for rule in rules {
                        self.literals.extend(rule.right.as_constant().cloned());
                        self.learn_template(graph, own, &rule.left);
                        self.learn_template(graph, own, &rule.right);
                    }
                }
            }
        }
    }

    fn learn_template(&mut self, graph: &Graph, own: StepIx, template: &Template) {
        template.exprs().for_each(|expr| self.learn_expr(graph, own, expr, None));
    }

    fn learn_expr(&mut self, graph: &Graph, own: StepIx, expr: &Expr, list_of: Option<u32>) {
        self.literals.extend(literals(expr.source()));
        for path in expr.paths() {
            let rest = path.rest();
            let below = |names: &[&str]| match rest.split_first() {
                Some((Segment::Key(field), rest)) if names.contains(&&**field) => Some(rest),
                _ => None,
            };
            let (sources, rest) = match path.var {
                Var::Input => (vec![Source::Input], Some(rest)),
                Var::Trigger => (vec![Source::Input], below(&["body"])),
                Var::Step(step) => (vec![Source::Step(step)], below(&["body", "result", "output"])),
                Var::Result => (vec![Source::Step(own)], Some(rest)),
                Var::Item(scope) => (vec![Source::Item(scope)], Some(rest)),
                Var::Ctx(number) => {
                    let writes = |step: &StepIx| graph.step(*step).variable == Some(number);
                    let writers = (0..graph.steps.len() as u32).map(StepIx).filter(writes);
                    (writers.map(Source::Step).collect(), Some(rest))
                }
                Var::Unbound
                | Var::CtxAll
                | Var::WaitUrl(_)
                | Var::Index(_)
                | Var::RunId
                | Var::Now
                | Var::Vars
                | Var::Secret => continue,
            };
            for source in sources {
                self.read.entry(source).or_default().extend(rest.map(|rest| Part { path: rest.to_vec(), list_of }));
            }
        }
    }

    /// A response body with the fields that the definition reads, so that runs get far; sometimes with fewer.
    pub fn body(&self, step: StepIx, rng: &mut Rng) -> Value {
        self.value(Source::Step(step), rng, 0)
    }

    /// An input with all fields that the definition reads.
    pub fn input(&self, rng: &mut Rng) -> Value {
        self.value(Source::Input, rng, 0)
    }

    /// Nested items nest as deep as bodies do, which is bounded.
    fn value(&self, source: Source, rng: &mut Rng, depth: usize) -> Value {
        let mut value = Value::Null;
        for part in self.read.get(&source).into_iter().flatten() {
            if source != Source::Input && rng.percent(5) {
                continue;
            }
            let leaf = match part.list_of {
                Some(scope) if depth < limits::MAX_SCOPE_DEPTH => {
                    let count = rng.below(4);
                    Value::Array((0..count).map(|_| self.value(Source::Item(scope), rng, depth + 1)).collect())
                }
                _ => rng.pick(&self.literals).cloned().unwrap_or_default(),
            };
            put(&mut value, &part.path, leaf);
        }
        value
    }
}

/// Puts a leaf at a path and creates objects and lists on the way.
fn put(at: &mut Value, path: &[Segment], leaf: Value) {
    const MOST_ITEMS: u32 = 100;
    let mut at = at;
    for segment in path {
        at = match segment {
            Segment::Key(key) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                &mut at[&**key]
            }
            Segment::Index(index) => {
                let index = (*index).min(MOST_ITEMS) as usize;
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                if let Value::Array(list) = at
                    && list.len() <= index
                {
                    list.resize(index + 1, Value::Null);
                }
                &mut at[index]
            }
        };
    }
    if at.is_null() {
        *at = leaf;
    }
}

/// Numbers and quoted text of an expression: values that results are likely to be compared with.
fn literals(source: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for (n, part) in source.split(['\'', '"']).enumerate() {
        if n % 2 == 1 {
            found.push(Value::String(part.to_string()));
            continue;
        }
        for word in part.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_')) {
            if let Ok(number) = word.parse::<i64>() {
                found.push(number.into());
                found.push(number.saturating_add(1).into());
            }
        }
    }
    found
}

/// Whether a step of this kind can have this outcome.
fn fits(kind: &Kind, fate: &Fate) -> bool {
    match kind {
        Kind::Gate(_) => matches!(fate, Fate::Approve | Fate::Deny | Fate::Timeout | Fate::Never),
        Kind::Webhook { .. } => matches!(fate, Fate::Call(_) | Fate::Timeout | Fate::Never),
        Kind::Call { .. } | Kind::Child { .. } => {
            matches!(fate, Fate::Ok(_) | Fate::Fail(_) | Fate::Timeout | Fate::Never)
        }
        Kind::Pass { .. }
        | Kind::Condition { .. }
        | Kind::End { .. }
        | Kind::Sleep(_)
        | Kind::Each(_)
        | Kind::Loop { .. } => false,
    }
}

fn fate_named(text: &str) -> anyhow::Result<Fate> {
    let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
    let json = |rest: &str| serde_json::from_str::<Value>(rest).with_context(|| format!("{rest} is not JSON"));
    Ok(match (word, rest) {
        ("ok", None) => Fate::Ok(None),
        ("ok", Some(body)) => Fate::Ok(Some(json(body)?)),
        ("fail", None) => Fate::Fail(None),
        ("fail", Some(code)) => Fate::Fail(Some(code.parse().context("expected a status code after fail:")?)),
        ("timeout", None) => Fate::Timeout,
        ("approve", None) => Fate::Approve,
        ("deny", None) => Fate::Deny,
        ("call", body) => Fate::Call(body.map_or(Ok(Value::Null), json)?),
        ("never", None) => Fate::Never,
        _ => bail!(
            "{text:?} is not an outcome; expected ok, ok:JSON, fail, fail:STATUS, timeout, approve, deny, \
             call:JSON or never"
        ),
    })
}

/// A scripted or random outcome of an attempt. `None`: nothing happens.
pub fn outcome(script: &Script, graph: &Graph, step: StepIx, rng: &mut Rng, calm: bool) -> Option<Outcome> {
    let def = &graph.step(step).def;
    let fate = script.fate(&def.name).cloned().unwrap_or_else(|| match rng.below(100) {
        0..12 if !calm => Fate::Fail(None),
        12..16 if !calm => Fate::Fail(Some(402)),
        16..20 if !calm => Fate::Timeout,
        _ => Fate::Ok(None),
    });
    let reply = |status: u16, body: Value| Reply { status_code: Some(status), ..Reply::body(body) };
    Some(match fate {
        Fate::Ok(body) => Outcome::Success(reply(200, body.unwrap_or_else(|| script.body(step, rng)))),
        Fate::Fail(None) => Outcome::Failure { failure: Failure::retryable("simulated", "it failed"), reply: None },
        Fate::Fail(Some(status)) => {
            let retryable = status >= 500 || matches!(status, 408 | 425 | 429);
            let failure = Failure { retryable, ..Failure::new("http_status", format!("answered {status}")) };
            Outcome::Failure { failure, reply: Some(reply(status, script.body(step, rng))) }
        }
        Fate::Timeout => {
            let after = def.timeout.unwrap_or(Millis::from_secs(30));
            Outcome::Failure { failure: Failure::timeout(after), reply: None }
        }
        Fate::Approve | Fate::Deny | Fate::Call(_) | Fate::Never => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn outcomes_are_parsed_and_invalid_ones_refused() {
        assert_eq!(fate_named("ok").unwrap(), Fate::Ok(None));
        assert_eq!(fate_named("ok:{\"a\":1}").unwrap(), Fate::Ok(Some(json!({"a": 1}))));
        assert_eq!(fate_named("fail:402").unwrap(), Fate::Fail(Some(402)));
        assert_eq!(fate_named("call").unwrap(), Fate::Call(Value::Null));
        for bad in ["", "okay", "fail:x", "ok:{", "timeout:3"] {
            assert!(fate_named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bodies_have_what_expressions_read() {
        let mut body = Value::Null;
        put(&mut body, &[Segment::Key("items".into()), Segment::Index(1), Segment::Key("id".into())], json!(7));
        assert_eq!(body, json!({"items": [null, {"id": 7}]}));
        assert_eq!(literals("tasks.a.status_code == 200 && x != 'paid'"), vec![json!(200), json!(201), json!("paid")]);
    }
}
