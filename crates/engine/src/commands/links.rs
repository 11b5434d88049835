//! Links by which somebody answers without a key. Nothing is stored for one: its secret part is made from the run's own
//! secret, and names the user, the step and what was asked. So it is good for that question only, and for one answer.

use super::change::change;
use super::control::{load, step_named};
use super::look::find;
use super::people::bad;
use super::{Approval, Caller, Decision, Right};
use crate::callback::{self, Named};
use crate::engine::Engine;
use crate::error::Error;
use crate::people;
use crate::rights::Actor;
use crate::runs::Live;
use serde_json::{Value, json};
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, Status, StepState};
use stepwell_store::{Change, OrgId};

/// Sets links apart from the addresses of waits, which are made from the same secret. No step's name holds it.
const LINK: char = '\u{1}';
/// Characters of a digest that a link carries.
const SHORT: usize = 16;

/// What a link leads to.
#[derive(Clone, Debug)]
pub struct Linked {
    /// In whose name it is answered.
    pub caller: Caller,
    pub run: String,
    pub step: String,
    pub workflow: String,
    pub asks: Asks,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Asks {
    Open(Box<Approval>),
    /// What became of it, in words.
    Over(String),
}

impl Engine {
    /// Makes a link for somebody: for oneself, or as an administrator for anyone who may answer.
    pub async fn make_link(&self, caller: &Caller, run: &str, step: &str, user: &str) -> Result<String, Error> {
        let id = find(&self.inner, caller, run).await?;
        if user != &*caller.name {
            caller.check(Right::Admin)?;
        }
        // Who follows the link has all the rights of its user.
        if caller.grants.is_agent() || caller.grants.is_narrowed() {
            return Err(Error::Refused("a key that may not do all its user may makes no links".into()));
        }
        let live = load(&self.inner, id, run).await?;
        let (path, state) = step_named(&live, step)?;
        let person = self.person(live.org, user).await?;
        self.may_answer(&person, &live, state).await?;
        let Some(link) = link(&live, (&path, state), user) else {
            return Err(stepwell_core::event::Ignored::NotWaiting.into());
        };
        let audit = self.trail(caller, "step.link", run, json!({"step": path, "user": user}));
        let done = Change { audit: audit.into_iter().collect(), ..Change::default() };
        change(&self.inner, done, "step", &path).await?;
        Ok(link)
    }

    async fn person(&self, org: OrgId, user: &str) -> Result<Caller, Error> {
        let actor = Actor { user: user.to_string(), key: None };
        let gone = || Error::Refused(format!("the user {user:?} is gone or disabled"));
        let grants = people::grants(&self.inner, org, &actor).await?.ok_or_else(gone)?;
        Ok(Caller::new(org, user, (*grants).clone()))
    }

    /// What a link is about, and in whose name it would be answered.
    pub async fn linked(&self, link: &str) -> Result<Linked, Error> {
        let unknown = || Error::NotFound { what: "link", name: link.chars().take(20).collect() };
        let named = Named::parse(link).ok_or_else(unknown)?;
        let id = self.inner.store.find_run(&named.run).await?.ok_or_else(unknown)?;
        let live = load(&self.inner, id, &named.run).await?;
        let mut parts = named.path.strip_prefix(LINK).ok_or_else(unknown)?.splitn(3, LINK);
        let (Some(digest), Some(user), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(unknown());
        };
        if !named.is_genuine(&live.secret) {
            return Err(unknown());
        }
        let caller = self.person(live.org, user).await?;
        let about = |asks| Linked {
            run: named.run.clone(),
            step: path.to_string(),
            workflow: live.compiled.row.name.clone(),
            caller: caller.clone(),
            asks,
        };
        // A retry under a newer version may have done away with the step.
        let Ok((path, state)) = step_named(&live, path) else {
            return Ok(about(Asks::Over("The run has gone on without this step.".into())));
        };
        if let Some(over) = over(&live, (&path, state), digest, user) {
            return Ok(about(Asks::Over(over)));
        }
        self.may_answer(&caller, &live, state).await?;
        let approval = self.shown(&caller, &live, (path, state)).await;
        Ok(about(Asks::Open(Box::new(approval))))
    }

    /// Answers by a link. What was shown is named by its digest, always. Gives back what the link leads to before.
    pub async fn answer_link(&self, link: &str, decision: Decision) -> Result<Linked, Error> {
        let linked = self.linked(link).await?;
        if let Asks::Over(_) = linked.asks {
            return Ok(linked);
        }
        if decision.digest.is_none() {
            return Err(bad("digest", "say what you answer: the digest of what was shown"));
        }
        self.answer(&linked.caller, &linked.run, &linked.step, decision).await?;
        Ok(linked)
    }
}

/// The secret part of a link by which `user` can answer what a step asks now; none if it asks nothing.
pub(crate) fn link_of(live: &Live, path: &str, user: &str) -> Option<String> {
    let graph = &live.compiled.definition.graph;
    let state = live.run.find(graph, path).and_then(|at| live.run.step(graph, at))?;
    link(live, (path, state), user)
}

fn link(live: &Live, (path, state): (&str, &StepState), user: &str) -> Option<String> {
    let ask = live.run.ask(state).filter(|_| state.phase == Phase::Gate)?;
    let digest = ask["digest"].as_str()?.get(..SHORT)?;
    Some(callback::token(&live.run.id, &live.secret, &format!("{LINK}{digest}{LINK}{user}{LINK}{path}")))
}

/// What became of what a link was made for; none if it is still to be answered by its user.
fn over(live: &Live, (path, state): (&str, &StepState), digest: &str, user: &str) -> Option<String> {
    let graph = &live.compiled.definition.graph;
    let is = |ask: Option<&Value>| {
        ask.and_then(|ask| ask["digest"].as_str()).is_some_and(|asked| asked.get(..SHORT) == Some(digest))
    };
    let approvals = state.more.as_ref().map(|more| more.approvals.as_slice()).unwrap_or_default();
    let names: Vec<&str> = approvals.iter().map(|(by, _)| &**by).collect();
    let held = state.more.as_ref().and_then(|more| live.run.values.get(more.approved?));
    if is(held) {
        return Some(format!("It was approved by {}.", names.join(", ")));
    }
    if !is(live.run.ask(state)) {
        return Some("This was asked before and is not what is asked now, if anything is.".into());
    }
    match state.phase {
        Phase::Gate if names.contains(&user) => Some("You have approved; others are still asked.".into()),
        Phase::Gate => None,
        Phase::Done(Status::Cancelled) => Some("The run was ended before anybody answered.".into()),
        Phase::Done(status) => {
            let at = live.run.find(graph, path);
            let is_gate = at.is_some_and(|at| matches!(graph.step(at.step).def.kind, Kind::Gate(_)));
            let body = state.output.and_then(|output| live.run.values.get(output.body));
            Some(ended(status, body.filter(|_| is_gate || status == Status::Denied)))
        }
        _ => Some("Nothing is asked any more.".into()),
    }
}

fn ended(status: Status, body: Option<&Value>) -> String {
    let text = |field: &str| body.and_then(|body| body.get(field)).and_then(Value::as_str);
    let decision = text("decision").unwrap_or(status.name());
    match (text("by"), text("reason")) {
        (Some(by), _) => format!("It was {decision} by {by}."),
        (None, Some("expired")) => format!("Nobody answered in time: it counts as {decision}."),
        _ => format!("It is over: {decision}."),
    }
}
