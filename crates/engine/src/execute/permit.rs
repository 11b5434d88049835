//! Checks before a call: the rights of all actors of the run, the organisation's policies, and the approvals that the
//! policies require. Every attempt is checked just before its call.

use super::Executor;
use super::conditions::{CallFacts, Who, args};
use super::dispatch::principal;
use super::policies::{Effect, Match, Policy, Subject, subjects};
use super::policy_log::{Sample, Verdict, shown_args};
use super::rate_limit::RateLimit;
use super::step::Principal;
use crate::access::{Access, Actor, Grants, Need, Right};
use crate::error::Error;
use crate::run::Live;
use crate::workflows::Origin;
use async_trait::async_trait;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::approval::call_digest;
use stepwell_core::event::{Deferral, Failure};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, Status, StepState};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::Payload;
use stepwell_store::OrgId;

/// A call that is about to be made.
pub struct CallRequest<'a> {
    pub path: &'a str,
    pub kind: &'static str,
    /// The step's input, which approvers see.
    pub payload: &'a Payload,
    /// The input as it is sent: the name of a saved query is replaced by the query.
    pub sent: &'a Payload,
    /// The input as it is sent, with secrets filled in.
    pub input: &'a Value,
    pub caller: &'a Principal,
    pub origin: &'a Origin,
    /// The approval of this step, if it was held.
    pub approved: Option<&'a Approved>,
    /// The note of an earlier attempt, which is kept if this one is postponed.
    pub note: Option<&'a Arc<Value>>,
    /// The call was postponed before, to the time the rate limit assigned.
    pub deferred: bool,
}

/// Why a call is not made.
pub enum Stop {
    Failure(Failure),
    /// An approval or an answer is needed. With a note, the called service asks.
    Held {
        ask: Arc<Value>,
        timeout: Option<Millis>,
        note: Option<Arc<Value>>,
    },
    /// The call is postponed.
    Later {
        due: Time,
        why: Deferral,
        note: Option<Arc<Value>>,
    },
}

/// Reads the approvals given at gates of a run.
#[async_trait]
pub trait GateApprovals: Send + Sync {
    async fn approvals(&self) -> Result<Vec<Approved>, Error>;
}

/// An approval: the request as it was shown, and the users who approved it.
#[derive(Clone, Debug)]
pub struct Approved {
    pub ask: Value,
    pub by: Vec<String>,
    pub generation: u32,
    /// The user who last retried the run.
    pub retried_by: Option<Arc<str>>,
}

impl Approved {
    /// The approval of a held call.
    pub fn of_held(live: &Live, state: &StepState) -> Option<Approved> {
        let more = state.more.as_ref()?;
        let ask = live.run.values.get(more.approved?)?.clone();
        let last = more.approvals.iter().filter(|_| !more.question).map(|(by, _)| by);
        let names = more.earlier.iter().chain(last);
        // A user who approved twice counts once.
        let by: BTreeSet<String> = names.map(|by| by.to_string()).collect();
        let by = by.into_iter().collect();
        Some(Approved::new(live, ask, by))
    }

    /// The approvals of all gates of a run that were approved.
    pub fn of_gates(live: &Live) -> Vec<Approved> {
        let graph = &live.compiled.definition.graph;
        let gates = live.run.steps(graph).filter(|(at, state)| {
            matches!(graph.step(at.step).def.kind, Kind::Gate(_)) && state.phase == Phase::Done(Status::Success)
        });
        gates.filter_map(|(_, state)| Approved::of_gate(live, state)).collect()
    }

    /// The approval of an answered gate. An expired gate approves nothing.
    fn of_gate(live: &Live, state: &StepState) -> Option<Approved> {
        let ask = live.run.values.get(state.input?)?.clone();
        let answer = live.run.values.get(state.output?.body)?;
        let others = answer.get("others").and_then(Value::as_array).into_iter().flatten();
        let by = others.chain([answer]).filter_map(|answer| answer.get("by")?.as_str()).map(str::to_string).collect();
        Some(Approved::new(live, ask, by))
    }

    fn new(live: &Live, ask: Value, by: Vec<String>) -> Approved {
        Approved { ask, by, generation: live.run.generation, retried_by: live.run.retried_by.clone() }
    }

