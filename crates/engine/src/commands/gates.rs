//! Approvals: gates and held calls, and their answers.
//!
//! An answer names the digest of the request that was shown. Only the first request of a gate can be answered without a
//! digest, because the answer cannot be meant for another request.

use super::Gates;
use super::change::{change, run_audit};
use super::inbound::user_caller;
use super::input::{check_text, invalid};
use super::runs::{find, load, starter};
use super::steps::step_named;
use crate::access::{Right, Starter};
use crate::error::Error;
use crate::execute::denial;
use crate::notify;
use crate::run::links;
use crate::run::{Live, Message};
use crate::schema::Schema;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::approval::{allows_changes, call_digest, check_change};
use stepwell_core::event::{Answer, Ignored};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, StepState};
use stepwell_core::time::Time;
use stepwell_core::value::check_size;
use stepwell_store::{AuditFilter, Change, OpenGate, RunId};

/// Maximum number of approvals in a page.
const MAX_PAGE: u32 = 500;
/// Maximum number of reported faults in the data of a form.
const MAX_FAULTS: usize = 20;
/// Maximum length of a recorded reason, in characters.
const MAX_REASON: usize = 500;

/// Bytes of a changed call's input that the audit trail has. Of a longer one it has the digest.
const MAX_AUDITED: usize = 16_000;

/// An answer to a gate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    pub approve: bool,
    pub comment: Option<String>,
    /// The data for the gate's form.
    pub data: Option<Value>,
    /// The digest of the request that was shown: see [`Approval::digest`].
    pub digest: Option<String>,
    /// The whole input of the held call, changed. Only for an approval, where the policy that holds the call allows it.
    pub input: Option<Value>,
}

/// An open request for an approval, an answer or a verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Approval {
    pub run: String,
    pub step: String,
    pub workflow: String,
    pub version: u32,
    pub attempt: u32,
    /// The resolved request: message, form, and the calls that an approval covers.
    pub asks: Value,
    /// The digest of the request. `None` for a verdict.
    pub digest: Option<String>,
    pub since: Time,
    pub until: Option<Time>,
    /// What happens at `until`: `approve` or `deny`.
    pub on_timeout: Option<&'static str>,
    /// Why the request may not reach anyone who can answer it.
    pub warnings: Vec<String>,
    /// When the request escalates to more users, unless it is answered before.
    pub escalates: Option<Time>,
    /// Whether it has escalated.
    pub escalated: bool,
    pub created_by: String,
    /// Who asked for the run: the user, or an agent's key and its client.
    pub asked_by: Starter,
    /// Number of approvals that are required.
    pub approvals: u32,
    /// The users who have approved so far, if several have to.
    pub approved_by: Vec<String>,
    /// Whether it asks for a verdict on a call that may have happened, not for an answer to a gate.
    pub verdict: bool,
    /// Whether the caller may answer it.
    pub mine: bool,
}

/// The audit action of a rejected answer.
const REFUSED: &str = "step.refuse";

/// Why an answer to a gate was rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The gate's path.
    pub step: String,
    pub reason: String,
}

