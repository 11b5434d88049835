//! Retries a finished run under a newer version of its workflow: which steps keep their results, which run again.

use super::retry::is_retryable;
use super::{Env, Planner, Transition};
use crate::event::{Ignored, Retrier};
use crate::expr::StepIx;
use crate::fact::Fact;
use crate::graph::{Graph, Kind, Out, ScopeIx, Target};
use crate::run::{At, Phase, Run, Status, handle_name};
use crate::time::Millis;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Which recorded steps would keep their results if the run were retried under a newer version, and which would run
/// again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    pub stands: Vec<String>,
    pub again: Vec<String>,
}

/// Returns what [`retry_onto`] would keep. Both graphs must be of the same dialect.
pub fn standing(old: &Graph, new: &Graph, run: &Run) -> Result<Standing, Ignored> {
    if old.dialect != new.dialect {
        return Err(Ignored::OtherDialect);
    }
    if !is_retryable(run.status) {
        return Err(Ignored::NothingToRetry);
    }
    let mut result = Standing { stands: Vec::new(), again: Vec::new() };
    if run.instances.is_empty() {
        return Ok(result);
    }
    let stands = standing_steps(old, new, run);
    for &was in &old.scope(ScopeIx::ROOT).steps {
        let name = &old.step(was).def.name;
        if new.find(ScopeIx::ROOT, name).is_some_and(|step| stands.contains(&step)) {
            result.stands.push(name.to_string());
        } else if run.state(old, At { instance: 0, step: was }).ran() {
            result.again.push(name.to_string());
        }
    }
    Ok(result)
}

/// The version to continue under.
#[derive(Clone, Copy)]
pub struct Newer<'a> {
    pub graph: &'a Graph,
    pub version: u32,
    pub max_duration: Millis,
}

/// Retries a finished run under a newer version. The run belongs to that graph afterwards.
pub fn retry_onto(old: &Graph, newer: Newer, run: &mut Run, by: Retrier, env: Env) -> Result<Transition, Ignored> {
    let Newer { graph: new, version, max_duration } = newer;
    let standing = standing(old, new, run)?;
    run.migrate(old, new, &standing.stands);
    let expires = env.now + max_duration;
    let mut planner = Planner::new(new, run, env);
    let root = |name: &String| new.find(ScopeIx::ROOT, name).map(|step| At { instance: 0, step });
    let stands = standing.stands.iter().filter_map(root).collect();
    let changed = old.vars_written != new.vars_written || planner.run.vars.is_none();
    let vars = if changed { planner.vars() } else { Ok(None) };
    let Retrier { name: by, acts } = by;
    planner.begin(vars, |vars| Fact::Adopted { by, acts, expires, version, max_duration, stands, vars });
    Ok(planner.decide(None))
}

/// Steps of the new root scope that keep their results, found in the order they run.
fn standing_steps(old: &Graph, new: &Graph, run: &Run) -> HashSet<StepIx> {
    let (before, after) = (in_edges(old), in_edges(new));
    let same = |&step: &StepIx| {
        let was = old.find(ScopeIx::ROOT, &new.step(step).def.name)?;
        let written = signature(new, step);
        let same = before.get(&was) == after.get(&step) && signature(old, was) == written;
        // What reads a var is another step if the vars are others. The word may stand for something else; then the step
        // runs again without need.
        let reads_others = || old.vars_written != new.vars_written && written.to_string().contains("vars");
        (same && !reads_others()).then_some((step, was))
    };
    let unchanged: HashMap<StepIx, StepIx> = new.scope(ScopeIx::ROOT).steps.iter().filter_map(same).collect();
    let order = topological(new);
    let asked_again = asked_again(old, new, &order, &unchanged);
    let mut invalidated: HashSet<StepIx> = HashSet::new();
    let mut stands = HashSet::new();
    for step in order {
        let kept = unchanged.get(&step).is_some_and(|&was| {
            let state = run.state(old, At { instance: 0, step: was });
            let ended = matches!(state.phase, Phase::Done(Status::Success | Status::Skipped));
            ended && !asked_again.contains(&step) && Run::exit_exists(old, was, new, step, state.exit)
        });
        if kept && !invalidated.contains(&step) {
            stands.insert(step);
        } else {
            invalidated.extend(targets(new, step));
        }
    }
    stands
}

