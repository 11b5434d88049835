//! Starts a step: evaluates its condition, resolves its input and enters what it waits for (rule R2).

use super::{Effect, Planner};
use crate::event::{Failure, Reply, TimerKind};
use crate::expr::{self, Missing, Names, Operator};
use crate::fact::{Fact, SkipReason, Wait};
use crate::graph::{Arm, Call, Dialect, Each, Handle, Kind, Rule, Sleep, Test};
use crate::run::{At, Exit, Status, View, handle_name};
use crate::template::Template;
use crate::time::{Millis, Time};
use crate::value::{Payload, check_size};
use serde_json::{Map, Value};
use std::sync::Arc;

impl Planner<'_> {
    pub(super) fn start(&mut self, at: At) {
        let def = &self.graph.step(at.step).def;
        if let Some(condition) = &def.condition {
            match condition.holds(&self.view(at.instance)) {
                Ok(true) => {}
                Ok(false) => return self.skip(at, SkipReason::Condition),
                Err(missing) => return self.template_error(at, &missing),
            }
        }
        match self.enter_kind(at, &def.kind) {
            Ok(()) => {}
            Err(StartError::Template(missing)) => self.template_error(at, &missing),
            Err(StartError::Size(failure)) => self.fail(at, Status::Failed, failure, None),
            Err(StartError::Value(message)) => {
                self.fail(at, Status::TemplateError, Failure::new("template_error", message), None);
            }
        }
    }

    fn enter_kind(&mut self, at: At, kind: &Kind) -> Result<(), StartError> {
        match kind {
            Kind::Call { call, input } => {
                let input = self.call_input(at, *call, input)?;
                let input = self.add(input);
                let attempt = self.enter(at, Some(input), Wait::Executor);
                self.out.effects.push(Effect::Dispatch { at, attempt });
            }
            Kind::Pass { output } => {
                let body = match output {
                    Some(template) => self.resolve(at, template)?.value,
                    None => Arc::new(Value::Null),
                };
                self.succeed(at, Reply { body, ..Reply::default() });
            }
            Kind::Condition { arms } => self.choose(at, arms)?,
            Kind::End { outputs } => {
                let mut all = Map::new();
                for (name, template) in outputs {
                    all.insert(name.to_string(), Arc::unwrap_or_clone(self.resolve(at, template)?.value));
                }
                let all = Value::Object(all);
                check_size(&all).map_err(StartError::Size)?;
                self.succeed(at, Reply::body(all));
            }
            Kind::Sleep(sleep) => {
                let until = self.wake_time(at, sleep)?;
                self.enter(at, None, Wait::Sleep { until });
                self.set_timer(Some(at), TimerKind::Wake, until);
            }
            Kind::Webhook { timeout } => match self.state(at).mail() {
                Some(mail) => {
                    let body = self.run.values.payload(mail).map(|payload| payload.value.clone()).unwrap_or_default();
                    let truncated = self.state(at).more.as_ref().is_some_and(|more| more.mail_truncated);
                    self.succeed(at, Reply { body, truncated, ..Reply::default() });
                }
                None => {
                    let until = timeout.map(|timeout| self.env.now + timeout);
                    self.enter(at, None, Wait::Webhook { until });
                    until.iter().for_each(|until| self.set_timer(Some(at), TimerKind::Timeout, *until));
                }
            },
            Kind::Gate(gate) => self.open_gate(at, gate)?,
            Kind::Child { input, .. } => {
                let input = self.resolve(at, input)?;
                let input = self.add(input);
                let until = self.graph.step(at.step).def.timeout.map(|timeout| self.env.now + timeout);
                let attempt = self.enter(at, Some(input), Wait::Child { until });
                self.out.effects.push(Effect::StartChild { at, attempt });
                until.iter().for_each(|until| self.set_timer(Some(at), TimerKind::Timeout, *until));
            }
            Kind::Each(each) => self.enter_each(at, each)?,
            Kind::Loop { .. } => {
                self.enter(at, None, Wait::Scope { count: None });
                self.open(at, 0);
            }
        }
        Ok(())
    }

    pub(super) fn resolve(&self, at: At, template: &Template) -> Result<Payload, StartError> {
        template.resolve(&self.view(at.instance)).map(Payload::from).map_err(StartError::Template)
    }

    /// A code step gets the context as of now, stored with the rest of its input.
    fn call_input(&self, at: At, call: Call, input: &Template) -> Result<Payload, StartError> {
        let mut payload = self.resolve(at, input)?;
        if call == Call::Javascript
            && let Value::Object(fields) = Arc::make_mut(&mut payload.value)
        {
            let code = fields.get("code").and_then(Value::as_str).unwrap_or_default();
            let context = self.view(at.instance).context_of(at.step, code);
            fields.insert("ctx".into(), context);
            check_size(&payload.value).map_err(StartError::Size)?;
        }
        Ok(payload)
    }

    fn wake_time(&self, at: At, sleep: &Sleep) -> Result<Time, StartError> {
        let (template, what) = match sleep {
            Sleep::For(length) => return Ok(self.env.now + *length),
            Sleep::ForValue(template) => (template, "a duration such as \"5m\", or seconds"),
            Sleep::Until(template) => (template, "a time such as 2026-02-22T10:00:00Z"),
        };
        let value = self.resolve(at, template)?.value;
        let until = match (sleep, &*value) {
            (Sleep::Until(_), Value::String(text)) => Time::parse(text),
            (Sleep::Until(_), Value::Number(millis)) => millis.as_i64().map(Time),
            (_, Value::String(text)) => Millis::parse(text).map(|length| self.env.now + length),
            (_, Value::Number(secs)) => secs.as_f64().and_then(Millis::from_secs_f64).map(|l| self.env.now + l),
            _ => None,
        };
        until.ok_or_else(|| StartError::Value(format!("expected {what}, found {}", super::shown(&value))))
    }

    fn enter_each(&mut self, at: At, each: &Each) -> Result<(), StartError> {
        let items = self.resolve(at, &each.items)?;
        let Value::Array(list) = &*items.value else {
            return Err(StartError::Value(format!("expected a list of items, found {}", super::shown(&items.value))));
        };
        let count = list.len();
        if count > each.limit as usize {
            let message = format!("{count} items; at most {} are allowed", each.limit);
            self.fail(at, Status::Failed, Failure::new("too_many_items", message), None);
            return Ok(());
        }
        let items = self.add(items);
        self.enter(at, Some(items), Wait::Scope { count: Some(count as u32) });
        self.end_each_if_done(at, each);
        Ok(())
    }

    fn choose(&mut self, at: At, arms: &[Arm]) -> Result<(), StartError> {
        let chosen = first_match(arms, &self.view(at.instance)).map_err(StartError::Template)?;
        let name = chosen.map(|handle| handle_name(self.graph, at.step, handle));
        let reply = Reply::body(name.map_or(Value::Null, Value::from));
        // Steps that `need` a condition follow it whatever it chose, and read its body.
        let exit = match self.graph.dialect {
            Dialect::Tasks => Exit::Took(Handle::SUCCESS),
            Dialect::Flow | Dialect::Graph => chosen.map_or(Exit::Untaken, Exit::Took),
        };
        self.finish_success(at, reply, exit);
        Ok(())
    }

    /// Skips a step by its in-edges: either no edge was taken, or a step before it failed.
    pub(super) fn skip_by_edges(&mut self, at: At) {
        let reason = if self.state(at).failed > 0 { SkipReason::UpstreamFailed } else { SkipReason::NotTaken };
        self.skip(at, reason);
    }

    fn skip(&mut self, at: At, reason: SkipReason) {
        let exit = if self.state(at).failed > 0 { Exit::Failed } else { Exit::Untaken };
        self.fact(Fact::Skipped { step: at, exit, reason });
    }

    fn template_error(&mut self, at: At, missing: &Missing) {
        let failure = Failure::new("template_error", missing.to_string());
        self.fail(at, Status::TemplateError, failure, None);
    }
}

