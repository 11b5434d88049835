//! What stands before a call: the rights of everyone in whose name it is made, the organisation's policies, and the
//! approvals that those ask for. Looked at when the call is about to be made, every time.

use crate::drive;
use crate::engine::Inner;
use crate::pace::Pace;
use crate::people;
use crate::policies::{Effect, Policy, Subject, policies, subjects};
use crate::rights::{Actor, Grants, Need, Right};
use crate::runs::Live;
use crate::step::Principal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::approval::call_digest;
use stepwell_core::event::Failure;
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, Status, StepState};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::Payload;
use stepwell_store::{OrgId, RunId};

/// A call that is about to be made.
pub struct Asked<'a> {
    pub run: RunId,
    pub path: &'a str,
    pub kind: &'static str,
    /// As the step has it, which is what people approve.
    pub payload: &'a Payload,
    /// As it is sent: with a saved query in the place of its name.
    pub sent: &'a Payload,
    /// The same with its secrets.
    pub input: &'a Value,
    pub caller: &'a Principal,
    /// What was approved of this very step.
    pub approved: Option<&'a Approved>,
    /// What an earlier attempt left, which stays if this one is put off.
    pub note: Option<&'a Arc<Value>>,
    /// It was put off before, to the time it was given.
    pub deferred: bool,
}

/// Why a call is not made.
pub enum Stop {
    Failure(Failure),
    /// With a note it is what was called that asks.
    Held {
        ask: Arc<Value>,
        timeout: Option<Millis>,
        note: Option<Arc<Value>>,
    },
    Later {
        due: Time,
        note: Option<Arc<Value>>,
    },
}

/// What was shown, and who approved it.
#[derive(Clone, Debug)]
pub struct Approved {
    pub ask: Value,
    pub by: Vec<String>,
    pub generation: u32,
    /// Whoever took the run up again last.
    pub retried_by: Option<Arc<str>>,
}

impl Approved {
    /// Of a call that was held.
    pub fn of_held(live: &Live, state: &StepState) -> Option<Approved> {
        let more = state.more.as_ref()?;
        let ask = live.run.values.get(more.approved?)?.clone();
        let last = more.approvals.iter().filter(|_| !more.question).map(|(by, _)| by);
        let names = more.earlier.iter().chain(last);
        // One who was asked twice is one.
        let by: BTreeSet<String> = names.map(|by| by.to_string()).collect();
        let by = by.into_iter().collect();
        Some(Approved::given(live, ask, by))
    }

    /// Of a gate that was answered by people: who let time decide approved nothing.
    fn of_gate(live: &Live, state: &StepState) -> Option<Approved> {
        let ask = live.run.values.get(state.input?)?.clone();
        let said = live.run.values.get(state.output?.body)?;
        let others = said.get("others").and_then(Value::as_array).into_iter().flatten();
        let by = others.chain([said]).filter_map(|said| said.get("by")?.as_str()).map(str::to_string).collect();
        Some(Approved::given(live, ask, by))
    }

    fn given(live: &Live, ask: Value, by: Vec<String>) -> Approved {
        Approved { ask, by, generation: live.run.generation, retried_by: live.run.retried_by.clone() }
    }

    /// Whether it is for exactly this call, and was given since the run was last taken up.
    fn covers(&self, path: &str, digest: &str) -> bool {
        let calls = self.ask.get("calls").and_then(Value::as_array).into_iter().flatten();
        let this = |call: &Value| call["step"] == path && call["digest"] == digest;
        self.ask["generation"] == self.generation && { calls }.any(this)
    }
}

/// Gives back the host that was looked at, if the call names one.
pub async fn permit(inner: &Inner, asked: &Asked<'_>) -> Result<Option<Arc<str>>, Stop> {
    let unknown = |error: crate::Error| Stop::Failure(Failure::retryable("unavailable", error.to_string()));
    let policies = policies(inner, asked.caller.org).await.map_err(unknown)?;
    if policies.is_empty() {
        return Ok(None);
    }
    // A host that a secret names is not told.
    let shown = subjects(asked.kind, &asked.sent.value);
    let subjects = subjects(asked.kind, asked.input);
    let fitting = policies.on(&subjects);
    for policy in fitting.iter().take_while(|policy| policy.effect > Effect::Allow) {
        match policy.effect {
            Effect::Deny => return Err(Stop::Failure(denied(policy, &shown))),
            _ if is_approved(inner, asked, policy).await.map_err(unknown)? => {}
            _ => {
                let ask = Arc::new(policy.ask(&words(&shown)));
                return Err(Stop::Held { ask, timeout: policy.timeout, note: None });
            }
        }
    }
    if !asked.deferred
        && let Some(due) = later(inner, asked.caller.org, &fitting, &subjects)
    {
        return Err(Stop::Later { due, note: asked.note.cloned() });
    }
    Ok(subjects.iter().find(|subject| subject.sort == "host").map(|host| (&*host.name).into()))
}

fn words(subjects: &[Subject]) -> String {
    let words: Vec<String> = subjects.iter().map(|subject| format!("{} {}", subject.sort, subject.name)).collect();
    words.join(", ")
}

pub fn denied(policy: &Policy, subjects: &[Subject]) -> Failure {
    let reason = policy.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = format!("the policy {} does not allow {}{reason}", policy.name, words(subjects));
    Failure::new("denied_by_policy", message)
}

/// The time that a call is given if there are too many of its sort now.
fn later(inner: &Inner, org: OrgId, fitting: &[&Policy], subjects: &[Subject]) -> Option<Time> {
    let now = inner.clock.now();
    let places =
        paces(inner, org, fitting, subjects).into_iter().map(|(sort, pace)| inner.paces.place(sort, pace, now));
    places.max().filter(|due| *due > now)
}

