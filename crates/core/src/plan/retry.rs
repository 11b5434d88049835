//! Retrying a finished run (rule R7), on its own version or on a newer one.

use super::go::{Readiness, readiness};
use super::{Env, Planner, Task, Transition};
use crate::event::{Ignored, TimerKind};
use crate::expr::StepIx;
use crate::fact::{End, Fact};
use crate::graph::{Graph, Join, Kind, OnItemError, ScopeIx, Target};
use crate::run::{At, Phase, Run, RunStatus, Status};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// What a retry starts from in one instance and everything inside it.
#[derive(Default)]
struct Plan {
    reset: BTreeSet<At>,
    reopened: BTreeSet<At>,
}

impl Planner<'_> {
    pub(super) fn retry(&mut self, by: Arc<str>) -> Result<(), Ignored> {
        if !is_retryable(self.run.status) {
            return Err(Ignored::NothingToRetry);
        }
        let expires = self.env.now + self.run.max_duration;
        if self.run.instances.is_empty() {
            // Cancelled while still queued: nothing has run, so it simply starts.
            self.fact(Fact::Retried { by, expires, reset: Vec::new(), reopened: Vec::new() });
            self.fact(Fact::Started { expires });
            self.set_timer(None, TimerKind::Expire, expires);
            self.start_instance(0);
            return Ok(());
        }
        let plan = self.plan_retry(0);
        if plan.reset.is_empty() {
            return Err(Ignored::NothingToRetry);
        }
        let (reset, reopened): (Vec<At>, Vec<At>) =
            (plan.reset.into_iter().collect(), plan.reopened.into_iter().collect());
        self.fact(Fact::Retried { by, expires, reset: reset.clone(), reopened: reopened.clone() });
        self.set_timer(None, TimerKind::Expire, expires);
        reset.into_iter().for_each(|at| self.reconsider(at));
        for at in reopened {
            let graph = self.graph;
            if let Kind::Each(each) = &graph.step(at.step).def.kind {
                self.continue_each(at, each);
            }
        }
        Ok(())
    }

    /// An idle step whose in-edges may already be decided.
    fn reconsider(&mut self, at: At) {
        let step = self.graph.step(at.step);
        match readiness(step.def.join, step.in_edges, self.state(at)) {
            Readiness::Wait => {}
            Readiness::Go => self.agenda.push_back(Task::Go(at)),
            Readiness::Skip => self.agenda.push_front(Task::Skip(at)),
        }
    }

    /// Calls itself for instances inside; scopes are nested at most `MAX_SCOPE_DEPTH` deep.
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
            if plan.reset.is_empty() {
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
            // Reached from a root outside it, a scope step starts over as a whole.
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
                let inner = self.plan_retry(instance);
                plan.reset.extend(inner.reset);
                plan.reopened.extend(inner.reopened);
            }
        }
        plan
    }

    fn after(&self, at: At) -> impl Iterator<Item = At> {
        let outs = &self.graph.step(at.step).outs;
        outs.iter().filter_map(move |out| match out.to {
            Target::Step(step) => Some(At { step, ..at }),
            Target::Back | Target::Leave(_) => None,
        })
    }
}

fn is_retryable(status: RunStatus) -> bool {
    matches!(status, RunStatus::Failed | RunStatus::Cancelled | RunStatus::Timeout)
}

/// Which recorded steps would stand if the run went on under a newer version, and which would run again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    pub stands: Vec<String>,
    pub again: Vec<String>,
}