/// Matching a pattern costs about this many times what reading the text does.
const PATTERN_COST: usize = 512;

/// Why a step could not start.
pub(super) enum StartError {
    Template(Missing),
    Value(String),
    Size(Failure),
}

/// The handle of the first entry whose test holds.
pub(super) fn first_match(arms: &[Arm], view: &View<'_>) -> Result<Option<Handle>, Missing> {
    for arm in arms {
        let holds = match &arm.test {
            Test::Always => true,
            Test::Expr(expr) => expr.holds(view)?,
            Test::Rules { all, rules } => {
                let mut verdict = *all;
                for rule in rules {
                    if rule_holds(rule, view)? != *all {
                        verdict = !*all;
                        break;
                    }
                }
                verdict
            }
        };
        if holds {
            return Ok(Some(arm.handle));
        }
    }
    Ok(None)
}

/// Evaluates a rule. As in any condition, a path that leads nowhere is null; only a truncated body is an error.
fn rule_holds(rule: &Rule, view: &View<'_>) -> Result<bool, Missing> {
    let (left, right) = (rule.left.read(view)?, rule.right.read(view)?);
    let regex = rule.pattern.is_some() || rule.operator == Operator::MatchesRegex;
    view.spend((left.cost() + right.cost()) * if regex { PATTERN_COST } else { 1 });
    Ok(match &rule.pattern {
        Some(pattern) => pattern.matches(&left),
        None => expr::test(rule.operator, &left, &right),
    })
}