    /// Whether the approval is for exactly this call, which it showed, and was given after the last retry of the run
    /// and after the last change of the secrets in the call.
    fn covers(&self, call: &ApprovedCall<'_>) -> bool {
        let calls = self.ask.get("calls").and_then(Value::as_array).into_iter().flatten();
        let this = |shown: &Value| {
            shown["step"] == call.path && shown["digest"] == call.digest.as_str() && shown.get("input").is_some()
        };
        // Requests of earlier versions do not say when they were made.
        let asked = self.ask["asked_at"].as_i64().map(Time);
        let changed = asked.is_some_and(|asked| call.secrets_changed.is_some_and(|changed| changed > asked));
        self.ask["generation"] == self.generation && !changed && { calls }.any(this)
    }
}

/// The call that an approval must be for.
struct ApprovedCall<'a> {
    path: &'a str,
    digest: String,
    /// When one of the secrets in the call was last changed.
    secrets_changed: Option<Time>,
}

impl<'a> ApprovedCall<'a> {
    async fn of(executor: &Executor, request: &CallRequest<'a>) -> Result<ApprovedCall<'a>, Error> {
        let mut secrets_changed = None;
        for slot in &request.payload.secrets {
            let secret = executor.secrets.secret(request.caller.org, &slot.name).await?;
            secrets_changed = secrets_changed.max(secret.and_then(|secret| secret.changed));
        }
        let digest = call_digest(request.kind, &request.payload.value);
        Ok(ApprovedCall { path: request.path, digest, secrets_changed })
    }
}

/// Checks policies and rate limits. Returns the host that was checked, if the call names one. `gates` is used only if a
/// policy requires approval.
pub async fn permit(
    executor: &Executor,
    request: &CallRequest<'_>,
    gates: &dyn GateApprovals,
) -> Result<Option<Arc<str>>, Stop> {
    let unavailable = |error: Error| Stop::Failure(Failure::retryable("unavailable", error.to_string()));
    let policies = executor.policies(request.caller.org).await.map_err(unavailable)?;
    // Messages must not show a host that a secret contains.
    let mut shown = subjects(request.kind, &request.sent.value);
    let mut subjects = subjects(request.kind, request.input);
    if let Some(workflow) = unreviewed(executor, request).await.map_err(unavailable)? {
        shown.push(Subject::unreviewed(workflow.clone()));
        subjects.push(Subject::unreviewed(workflow));
    }
    let (now, mut who, mut sent) = (executor.cluster.clock.now(), Who::default(), Cow::Owned(Value::Null));
    if policies.ask_who(&subjects) {
        who = self::who(executor, request.caller, request.origin).await.map_err(unavailable)?;
        sent = args(request.kind, request.input);
    }
    let facts = CallFacts::new(&who, &subjects, sent, now);
    let (matching, logged) = policies.matching(&subjects, &facts);
    // Once for each attempt, also if it was held or postponed before.
    if !logged.is_empty() && !request.deferred && request.approved.is_none() && request.note.is_none() {
        let call = LoggedCall { request, who: &who, shown: &shown, subjects: &subjects, now };
        call.log(executor, logged, gates).await.map_err(unavailable)?;
    }
    for matched in matching.iter().take_while(|matched| matched.policy.effect > Effect::Allow) {
        match matched.policy.effect {
            Effect::Deny => return Err(Stop::Failure(denied(matched, &shown))),
            _ if is_approved(executor, request, matched.policy, gates).await.map_err(unavailable)? => {}
            _ => {
                let ask = Arc::new(matched.policy.ask(&format!("{}{}", describe(&shown), matched.doubt())));
                return Err(Stop::Held { ask, timeout: matched.policy.timeout, note: None });
            }
        }
    }
    if !request.deferred
        && let Some(due) = rate_limited_until(executor, request.caller.org, &matching, &subjects)
    {
        return Err(Stop::Later { due, why: Deferral::RateLimit, note: request.note.cloned() });
    }
    Ok(subjects.iter().find(|subject| subject.kind == "host").map(|host| (&*host.name).into()))
}

/// The failure of a call of this run that a policy denies, whatever its approvals. Secrets are not filled in.
pub async fn denial(executor: &Executor, live: &Live, kind: &str, input: &Value) -> Result<Option<Failure>, Error> {
    let policies = executor.policies(live.org).await?;
    let subjects = subjects(kind, input);
    let who = who(executor, &principal(live), &live.origin()).await?;
    let facts = CallFacts::new(&who, &subjects, args(kind, input), executor.cluster.clock.now());
    let (matching, _) = policies.matching(&subjects, &facts);
    let deny = matching.first().filter(|matched| matched.policy.effect == Effect::Deny);
    Ok(deny.map(|matched| denied(matched, &subjects)))
}

/// The unreviewed workflow that a call with side effects is made for.
async fn unreviewed(executor: &Executor, request: &CallRequest<'_>) -> Result<Option<String>, Error> {
    let kind = executor.kinds.get(request.kind);
    if kind.is_some_and(|kind| kind.is_read_only(request.input)) {
        return Ok(None);
    }
    executor.runner.workflows.unreviewed(request.origin).await
}

/// Who makes the calls of a run. The key of an agent takes precedence over those of people.
pub async fn who(executor: &Executor, caller: &Principal, origin: &Origin) -> Result<Who, Error> {
    let unreviewed = executor.runner.workflows.unreviewed(origin).await?.is_some();
    let workflow = Some(origin.compiled.row.name.as_str().into());
    let mut who = Who { user: Some(caller.name.clone()), workflow, unreviewed, ..Who::default() };
    for id in caller.actors.iter().filter_map(|actor| actor.key.as_ref()) {
        if who.agent {
            break;
        }
        let key = executor.access.key(caller.org, id).await?;
        // A key that is gone counts as an agent's.
        who.agent = key.as_ref().is_none_or(|key| key.agent);
        who.key = Some(key.map_or_else(|| id.as_str().into(), |key| key.name.as_str().into()));
    }
    Ok(who)
}

/// A call that policies in the mode `log` match.
struct LoggedCall<'a> {
    request: &'a CallRequest<'a>,
    who: &'a Who,
    shown: &'a [Subject],
    subjects: &'a [Subject],
    now: Time,
}

