//! What an approval request shows: the calls that wait for the approval, and those that follow a denial.
//!
//! A call is covered by an approval only if it is shown whole: with all arguments, as they will be sent. A call that is
//! too large, or of which a part is not known yet, is listed without a digest.

use super::Planner;
use crate::approval::call_digest;
use crate::expr::{Expr, Found, Names, Path, Segment, StepIx, Val, Var};
use crate::graph::{Call, Handle, Join, Kind, Target};
use crate::run::{At, EdgeState, Exit, Phase, Status, View};
use crate::template::PartlyResolved;
use serde_json::{Value, json};

/// Calls that a list shows with their arguments.
const MAX_CALLS: usize = 200;
/// Calls that a list names. The rest are counted.
const MAX_NAMED: usize = 1_000;
/// Bytes of arguments that a list shows.
const MAX_SHOWN: usize = 256 * 1024;

/// The calls that one answer leads to.
pub(super) struct CallList {
    pub calls: Vec<Value>,
    /// Number of calls that are not even named.
    pub more: usize,
    bytes_left: usize,
    /// Whether the answer covers the calls that are shown whole.
    covers: bool,
}

impl CallList {
    fn new(covers: bool) -> CallList {
        CallList { calls: Vec::new(), more: 0, bytes_left: MAX_SHOWN, covers }
    }
}

/// The steps that an answer leads to, by their position in the gate's scope.
struct Consequences {
    /// Steps that start only after the answer, and may start then.
    follow: Vec<bool>,
    /// Steps that may start after the answer, even if they need not wait for it.
    may_run: Vec<bool>,
}

