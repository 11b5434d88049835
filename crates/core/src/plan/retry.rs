//! Retries a finished run under its own version (rule R7). For a newer version see `newer`.

use super::{Env, Planner, Standing};
use crate::event::{Ignored, Retrier};
use crate::fact::{End, Fact};
use crate::graph::{Graph, Join, Kind, OnItemError, Target};
use crate::run::{At, Phase, Run, RunStatus, Status};
use crate::time::Time;
use std::collections::{BTreeSet, HashMap};

/// What a retry resets and reopens, in one instance and everything inside it.
#[derive(Default)]
struct Plan {
    reset: BTreeSet<At>,
    reopened: BTreeSet<At>,
}

/// Returns which steps a retry under the run's own version would keep, and which would run again. Steps inside a scope
/// that is only reopened are named by their paths.
pub fn retry_standing(graph: &Graph, run: &Run) -> Result<Standing, Ignored> {
    if !is_retryable(run.status) {
        return Err(Ignored::NothingToRetry);
    }
    let mut standing = Standing { stands: Vec::new(), again: Vec::new() };
    if run.instances.is_empty() {
        return Ok(standing);
    }
    let mut copy = run.clone();
    let plan = Planner::new(graph, &mut copy, Env::plain(Time(0), &|_| String::new())).plan_retry(0);
    if plan.reset.is_empty() && plan.reopened.is_empty() {
        return Err(Ignored::NothingToRetry);
    }
    for (at, state) in run.steps(graph) {
        let list = if plan.reset.contains(&at) {
            Some(&mut standing.again).filter(|_| state.ran())
        } else if at.instance == 0 && !plan.reopened.contains(&at) {
            Some(&mut standing.stands).filter(|_| state.status().is_some())
        } else {
            None
        };
        list.into_iter().for_each(|list| list.push(run.path(graph, at)));
    }
    Ok(standing)
}

impl Planner<'_> {
    pub(super) fn retry(&mut self, Retrier { name: by, acts }: Retrier) -> Result<(), Ignored> {
        if !is_retryable(self.run.status) {
            return Err(Ignored::NothingToRetry);
        }
        let expires = self.env.now + self.run.max_duration;
        if self.run.instances.is_empty() {
            // Cancelled while still queued: nothing has run, so the run starts normally.
            self.fact(Fact::Retried { by, acts, expires, reset: Vec::new(), reopened: Vec::new(), vars: None });
            let vars = self.vars();
            self.begin(vars, |vars| Fact::Started { expires, vars });
            return Ok(());
        }
        let plan = self.plan_retry(0);
        if plan.reset.is_empty() && plan.reopened.is_empty() {
            return Err(Ignored::NothingToRetry);
        }
        let (reset, reopened): (Vec<At>, Vec<At>) =
            (plan.reset.into_iter().collect(), plan.reopened.into_iter().collect());
        // They failed when the run started.
        let vars = if self.run.vars.is_none() { self.vars() } else { Ok(None) };
        self.begin(vars, |vars| Fact::Retried { by, acts, expires, reset, reopened, vars });
        Ok(())
    }

    /// Recurses into inner instances; scopes nest at most `MAX_SCOPE_DEPTH` deep.
    fn plan_retry(&self, instance: u32) -> Plan {
        let cancelled = |at: &At| self.state(*at).phase == Phase::Done(Status::Cancelled);
        let steps = &self.graph.scope(self.run.instances[instance as usize].scope).steps;
        let mut candidates: BTreeSet<At> = steps.iter().map(|&step| At { instance, step }).filter(cancelled).collect();
        candidates.extend(self.unhandled(instance));

        let mut inside: HashMap<At, Plan> = HashMap::new();
        let mut roots = BTreeSet::new();
        let mut todo = Vec::new();
        for at in candidates {
            let plan = self.plan_inside(at);
            if plan.reset.is_empty() && !self.has_items_left(at) {
                roots.insert(at);
                todo.push(at);
            } else {
                todo.extend(self.after(at));
                inside.insert(at, plan);
            }
        }
        let mut reset = BTreeSet::new();
        while let Some(at) = todo.pop() {
            let any = self.graph.step(at.step).def.join == Join::Any;
            let stands = any && self.state(at).ran() && !roots.contains(&at);
            if !stands && reset.insert(at) {
                todo.extend(self.after(at));
            }
        }
        let mut plan = Plan { reset, reopened: BTreeSet::new() };
        for (at, inner) in inside {
            // A scope step that is reached from a root outside it starts over as a whole.
            if !plan.reset.contains(&at) {
                plan.reopened.insert(at);
                plan.reset.extend(inner.reset);
                plan.reopened.extend(inner.reopened);
            }
        }
        plan
    }

    fn plan_inside(&self, at: At) -> Plan {
        let mut plan = Plan::default();
        let Some(scope) = self.state(at).scope() else { return plan };
        let recorded = match &self.graph.step(at.step).def.kind {
            Kind::Each(each) => each.on_item_error == OnItemError::Continue,
            _ => false,
        };
        for (&instance, closed) in scope.instances.iter().zip(&scope.closed) {
            let stands = matches!(closed, Some((End::Success, _))) || (recorded && closed.is_some());
            if !stands {
                let mut inner = self.plan_retry(instance);
                if inner.reset.is_empty() && closed.is_some() {
                    // Only its result could not be computed: it runs again.
                    let steps = &self.graph.scope(self.run.instances[instance as usize].scope).steps;
                    inner.reset.extend(steps.iter().map(|&step| At { instance, step }));
                }
                plan.reset.extend(inner.reset);
                plan.reopened.extend(inner.reopened);
            }
        }
        plan
    }

    /// Whether the for_each was cancelled before it had opened all items that were due.
    fn has_items_left(&self, at: At) -> bool {
        self.state(at).scope().is_some_and(|scope| scope.opened < scope.due)
    }

    fn after(&self, at: At) -> impl Iterator<Item = At> {
        let outs = &self.graph.step(at.step).outs;
        outs.iter().filter_map(move |out| match out.to {
            Target::Step(step) => Some(At { step, ..at }),
            Target::Back | Target::Leave(_) => None,
        })
    }
}

pub(super) fn is_retryable(status: RunStatus) -> bool {
    matches!(status, RunStatus::Failed | RunStatus::Cancelled | RunStatus::Timeout)
}