/// Steps with a gate that no longer stands for what was approved: something after it is new or changed, or is made of
/// something that is. A step reads only steps before it, except for `ctx`, which any step may have written.
fn asked_again(old: &Graph, new: &Graph, order: &[StepIx], unchanged: &HashMap<StepIx, StepIx>) -> HashSet<StepIx> {
    let gates = order.iter().copied().filter(|&step| holds(new, step, &is_gate));
    let is_new = |step: &StepIx| !unchanged.contains_key(step);
    let kept: HashSet<StepIx> = unchanged.values().copied().collect();
    let gone = old.scope(ScopeIx::ROOT).steps.iter().filter(|step| !kept.contains(step));
    let writes = |graph: &Graph, step: StepIx| graph.step(step).variable.is_some();
    if order.iter().any(|step| is_new(step) && holds(new, *step, &writes)) || { gone }
        .any(|&was| holds(old, was, &writes))
    {
        return gates.collect();
    }
    let mut affected: HashSet<StepIx> = HashSet::new();
    for step in order {
        if is_new(step) || affected.contains(step) {
            affected.insert(*step);
            affected.extend(targets(new, *step));
        }
    }
    let mut before: HashSet<StepIx> = HashSet::new();
    for &step in order.iter().rev() {
        if targets(new, step).any(|to| before.contains(&to) || affected.contains(&to)) {
            before.insert(step);
        }
    }
    gates.filter(|gate| before.contains(gate)).collect()
}

fn is_gate(graph: &Graph, step: StepIx) -> bool {
    matches!(graph.step(step).def.kind, Kind::Gate(_))
}

/// Whether this holds for the step or for one inside it. Scopes nest at most `MAX_SCOPE_DEPTH` deep.
fn holds(graph: &Graph, step: StepIx, test: &dyn Fn(&Graph, StepIx) -> bool) -> bool {
    let body = graph.step(step).def.kind.body();
    let inside = body.map(|body| graph.scope(body).steps.as_slice()).unwrap_or_default();
    test(graph, step) || inside.iter().any(|&step| holds(graph, step, test))
}

/// Everything the author wrote about a step: the step itself and, for a scope, its body with its edges.
fn signature(graph: &Graph, step: StepIx) -> Value {
    let here = graph.step(step);
    let Some(body) = here.def.kind.body() else { return (*here.def.written).clone() };
    let mut inside: Vec<Value> = graph
        .scope(body)
        .steps
        .iter()
        .map(|&inner| {
            let edges: BTreeSet<(String, String)> =
                graph.step(inner).outs.iter().map(|out| (handle(graph, inner, out), target(graph, out))).collect();
            json!([&*graph.step(inner).def.name, signature(graph, inner), edges])
        })
        .collect();
    inside.sort_by(|a, b| a[0].as_str().cmp(&b[0].as_str()));
    // A loop made from a cycle is not written itself; its body describes it completely.
    let own = if matches!(here.def.kind, Kind::Loop { .. }) { Value::Null } else { (*here.def.written).clone() };
    json!([own, inside])
}

fn target(graph: &Graph, out: &Out) -> String {
    match out.to {
        Target::Step(to) => graph.step(to).def.name.to_string(),
        Target::Back => "[back".into(),
        Target::Leave(_) => "[leave".into(),
    }
}

/// The real source of an edge: for an edge that leaves a loop, the step inside and its handle.
fn handle(graph: &Graph, from: StepIx, out: &Out) -> String {
    let (mut step, mut out) = (from, out);
    while let Some((inner, pos)) = out.inner {
        (step, out) = (inner, &graph.step(inner).outs[pos as usize]);
    }
    format!("{}.{}", graph.step(step).def.name, handle_name(graph, step, out.handle))
}

/// The sources of the in-edges of each root step.
fn in_edges(graph: &Graph) -> HashMap<StepIx, BTreeSet<String>> {
    let mut edges: HashMap<StepIx, BTreeSet<String>> = HashMap::new();
    for &from in &graph.scope(ScopeIx::ROOT).steps {
        for out in &graph.step(from).outs {
            if let Target::Step(to) = out.to {
                edges.entry(to).or_default().insert(handle(graph, from, out));
            }
        }
    }
    edges
}

fn targets(graph: &Graph, step: StepIx) -> impl Iterator<Item = StepIx> {
    graph.step(step).outs.iter().filter_map(|out| match out.to {
        Target::Step(to) => Some(to),
        Target::Back | Target::Leave(_) => None,
    })
}

fn topological(graph: &Graph) -> Vec<StepIx> {
    let mut missing: HashMap<StepIx, u32> = HashMap::new();
    let mut order = graph.scope(ScopeIx::ROOT).starts.clone();
    let mut next = 0;
    while let Some(&step) = order.get(next) {
        next += 1;
        for to in targets(graph, step) {
            let left = missing.entry(to).or_insert(graph.step(to).in_edges);
            *left -= 1;
            if *left == 0 {
                order.push(to);
            }
        }
    }
    order
}
