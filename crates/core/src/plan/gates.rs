//! Gates: the approval request and the calls it covers, answers, timeouts; and calls that are held until someone
//! approves them.
//!
//! The request is a payload that carries its own digest, built once when the gate opens. An answer refers to that
//! digest.

use super::covered::CallList;
use super::start::StartError;
use super::{Abandon, Effect, Planner};
use crate::approval::{CHANGED, allows_changes, call_digest, check_change, digest};
use crate::event::{Answer, Failure, Ignored, Reply, Timer, TimerKind};
use crate::fact::{Fact, Reason, Wait};
use crate::graph::{Gate, Kind, OnTimeout};
use crate::run::{At, Exit, Status};
use crate::time::{Millis, Time};
use crate::value::{Payload, check_size};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The parts of a request that are made anew when its call changes.
const MADE_NEW: [&str; 6] = ["calls", "more_calls", "on_timeout", "generation", "digest", "asked_at"];

/// What an approval request is made of.
struct Request {
    at: At,
    attempt: u32,
    ask: Map<String, Value>,
    until: Option<Time>,
    /// What happens at `until`.
    on_timeout: OnTimeout,
    calls: CallList,
    /// Calls that may follow a denial.
    on_denial: Option<CallList>,
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
        let (calls, on_denial) = self.covered(at);
        let (on_timeout, on_denial) = (gate.on_timeout, Some(on_denial));
        let shown = self.approval_request(Request { at, attempt, ask, until, on_timeout, calls, on_denial });
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
        let calls = self.held_call(at, input);
        let on_timeout = OnTimeout::Deny;
        let shown = self.approval_request(Request { at, attempt, ask, until, on_timeout, calls, on_denial: None });
        let ask = self.add(shown);
        let note = note.map(|note| self.add(Arc::unwrap_or_clone(note)));
        self.fact(Fact::Held { step: at, attempt, ask, until, note });
        until.iter().for_each(|until| self.set_timer(Some(at), TimerKind::Timeout, *until));
    }

    /// The full approval request, with a digest over the request and its subject.
    fn approval_request(&self, request: Request) -> Value {
        let Request { at, attempt, mut ask, until, on_timeout, calls, on_denial } = request;
        let lists = [Some(("calls", "more_calls", calls)), on_denial.map(|list| ("on_denial", "more_on_denial", list))];
        for (name, more, list) in lists.into_iter().flatten() {
            if !list.calls.is_empty() {
                ask.insert(name.into(), Value::Array(list.calls));
            }
            if list.more > 0 {
                ask.insert(more.into(), list.more.into());
            }
        }
        if until.is_some() {
            ask.insert("on_timeout".into(), on_timeout.name().into());
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
        ask.insert("asked_at".into(), self.env.now.0.into());
        Value::Object(ask)
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
        if let Some(input) = &answer.input {
            self.change_call(at, &answer, input)?;
        }
        let state = self.state(at);
        let earlier = state.more.as_ref().map(|more| more.approvals.clone()).unwrap_or_default();
        if answer.approve && earlier.iter().any(|(by, _)| *by == answer.by) {
            return Err(Ignored::Repeated);
        }
        let said = json!({"by": answer.by, "comment": answer.comment, "data": answer.data});
        if !answer.approve {
            self.clear_timers(at);
            if self.is_question(at) {
                self.abandon(at, Abandon::Denied);
            }
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

    /// Replaces a held call by the one that its approver wrote: another input, and a request for that, which says what
    /// it was. Everyone who has to approve approves the new one.
    fn change_call(&mut self, at: At, answer: &Answer, input: &Arc<Value>) -> Result<(), Ignored> {
        let refused = || Ignored::ChangeNotAllowed;
        let graph = self.graph;
        let Kind::Call { call, .. } = &graph.step(at.step).def.kind else { return Err(refused()) };
        let state = self.state(at);
        let ask = self.run.ask(state).and_then(Value::as_object).cloned().unwrap_or_default();
        let before = state.input.and_then(|input| self.run.values.payload(input)).cloned().ok_or_else(refused)?;
        let may = answer.approve && !self.is_question(at) && allows_changes(&ask);
        if !may || check_change(call.name(), &before, input).is_err() {
            return Err(refused());
        }
        if before.value == *input {
            return Ok(());
        }
        let (attempt, until) = (state.attempt, state.due);
        let mut ask = ask;
        MADE_NEW.iter().for_each(|name| drop(ask.shift_remove(*name)));
        let changed = ask.entry(CHANGED).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(changed) = changed {
            let digest = call_digest(call.name(), &before.value);
            changed.push(json!({"by": answer.by, "input": &*before.value, "digest": digest}));
        }
        let calls = self.held_call(at, Value::clone(input));
        let on_timeout = OnTimeout::Deny;
        let shown = self.approval_request(Request { at, attempt, ask, until, on_timeout, calls, on_denial: None });
        check_size(&shown).map_err(|_| refused())?;
        let ask = self.add(shown);
        let input = self.add(Payload { value: input.clone(), secrets: before.secrets });
        self.fact(Fact::Changed { step: at, by: answer.by.clone(), ask, input });
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

    /// Whether the step waits for the answer to a question that the callee asked.
    fn is_question(&self, at: At) -> bool {
        self.state(at).more.as_ref().is_some_and(|more| more.question)
    }

    pub(super) fn gate_timed_out(&mut self, at: At) {
        self.clear_escalation(at);
        if self.is_question(at) {
            self.abandon(at, Abandon::Over);
            let after = self.graph.step(at.step).def.bound.unwrap_or_default();
            let failure = Failure { may_have_happened: true, ..Failure::timeout(after) };
            return self.fail(at, Status::Timeout, failure, None);
        }
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
