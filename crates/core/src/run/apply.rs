//! Applies facts to the state. Purely mechanical: the planner decided everything before the fact was written.

use super::agenda::{each_of, is_stopped};
use super::{At, CtxValue, EdgeState, Exit, Instance, Names, Phase, Run, RunStatus, ScopeState, Status, StepState};
use crate::expr::StepIx;
use crate::fact::{Fact, Output, Reason, Wait};
use crate::graph::{Graph, ScopeIx, Target};
use crate::time::Time;
use crate::value::ValueId;
use std::sync::Arc;

impl Run {
    /// Applies one fact, decided at `now`. The facts of a log must be applied in order, from the first.
    pub fn apply(&mut self, graph: &Graph, fact: &Fact, now: Time) {
        match fact {
            Fact::Created { input, headers, query, by, client, seed, max_duration } => {
                (self.seed, self.max_duration) = (*seed, *max_duration);
                self.status = RunStatus::Queued;
                (self.by, self.client) = (by.clone(), client.clone());
                self.input = Some(*input);
                (self.headers, self.query) = (*headers, *query);
                self.reserve(*input);
                headers.iter().chain(query).for_each(|id| self.reserve(*id));
            }
            Fact::Scheduled { due } => {
                self.status = RunStatus::Scheduled;
                self.scheduled = Some(*due);
            }
            Fact::Due => self.status = RunStatus::Queued,
            Fact::Started { expires, vars } => {
                self.set_vars(*vars);
                self.status = RunStatus::Running;
                self.expires = Some(*expires);
                let root = self.add_instance(graph, ScopeIx::ROOT, None);
                self.consider_starts(graph, root);
            }
            Fact::Entered { step, attempt, input, wait } => {
                input.iter().for_each(|id| self.reserve(*id));
                self.enter(graph, *step, *wait);
                let state = self.state_mut(graph, *step);
                state.attempt = *attempt;
                state.input = *input;
                state.since = now;
            }
            Fact::Retrying { step, due, failure, output, note, .. } => {
                self.set_phase(graph, *step, Phase::Backoff);
                output.iter().for_each(|output| self.reserve_output(output));
                note.iter().for_each(|id| self.reserve(*id));
                let state = self.state_mut(graph, *step);
                state.due = Some(*due);
                state.losses = 0;
                state.since = now;
                state.output = *output;
                let more = state.more();
                (more.failure, more.note) = (Some(failure.clone()), *note);
            }
            Fact::Again { step, attempt, reason, until } => {
                let child = matches!(graph.step(step.step).def.kind, crate::graph::Kind::Child { .. });
                self.set_phase(graph, *step, if child { Phase::Child } else { Phase::Running });
                let state = self.state_mut(graph, *step);
                state.attempt = *attempt;
                state.due = *until;
                state.since = now;
                match reason {
                    Reason::WorkerLost => {
                        state.losses = state.losses.saturating_add(1);
                        state.uncounted += 1;
                    }
                    // The previous attempt was not made.
                    Reason::Approved => {
                        state.uncounted += 1;
                        let more = state.more();
                        let ask = more.ask.take();
                        if !more.question {
                            more.approved = ask;
                        }
                    }
                    Reason::WorkerStopped | Reason::Deferred => state.uncounted += 1,
                    Reason::Asked => state.losses = 0,
                    Reason::Retry => {}
                }
            }
            Fact::Held { step, ask, until, note, .. } => {
                self.reserve(*ask);
                note.iter().for_each(|id| self.reserve(*id));
                self.set_phase(graph, *step, Phase::Gate);
                let state = self.state_mut(graph, *step);
                (state.since, state.due) = (now, *until);
                let more = state.more();
                more.ask = Some(*ask);
                let earlier = std::mem::take(&mut more.approvals);
                if !more.question {
                    // They approved the same call before another policy held it.
                    more.earlier.extend(earlier.into_iter().map(|(by, _)| by));
                }
                more.question = note.is_some();
                match note {
                    Some(_) => more.note = *note,
                    None => more.approved = None,
                }
            }
            Fact::Unsure { step, .. } => {
                self.set_phase(graph, *step, Phase::Unsure);
                let state = self.state_mut(graph, *step);
                state.since = now;
                state.more().unsure = true;
            }
            Fact::Opened { step, index } => self.open(graph, *step, *index),
            Fact::Closed { step, index, end, result } => {
                result.iter().for_each(|id| self.reserve(*id));
                let each = each_of(graph, *step);
                if let Some(scope) = self.state_mut(graph, *step).more().scope.as_mut() {
                    scope.running -= 1;
                    scope.closed[*index as usize] = Some((*end, *result));
                    scope.count_end(*end);
                    if each.is_some_and(|each| !is_stopped(each, scope.unsuccessful)) {
                        scope.due = scope.count.unwrap_or(0).min(scope.due + 1);
                    }
                    let instance = scope.instances[*index as usize];
                    self.closed(instance);
                }
                self.consider_items(graph, *step);
            }
            Fact::Finished { step, attempt, status, exit, output, variable, failure } => {
                output.iter().for_each(|output| self.reserve_output(output));
                variable.iter().for_each(|id| self.reserve(*id));
                let state = self.state_mut(graph, *step);
                if state.phase == Phase::Idle {
                    state.since = now;
                }
                state.attempt = *attempt;
                state.output = *output;
                if failure.is_some() || variable.is_some() || state.more.is_some() {
                    let more = state.more();
                    more.failure = failure.clone();
                    more.variable = *variable;
                }
                self.end_step(graph, *step, *status, *exit);
            }
            Fact::Skipped { step, exit, reason } => {
                let state = self.state_mut(graph, *step);
                state.more().skipped = Some(*reason);
                state.since = now;
                self.end_step(graph, *step, Status::Skipped, *exit);
            }
            Fact::Kept { step, message, truncated } => {
                self.reserve(*message);
                let more = self.state_mut(graph, *step).more();
                (more.mail, more.mail_truncated) = (Some(*message), *truncated);
            }
            Fact::Approved { step, by, answer } => {
                self.reserve(*answer);
                self.state_mut(graph, *step).more().approvals.push((by.clone(), *answer));
            }
            Fact::Changed { step, by, ask, input } => {
                self.reserve(*ask);
                self.reserve(*input);
                let state = self.state_mut(graph, *step);
                let before = state.input.replace(*input);
                let more = state.more();
                more.ask = Some(*ask);
                // They approved another call.
                more.approvals.clear();
                more.earlier.clear();
                let first = more.changed.take().map(|(_, first)| first).or(before);
                more.changed = first.map(|first| (by.clone(), first));
            }
            // Only records who did it; the next fact records the outcome.
            Fact::Overridden { .. } => {}
            Fact::Escalated { step, until } => {
                let state = self.state_mut(graph, *step);
                state.due = *until;
                state.more().escalated = true;
                state.more().escalate = None;
            }
            Fact::Ended { status, output, failure, .. } => {
                output.iter().for_each(|id| self.reserve(*id));
                self.cancel_rest(graph, now);
                self.clear_agenda();
                self.status = *status;
                self.output = *output;
                self.failure = failure.clone();
            }
            Fact::Retried { by, acts, expires, reset, reopened, vars } => {
                self.set_vars(*vars);
                self.retried(by, acts.as_ref());
                self.retry(graph, reset, reopened, *expires);
            }
            // The results that are kept were carried over before: see `Run::migrate`.
            Fact::Adopted { by, acts, expires, max_duration, vars, .. } => {
                self.set_vars(*vars);
                self.retried(by, acts.as_ref());
                self.max_duration = *max_duration;
                self.resume(*expires);
                self.derive_agenda(graph);
            }
        }
    }

