//! What stands before a call: the rights of everyone in whose name it is made, the organisation's policies, and the
//! approvals that those ask for. Looked at when the call is about to be made, every time.

use super::Executor;
use super::policies::{Effect, Policy, Subject, subjects};
use super::rate_limit::RateLimit;
use super::step::Principal;
use crate::access::{Access, Actor, Grants, Need, Right};
use crate::error::Error;
use crate::run::Live;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::approval::call_digest;
use stepwell_core::event::Failure;
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, Status, StepState};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::Payload;
use stepwell_store::OrgId;

/// A call that is about to be made.
pub struct Asked<'a> {
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

/// The approvals that gates of a run have given.
#[async_trait]
pub trait GateApprovals: Send + Sync {
    async fn approvals(&self) -> Result<Vec<Approved>, Error>;
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

    /// Of all gates of a run that people have approved.
    pub fn of_gates(live: &Live) -> Vec<Approved> {
        let graph = &live.compiled.definition.graph;
        let gates = live.run.steps(graph).filter(|(at, state)| {
            matches!(graph.step(at.step).def.kind, Kind::Gate(_)) && state.phase == Phase::Done(Status::Success)
        });
        gates.filter_map(|(_, state)| Approved::of_gate(live, state)).collect()
    }

    /// Of a gate that people answered. One that expired approved nothing.
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

/// Checks policies and rate limits. Returns the host that was checked, if the call names one. `gates` is asked for the
/// approvals that gates of the run have given, and only where a policy requires one.
pub async fn permit(
    executor: &Executor,
    asked: &Asked<'_>,
    gates: &dyn GateApprovals,
) -> Result<Option<Arc<str>>, Stop> {
    let unknown = |error: Error| Stop::Failure(Failure::retryable("unavailable", error.to_string()));
    let policies = executor.policies(asked.caller.org).await.map_err(unknown)?;
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
            _ if is_approved(&executor.access, asked, policy, gates).await.map_err(unknown)? => {}
            _ => {
                let ask = Arc::new(policy.ask(&words(&shown)));
                return Err(Stop::Held { ask, timeout: policy.timeout, note: None });
            }
        }
    }
    if !asked.deferred
        && let Some(due) = later(executor, asked.caller.org, &fitting, &subjects)
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
fn later(executor: &Executor, org: OrgId, fitting: &[&Policy], subjects: &[Subject]) -> Option<Time> {
    let now = executor.cluster.clock.now();
    let limits = rate_limits(executor, org, fitting, subjects).into_iter();
    let places = limits.map(|(sort, limit)| executor.rates.place(sort, limit, now));
    places.max().filter(|due| *due > now)
}

/// How fast calls of this sort may follow each other on this node: by policy and what it speaks of.
pub fn rate_limits(
    executor: &Executor,
    org: OrgId,
    fitting: &[&Policy],
    subjects: &[Subject],
) -> Vec<(String, RateLimit)> {
    let limited = fitting.iter().filter_map(|policy| Some((policy, policy.rate?, policy.subject(subjects)?)));
    let limits = limited.map(|(policy, rate, subject)| {
        let nodes = f64::from(executor.cluster.node.share(executor.cluster.clock.now()).of.max(1));
        let sort = format!("{}/{}/{}", org.0, policy.name, subject.name);
        (sort, RateLimit { calls: f64::from(rate.calls) / nodes, millis: rate.per.0 as f64 })
    });
    limits.collect()
}

/// Whether somebody whom the policy asks has approved exactly this call in this run: when it was held, or at a gate that
/// showed it.
async fn is_approved(
    access: &Access,
    asked: &Asked<'_>,
    policy: &Policy,
    gates: &dyn GateApprovals,
) -> Result<bool, Error> {
    let digest = call_digest(asked.kind, &asked.payload.value);
    if let Some(approved) = asked.approved
        && approved.covers(asked.path, &digest)
        && suffices(access, asked, policy, approved).await?
    {
        return Ok(true);
    }
    for approved in gates.approvals().await?.iter().filter(|approved| approved.covers(asked.path, &digest)) {
        if suffices(access, asked, policy, approved).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether enough of those whom the policy asks are among those who approved.
async fn suffices(access: &Access, asked: &Asked<'_>, policy: &Policy, approved: &Approved) -> Result<bool, Error> {
    let mut count = 0;
    for by in &approved.by {
        let own = **by == *asked.caller.name || approved.retried_by.as_deref() == Some(by);
        if (policy.allow_self || !own) && counts(access, asked.caller, policy, by).await? {
            count += 1;
        }
    }
    Ok(count >= policy.approvals)
}

/// A gate may have asked anyone; a policy that names nobody asks those who may approve, and no others.
async fn counts(access: &Access, caller: &Principal, policy: &Policy, by: &str) -> Result<bool, Error> {
    // The person at the machine is no user, and may do everything.
    if *by == *caller.name && caller.actors.iter().all(Actor::is_local) {
        return Ok(true);
    }
    if !policy.approvers.is_empty() {
        return access.is_among(caller.org, by, &policy.approvers).await;
    }
    let actor = Actor { user: by.to_string(), key: None };
    let grants = access.grants(caller.org, &actor).await?;
    Ok(grants.is_some_and(|grants| grants.allow(Need::Right(Right::Approve))))
}

/// Whether everyone in whose name it would be made has the right to this call, now.
pub async fn entitled(access: &Access, caller: &Principal, kind: &str, payload: &Payload) -> Result<(), Stop> {
    rights(access, caller, &needs(kind, payload)).await.map_err(Stop::Failure)
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
pub async fn rights(access: &Access, caller: &Principal, needs: &[Need<'_>]) -> Result<(), Failure> {
    if caller.actors.is_empty() {
        return Err(Failure::new("forbidden", "nobody answers for this run"));
    }
    for actor in caller.actors.iter().filter(|actor| !actor.is_local()) {
        let grants = grants_of(access, caller.org, actor).await?;
        may(&grants, actor, Need::Right(Right::Run))?;
        needs.iter().try_for_each(|need| may(&grants, actor, *need))?;
    }
    if !needs.is_empty() && !caller.author.is_local() {
        let grants = grants_of(access, caller.org, &caller.author).await?;
        needs.iter().try_for_each(|need| may(&grants, &caller.author, *need))?;
    }
    Ok(())
}

async fn grants_of(access: &Access, org: OrgId, actor: &Actor) -> Result<Arc<Grants>, Failure> {
    let found = access.grants(org, actor).await;
    let gone = || Failure::new("forbidden", format!("the user {:?} is gone or disabled", actor.user));
    found.map_err(|error| Failure::retryable("unavailable", error.to_string()))?.ok_or_else(gone)
}

fn may(grants: &Grants, actor: &Actor, need: Need<'_>) -> Result<(), Failure> {
    if grants.allow(need) {
        return Ok(());
    }
    Err(Failure::new("forbidden", format!("{} may not do this: the right {need} is missing", actor.user)))
}
