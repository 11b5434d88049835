//! The end of a step (rule R3), and its effect on the steps after it (rule R2) and on the whole run (rules R4, R6).

use super::start::first_match;
use super::{Abandon, Effect, Planner};
use crate::event::{Failure, Reply, Timer, TimerKind};
use crate::expr::StepIx;
use crate::fact::{End, Fact};
use crate::graph::{Dialect, Handle, Kind, OnFail, Target};
use crate::run::{At, EdgeState, Exit, OwnResult, Phase, RunStatus, Status};
use crate::value::{Payload, ValueId, check_size};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Planner<'_> {
    pub(super) fn succeed(&mut self, at: At, reply: Reply) {
        let def = &self.graph.step(at.step).def;
        if def.branches.is_empty() {
            return self.finish_success(at, reply, Exit::Took(Handle::SUCCESS));
        }
        match self.branch(at, &reply.body, reply.truncated) {
            Ok(Some(handle)) => self.finish_success(at, reply, Exit::Took(handle)),
            Ok(None) => {
                let message = format!("no branch matches the result {}", super::shown(&reply.body));
                self.fail(at, Status::Failed, Failure::new("no_branch", message), Some(reply));
            }
            Err(failure) => self.fail(at, Status::TemplateError, failure, Some(reply)),
        }
    }

    pub(super) fn branch(&self, at: At, value: &Value, truncated: bool) -> Result<Option<Handle>, Failure> {
        let mut view = self.view(at.instance);
        view.result = Some(OwnResult { step: at.step, value, truncated });
        let branches = &self.graph.step(at.step).def.branches;
        first_match(branches, &view).map_err(|missing| Failure::new("template_error", missing.to_string()))
    }

    pub(super) fn finish_success(&mut self, at: At, reply: Reply, exit: Exit) {
        let output = self.add_reply(reply);
        let variable = self.graph.step(at.step).def.output_variable.as_ref().map(|_| output.body);
        let attempt = self.last_attempt(at);
        let (status, output) = (Status::Success, Some(output));
        self.fact(Fact::Finished { step: at, attempt, status, exit, output, variable, failure: None });
    }

    /// Ends a loop that was left by its edges; a loop has no result of its own.
    pub(super) fn finish_loop(&mut self, at: At, exit: Exit) {
        let attempt = self.last_attempt(at);
        let (status, output, variable) = (Status::Success, None, None);
        self.fact(Fact::Finished { step: at, attempt, status, exit, output, variable, failure: None });
    }

    pub(super) fn fail(&mut self, at: At, status: Status, failure: Failure, reply: Option<Reply>) {
        let step = self.graph.step(at.step);
        let output = reply.map(|reply| self.add_reply(reply));
        let variable = step.def.output_variable.as_ref().map(|_| {
            let error = serde_json::json!({ "error": crate::run::error(&failure) });
            self.add(error)
        });
        let exit = self.failed_exit(at, status);
        let attempt = self.last_attempt(at);
        let aborts = (exit == Exit::Open).then(|| failure.clone());
        self.fact(Fact::Finished { step: at, attempt, status, exit, output, variable, failure: Some(failure) });
        if let Some(failure) = aborts {
            let end = if status == Status::Denied { RunStatus::Cancelled } else { RunStatus::Failed };
            self.end_run(end, Some(self.about(at, &failure)), None);
        }
    }

    /// Which edges a failed step takes; `Open` means that the failure aborts the run.
    pub(super) fn failed_exit(&self, at: At, status: Status) -> Exit {
        let step = self.graph.step(at.step);
        if status == Status::Denied
            && !step.def.branches.is_empty()
            && let Ok(Some(handle)) = self.branch(at, &Value::String("denied".into()), false)
        {
            return Exit::Took(handle);
        }
        if step.def.on_fail == OnFail::Abort {
            return Exit::Open;
        }
        let routes = [Handle::DENIED, Handle::ERROR];
        let skip = usize::from(status != Status::Denied);
        let taken = routes.into_iter().skip(skip).find(|&handle| step.has_out(handle));
        match taken {
            Some(handle) => Exit::Took(handle),
            None if step.def.on_fail == OnFail::Tolerate => Exit::Untaken,
            None => Exit::Failed,
        }
    }

    fn last_attempt(&self, at: At) -> u32 {
        let state = self.state(at);
        if state.phase == Phase::Idle { state.attempt + 1 } else { state.attempt }
    }

    pub(super) fn about(&self, at: At, failure: &Failure) -> Failure {
        let message = format!("{}: {}", self.run.path(self.graph, at), failure.message);
        Failure { message: message.into(), ..failure.clone() }
    }

    /// Applies rule R4 to an instance whose steps have all ended. Also returns the first unhandled failure.
    pub(super) fn end_of(&self, instance: u32) -> (End, Option<Failure>) {
        let mut end = End::Success;
        let mut first = None;
        for at in self.unhandled(instance) {
            let state = self.state(at);
            if first.is_none() {
                first = state.failure().map(|failure| self.about(at, failure));
            }
            end = match (state.phase, end) {
                (Phase::Done(Status::Denied), End::Success | End::Denied) => End::Denied,
                _ => End::Failed,
            };
        }
        (end, first)
    }

    /// Failures with no live out-edge and no path of failed edges to a step that ran.
    pub(super) fn unhandled(&self, instance: u32) -> Vec<At> {
        let failures = &self.run.instances[instance as usize].failures;
        let handled = self.handled(instance, failures);
        let open = failures.iter().filter(|step| !handled.contains(step));
        open.map(|&step| At { instance, step }).collect()
    }

    /// Follows the failed edges once, from all failures together, and then back from the steps they lead to.
    fn handled(&self, instance: u32, failures: &[StepIx]) -> HashSet<StepIx> {
        let mut handled = HashSet::new();
        let mut back: HashMap<StepIx, Vec<StepIx>> = HashMap::new();
        let mut seen: HashSet<StepIx> = failures.iter().copied().collect();
        let mut todo = failures.to_vec();
        let mut reached = Vec::new();
        while let Some(step) = todo.pop() {
            let at = At { instance, step };
            let here = self.graph.step(step);
            let failed = self.state(at).status().is_some_and(Status::is_failure);
            if failed && here.def.on_fail == OnFail::Tolerate {
                handled.insert(step);
            }
            for out in &here.outs {
                let edge = self.run.edge(self.graph, at, out);
                if failed && edge == EdgeState::Live {
                    handled.insert(step);
                }
                let (EdgeState::Failed, Target::Step(to)) = (edge, out.to) else { continue };
                if self.state(At { instance, step: to }).ran() {
                    reached.push(step);
                    continue;
                }
                back.entry(to).or_default().push(step);
                if seen.insert(to) {
                    todo.push(to);
                }
            }
        }
        while let Some(step) = reached.pop() {
            if handled.insert(step) || back.contains_key(&step) {
                reached.extend(back.remove(&step).unwrap_or_default());
            }
        }
        handled
    }

    /// All steps of the root scope have ended.
    pub(super) fn close_root(&mut self) {
        let (end, failure) = self.end_of(0);
        let status = match end {
            End::Success => RunStatus::Completed,
            End::Denied => RunStatus::Cancelled,
            End::Failed => RunStatus::Failed,
        };
        self.end_run(status, failure, None);
    }

    /// Ends the run. Cancels every active step, with its executor, timer or child run.
    pub(super) fn end_run(&mut self, status: RunStatus, failure: Option<Failure>, by: Option<Arc<str>>) {
        let (mut status, mut failure) = (status, failure);
        let mut output = None;
        if status == RunStatus::Completed {
            match self.run_output() {
                Ok(value) => output = value,
                Err(missing) => {
                    status = RunStatus::Failed;
                    failure = Some(missing);
                }
            }
        }
        if self.run.status == RunStatus::Running {
            self.stop_active();
            // On a timeout, that timer is the one that fired.
            if status != RunStatus::Timeout {
                let timer = Timer { kind: TimerKind::Expire, at: None, attempt: self.run.generation };
                self.out.effects.push(Effect::ClearTimer { timer });
            }
        }
        if self.run.status == RunStatus::Scheduled {
            let timer = Timer { kind: TimerKind::Begin, at: None, attempt: self.run.generation };
            self.out.effects.push(Effect::ClearTimer { timer });
        }
        self.fact(Fact::Ended { status, output, failure, by });
    }

    fn stop_active(&mut self) {
        if self.run.instances[0].remaining == 0 {
            return;
        }
        let active = self.run.steps(self.graph).filter(|(_, state)| state.phase.is_active());
        let active: Vec<(At, Phase, u32)> = active.map(|(at, state)| (at, state.phase, state.attempt)).collect();
        for (at, phase, attempt) in active {
            self.clear_timers(at);
            self.abandon(at, Abandon::Over);
            match phase {
                Phase::Running => self.out.effects.push(Effect::Abort { at, attempt }),
                Phase::Child => self.out.effects.push(Effect::CancelChild { at, attempt }),
                Phase::Idle
                | Phase::Backoff
                | Phase::Sleeping
                | Phase::Webhook
                | Phase::Gate
                | Phase::Unsure
                | Phase::Open
                | Phase::Done(_) => {}
            }
        }
    }

    fn run_output(&mut self) -> Result<Option<ValueId>, Failure> {
        if let Some(template) = &self.graph.output {
            let resolved = template.resolve(&self.view(0));
            let resolved = resolved.map_err(|missing| Failure::new("template_error", format!("output: {missing}")))?;
            return Ok(Some(self.add(Payload::from(resolved))));
        }
        match self.graph.dialect {
            Dialect::Tasks => Ok(None),
            Dialect::Flow => {
                let done = |at: At| self.graph.step(at.step).def.done;
                let last = self.succeeded(done).into_iter().next_back();
                Ok(last.and_then(|at| self.state(at).output).map(|output| output.body))
            }
            Dialect::Graph => {
                let mut all = Map::new();
                for at in self.succeeded(|at| matches!(self.graph.step(at.step).def.kind, Kind::End { .. })) {
                    let body = self.state(at).output.and_then(|output| self.run.values.get(output.body));
                    if let Some(Value::Object(fields)) = body {
                        all.extend(fields.clone());
                    }
                }
                let all = Value::Object(all);
                check_size(&all)?;
                Ok(Some(self.add(all)))
            }
        }
    }

    /// Successful steps that match, in the order they ended.
    fn succeeded(&self, matches: impl Fn(At) -> bool) -> Vec<At> {
        let success = self.run.steps(self.graph).filter(|(_, state)| state.phase == Phase::Done(Status::Success));
        let mut found: Vec<(u32, At)> = success.filter(|(at, _)| matches(*at)).map(|(at, s)| (s.ended, at)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }
}