/// Says what [`retry_onto`] would keep. Both graphs must be of the same dialect.
pub fn standing(old: &Graph, new: &Graph, run: &Run) -> Result<Standing, Ignored> {
    if !is_retryable(run.status) || old.dialect != new.dialect {
        return Err(Ignored::NothingToRetry);
    }
    let mut result = Standing { stands: Vec::new(), again: Vec::new() };
    if run.instances.is_empty() {
        return Ok(result);
    }
    let (before, after) = (in_edges(old), in_edges(new));
    let unchanged = |step: StepIx| {
        let name = &*new.step(step).def.name;
        old.find(ScopeIx::ROOT, name)
            .filter(|&was| old.step(was).def.written == new.step(step).def.written && before[&was] == after[&step])
    };
    let mut standing: BTreeSet<StepIx> = BTreeSet::new();
    for step in topological(new) {
        let Some(was) = unchanged(step) else { continue };
        let ended = run.state(old, At { instance: 0, step: was }).phase;
        let kept = matches!(ended, Phase::Done(Status::Success | Status::Skipped));
        let sources_stand = sources(new, step).all(|source| standing.contains(&source));
        let gate = matches!(new.step(step).def.kind, Kind::Gate(_));
        if kept && sources_stand && !(gate && reaches_change(new, step, &unchanged)) {
            standing.insert(step);
        }
    }
    for &was in &old.scope(ScopeIx::ROOT).steps {
        let state = run.state(old, At { instance: 0, step: was });
        let name = old.step(was).def.name.to_string();
        let stands = new.find(ScopeIx::ROOT, &name).is_some_and(|step| standing.contains(&step));
        if stands {
            result.stands.push(name);
        } else if state.ran() {
            result.again.push(name);
        }
    }
    Ok(result)
}

/// Goes on with a finished run under a newer version. The run belongs to `new` afterwards.
pub fn retry_onto(
    (old, new): (&Graph, &Graph),
    run: &mut Run,
    by: Arc<str>,
    version: u32,
    env: Env,
) -> Result<Transition, Ignored> {
    let standing = standing(old, new, run)?;
    run.carry(old, new, &standing.stands);
    let expires = env.now + run.max_duration;
    let mut planner = Planner { graph: new, run, env, out: Transition::default(), agenda: VecDeque::new() };
    let root = |name: &String| new.find(ScopeIx::ROOT, name).map(|step| At { instance: 0, step });
    let stands = standing.stands.iter().filter_map(root).collect();
    planner.fact(Fact::Adopted { by, expires, version, stands });
    planner.set_timer(None, TimerKind::Expire, expires);
    for &step in &new.scope(ScopeIx::ROOT).steps {
        let at = At { instance: 0, step };
        if planner.state(at).phase == Phase::Idle {
            planner.reconsider(at);
        }
    }
    if planner.run.instances[0].remaining == 0 {
        planner.agenda.push_back(Task::Close(0));
    }
    planner.settle();
    Ok(planner.out)
}

/// Per root step, where its in-edges come from: source name and handle name.
fn in_edges(graph: &Graph) -> HashMap<StepIx, BTreeSet<(String, String)>> {
    let steps = &graph.scope(ScopeIx::ROOT).steps;
    let mut edges: HashMap<StepIx, BTreeSet<(String, String)>> = steps.iter().map(|&s| (s, BTreeSet::new())).collect();
    for &from in steps {
        for out in &graph.step(from).outs {
            if let Target::Step(to) = out.to {
                let handle = crate::run::handle_name(graph, from, out.handle).to_string();
                edges.entry(to).or_default().insert((graph.step(from).def.name.to_string(), handle));
            }
        }
    }
    edges
}

fn sources(graph: &Graph, step: StepIx) -> impl Iterator<Item = StepIx> {
    let leads = move |&from: &StepIx| graph.step(from).outs.iter().any(|out| out.to == Target::Step(step));
    graph.scope(ScopeIx::ROOT).steps.iter().copied().filter(leads)
}

fn topological(graph: &Graph) -> Vec<StepIx> {
    let mut missing: HashMap<StepIx, u32> = HashMap::new();
    let mut order = graph.scope(ScopeIx::ROOT).starts.clone();
    let mut next = 0;
    while let Some(&step) = order.get(next) {
        next += 1;
        for out in &graph.step(step).outs {
            let Target::Step(to) = out.to else { continue };
            let left = missing.entry(to).or_insert(graph.step(to).in_edges);
            *left -= 1;
            if *left == 0 {
                order.push(to);
            }
        }
    }
    order
}

fn reaches_change(graph: &Graph, from: StepIx, unchanged: &impl Fn(StepIx) -> Option<StepIx>) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut todo = vec![from];
    while let Some(step) = todo.pop() {
        for out in &graph.step(step).outs {
            if let Target::Step(to) = out.to
                && seen.insert(to)
            {
                if unchanged(to).is_none() {
                    return true;
                }
                todo.push(to);
            }
        }
    }
    false
}
