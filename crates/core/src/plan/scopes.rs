//! Loops and for_each steps: opens instances of their bodies and decides what the end of an instance means (rule R5).

use super::Planner;
use crate::event::{Failure, Reply};
use crate::fact::{End, Fact};
use crate::graph::{Each, Kind, OnItemError, Target};
use crate::limits;
use crate::run::{At, EdgeState, Exit, RunStatus, Status};
use crate::value::{Payload, ValueId, check_size};
use serde_json::{Map, Value};

impl Planner<'_> {
    /// Starts a pass or an item. A run with too many instances fails at the loop that requests one more.
    pub(super) fn open(&mut self, at: At, index: u32) {
        let known = self.state(at).scope().is_some_and(|scope| scope.instances.len() > index as usize);
        let body = self.graph.step(at.step).def.kind.body().map_or(0, |body| self.graph.scope(body).steps.len());
        let too_many = match () {
            () if known => None,
            () if self.run.instances.len() > limits::MAX_INSTANCES => Some((limits::MAX_INSTANCES, "passes and items")),
            () if self.run.states + body > limits::MAX_STEP_STATES => {
                Some((limits::MAX_STEP_STATES, "steps in its passes and items"))
            }
            () => None,
        };
        if let Some((most, what)) = too_many {
            let message = format!("the run has more than {most} {what}");
            return self.end_run(
                RunStatus::Failed,
                Some(self.about(at, &Failure::new("too_many_items", message))),
                None,
            );
        }
        self.fact(Fact::Opened { step: at, index });
    }

    /// Every step of the instance has ended.
    pub(super) fn close(&mut self, instance: u32) {
        let Some((owner, index)) = self.run.instances[instance as usize].parent else {
            return self.close_root();
        };
        let graph = self.graph;
        match &graph.step(owner.step).def.kind {
            Kind::Loop { limit, .. } => self.close_pass(owner, index, *limit),
            Kind::Each(each) => self.close_item(owner, index, each),
            other => unreachable!("a {} step has no instances", other.name()),
        }
    }

    fn instance(&self, owner: At, index: u32) -> u32 {
        let scope = self.state(owner).scope();
        scope.map_or(0, |scope| scope.instances[index as usize])
    }

    fn close_pass(&mut self, owner: At, index: u32, limit: u32) {
        let instance = self.instance(owner, index);
        let (end, failure) = self.end_of(instance);
        self.fact(Fact::Closed { step: owner, index, end, result: None });
        let failure = failure.unwrap_or_else(|| Failure::new("internal", "a step of the loop failed without a reason"));
        match end {
            End::Failed => return self.fail(owner, Status::Failed, failure, None),
            End::Denied => return self.fail(owner, Status::Denied, failure, None),
            End::Success => {}
        }
        if self.has_live(instance, |to| matches!(to, Target::Leave(_))) {
            self.finish_loop(owner, Exit::Left);
        } else if self.has_live(instance, |to| to == Target::Back) {
            if index + 1 >= limit {
                let failure =
                    Failure::new("too_many_iterations", format!("the loop was still going after {limit} passes"));
                self.fail(owner, Status::Failed, failure, None);
            } else {
                self.open(owner, index + 1);
            }
        } else {
            self.finish_loop(owner, Exit::Untaken);
        }
    }

    fn has_live(&self, instance: u32, wanted: impl Fn(Target) -> bool) -> bool {
        let steps = &self.graph.scope(self.run.instances[instance as usize].scope).steps;
        steps.iter().any(|&step| {
            let at = At { instance, step };
            let mut outs = self.graph.step(step).outs.iter().filter(|out| wanted(out.to));
            outs.any(|out| self.run.edge(self.graph, at, out) == EdgeState::Live)
        })
    }

    fn close_item(&mut self, owner: At, index: u32, each: &Each) {
        let instance = self.instance(owner, index);
        let (mut end, failure) = self.end_of(instance);
        let result = match (end, failure) {
            (End::Success, _) => self.item_result(instance, each),
            (_, failure) => Err(failure.unwrap_or_else(|| Failure::new("item_failed", "a step of the item failed"))),
        };
        let result = match result {
            Ok(result) => result,
            Err(failure) => {
                end = if end == End::Denied { End::Denied } else { End::Failed };
                let error = serde_json::json!({ "error": crate::run::error(&failure) });
                self.add(error)
            }
        };
        self.fact(Fact::Closed { step: owner, index, end, result: Some(result) });
        self.end_each_if_done(owner, each);
    }

    fn item_result(&mut self, instance: u32, each: &Each) -> Result<ValueId, Failure> {
        if let Some(template) = &each.output {
            let resolved = template.resolve(&self.view(instance));
            let resolved = resolved.map_err(|missing| Failure::new("template_error", format!("output: {missing}")))?;
            return Ok(self.add(Payload::from(resolved)));
        }
        let mut bodies = Map::new();
        for &step in &self.graph.scope(each.body).steps {
            let output = self.state(At { instance, step }).output;
            let body = output.and_then(|output| self.run.values.get(output.body)).cloned();
            bodies.insert(self.graph.step(step).def.name.to_string(), body.unwrap_or_default());
        }
        let bodies = Value::Object(bodies);
        check_size(&bodies)?;
        Ok(self.add(bodies))
    }

    /// Opens the next item that is due.
    pub(super) fn open_item(&mut self, at: At) {
        if let Some(next) = self.state(at).scope().map(|scope| scope.opened) {
            self.open(at, next);
        }
    }

    /// Ends the for_each once no item is running and none is left to open.
    pub(super) fn end_each_if_done(&mut self, at: At, each: &Each) {
        let Some(scope) = self.state(at).scope() else { return };
        if scope.opened >= scope.due && scope.running == 0 {
            let stopped = each.on_item_error == OnItemError::Stop && scope.unsuccessful > 0;
            self.end_each(at, stopped);
        }
    }

    fn end_each(&mut self, at: At, stopped: bool) {
        let Some(scope) = self.state(at).scope() else { return };
        if !stopped {
            let value = |id: Option<ValueId>| id.and_then(|id| self.run.values.get(id)).cloned().unwrap_or_default();
            let results = scope.closed.iter().map(|closed| value(closed.and_then(|(_, result)| result)));
            let results = Value::Array(results.collect());
            return match check_size(&results) {
                Ok(()) => self.succeed(at, Reply::body(results)),
                Err(failure) => self.fail(at, Status::Failed, failure, None),
            };
        }
        let denied = scope.unsuccessful == scope.denied;
        let first = scope.closed.iter().position(|closed| matches!(closed, Some((End::Denied | End::Failed, _))));
        let index = first.unwrap_or(0);
        let error = scope.closed.get(index).copied().flatten().and_then(|(_, result)| result);
        let message = error.and_then(|id| self.run.values.get(id)).and_then(|value| value.pointer("/error/message"));
        let message = message.and_then(Value::as_str).unwrap_or("a step of the item failed");
        let failure = Failure::new("item_failed", format!("item {index}: {message}"));
        self.fail(at, if denied { Status::Denied } else { Status::Failed }, failure, None);
    }
}
