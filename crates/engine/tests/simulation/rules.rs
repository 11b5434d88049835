//! Policies over all calls, and an agent with a key of few rights: what they must never let happen, whatever else goes
//! wrong meanwhile.

use crate::client::call_as_person;
use crate::past::{Story, Waits};
use crate::sim::Sim;
use crate::workflows::Workflow;
use serde_json::json;
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::commands::{Decision, NewKey, NewPolicy, NewUser, Trigger};
use stepwell_engine::{Caller, Engine, Error, PolicyEffect, Rate, StepCall};
use stepwell_testing::{list, policy};

/// The user of the agent's key, who has more rights than the key.
const AGENT: &str = "helper";
/// All tools that the key may call.
const ALLOWED: [&str; 2] = ["work", "sure"];
const POLICY: &str = "rules";
/// The clients of the simulation. They are users too, so that a policy accepts their answers.
pub const PEOPLE: [&str; 3] = ["ann", "bob", "boss"];

/// The policy of a seed, over calls of `work`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    None,
    /// Each call needs an approval.
    Hold,
    Deny,
    /// A few calls per second.
    Pace,
}

impl Rule {
    fn policy(self) -> Option<NewPolicy> {
        let of_work = |effect| policy("tool:work", effect);
        match self {
            Rule::None => None,
            Rule::Hold => Some(of_work(PolicyEffect::RequireApproval)),
            Rule::Deny => Some(of_work(PolicyEffect::Deny)),
            Rule::Pace => {
                let rate = Some(Rate { calls: 4, per: Millis(1_000) });
                Some(NewPolicy { rate, ..of_work(PolicyEffect::Allow) })
            }
        }
    }
}

/// The agent, by its key.
#[derive(Clone, Default)]
pub struct Agent {
    secret: String,
    /// When it was acknowledged that its user is disabled.
    disabled: Option<Time>,
}

/// Creates the users, the agent's key and the policy of this seed.
pub async fn begin(sim: &Arc<Sim>) {
    let engine = sim.some_process().await.engine;
    let ann = Caller::local("ann");
    for (name, grants) in PEOPLE.map(|name| (name, list(&["admin"]))).into_iter().chain([(AGENT, list(&["admin"]))]) {
        let new = NewUser { name: name.into(), roles: Vec::new(), grants };
        engine.users(&ann).create(new).await.unwrap();
    }
    let rights = ["workflow.run", "workflow.read"].map(String::from).into_iter();
    let grants = Some(rights.chain(ALLOWED.map(|tool| format!("tool:{tool}"))).collect());
    let new = NewKey { user: Some(AGENT.into()), name: "agent".into(), agent: true, grants, expires: None };
    let (_, secret) = engine.keys(&ann).create(new).await.unwrap();
    *sim.agent() = Agent { secret, disabled: None };
    if let Some(policy) = sim.mood.rule.policy() {
        engine.policies(&ann).put(POLICY, policy).await.unwrap();
    }
}

/// A call is about to be made. Says why it must not be.
pub fn forbids(sim: &Sim, call: &StepCall) -> Option<String> {
    let tool = call.input["tool"].as_str().unwrap_or("http");
    let by_agent = call.caller.actors.iter().any(|actor| actor.user == AGENT);
    let disabled = sim.agent().disabled;
    if by_agent && tool != "http" && !ALLOWED.contains(&tool) {
        return Some("a run of the agent calls a tool that its key does not allow".into());
    }
    // A commit that was planned with the old rights is refused.
    let dispatched = sim.past().named(&call.run).and_then(|story| story.dispatched(&call.path, call.attempt));
    if by_agent && disabled.zip(dispatched).is_some_and(|(disabled, dispatched)| dispatched > disabled) {
        return Some("a run of the agent makes a call that was decided after its user was disabled".into());
    }
    if by_agent {
        sim.saw("a run of the agent made a call");
    }
    let covered = tool == "work";
    match sim.mood.rule {
        Rule::Deny if covered => Some("a policy denies this call".into()),
        Rule::Hold if covered => {
            let past = sim.past();
            let approved = past.named(&call.run).is_some_and(|story| story.was_approved(&call.path));
            (!approved).then(|| "a policy requires an approval of this call".into())
        }
        _ => None,
    }
}