    /// `None` leaves what was computed before.
    fn set_vars(&mut self, vars: Option<ValueId>) {
        vars.iter().for_each(|id| self.reserve(*id));
        self.vars = vars.or(self.vars);
    }

    fn reserve(&mut self, id: ValueId) {
        self.values.reserve(id);
    }

    fn reserve_output(&mut self, output: &Output) {
        self.reserve(output.body);
        output.headers.iter().chain(&output.log).for_each(|id| self.reserve(*id));
    }

    fn enter(&mut self, graph: &Graph, at: At, wait: Wait) {
        let (phase, due) = match wait {
            Wait::Executor => (Phase::Running, None),
            Wait::Sleep { until } => (Phase::Sleeping, Some(until)),
            Wait::Webhook { until } => (Phase::Webhook, until),
            Wait::Gate { until, .. } => (Phase::Gate, until),
            Wait::Child { until } => (Phase::Child, until),
            Wait::Scope { .. } => (Phase::Open, None),
        };
        self.set_phase(graph, at, phase);
        let state = self.state_mut(graph, at);
        state.due = due;
        state.losses = 0;
        match wait {
            Wait::Gate { escalate: Some(escalate), .. } => state.more().escalate = Some(escalate),
            Wait::Scope { count } => {
                let scope = state.more().scope.get_or_insert_with(ScopeState::default);
                let instances = std::mem::take(&mut scope.instances);
                let most = each_of(graph, at).map_or(0, |each| each.max_parallel);
                let due = count.unwrap_or(0).min(most);
                *scope = ScopeState { instances, count, due, ..ScopeState::default() };
                self.consider_items(graph, at);
            }
            _ => {}
        }
    }

    pub(super) fn set_phase(&mut self, graph: &Graph, at: At, phase: Phase) {
        let before = std::mem::replace(&mut self.state_mut(graph, at).phase, phase);
        if before == Phase::Idle {
            self.decided(graph, at);
        }
        let (gates, working) =
            (|p| matches!(p, Phase::Gate | Phase::Unsure), |p| matches!(p, Phase::Running | Phase::Child));
        self.gates = self.gates + u32::from(gates(phase)) - u32::from(gates(before));
        self.working = self.working + u32::from(working(phase)) - u32::from(working(before));
    }