impl Planner<'_> {
    /// The calls that are made only if this gate is approved, and those that may be made after a denial.
    pub(super) fn covered(&self, at: At) -> (CallList, CallList) {
        let scope = self.graph.scope(self.graph.step(at.step).scope);
        let behind = self.behind(at.step, scope.steps.len());
        let (approved, denied) = (self.consequences(at, true), self.consequences(at, false));
        let (mut after_approval, mut after_denial) = (CallList::new(true), CallList::new(false));
        for &step in &scope.steps {
            let own = self.graph.step(step).local as usize;
            if behind[own] && approved.may_run[own] {
                self.list(At { step, ..at }, &mut after_approval);
            }
            if denied.follow[own] {
                let from = after_denial.calls.len();
                self.list(At { step, ..at }, &mut after_denial);
                for call in after_denial.calls[from..].iter_mut().filter(|_| approved.may_run[own]) {
                    call["also_if_approved"] = true.into();
                }
            }
        }
        (after_approval, after_denial)
    }

    /// The list of a single call that is held: it is always shown whole.
    pub(super) fn held_call(&self, at: At, input: Value) -> CallList {
        let mut list = CallList { bytes_left: usize::MAX, ..CallList::new(true) };
        let path = self.run.path(self.graph, at);
        self.push(at.step, path, Some(PartlyResolved { value: input, unknown: Vec::new() }), &mut list);
        list
    }

    /// Which steps of a gate's scope cannot start before the gate is approved, by their position in the scope. A step
    /// that waits for all its edges waits for the gate if one edge does; a step that needs only some edge waits for it
    /// only if all edges do.
    fn behind(&self, gate: StepIx, steps: usize) -> Vec<bool> {
        let mut behind = vec![false; steps];
        let mut edges = vec![0; steps];
        let mut todo = vec![gate];
        while let Some(from) = todo.pop() {
            let approved = |handle: Handle| from != gate || !matches!(handle, Handle::ERROR | Handle::DENIED);
            for out in self.graph.step(from).outs.iter().filter(|out| approved(out.handle)) {
                let Target::Step(to) = out.to else { continue };
                let step = self.graph.step(to);
                let own = step.local as usize;
                edges[own] += 1;
                let waits = match step.def.join {
                    Join::Every | Join::Settled => true,
                    Join::Some | Join::Any => edges[own] == step.in_edges,
                };
                if waits && !std::mem::replace(&mut behind[own], true) {
                    todo.push(to);
                }
            }
        }
        behind
    }

    /// What may start after an answer. In case of doubt a step may start.
    fn consequences(&self, gate: At, approved: bool) -> Consequences {
        let scope = self.graph.scope(self.graph.step(gate.step).scope);
        let count = scope.steps.len();
        let mut result = Consequences { follow: vec![false; count], may_run: vec![false; count] };
        let taken = match approved {
            true => self.approved_exit(gate),
            false => self.failed_exit(gate, Status::Denied),
        };
        if taken == Exit::Open {
            // A denial that ends the run.
            return result;
        }
        // Per step: its edges from the gate or from steps after it, and how many of these can be taken.
        let (mut inside, mut possible, mut waits) = (vec![0; count], vec![0; count], vec![0; count]);
        for step in self.after_in_order(gate) {
            let here = self.graph.step(step);
            let own = here.local as usize;
            let at = At { step, ..gate };
            let state = self.state(at);
            if step != gate.step && state.phase == Phase::Idle {
                let elsewhere = state.live + state.open.saturating_sub(inside[own]);
                let live = elsewhere + possible[own];
                let starts = match here.def.join {
                    Join::Every => live == here.in_edges,
                    Join::Some => live > 0 && state.failed == 0,
                    Join::Any => live > 0,
                    Join::Settled => true,
                };
                result.may_run[own] = starts && self.condition_can_hold(at, gate.step, approved);
                let all = here.def.join == Join::Any;
                result.follow[own] = result.may_run[own] && waits[own] > 0 && (!all || waits[own] == here.in_edges);
            }
            for out in &here.outs {
                let Target::Step(to) = out.to else { continue };
                let next = self.graph.step(to).local as usize;
                let can_be_taken = match (step == gate.step, state.phase) {
                    (true, _) => taken == Exit::Took(out.handle),
                    (false, Phase::Idle) => result.may_run[own],
                    (false, _) => matches!(self.run.edge(self.graph, at, out), EdgeState::Live | EdgeState::Open),
                };
                let undecided = state.phase == Phase::Idle || self.run.edge(self.graph, at, out) == EdgeState::Open;
                inside[next] += u32::from(undecided);
                possible[next] += u32::from(undecided && can_be_taken);
                waits[next] += u32::from(step == gate.step || waits[own] > 0);
            }
        }
        result
    }

    /// The gate and the steps after it, each after all its sources among them.
    fn after_in_order(&self, gate: At) -> Vec<StepIx> {
        let scope = self.graph.scope(self.graph.step(gate.step).scope);
        let targets = |step: StepIx| {
            self.graph.step(step).outs.iter().filter_map(|out| match out.to {
                Target::Step(to) => Some(to),
                Target::Back | Target::Leave(_) => None,
            })
        };
        let mut sources = vec![0u32; scope.steps.len()];
        let mut reached = vec![gate.step];
        let mut next = 0;
        while let Some(&step) = reached.get(next) {
            next += 1;
            for to in targets(step) {
                let count = &mut sources[self.graph.step(to).local as usize];
                *count += 1;
                if *count == 1 {
                    reached.push(to);
                }
            }
        }
        let mut order = vec![gate.step];
        let mut next = 0;
        while let Some(&step) = order.get(next) {
            next += 1;
            for to in targets(step) {
                let left = &mut sources[self.graph.step(to).local as usize];
                *left -= 1;
                if *left == 0 {
                    order.push(to);
                }
            }
        }
        order
    }

    /// The edges that an approved gate takes.
    fn approved_exit(&self, gate: At) -> Exit {
        if self.graph.step(gate.step).def.branches.is_empty() {
            return Exit::Took(Handle::SUCCESS);
        }
        match self.branch(gate, &Value::String("approved".into()), false) {
            Ok(Some(handle)) => Exit::Took(handle),
            Ok(None) | Err(_) => Exit::Failed,
        }
    }

    fn condition_can_hold(&self, at: At, gate: StepIx, approved: bool) -> bool {
        let Some(condition) = &self.graph.step(at.step).def.condition else { return true };
        let names = Supposed { view: self.view(at.instance), gate, approved };
        condition.can_hold(&names, &|path| names.decision(path).is_some() || self.is_settled(at, path))
    }

    fn list(&self, at: At, list: &mut CallList) {
        let path = self.run.path(self.graph, at);
        match &self.graph.step(at.step).def.kind {
            Kind::Call { .. } | Kind::Child { .. } => self.push(at.step, path, self.input_so_far(at), list),
            kind => self.list_body(At { ..at }, kind, &path, list),
        }
    }

    /// Lists calls inside a loop or for_each: how often each is made, and for what, is not known before it has begun.
    fn list_body(&self, around: At, kind: &Kind, path: &str, list: &mut CallList) {
        let body = kind.body().map(|body| self.graph.scope(body).steps.as_slice()).unwrap_or_default();
        for &step in body {
            let def = &self.graph.step(step).def;
            let path = format!("{path}[*].{}", def.name);
            match &def.kind {
                Kind::Call { .. } | Kind::Child { .. } => {
                    self.push(step, path, self.input_so_far(At { step, ..around }), list);
                }
                kind => self.list_body(around, kind, &path, list),
            }
        }
    }

    /// The arguments of a call, as far as they are known. `None` if they cannot be resolved.
    fn input_so_far(&self, at: At) -> Option<PartlyResolved> {
        let kind = &self.graph.step(at.step).def.kind;
        let (Kind::Call { input, .. } | Kind::Child { input, .. }) = kind else { return None };
        let is_known = |expr: &Expr| expr.paths().all(|path| self.is_settled(at, path));
        let mut known = input.resolve_known(&self.view(at.instance), &is_known).ok()?;
        if matches!(kind, Kind::Call { call: Call::Javascript, .. }) {
            // The context of code is taken when it starts.
            known.unknown.push("/ctx".into());
        }
        Some(known)
    }

    fn push(&self, step: StepIx, path: String, input: Option<PartlyResolved>, list: &mut CallList) {
        if list.calls.len() >= MAX_NAMED {
            list.more += 1;
            return;
        }
        let kind = &self.graph.step(step).def.kind;
        let whole = input.as_ref().is_some_and(|input| input.unknown.is_empty()) && !path.contains("[*]");
        let mut call = json!({"step": path, "kind": kind.name()});
        if let Kind::Child { workflow, .. } = kind {
            call["workflow"] = Value::from(&**workflow);
        }
        if !whole {
            call["not_yet_known"] = true.into();
        }
        if let Some(PartlyResolved { value, unknown }) = input {
            if let (Kind::Call { call: Call::Tool, .. }, Some(tool)) = (kind, value.get("tool")) {
                call["tool"] = tool.clone();
            }
            let left = list.bytes_left.checked_sub(value.to_string().len());
            match left.filter(|_| list.calls.len() < MAX_CALLS) {
                Some(left) => {
                    list.bytes_left = left;
                    if whole && list.covers {
                        call["digest"] = call_digest(kind.name(), &value).into();
                    }
                    call["input"] = value;
                    if !unknown.is_empty() {
                        call["unknown"] = unknown.into();
                    }
                }
                None => call["too_large_to_show"] = true.into(),
            }
        }
        list.calls.push(call);
    }

    /// Whether a path has the same value whenever it is read from now on.
    fn is_settled(&self, at: At, path: &Path) -> bool {
        let view = self.view(at.instance);
        let ended = |step: StepIx| {
            let named = view.named(step).filter(|named| self.encloses(named.instance, at.instance));
            named.is_some_and(|named| self.state(named).status().is_some())
        };
        let mut writers = self.graph.steps.iter().enumerate();
        match path.var {
            Var::Input | Var::Trigger | Var::RunId | Var::Vars | Var::Secret => true,
            Var::Step(step) => ended(step),
            Var::Ctx(number) => {
                writers.all(|(step, written)| written.variable != Some(number) || ended(StepIx(step as u32)))
            }
            Var::WaitUrl(step) => view.encloses(self.graph.step(step).scope),
            Var::Item(scope) | Var::Index(scope) => view.encloses(crate::graph::ScopeIx(scope)),
            Var::Unbound | Var::CtxAll | Var::Result | Var::Now => false,
        }
    }

    /// Whether `outer` is `inner` or one of the instances around it.
    fn encloses(&self, outer: u32, inner: u32) -> bool {
        let parent = |&instance: &u32| self.run.instances[instance as usize].parent.map(|(owner, _)| owner.instance);
        std::iter::successors(Some(inner), parent).any(|instance| instance == outer)
    }
}

/// The names of a step, supposing that a gate was answered.
struct Supposed<'a> {
    view: View<'a>,
    gate: StepIx,
    approved: bool,
}

impl Supposed<'_> {
    /// What a path says about the answer, if it is all that the path reads.
    fn decision(&self, path: &Path) -> Option<&'static str> {
        let word = if self.approved { "approved" } else { "denied" };
        let status = if self.approved { Status::Success } else { Status::Denied };
        if path.var != Var::Step(self.gate) {
            return None;
        }
        match path.rest() {
            [Segment::Key(field)] if &**field == "status" => Some(Phase::Done(status).name()),
            [Segment::Key(field)] if &**field == "result" => Some(word),
            [Segment::Key(body), Segment::Key(field)] if &**body == "body" && &**field == "decision" => Some(word),
            _ => None,
        }
    }
}

impl Names for Supposed<'_> {
    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        match self.decision(path) {
            Some(word) => Found::Value(Val::Str(word)),
            None => self.view.find(path),
        }
    }
}