impl Gates<'_> {
    /// Answers a gate, which is given by its path, or by its name if that is unambiguous.
    pub async fn answer(&self, run: &str, step: &str, decision: Decision) -> Result<(), Error> {
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        self.may_answer(&live, state).await?;
        check(&live, step, &path, state, &decision).await?;
        let changed = match &decision.input {
            Some(input) => Some(self.check_change(&live, &path, state, input).await?),
            None => None,
        };
        // A user may have pasted a secret, and other users read the answer.
        let mask = self.rooms.secrets.mask(live.org, &live.compiled.secrets).await;
        let mut data = decision.data;
        data.iter_mut().for_each(|data| mask.value(data));
        let answer = Answer {
            approve: decision.approve,
            by: self.caller.name.clone(),
            comment: decision.comment.map(|comment| mask.shown(&comment).into()),
            data,
            digest: decision.digest.map(Into::into),
            input: decision.input.map(Arc::new),
        };
        let action = if answer.approve { "step.approve" } else { "step.deny" };
        let digest = live.run.ask(state).and_then(|ask| ask["digest"].as_str()).map(str::to_string);
        let mut detail = json!({"step": path, "comment": answer.comment, "digest": digest});
        if let Some(changed) = changed {
            detail["changed"] = changed;
        }
        let audit = run_audit(self.rooms, self.caller, action, run, detail);
        self.rooms.runner.command(id, Message::Answer { path, attempt: state.attempt, answer }, audit).await
    }

    /// Checks that an approver may change a held call like this. Returns what the audit trail says about it.
    async fn check_change(&self, live: &Live, path: &str, state: &StepState, input: &Value) -> Result<Value, Error> {
        self.caller.check_person("change a call that is held")?;
        let ask = live.run.ask(state).and_then(Value::as_object);
        if !ask.is_some_and(allows_changes) {
            let message = "the request does not allow changes: the policy that holds the call has no allow_changes";
            return Err(Error::Refused(message.into()));
        }
        let graph = &live.compiled.definition.graph;
        let kind = live.run.find(graph, path).map_or("", |at| graph.step(at.step).def.kind.name());
        let before = state.input.and_then(|input| live.run.values.payload(input)).cloned();
        let before = before.unwrap_or_else(|| Value::Null.into());
        check_change(kind, &before, input).map_err(|why| invalid("input", &why))?;
        let mut masked = input.clone();
        self.rooms.secrets.mask(live.org, &live.compiled.secrets).await.value(&mut masked);
        if masked != *input {
            return Err(invalid(
                "input",
                "it contains the value of a secret, which everyone who reads the run would see",
            ));
        }
        if let Some(executed) = self.rooms.executor.kinds.get(kind) {
            executed.check(input).await.map_err(|why| invalid("input", &why))?;
            if let Some(missing) = executed.missing(live.org, input).await.into_iter().next() {
                return Err(invalid("input", &missing.message));
            }
        }
        if let Some(denied) = denial(&self.rooms.executor, live, kind, input).await? {
            return Err(Error::Refused(denied.message.to_string()));
        }
        let version = |input: &Value| {
            let shown = input.to_string().len() <= MAX_AUDITED;
            json!({"digest": call_digest(kind, input), "input": shown.then_some(input)})
        };
        Ok(json!({"from": version(&before.value), "to": version(input)}))
    }

    /// The open approvals of the organisation, oldest first, with the start of the next page. Needs the right to read.
    pub async fn list(
        &self,
        after: Option<(RunId, String)>,
        limit: u32,
    ) -> Result<(Vec<Approval>, Option<(RunId, String)>), Error> {
        self.caller.check(Right::Read)?;
        let limit = limit.clamp(1, MAX_PAGE);
        let gates = self.rooms.cluster.store.gates(self.caller.org, after, limit).await?;
        let next = gates.last().filter(|_| gates.len() == limit as usize);
        let next = next.map(|gate| (gate.run, gate.path.clone()));
        let mut approvals = Vec::new();
        for gate in gates {
            approvals.extend(self.waiting(gate).await?);
        }
        Ok((approvals, next))
    }

    /// `None` if it has just been answered.
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
        Ok(Some(self.approval(&live, path, state).await))
    }

    /// The open approval of a step. Needs the right to read, unless the caller may answer it.
    pub async fn get(&self, run: &str, step: &str) -> Result<Approval, Error> {
        let id = find(self.rooms, self.caller, run).await?;
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        match state.phase {
            Phase::Gate | Phase::Unsure => {}
            Phase::Done(_) => return Err(Ignored::StepFinished.into()),
            _ => return Err(Ignored::NotWaiting.into()),
        }
        let approval = self.approval(&live, path, state).await;
        if !approval.mine {
            self.caller.check(Right::Read)?;
        }
        Ok(approval)
    }

    pub(super) async fn approval(&self, live: &Live, path: String, state: &StepState) -> Approval {
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
        let mut asked_by = starter(live);
        // Without its name a key still has its id.
        let _ = self.rooms.access.name_key(live.org, &mut asked_by).await;
        let escalated = state.more.as_ref().is_some_and(|more| more.escalated);
        let graph = &live.compiled.definition.graph;
        let at = live.run.find(graph, &path);
        let gate = at.map(|at| &graph.step(at.step).def.kind);
        let warnings = match verdict {
            true => Vec::new(),
            false => notify::unreached(&self.rooms.notifier, live.org, &asks).await.unwrap_or_default(),
        };
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
            on_timeout: at.and_then(|at| notify::on_timeout(live, at, state)),
            warnings,
            escalates: state.more.as_ref().and_then(|more| more.escalate),
            escalated,
            created_by: live.run.by.to_string(),
            asked_by,
            approvals,
            approved_by: approved.iter().map(|(by, _)| by.to_string()).collect(),
            verdict,
            mine,
        }
    }

    /// Checks that the caller is one of the approvers (users or roles) of the gate, or has the right if it names none.
    pub(super) async fn may_answer(&self, live: &Live, state: &StepState) -> Result<(), Error> {
        if state.phase != Phase::Gate {
            let ignored = if state.status().is_some() { Ignored::StepFinished } else { Ignored::NotWaiting };
            return Err(ignored.into());
        }
        if self.caller.grants.is_agent() && self.rooms.workflows.unreviewed(&live.origin()).await?.is_some() {
            let message = "an agent wrote this version, and no person has accepted it: only a person answers its gates";
            return Err(Error::Refused(message.into()));
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
        // Escalation adds approvers, and keeps those it had before.
        let may_approve = by_right || self.caller.is_local();
        if !may_approve && !self.rooms.access.is_among(self.caller.org, &self.caller.name, &named).await? {
            let who = &self.caller.name;
            return Err(Error::Refused(format!("{who} is not one of the approvers: {}", named.join(", "))));
        }
        let allow_self = ask.and_then(|ask| ask.get("allow_self")).and_then(Value::as_bool).unwrap_or(true);
        if !allow_self && live.run.is_started_or_retried_by(&self.caller.name) {
            return Err(Error::Refused("the user who started or retried the run may not answer this gate".into()));
        }
        Ok(())
    }

    /// Creates an approval link for a user who may answer: for the caller, or, as an administrator, for others.
    pub async fn link(&self, run: &str, step: &str, user: &str) -> Result<String, Error> {
        let id = find(self.rooms, self.caller, run).await?;
        if user != &*self.caller.name {
            self.caller.check(Right::Admin)?;
        }
        // A link has all the rights of its user.
        if self.caller.grants.is_agent() || self.caller.grants.is_narrowed() {
            return Err(Error::Refused("a key with fewer rights than its user cannot create links".into()));
        }
        let live = load(self.rooms, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        let user_caller = user_caller(self.rooms, live.org, user).await?;
        Gates::new(self.rooms, &user_caller).may_answer(&live, state).await?;
        let Some(link) = links::link(&live, &path, state, user) else {
            return Err(Ignored::NotWaiting.into());
        };
        let audit = run_audit(self.rooms, self.caller, "step.link", run, json!({"step": path, "user": user}));
        let update = Change { audit: audit.into_iter().collect(), ..Change::default() };
        change(self.rooms, update, "step", &path).await?;
        Ok(link)
    }

    /// Records that an answer was rejected, for a caller who could not be informed at once. Needs the right to approve.
    /// What was recorded last is not recorded again, and a long reason is cut.
    pub async fn note_refusal(&self, run: &str, refusal: Refusal) -> Result<(), Error> {
        self.caller.check(Right::Approve)?;
        let reason: String = refusal.reason.chars().take(MAX_REASON).collect();
        let refusal = Refusal { reason, ..refusal };
        if self.last_refusal(run).await?.as_ref() == Some(&refusal) {
            return Ok(());
        }
        let detail = json!({"step": refusal.step, "reason": refusal.reason});
        let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), REFUSED, run, detail)];
        change(self.rooms, Change { audit, ..Change::default() }, "audit trail", run).await
    }

    /// The caller's last rejected answer to a gate of the run.
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