impl LoggedCall<'_> {
    async fn log(&self, executor: &Executor, logged: Vec<Match<'_>>, gates: &dyn GateApprovals) -> Result<(), Error> {
        let LoggedCall { request, who, shown, subjects, now } = self;
        let org = request.caller.org;
        for matched in logged {
            let verdict = match matched.verdict() {
                Verdict::Held if is_approved(executor, request, matched.policy, gates).await? => Verdict::Allowed,
                verdict => verdict,
            };
            let verdict = match verdict {
                Verdict::Allowed if is_over_rate(executor, org, &matched, subjects, *now) => Verdict::Delayed,
                verdict => verdict,
            };
            let sample = Sample {
                at: *now,
                verdict,
                run: Some(request.origin.run.to_string()),
                step: Some(request.path.to_string()),
                workflow: who.workflow.as_deref().map(str::to_string),
                user: who.user.as_deref().map(str::to_string),
                call: describe(shown),
                args: shown_args(&args(request.kind, &request.sent.value)),
                undecided: None,
            };
            executor.policy_logs.add(org, &matched, verdict, sample);
        }
        Ok(())
    }
}

/// Whether a call would be over the rate of a policy that is not enforced.
pub fn is_over_rate(executor: &Executor, org: OrgId, matched: &Match<'_>, subjects: &[Subject], now: Time) -> bool {
    let limits = rate_limits(executor, org, std::slice::from_ref(matched), subjects);
    executor.rates.admit(limits, now).is_err()
}

pub fn describe(subjects: &[Subject]) -> String {
    let parts: Vec<String> = subjects.iter().map(|subject| format!("{} {}", subject.kind, subject.name)).collect();
    parts.join(", ")
}

/// The failure of a call that a policy denies.
pub fn denied(matched: &Match<'_>, subjects: &[Subject]) -> Failure {
    let (policy, doubt) = (matched.policy, matched.doubt());
    let reason = policy.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = format!("the policy {} does not allow {}{doubt}{reason}", policy.name, describe(subjects));
    Failure::new("denied_by_policy", message)
}

