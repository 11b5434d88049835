//! What people are asked and what they answer: gates, and calls that are held.
//!
//! An answer is for what was shown: it names the digest of that. Only a gate that asks for the first time is answered
//! without, since there is nothing else the answer could have been meant for.

use super::Gates;
use super::change::{change, trail};
use super::inbound::person;
use super::input::bad;
use super::runs::{find, load};
use super::steps::step_named;
use crate::access::Right;
use crate::error::Error;
use crate::run::links;
use crate::run::{Live, Message};
use serde_json::{Value, json};
use stepwell_core::event::{Answer, Ignored};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, StepState};
use stepwell_core::time::Time;
use stepwell_core::value::check_size;
use stepwell_store::{AuditFilter, Change, OpenGate, RunId};

const PAGE: u32 = 500;
/// Faults of one form that are told.
const MOST_FAULTS: usize = 20;
const MAX_COMMENT: usize = 10_000;

/// An answer to a gate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    pub approve: bool,
    pub comment: Option<String>,
    /// What was filled into the gate's form.
    pub data: Option<Value>,
    /// Of what was seen: see [`Approval::digest`].
    pub digest: Option<String>,
}

/// What a person is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Approval {
    pub run: String,
    pub step: String,
    pub workflow: String,
    pub version: u32,
    pub attempt: u32,
    /// What they are asked, as it was resolved: message, form, and the calls that an approval is for.
    pub asks: Value,
    /// Of all that is shown; none if a verdict is asked for.
    pub digest: Option<String>,
    pub since: Time,
    pub until: Option<Time>,
    /// When others are asked as well, if nobody answers before.
    pub escalates: Option<Time>,
    /// They are.
    pub escalated: bool,
    pub created_by: String,
    /// How many have to approve.
    pub approvals: u32,
    /// Who approved so far, where several have to.
    pub approved_by: Vec<String>,
    /// A verdict on a call that may have happened, not an answer to a gate.
    pub verdict: bool,
    /// Whether the caller may answer it.
    pub mine: bool,
}

/// The audit trail's word for an answer that was not taken.
const REFUSED: &str = "step.refuse";

/// Why an answer to a gate was not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The gate's path.
    pub step: String,
    pub reason: String,
}

