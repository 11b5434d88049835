//! Links by which somebody answers without a key. Nothing is stored for one: its secret part is made from the run's own
//! secret, and names the user, the step and what was asked. So it is good for that question only, and for one answer.

use super::callbacks;
use super::live::Live;
use serde_json::Value;
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, Status, StepState};

/// Sets links apart from callback tokens, which are made from the same secret. No step's name holds it.
const LINK: char = '\u{1}';
/// Characters of a digest that a link carries.
const SHORT: usize = 16;

/// What a link names. Not verified yet.
pub struct Named {
    pub token: callbacks::Named,
    pub digest: String,
    pub user: String,
    pub path: String,
}

impl Named {
    pub fn parse(link: &str) -> Option<Named> {
        let token = callbacks::Named::parse(link)?;
        let mut parts = token.path.strip_prefix(LINK)?.splitn(3, LINK).map(str::to_string);
        let (digest, user, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Named { digest, user, path, token })
    }
}

/// The link by which `user` can answer what a step asks now; none if it asks nothing.
pub fn link_of(live: &Live, path: &str, user: &str) -> Option<String> {
    let graph = &live.compiled.definition.graph;
    let state = live.run.find(graph, path).and_then(|at| live.run.step(graph, at))?;
    link(live, path, state, user)
}

pub fn link(live: &Live, path: &str, state: &StepState, user: &str) -> Option<String> {
    let ask = live.run.ask(state).filter(|_| state.phase == Phase::Gate)?;
    let digest = ask["digest"].as_str()?.get(..SHORT)?;
    Some(callbacks::token(&live.run.id, &live.secret, &format!("{LINK}{digest}{LINK}{user}{LINK}{path}")))
}

/// What became of the question that a link was made for; none if its user can still answer it.
pub fn outcome(live: &Live, path: &str, state: &StepState, named: &Named) -> Option<String> {
    let graph = &live.compiled.definition.graph;
    let is = |ask: Option<&Value>| {
        ask.and_then(|ask| ask["digest"].as_str()).is_some_and(|asked| asked.get(..SHORT) == Some(&*named.digest))
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
        Phase::Gate if names.contains(&&*named.user) => Some("You have approved; others are still asked.".into()),
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
