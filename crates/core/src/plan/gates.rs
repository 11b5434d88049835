//! Gates: the approval request and the calls it covers, answers, timeouts; and calls that are held until someone
//! approves them.
//!
//! The request is a payload that carries its own digest, built once when the gate opens. An answer refers to that
//! digest.

use super::start::StartError;
use super::{Effect, Planner};
use crate::approval::{call_digest, digest};
use crate::event::{Answer, Failure, Ignored, Reply, Timer, TimerKind};
use crate::expr::{StepIx, Var};
use crate::fact::{Fact, Reason, Wait};
use crate::graph::{Call, Gate, Handle, Join, Kind, OnTimeout, ScopeIx, Target};
use crate::run::{At, Exit, Status};
use crate::template::Template;
use crate::time::{Millis, Time};
use crate::value::check_size;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The most calls that one gate lists.
const MAX_CALLS: usize = 200;
/// Bytes of arguments shown in full. Arguments beyond the limit are still covered by their digest.
const MAX_SHOWN: usize = 256 * 1024;

/// What an approval request is made of.
struct Request {
    at: At,
    attempt: u32,
    ask: Map<String, Value>,
    until: Option<Time>,
    calls: Vec<Value>,
}

/// The calls that a request covers, and how many bytes of arguments can still be shown in full.
struct CallList {
    calls: Vec<Value>,
    bytes_left: usize,
}

impl CallList {
    fn new() -> CallList {
        CallList { calls: Vec::new(), bytes_left: MAX_SHOWN }
    }
}