impl Gates<'_> {
    /// Answers a gate. The step is named by its path, or by its name if that says which.
    pub async fn answer(&self, run: &str, step: &str, decision: Decision) -> Result<(), Error> {
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        self.may_answer(&live, state).await?;
        check(&live, (step, &path), state, &decision)?;
        // Others read what somebody may have copied here.
        let mask = self.rooms.secrets.mask(live.org, &live.compiled.secrets).await;
        let mut data = decision.data;
        data.iter_mut().for_each(|data| mask.value(data));
        let answer = Answer {
            approve: decision.approve,
            by: self.caller.name.clone(),
            comment: decision.comment.map(|comment| mask.shown(&comment).into()),
            data,
            digest: decision.digest.map(Into::into),
        };
        let action = if answer.approve { "step.approve" } else { "step.deny" };
        let digest = live.run.ask(state).and_then(|ask| ask["digest"].as_str()).map(str::to_string);
        let audit = trail(
            self.rooms,
            self.caller,
            action,
            run,
            json!({"step": path, "comment": answer.comment, "digest": digest}),
        );
        self.rooms.runner.command(id, Message::Answer { path, attempt: state.attempt, answer }, audit).await
    }

    /// What people of the organisation are asked, oldest first, after the last of the page before.
    pub async fn list(
        &self,
        after: Option<(RunId, String)>,
        limit: u32,
    ) -> Result<(Vec<Approval>, Option<(RunId, String)>), Error> {
        self.caller.check(Right::Read)?;
        let limit = limit.clamp(1, PAGE);
        let gates = self.rooms.cluster.store.gates(self.caller.org, after, limit).await?;
        let next = gates.last().filter(|_| gates.len() == limit as usize);
        let next = next.map(|gate| (gate.run, gate.path.clone()));
        let mut approvals = Vec::new();
        for gate in gates {
            approvals.extend(self.waiting(gate).await?);
        }
        Ok((approvals, next))
    }

    /// `None` if it was answered just now.
    async fn waiting(&self, gate: OpenGate) -> Result<Option<Approval>, Error> {
        let live = match load(self.rooms, gate.run, &gate.public).await {
            Ok(live) => live,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Ok((path, state)) = step_named(&live, &gate.path) else { return Ok(None) };
        if !matches!(state.phase, Phase::Gate | Phase::Unsure) {
            return Ok(None);
        }
        Ok(Some(self.shown(&live, (path, state)).await))
    }

    /// What one step asks. Those whom it asks may look, and those who may read runs.
    pub async fn get(&self, run: &str, step: &str) -> Result<Approval, Error> {
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        match state.phase {
            Phase::Gate | Phase::Unsure => {}
            Phase::Done(_) => return Err(Ignored::StepFinished.into()),
            _ => return Err(Ignored::NotWaiting.into()),
        }
        let shown = self.shown(&live, (path, state)).await;
        if !shown.mine {
            self.caller.check(Right::Read)?;
        }
        Ok(shown)
    }

    pub(super) async fn shown(&self, live: &Live, (path, state): (String, &StepState)) -> Approval {
        let verdict = state.phase == Phase::Unsure;
        let asks = match verdict {
            true => state.input.and_then(|input| live.run.values.get(input)),
            false => live.run.ask(state),
        };
        let asks = asks.cloned().unwrap_or_default();
        let mine = match verdict {
            true => self.caller.may(Right::Approve) && !self.caller.grants.is_agent(),
            false => self.may_answer(live, state).await.is_ok(),
        };
        let escalated = state.more.as_ref().is_some_and(|more| more.escalated);
        let graph = &live.compiled.definition.graph;
        let gate = live.run.find(graph, &path).map(|at| &graph.step(at.step).def.kind);
        let approvals = match gate {
            Some(Kind::Gate(gate)) => gate.approvals,
            _ => asks["approvals"].as_u64().and_then(|needed| u32::try_from(needed).ok()).unwrap_or(1),
        };
        let approved = state.more.as_ref().map(|more| more.approvals.as_slice()).unwrap_or_default();
        Approval {
            run: live.run.id.to_string(),
            step: path,
            workflow: live.compiled.row.name.clone(),
            version: live.compiled.row.version,
            attempt: state.attempt,
            digest: asks["digest"].as_str().filter(|_| !verdict).map(str::to_string),
            asks,
            since: state.since,
            until: state.due,
            escalates: state.more.as_ref().and_then(|more| more.escalate),
            escalated,
            created_by: live.run.by.to_string(),
            approvals,
            approved_by: approved.iter().map(|(by, _)| by.to_string()).collect(),
            verdict,
            mine,
        }
    }

    /// The gate names who may answer (users, or roles), or else the right decides.
    pub(super) async fn may_answer(&self, live: &Live, state: &StepState) -> Result<(), Error> {
        if state.phase != Phase::Gate {
            let ignored = if state.status().is_some() { Ignored::StepFinished } else { Ignored::NotWaiting };
            return Err(ignored.into());
        }
        let ask = live.run.ask(state);
        let names = |field: &str| -> Vec<String> {
            match ask.and_then(|ask| ask.get(field)) {
                Some(Value::String(name)) => vec![name.clone()],
                Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_string).collect(),
                _ => Vec::new(),
            }
        };
        let mut named = names("approvers");
        let by_right = named.is_empty() && self.caller.may(Right::Approve);
        if state.more.as_ref().is_some_and(|more| more.escalated) {
            named.extend(names("escalate_to"));
        }
        if self.caller.grants.is_narrowed() || self.caller.grants.is_agent() || named.is_empty() {
            self.caller.check(Right::Approve)?;
        }
        // Whoever was asked before others were asked too still is.
        let asked = by_right || self.caller.is_local();
        if !asked && !self.rooms.access.is_among(self.caller.org, &self.caller.name, &named).await? {
            let who = &self.caller.name;
            return Err(Error::Refused(format!("{who} is not among those who may answer: {}", named.join(", "))));
        }
        let allow_self = ask.and_then(|ask| ask.get("allow_self")).and_then(Value::as_bool).unwrap_or(true);
        if !allow_self && live.run.is_started_or_retried_by(&self.caller.name) {
            return Err(Error::Refused("whoever started or retried the run may not answer this gate".into()));
        }
        Ok(())
    }

    /// Makes a link for somebody: for oneself, or as an administrator for anyone who may answer.
    pub async fn link(&self, run: &str, step: &str, user: &str) -> Result<String, Error> {
        let id = find(self.rooms, self.caller, run).await?;
        if user != &*self.caller.name {
            self.caller.check(Right::Admin)?;
        }
        // Who follows the link has all the rights of its user.
        if self.caller.grants.is_agent() || self.caller.grants.is_narrowed() {
            return Err(Error::Refused("a key that may not do all its user may makes no links".into()));
        }
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        let person = person(self.rooms, live.org, user).await?;
        Gates::new(self.rooms, &person).may_answer(&live, state).await?;
        let Some(link) = links::link(&live, &path, state, user) else {
            return Err(stepwell_core::event::Ignored::NotWaiting.into());
        };
        let audit = trail(self.rooms, self.caller, "step.link", run, json!({"step": path, "user": user}));
        let done = Change { audit: audit.into_iter().collect(), ..Change::default() };
        change(self.rooms, done, "step", &path).await?;
        Ok(link)
    }

    /// Writes down that an answer was not taken, for whoever gave it and could not be told at once.
    pub async fn note_refusal(&self, run: &str, refusal: Refusal) -> Result<(), Error> {
        find(self.rooms, self.caller, run).await?;
        let detail = json!({"step": refusal.step, "reason": refusal.reason});
        let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), REFUSED, run, detail)];
        change(self.rooms, Change { audit, ..Change::default() }, "audit trail", run).await
    }

    /// The last of the caller's answers to a run's gates that was not taken.
    pub async fn last_refusal(&self, run: &str) -> Result<Option<Refusal>, Error> {
        find(self.rooms, self.caller, run).await?;
        let filter = AuditFilter {
            org: self.caller.org,
            by: Some(self.caller.name.to_string()),
            action: Some(REFUSED.into()),
            target: Some(run.to_string()),
            before: None,
            limit: 1,
        };
        let row = self.rooms.cluster.store.audit(filter).await?.into_iter().next();
        Ok(row.and_then(|row| {
            let detail: Value = serde_json::from_str(&row.row.detail).ok()?;
            let text = |name: &str| Some(detail[name].as_str()?.to_string());
            Some(Refusal { step: text("step")?, reason: text("reason")? })
        }))
    }
}

