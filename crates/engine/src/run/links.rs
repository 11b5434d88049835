//! Links by which a user answers a gate without an API key. Nothing is stored per link: its secret part is derived from
//! the run's secret, the user, the step and the request. A link is therefore valid for that request only, and once.

use super::callbacks;
use super::live::Live;
use serde_json::Value;
use stepwell_core::graph::Kind;
use stepwell_core::run::{Phase, Status, StepState};

/// Separates links from callback tokens, which use the same secret. Step names cannot contain it.
const LINK: char = '\u{1}';
/// Characters of the request's digest in a link.
const DIGEST_CHARS: usize = 16;

/// The parts of a link. Not verified yet.
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

/// The link by which `user` can answer the step's current request. `None` if there is no request.
pub fn link_of(live: &Live, path: &str, user: &str) -> Option<String> {
    let graph = &live.compiled.definition.graph;
    let state = live.run.find(graph, path).and_then(|at| live.run.step(graph, at))?;
    link(live, path, state, user)
}

/// Like [`link_of`], for a step whose state is at hand.
pub fn link(live: &Live, path: &str, state: &StepState, user: &str) -> Option<String> {
    let ask = live.run.ask(state).filter(|_| state.phase == Phase::Gate)?;
    let digest = ask["digest"].as_str()?.get(..DIGEST_CHARS)?;
    Some(callbacks::token(&live.run.id, &live.secret, &format!("{LINK}{digest}{LINK}{user}{LINK}{path}")))
}

/// The outcome of the request that a link is for, as text. `None` if its user can still answer it.
pub fn outcome(live: &Live, path: &str, state: &StepState, named: &Named) -> Option<String> {
    let graph = &live.compiled.definition.graph;
    let is_linked = |ask: Option<&Value>| {
        ask.and_then(|ask| ask["digest"].as_str())
            .is_some_and(|asked| asked.get(..DIGEST_CHARS) == Some(&*named.digest))
    };
    let approvals = state.more.as_ref().map(|more| more.approvals.as_slice()).unwrap_or_default();
    let names: Vec<&str> = approvals.iter().map(|(by, _)| &**by).collect();
    let held = state.more.as_ref().and_then(|more| live.run.values.get(more.approved?));
    if is_linked(held) {
        return Some(format!("It was approved by {}.", names.join(", ")));
    }
    if !is_linked(live.run.ask(state)) {
        return Some("This request is out of date: it has been replaced or closed.".into());
    }
    match state.phase {
        Phase::Gate if names.contains(&&*named.user) => {
            Some("You have approved. Other approvals are still needed.".into())
        }
        Phase::Gate => None,
        Phase::Done(Status::Cancelled) => Some("The run ended before this was answered.".into()),
        Phase::Done(status) => {
            let at = live.run.find(graph, path);
            let is_gate = at.is_some_and(|at| matches!(graph.step(at.step).def.kind, Kind::Gate(_)));
            let body = state.output.and_then(|output| live.run.values.get(output.body));
            Some(ended(status, body.filter(|_| is_gate || status == Status::Denied)))
        }
        _ => Some("This request is closed.".into()),
    }
}

fn ended(status: Status, body: Option<&Value>) -> String {
    let text = |field: &str| body.and_then(|body| body.get(field)).and_then(Value::as_str);
    let decision = text("decision").unwrap_or(status.name());
    match (text("by"), text("reason")) {
        (Some(by), _) => format!("It was {decision} by {by}."),
        (None, Some("expired")) => format!("This was not answered in time and counts as {decision}."),
        _ => format!("This request is closed: {decision}."),
    }
}