/// The agent or somebody who deals with it does something.
pub fn act(sim: &Arc<Sim>, chosen: &[&'static Workflow]) {
    let what = sim.chance().below(8);
    match what {
        0..4 => {
            let entries: Vec<&'static Workflow> = chosen.iter().copied().filter(|workflow| workflow.entry).collect();
            let workflow = sim.chance().pick(&entries).copied();
            workflow.into_iter().for_each(|workflow| drop(tokio::spawn(start(sim.clone(), workflow.name))));
        }
        4..7 => drop(tokio::spawn(overreach(sim.clone()))),
        _ => drop(tokio::spawn(disable(sim.clone()))),
    }
}

async fn start(sim: Arc<Sim>, workflow: &'static str) {
    let (agent, group) = (sim.agent().clone(), sim.chance().below(2));
    let tag = sim.number();
    let input = json!({"tag": tag, "key": format!("group-{group}"), "rows": [1, 2, 3], "keyed": false});
    let started = sim.ask("the agent's trigger", |engine| async move {
        let caller = engine.identity().authenticate(&agent.secret).await?;
        engine.runs(&caller).trigger(Trigger::new(workflow, input)).await
    });
    if let Some(Ok(started)) = started.await {
        sim.was_told(&started.run, "the agent's trigger", |fact| matches!(fact, Fact::Created { .. }));
    }
}

/// The agent tries what no agent's key may do.
async fn overreach(sim: Arc<Sim>) {
    let (agent, what) = (sim.agent().clone(), sim.chance().below(5));
    let gate = {
        let past = sim.past();
        let gates = |story: &Story| {
            let open = story.waiting.iter().find(|(_, waits)| **waits == Waits::Gate);
            open.map(|(path, _)| (story.public.clone(), path.clone()))
        };
        past.runs.values().find_map(gates)
    };
    let done = sim.ask("overreach", |engine| async move {
        let caller = engine.identity().authenticate(&agent.secret).await?;
        tries(&engine, &caller, what, gate).await
    });
    match done.await {
        Some(Ok(())) => sim.breaks(format!("the agent did what only people may do ({what})")),
        Some(Err(Error::Refused(_) | Error::Forbidden { .. })) => sim.saw("the agent was refused"),
        Some(Err(_)) | None => {}
    }
}

async fn tries(engine: &Engine, agent: &Caller, what: u64, gate: Option<(String, String)>) -> Result<(), Error> {
    match (what, gate) {
        (0, _) => engine.policies(agent).remove(POLICY).await,
        (1, _) => engine.policies(agent).put(POLICY, policy("tool:*", PolicyEffect::Allow)).await.map(drop),
        (2, _) => {
            let new = NewKey { user: Some("boss".into()), name: "mine".into(), ..NewKey::default() };
            engine.keys(agent).create(new).await.map(drop)
        }
        (3, Some((run, path))) => {
            // It may see the question.
            let digest = engine.gates(agent).get(&run, &path).await?.digest;
            let decision = Decision { approve: true, digest, ..Decision::default() };
            engine.gates(agent).answer(&run, &path, decision).await
        }
        _ => engine.users(agent).disable("boss").await,
    }
}

/// Runs of the agent make no call from then on. (Revoking its key would only keep it from starting more.)
async fn disable(sim: Arc<Sim>) {
    let done = call_as_person(&sim, "the agent's user is disabled", |engine, person| async move {
        engine.users(&person).disable(AGENT).await
    });
    if let Some(Ok(())) = done.await {
        let now = sim.now();
        sim.agent().disabled.get_or_insert(now);
    }
}

/// A person releases a run from quarantine.
pub async fn release(sim: Arc<Sim>, run: String) {
    call_as_person(&sim, "release", |engine, person| async move { engine.runs(&person).release(&run).await }).await;
}