impl Planner<'_> {
    pub(super) fn open_gate(&mut self, at: At, gate: &Gate) -> Result<(), StartError> {
        let ask = match Arc::unwrap_or_clone(self.resolve(at, &gate.ask)?.value) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        // An empty list would otherwise let anyone with the permission approve.
        for field in ["approvers", "escalate_to"] {
            if ask.get(field).is_some_and(|names| !has_name(names)) {
                return Err(StartError::Value(format!("`{field}` is empty: expected a name or a list of names")));
            }
        }
        let until = gate.timeout.map(|timeout| self.env.now + timeout);
        let escalate = gate.escalate_after.map(|after| self.env.now + after);
        let attempt = self.state(at).attempt + 1;
        let calls = self.covered(at);
        let shown = self.approval_request(Request { at, attempt, ask, until, calls });
        check_size(&shown).map_err(StartError::Size)?;
        let shown = self.add(shown);
        self.enter(at, Some(shown), Wait::Gate { until, escalate });
        until.iter().for_each(|until| self.set_timer(Some(at), TimerKind::Timeout, *until));
        escalate.iter().for_each(|due| self.set_timer(Some(at), TimerKind::Escalate, *due));
        Ok(())
    }

    /// Holds a call until someone approves it, or until someone answers the question it asked midway.
    pub(super) fn hold(&mut self, at: At, ask: Arc<Value>, timeout: Option<Millis>, note: Option<Arc<Value>>) {
        let ask = match Arc::unwrap_or_clone(ask) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let attempt = self.state(at).attempt;
        let until = timeout.map(|timeout| self.env.now + timeout);
        let input = self.state(at).input.and_then(|input| self.run.values.get(input)).cloned().unwrap_or_default();
        let mut list = CallList::new();
        list.calls.push(self.call(at, &mut list.bytes_left, Some(input)));
        let shown = self.approval_request(Request { at, attempt, ask, until, calls: list.calls });
        let ask = self.add(shown);
        let note = note.map(|note| self.add(Arc::unwrap_or_clone(note)));
        self.fact(Fact::Held { step: at, attempt, ask, until, note });
        until.iter().for_each(|until| self.set_timer(Some(at), TimerKind::Timeout, *until));
    }

    /// The full approval request, with a digest over the request and its subject.
    fn approval_request(&self, request: Request) -> Value {
        let Request { at, attempt, mut ask, until, calls } = request;
        if calls.len() >= MAX_CALLS {
            // Calls that are not listed are not covered.
            ask.insert("more_calls".into(), true.into());
        }
        if !calls.is_empty() {
            ask.insert("calls".into(), Value::Array(calls));
        }
        let about = json!({
            "run": &*self.run.id,
            "generation": self.run.generation,
            "version": self.env.version,
            "step": self.run.path(self.graph, at),
            "attempt": attempt,
            "expires": until.map(|until| until.0),
            "ask": &ask,
        });
        ask.insert("generation".into(), self.run.generation.into());
        ask.insert("digest".into(), digest(&about).into());
        Value::Object(ask)
    }

    /// The calls that are not made until this gate is approved.
    fn covered(&self, at: At) -> Vec<Value> {
        let scope = self.graph.scope(self.graph.step(at.step).scope);
        let behind = self.behind(at.step, scope.steps.len());
        let mut list = CallList::new();
        for &step in scope.steps.iter().filter(|step| behind[self.graph.step(**step).local as usize]) {
            self.list(At { step, ..at }, &mut list);
        }
        list.calls
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

    fn list(&self, at: At, list: &mut CallList) {
        if list.calls.len() >= MAX_CALLS {
            return;
        }
        let kind = &self.graph.step(at.step).def.kind;
        match kind {
            Kind::Call { input, .. } | Kind::Child { input, .. } => {
                let known = self.is_settled(at, kind, input).then(|| self.resolve(at, input).ok()).flatten();
                let input = known.map(|payload| Arc::unwrap_or_clone(payload.value));
                list.calls.push(self.call(at, &mut list.bytes_left, input));
            }
            Kind::Each(_) | Kind::Loop { .. } => {
                let name = self.run.path(self.graph, at);
                self.list_body(kind.body(), &name, &mut list.calls);
            }
            _ => {}
        }
    }

    /// Lists calls inside a loop or for_each, whose arguments are unknown before it has begun.
    fn list_body(&self, body: Option<ScopeIx>, around: &str, calls: &mut Vec<Value>) {
        for &step in body.iter().flat_map(|body| &self.graph.scope(*body).steps) {
            let def = &self.graph.step(step).def;
            let path = format!("{around}[*].{}", def.name);
            match &def.kind {
                _ if calls.len() >= MAX_CALLS => return,
                Kind::Call { .. } | Kind::Child { .. } => calls.push(self.unknown_call(step, path)),
                kind => self.list_body(kind.body(), &path, calls),
            }
        }
    }

    fn call(&self, at: At, bytes_left: &mut usize, input: Option<Value>) -> Value {
        let kind = &self.graph.step(at.step).def.kind;
        let path = self.run.path(self.graph, at);
        let Some(input) = input else { return self.unknown_call(at.step, path) };
        let mut call = json!({"step": path, "kind": kind.name()});
        if let Kind::Child { workflow, .. } = kind {
            call["workflow"] = Value::from(&**workflow);
        }
        call["digest"] = call_digest(kind.name(), &input).into();
        match bytes_left.checked_sub(input.to_string().len()) {
            Some(left) => {
                *bytes_left = left;
                call["input"] = input;
            }
            None => call["too_large_to_show"] = true.into(),
        }
        call
    }

    /// A call whose arguments depend on what is still to happen: it is listed but not covered.
    fn unknown_call(&self, step: StepIx, path: String) -> Value {
        let def = &self.graph.step(step).def;
        let mut call = json!({"step": path, "kind": def.kind.name(), "not_yet_known": true});
        if let Some(tool) = def.written.get("tool").and_then(Value::as_str) {
            call["tool"] = tool.into();
        }
        call
    }

    /// Whether the arguments stay the same whenever they are resolved from now on.
    fn is_settled(&self, at: At, kind: &Kind, input: &Template) -> bool {
        if matches!(kind, Kind::Call { call: Call::Javascript, .. }) {
            return false;
        }
        let view = self.view(at.instance);
        let ended = |step: StepIx| {
            let named = view.named(step).filter(|named| self.encloses(named.instance, at.instance));
            named.is_some_and(|named| self.state(named).status().is_some())
        };
        let writes = |number: u32| {
            let all = self.graph.steps.iter().enumerate().filter(move |(_, step)| step.variable == Some(number));
            all.map(|(step, _)| StepIx(step as u32))
        };
        input.exprs().flat_map(|expr| expr.paths()).all(|path| match path.var {
            Var::Input | Var::Trigger | Var::RunId | Var::Secret | Var::WaitUrl(_) => true,
            Var::Step(step) => ended(step),
            Var::Ctx(number) => writes(number).all(ended),
            Var::Item(_) | Var::Index(_) => true,
            Var::Unbound | Var::CtxAll | Var::Result => false,
        })
    }

    /// Whether `outer` is `inner` or one of the instances around it.
    fn encloses(&self, outer: u32, inner: u32) -> bool {
        let parent = |&instance: &u32| self.run.instances[instance as usize].parent.map(|(owner, _)| owner.instance);
        std::iter::successors(Some(inner), parent).any(|instance| instance == outer)
    }

    pub(super) fn answer(&mut self, at: At, answer: Answer) -> Result<(), Ignored> {
        let graph = self.graph;
        let state = self.state(at);
        let ask = self.run.ask(state);
        if answer.digest.as_deref().is_some_and(|seen| ask.and_then(|ask| ask["digest"].as_str()) != Some(seen)) {
            return Err(Ignored::OtherDigest);
        }
        let needed = match &graph.step(at.step).def.kind {
            Kind::Gate(gate) => gate.approvals,
            _ => ask.and_then(|ask| ask["approvals"].as_u64()).map_or(1, |needed| needed.min(100) as u32),
        };
        let earlier = state.more.as_ref().map(|more| more.approvals.clone()).unwrap_or_default();
        if answer.approve && earlier.iter().any(|(by, _)| *by == answer.by) {
            return Err(Ignored::Repeated);
        }
        let said = json!({"by": answer.by, "comment": answer.comment, "data": answer.data});
        if !answer.approve {
            self.clear_timers(at);
            let message = match &answer.comment {
                Some(comment) => format!("denied by {}: {comment}", answer.by),
                None => format!("denied by {}", answer.by),
            };
            let reply = Reply::body(decided("denied", said, Vec::new()));
            self.fail(at, Status::Denied, Failure::new("denied", message), Some(reply));
            return Ok(());
        }
        let enough = earlier.len() as u32 + 1 >= needed;
        let held = !matches!(graph.step(at.step).def.kind, Kind::Gate(_));
        if !enough || held {
            let answer_id = self.add(said);
            self.fact(Fact::Approved { step: at, by: answer.by, answer: answer_id });
            if enough {
                self.clear_timers(at);
                self.again(at, Reason::Approved);
            }
        } else {
            let value = |(_, id): &(Arc<str>, _)| self.run.values.get(*id).cloned().unwrap_or_default();
            let others = earlier.iter().map(value).collect();
            self.clear_timers(at);
            self.approved(at, decided("approved", said, others));
        }
        Ok(())
    }

    fn approved(&mut self, at: At, body: Value) {
        let def = &self.graph.step(at.step).def;
        if def.branches.is_empty() {
            return self.succeed(at, Reply::body(body));
        }
        // A branch compares the word alone; the details stay in the body.
        match self.branch(at, &Value::String("approved".into()), false) {
            Ok(Some(handle)) => self.finish_success(at, Reply::body(body), Exit::Took(handle)),
            Ok(None) => {
                let failure = Failure::new("no_branch", "no branch matches the result approved");
                self.fail(at, Status::Failed, failure, Some(Reply::body(body)));
            }
            Err(failure) => self.fail(at, Status::TemplateError, failure, Some(Reply::body(body))),
        }
    }

    pub(super) fn gate_timed_out(&mut self, at: At) {
        self.clear_escalation(at);
        let on_timeout = match &self.graph.step(at.step).def.kind {
            Kind::Gate(gate) => gate.on_timeout,
            _ => OnTimeout::Deny,
        };
        match on_timeout {
            OnTimeout::Approve => self.approved(at, json!({"decision": "approved", "reason": "expired"})),
            OnTimeout::Deny => {
                let failure = Failure::new("expired", "no answer arrived in time");
                let reply = Reply::body(json!({"decision": "denied", "reason": "expired"}));
                self.fail(at, Status::Denied, failure, Some(reply));
            }
        }
    }

    /// Clears the escalation timer: the timeout has fired, so only the escalation can still be set.
    fn clear_escalation(&mut self, at: At) {
        let state = self.state(at);
        if state.more.as_ref().is_some_and(|more| more.escalate.is_some()) {
            let timer = Timer { kind: TimerKind::Escalate, at: Some(at), attempt: state.attempt };
            self.out.effects.push(Effect::ClearTimer { timer });
        }
    }
}

/// A gate's body: the deciding answer, and the approvals before it.
fn decided(decision: &str, said: Value, others: Vec<Value>) -> Value {
    let mut body = said;
    body["decision"] = decision.into();
    if !others.is_empty() {
        body["others"] = Value::Array(others);
    }
    body
}

fn has_name(names: &Value) -> bool {
    let is_name = |name: &Value| name.as_str().is_some_and(|name| !name.trim().is_empty());
    is_name(names) || names.as_array().is_some_and(|list| list.iter().any(is_name))
}
