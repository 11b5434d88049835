//! Calls that come with a token in place of a key: webhooks of waits, approval links, addresses that start workflows.

use super::input::bad;
use super::runs::load;
use super::steps::{deliver, step_named};
use super::{Approval, Decision, Gates, Inbound};
use crate::access::{Actor, Caller};
use crate::error::Error;
use crate::rooms::Rooms;
use crate::run::Live;
use crate::run::callbacks::Named;
use crate::run::links;
use crate::run::start::Started;
use crate::triggers::Incoming;
use serde_json::{Value, json};
use stepwell_core::event::Ignored;
use stepwell_core::run::{Phase, Status};
use stepwell_store::{NewAudit, OrgId};

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

impl Inbound<'_> {
    /// Whether a token of a workflow's address is known.
    pub async fn hook_known(&self, token: &str) -> Result<bool, Error> {
        self.rooms.triggers.hook_known(token).await
    }

    /// Takes a call to a workflow's address: returns the run it started, or started before.
    pub async fn receive(&self, token: &str, call: Incoming) -> Result<Started, Error> {
        self.rooms.triggers.receive(token, call).await
    }

    /// Takes a call to a wait's URL. Who knows the token needs no other right.
    pub async fn deliver_webhook(&self, token: &str, body: Value) -> Result<(), Error> {
        let (live, path) = self.called(token).await?;
        let audit = NewAudit {
            org: live.org,
            at: self.rooms.cluster.clock.now(),
            by: "callback".into(),
            action: "step.deliver".into(),
            target: live.run.id.to_string(),
            detail: json!({"step": path}).to_string(),
        };
        match deliver(self.rooms, &live, path, body, Some(audit)).await {
            // Whether it was this call that the step has had, or it is over without one.
            Err(Error::Conflict(Ignored::StepFinished | Ignored::RunFinished)) => {
                self.callback_open(token).await?;
                Err(Ignored::StepFinished.into())
            }
            answer => answer,
        }
    }

    /// Whether a call to this URL would count. A step that had its call says so, one that is over without it as well.
    pub async fn callback_open(&self, token: &str) -> Result<(), Error> {
        let (live, path) = self.called(token).await?;
        let graph = &live.compiled.definition.graph;
        let state = live.run.find(graph, &path).and_then(|at| live.run.step(graph, at));
        match state.map(|state| state.phase) {
            Some(Phase::Done(Status::Success)) => Err(Ignored::Repeated.into()),
            Some(Phase::Done(_)) => Err(Ignored::StepFinished.into()),
            _ if live.run.status.is_terminal() => Err(Ignored::RunFinished.into()),
            _ => Ok(()),
        }
    }

    /// The run and the path of the step that a genuine token names.
    async fn called(&self, token: &str) -> Result<(Box<Live>, String), Error> {
        let unknown = || Error::NotFound { what: "callback", name: token.chars().take(60).collect() };
        let named = Named::parse(token).ok_or_else(unknown)?;
        let id = self.rooms.cluster.store.find_run(&named.run).await?.ok_or_else(unknown)?;
        let live = load(self.rooms, id, &named.run).await?;
        if named.is_genuine(&live.secret) { Ok((live, named.path)) } else { Err(unknown()) }
    }

    /// What a link is about, and in whose name it would be answered.
    pub async fn linked(&self, link: &str) -> Result<Linked, Error> {
        let unknown = || Error::NotFound { what: "link", name: link.chars().take(20).collect() };
        let named = links::Named::parse(link).ok_or_else(unknown)?;
        let id = self.rooms.cluster.store.find_run(&named.token.run).await?.ok_or_else(unknown)?;
        let live = load(self.rooms, id, &named.token.run).await?;
        if !named.token.is_genuine(&live.secret) {
            return Err(unknown());
        }
        let caller = person(self.rooms, live.org, &named.user).await?;
        let about = |asks| Linked {
            run: named.token.run.clone(),
            step: named.path.clone(),
            workflow: live.compiled.row.name.clone(),
            caller: caller.clone(),
            asks,
        };
        // A retry under a newer version may have done away with the step.
        let Ok((path, state)) = step_named(&live, &named.path) else {
            return Ok(about(Asks::Over("The run has gone on without this step.".into())));
        };
        if let Some(over) = links::outcome(&live, &path, state, &named) {
            return Ok(about(Asks::Over(over)));
        }
        Gates::new(self.rooms, &caller).may_answer(&live, state).await?;
        let approval = Gates::new(self.rooms, &caller).shown(&live, (path, state)).await;
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
        Gates::new(self.rooms, &linked.caller).answer(&linked.run, &linked.step, decision).await?;
        Ok(linked)
    }
}

/// A user as a caller, without a key.
pub(super) async fn person(rooms: &Rooms, org: OrgId, user: &str) -> Result<Caller, Error> {
    let actor = Actor { user: user.to_string(), key: None };
    let gone = || Error::Refused(format!("the user {user:?} is gone or disabled"));
    let grants = rooms.access.grants(org, &actor).await?.ok_or_else(gone)?;
    Ok(Caller::new(org, user, (*grants).clone()))
}