fn check(live: &Live, (step, path): (&str, &str), state: &StepState, decision: &Decision) -> Result<(), Error> {
    let graph = &live.compiled.definition.graph;
    let at = live.run.find(graph, path);
    let held = at.is_some_and(|at| !matches!(graph.step(at.step).def.kind, Kind::Gate(_)));
    let why = if held {
        Some("this is about one call and its arguments")
    } else if state.attempt > 1 || step != path && !is_first(live, step, path) {
        Some("this was asked before")
    } else {
        None
    };
    if let Some(why) = why.filter(|_| decision.digest.is_none()) {
        return Err(bad("digest", &format!("{why}: say what you answer by the digest that was shown")));
    }
    if decision.comment.as_ref().is_some_and(|comment| comment.len() > MAX_COMMENT) {
        return Err(bad("comment", &format!("at most {MAX_COMMENT} bytes")));
    }
    if let Some(data) = &decision.data {
        check_size(data).map_err(|failure| bad("data", &failure.message))?;
    }
    let form = live.run.ask(state).and_then(|ask| ask.get("form"));
    match form.filter(|_| decision.approve) {
        Some(form) => fill(form, decision.data.as_ref().unwrap_or(&Value::Null)),
        None => Ok(()),
    }
}

/// Whether nothing of that name can have asked before: an answer that is given by name only, and repeated, would else be
/// taken for the next round of a loop.
fn is_first(live: &Live, name: &str, path: &str) -> bool {
    let steps = &live.compiled.definition.graph.steps;
    let namesakes = steps.iter().filter(|step| &*step.def.name == name).count();
    namesakes == 1 && path.split('[').skip(1).all(|part| part.starts_with("0]"))
}

/// Whether the data is what the form asks for.
fn fill(form: &Value, data: &Value) -> Result<(), Error> {
    let schema = jsonschema::validator_for(form)
        .map_err(|error| bad("form", &format!("this is not a JSON Schema that can be used: {error}")))?;
    let faults: Vec<(String, String)> = schema
        .iter_errors(data)
        .take(MOST_FAULTS)
        .map(|fault| (format!("data{}", fault.instance_path()), fault.to_string()))
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::Inputs(faults)) }
}