/// How fast calls of this sort may follow each other on this node: by policy and what it speaks of.
pub fn paces(inner: &Inner, org: OrgId, fitting: &[&Policy], subjects: &[Subject]) -> Vec<(String, Pace)> {
    let limited = fitting.iter().filter_map(|policy| Some((policy, policy.rate?, policy.subject(subjects)?)));
    let paced = limited.map(|(policy, rate, subject)| {
        let nodes = f64::from(inner.node.share(inner.clock.now()).of.max(1));
        let sort = format!("{}/{}/{}", org.0, policy.name, subject.name);
        (sort, Pace { calls: f64::from(rate.calls) / nodes, millis: rate.per.0 as f64 })
    });
    paced.collect()
}

/// Whether somebody whom the policy asks has approved exactly this call in this run: when it was held, or at a gate that
/// showed it.
async fn is_approved(inner: &Inner, asked: &Asked<'_>, policy: &Policy) -> Result<bool, crate::Error> {
    let digest = call_digest(asked.kind, &asked.payload.value);
    if let Some(approved) = asked.approved
        && approved.covers(asked.path, &digest)
        && suffices(inner, asked, policy, approved).await?
    {
        return Ok(true);
    }
    let Some(live) = drive::load(inner, asked.run).await? else { return Ok(false) };
    let graph = &live.compiled.definition.graph;
    let gates = live.run.steps(graph).filter(|(at, state)| {
        matches!(graph.step(at.step).def.kind, Kind::Gate(_)) && state.phase == Phase::Done(Status::Success)
    });
    let approvals: Vec<Approved> = gates.filter_map(|(_, state)| Approved::of_gate(&live, state)).collect();
    for approved in approvals.iter().filter(|approved| approved.covers(asked.path, &digest)) {
        if suffices(inner, asked, policy, approved).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether enough of those whom the policy asks are among those who approved.
async fn suffices(
    inner: &Inner,
    asked: &Asked<'_>,
    policy: &Policy,
    approved: &Approved,
) -> Result<bool, crate::Error> {
    let mut count = 0;
    for by in &approved.by {
        let own = **by == *asked.caller.name || approved.retried_by.as_deref() == Some(by);
        if (policy.allow_self || !own) && counts(inner, asked.caller, policy, by).await? {
            count += 1;
        }
    }
    Ok(count >= policy.approvals)
}

/// A gate may have asked anyone; a policy that names nobody asks those who may approve, and no others.
async fn counts(inner: &Inner, caller: &Principal, policy: &Policy, by: &str) -> Result<bool, crate::Error> {
    // The person at the machine is no user, and may do everything.
    if *by == *caller.name && caller.actors.iter().all(Actor::is_local) {
        return Ok(true);
    }
    if !policy.approvers.is_empty() {
        return people::is_among(inner, caller.org, by, &policy.approvers).await;
    }
    let actor = Actor { user: by.to_string(), key: None };
    let grants = people::grants(inner, caller.org, &actor).await?;
    Ok(grants.is_some_and(|grants| grants.allow(Need::Right(Right::Approve))))
}

/// Whether everyone in whose name it would be made has the right to this call, now.
pub async fn entitled(inner: &Inner, caller: &Principal, kind: &str, payload: &Payload) -> Result<(), Stop> {
    rights(inner, caller, &needs(kind, payload)).await.map_err(Stop::Failure)
}

/// What a call needs beyond the right to run.
fn needs<'p>(kind: &str, payload: &'p Payload) -> Vec<Need<'p>> {
    let name = |field: &str| payload.value.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut needs: Vec<Need<'p>> = payload.secrets.iter().map(|slot| Need::Secret(&slot.name)).collect();
    match kind {
        "tool" => needs.push(Need::Tool(name("tool"))),
        "query" => {
            needs.push(Need::Connection(name("connection")));
            if payload.value.get("write").and_then(Value::as_bool).unwrap_or_default() {
                needs.push(Need::Write(name("connection")));
            }
        }
        _ => {}
    }
    needs
}

/// Whether everyone in whose name the call would be made has the right to it, now.
pub async fn rights(inner: &Inner, caller: &Principal, needs: &[Need<'_>]) -> Result<(), Failure> {
    if caller.actors.is_empty() {
        return Err(Failure::new("forbidden", "nobody answers for this run"));
    }
    for actor in caller.actors.iter().filter(|actor| !actor.is_local()) {
        let grants = grants_of(inner, caller.org, actor).await?;
        may(&grants, actor, Need::Right(Right::Run))?;
        needs.iter().try_for_each(|need| may(&grants, actor, *need))?;
    }
    if !needs.is_empty() && !caller.author.is_local() {
        let grants = grants_of(inner, caller.org, &caller.author).await?;
        needs.iter().try_for_each(|need| may(&grants, &caller.author, *need))?;
    }
    Ok(())
}

async fn grants_of(inner: &Inner, org: OrgId, actor: &Actor) -> Result<Arc<Grants>, Failure> {
    let found = people::grants(inner, org, actor).await;
    let gone = || Failure::new("forbidden", format!("the user {:?} is gone or disabled", actor.user));
    found.map_err(|error| Failure::retryable("unavailable", error.to_string()))?.ok_or_else(gone)
}

fn may(grants: &Grants, actor: &Actor, need: Need<'_>) -> Result<(), Failure> {
    if grants.allow(need) {
        return Ok(());
    }
    Err(Failure::new("forbidden", format!("{} may not do this: the right {need} is missing", actor.user)))
}