/// The time assigned to a call that exceeds a rate limit. `None` if it may be made now.
fn rate_limited_until(executor: &Executor, org: OrgId, matching: &[Match<'_>], subjects: &[Subject]) -> Option<Time> {
    let now = executor.cluster.clock.now();
    let limits = rate_limits(executor, org, matching, subjects).into_iter();
    let assigned = limits.map(|(key, limit)| executor.rates.reserve(key, limit, now));
    assigned.max().filter(|due| *due > now)
}

/// The rate limits of this node for a call. Each has a key of organisation, policy and subject.
pub fn rate_limits(
    executor: &Executor,
    org: OrgId,
    matching: &[Match<'_>],
    subjects: &[Subject],
) -> Vec<(String, RateLimit)> {
    let policies = matching.iter().map(|matched| matched.policy);
    let limited = policies.filter_map(|policy| Some((policy, policy.rate?, policy.subject(subjects)?)));
    let limits = limited.map(|(policy, rate, subject)| {
        let nodes = f64::from(executor.cluster.node.share(executor.cluster.clock.now()).of.max(1));
        let key = format!("{}/{}/{}", org.0, policy.name, subject.name);
        (key, RateLimit { calls: f64::from(rate.calls) / nodes, millis: rate.per.0 as f64 })
    });
    limits.collect()
}

/// Whether the policy's approvers have approved exactly this call in this run: when it was held, or at a gate that
/// showed it.
pub async fn is_approved(
    executor: &Executor,
    request: &CallRequest<'_>,
    policy: &Policy,
    gates: &dyn GateApprovals,
) -> Result<bool, Error> {
    let (access, call) = (&executor.access, ApprovedCall::of(executor, request).await?);
    if let Some(approved) = request.approved
        && approved.covers(&call)
        && has_enough_approvals(access, request, policy, approved).await?
    {
        return Ok(true);
    }
    for approved in gates.approvals().await?.iter().filter(|approved| approved.covers(&call)) {
        if has_enough_approvals(access, request, policy, approved).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether enough of the policy's approvers have approved.
async fn has_enough_approvals(
    access: &Access,
    request: &CallRequest<'_>,
    policy: &Policy,
    approved: &Approved,
) -> Result<bool, Error> {
    let mut count = 0;
    for by in &approved.by {
        let own = **by == *request.caller.name || approved.retried_by.as_deref() == Some(by);
        if (policy.allow_self || !own) && is_approver(access, request.caller, policy, by).await? {
            count += 1;
        }
    }
    Ok(count >= policy.approvals)
}

/// Whether the policy accepts an approval by this user. A policy without approvers accepts users with the right to
/// approve; a gate may have asked others as well.
async fn is_approver(access: &Access, caller: &Principal, policy: &Policy, by: &str) -> Result<bool, Error> {
    // The local operator is not a stored user and has all rights.
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

/// Checks that all actors of the run currently have the right to this call.
pub async fn check_rights(access: &Access, caller: &Principal, kind: &str, payload: &Payload) -> Result<(), Stop> {
    rights(access, caller, &needs(kind, payload)).await.map_err(Stop::Failure)
}

/// The rights a call needs in addition to the right to run.
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

/// Checks that all actors of the run, and the author of its workflow, currently have these rights.
pub async fn rights(access: &Access, caller: &Principal, needs: &[Need<'_>]) -> Result<(), Failure> {
    if caller.actors.is_empty() {
        return Err(Failure::new("forbidden", "this run has no actor whose rights could allow the call"));
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
    let missing = || Failure::new("forbidden", format!("the user {:?} is gone or disabled", actor.user));
    found.map_err(|error| Failure::retryable("unavailable", error.to_string()))?.ok_or_else(missing)
}

fn may(grants: &Grants, actor: &Actor, need: Need<'_>) -> Result<(), Failure> {
    if grants.allow(need) {
        return Ok(());
    }
    Err(Failure::new("forbidden", format!("{} may not do this: the right {need} is missing", actor.user)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_approval_covers_what_it_showed_also_if_an_earlier_version_asked() {
        let check = |ask: Value, changed: Option<i64>, expected: bool| {
            let approved = Approved { ask: ask.clone(), by: Vec::new(), generation: 1, retried_by: None };
            let call = ApprovedCall { path: "pay", digest: "d".into(), secrets_changed: changed.map(Time) };
            assert_eq!(approved.covers(&call), expected, "{ask}");
        };
        let ask = |call: Value| json!({"generation": 1, "calls": [call], "asked_at": 5});
        check(ask(json!({"step": "pay", "digest": "d", "input": {}})), None, true);
        check(ask(json!({"step": "pay", "digest": "d", "input": {}})), Some(5), true);
        check(ask(json!({"step": "pay", "digest": "d", "input": {}})), Some(6), false);
        check(ask(json!({"step": "pay", "digest": "e", "input": {}})), None, false);
        check(ask(json!({"step": "tell", "digest": "d", "input": {}})), None, false);
        // Stored by an earlier version: with a digest of what it did not show, and without a time.
        check(ask(json!({"step": "pay", "digest": "d", "too_large_to_show": true})), None, false);
        let call = json!({"step": "pay", "digest": "d", "input": {}});
        check(json!({"generation": 1, "calls": [call]}), Some(6), true);
    }
}