    fn open(&mut self, graph: &Graph, at: At, index: u32) {
        let known = self.state(graph, at).scope().and_then(|scope| scope.instances.get(index as usize)).copied();
        let id = match known {
            Some(id) => id,
            None => {
                let body = graph.step(at.step).def.kind.body().unwrap_or(ScopeIx::ROOT);
                self.add_instance(graph, body, Some((at, index)))
            }
        };
        if let Some(scope) = self.state_mut(graph, at).more().scope.as_mut() {
            if known.is_none() {
                scope.instances.push(id);
            }
            scope.opened = index + 1;
            scope.running += 1;
            scope.closed.push(None);
        }
        self.consider_starts(graph, id);
        self.consider_items(graph, at);
    }

    pub(super) fn add_instance(&mut self, graph: &Graph, scope: ScopeIx, parent: Option<(At, u32)>) -> u32 {
        let id = self.instances.len() as u32;
        let frame = match parent {
            Some((owner, _)) if graph.scope(scope).frame != scope => self.instances[owner.instance as usize].frame,
            _ => id,
        };
        let prefix: Arc<str> = match parent {
            None => "".into(),
            Some((owner, index)) => {
                let around = &self.instances[owner.instance as usize].prefix;
                format!("{around}{}[{index}].", graph.step(owner.step).def.name).into()
            }
        };
        let retired = |step: StepIx| match self.retired.is_empty() {
            true => 0,
            false => self.retired.get(&format!("{prefix}{}", graph.step(step).def.name)).copied().unwrap_or(0),
        };
        let idle = |&step: &StepIx| {
            let attempt = retired(step);
            StepState { attempt, uncounted: attempt, ..StepState::idle(graph.step(step).in_edges) }
        };
        let steps: Vec<StepState> = graph.scope(scope).steps.iter().map(idle).collect();
        let remaining = steps.len() as u32;
        self.states += steps.len();
        let (failures, names) = (Vec::new(), Names::default());
        self.instances.push(Instance { scope, parent, frame, prefix, remaining, steps, failures, names });
        id
    }

    fn end_step(&mut self, graph: &Graph, at: At, status: Status, exit: Exit) {
        self.set_phase(graph, at, Phase::Done(status));
        self.ended += 1;
        let ended = self.ended;
        let state = self.state_mut(graph, at);
        state.exit = exit;
        state.due = None;
        state.ended = ended;
        let instance = &mut self.instances[at.instance as usize];
        instance.remaining -= 1;
        if status.is_failure() {
            instance.failures.push(at.step);
        }
        self.note_names(graph, at);
        if exit != Exit::Open {
            self.decide_edges(graph, at);
            for out in &graph.step(at.step).outs {
                if let Target::Step(step) = out.to {
                    self.consider(graph, At { step, ..at });
                }
            }
        }
        self.consider_close(at.instance);
    }

    /// Counts the out-edges of an ended step at their targets.
    pub(super) fn decide_edges(&mut self, graph: &Graph, at: At) {
        for out in &graph.step(at.step).outs {
            let Target::Step(to) = out.to else { continue };
            let edge = self.edge(graph, at, out);
            let target = self.state_mut(graph, At { step: to, ..at });
            match edge {
                EdgeState::Open => continue,
                EdgeState::Live => target.live += 1,
                EdgeState::Failed => target.failed += 1,
                EdgeState::Untaken => {}
            }
            target.open -= 1;
        }
    }

    /// Makes an ended step the one that its name and `ctx` variable refer to.
    pub(super) fn note_names(&mut self, graph: &Graph, at: At) {
        let frame = self.instances[at.instance as usize].frame;
        let state = self.state(graph, at);
        let (phase, variable) = (state.phase, state.more.as_ref().and_then(|more| more.variable));
        let truncated = state.output.is_some_and(|output| output.truncated && Some(output.body) == variable);
        if frame != at.instance {
            let known = self.instances[frame as usize].names.latest.get(&at.step).copied();
            let stays = known.is_some_and(|known| self.state(graph, known).ran());
            if phase != Phase::Done(Status::Skipped) || !stays {
                self.instances[frame as usize].names.latest.insert(at.step, at);
            }
        }
        if let (Some(value), Some(number)) = (variable, graph.step(at.step).variable) {
            let ctx = &mut self.instances[frame as usize].names.ctx;
            if ctx.len() <= number as usize {
                ctx.resize(number as usize + 1, None);
            }
            ctx[number as usize] = Some(CtxValue { value, step: at.step, truncated });
        }
    }

    /// Rule R6: cancels every step that has not ended; no edge is decided.
    fn cancel_rest(&mut self, graph: &Graph, now: Time) {
        for instance in 0..self.instances.len() as u32 {
            if self.instances[instance as usize].remaining == 0 || !self.is_open(graph, instance) {
                continue;
            }
            for &step in &graph.scope(self.instances[instance as usize].scope).steps {
                let at = At { instance, step };
                if self.state(graph, at).status().is_none() {
                    self.set_phase(graph, at, Phase::Done(Status::Cancelled));
                    let state = self.state_mut(graph, at);
                    state.due = None;
                    state.since = now;
                }
            }
            self.instances[instance as usize].remaining = 0;
        }
    }
}