async fn check(live: &Live, step: &str, path: &str, state: &StepState, decision: &Decision) -> Result<(), Error> {
    let graph = &live.compiled.definition.graph;
    let at = live.run.find(graph, path);
    let held = at.is_some_and(|at| !matches!(graph.step(at.step).def.kind, Kind::Gate(_)));
    let why = if held {
        Some("the approval is for one call and its arguments")
    } else if state.attempt > 1 || step != path && !is_first(live, step, path) {
        Some("the gate has asked before")
    } else {
        None
    };
    if let Some(why) = why.filter(|_| decision.digest.is_none()) {
        return Err(invalid("digest", &format!("{why}: give the digest of the request that was shown")));
    }
    check_text("comment", decision.comment.as_deref())?;
    if let Some(input) = &decision.input {
        if !decision.approve || !held {
            return Err(invalid("input", "only an approval of a held call can change it"));
        }
        check_size(input).map_err(|failure| invalid("input", &failure.message))?;
    }
    if let Some(data) = &decision.data {
        check_size(data).map_err(|failure| invalid("data", &failure.message))?;
    }
    let form = live.run.ask(state).and_then(|ask| ask.get("form"));
    match form.filter(|_| decision.approve) {
        Some(form) => check_form(form, decision.data.as_ref().unwrap_or(&Value::Null)).await,
        None => Ok(()),
    }
}

/// Whether no step of that name can have asked before. Otherwise a repeated answer that only gives the name would be
/// taken for the next pass of a loop.
fn is_first(live: &Live, name: &str, path: &str) -> bool {
    let steps = &live.compiled.definition.graph.steps;
    let namesakes = steps.iter().filter(|step| &*step.def.name == name).count();
    namesakes == 1 && path.split('[').skip(1).all(|part| part.starts_with("0]"))
}

/// Checks the data against the form's schema.
async fn check_form(form: &Value, data: &Value) -> Result<(), Error> {
    let faults = match Schema::bounded(form) {
        Ok(schema) => schema.faults(Arc::new(data.clone()), MAX_FAULTS).await,
        Err(error) => Err(error),
    };
    let faults = faults.map_err(|error| error.at("form", "data"))?.into_iter();
    let faults: Vec<(String, String)> = faults.map(|fault| (format!("data{}", fault.path), fault.message)).collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::Inputs(faults)) }
}
