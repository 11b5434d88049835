//! Requests with a token instead of an API key: webhooks of waits, approval links, and trigger URLs of workflows.

use super::input::invalid;
use super::runs::load;
use super::steps::{CallBody, deliver, step_named};
use super::{Approval, Decision, Gates, Inbound};
use crate::access::{Actor, Caller};
use crate::error::Error;
use crate::rooms::Rooms;
use crate::run::Live;
use crate::run::callbacks::Named;
use crate::run::links;
use crate::run::start::Started;
use crate::triggers::Incoming;
use serde_json::json;
use stepwell_core::event::Ignored;
use stepwell_core::run::{Phase, Status};
use stepwell_store::{NewAudit, OrgId, RunId};

/// The target of an approval link.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The user in whose name the link answers.
    pub caller: Caller,
    pub run: String,
    pub step: String,
    pub workflow: String,
    pub asks: Asks,
}

/// The state of the request that a link is for.
#[derive(Clone, PartialEq, Debug)]
pub enum Asks {
    Open(Box<Approval>),
    /// The outcome, as text.
    Over(String),
}

impl Inbound<'_> {
    /// The organisation of a trigger URL, if its token is known.
    pub async fn hook_owner(&self, token: &str) -> Result<Option<OrgId>, Error> {
        self.rooms.triggers.hook_owner(token).await
    }

    /// Handles a request to a trigger URL. Returns the run that it started, or that the same request started before.
    pub async fn receive(&self, token: &str, call: Incoming) -> Result<Started, Error> {
        self.rooms.triggers.receive(token, call).await
    }

    /// Handles a request to a wait's URL. The token is the only right it needs.
    pub async fn deliver_webhook(&self, token: &str, body: CallBody) -> Result<(), Error> {
        let (live, path) = self.callback_target(token).await?;
        let audit = NewAudit {
            org: live.org,
            at: self.rooms.cluster.clock.now(),
            by: "callback".into(),
            action: "step.deliver".into(),
            target: live.run.id.to_string(),
            detail: json!({"step": path}).to_string(),
        };
        match deliver(self.rooms, &live, path, body, Some(audit)).await {
            // Tells a step that has received its call from one that ended without a call.
            Err(Error::Conflict(Ignored::StepFinished | Ignored::RunFinished)) => {
                self.callback_open(token).await?;
                Err(Ignored::StepFinished.into())
            }
            answer => answer,
        }
    }

    /// The organisation of a step that still waits for a call to this URL. The error tells a received call from a step
    /// that has ended.
    pub async fn callback_open(&self, token: &str) -> Result<OrgId, Error> {
        let (live, path) = self.callback_target(token).await?;
        let graph = &live.compiled.definition.graph;
        let state = live.run.find(graph, &path).and_then(|at| live.run.step(graph, at));
        match state.map(|state| state.phase) {
            Some(Phase::Done(Status::Success)) => Err(Ignored::Repeated.into()),
            Some(Phase::Done(_)) => Err(Ignored::StepFinished.into()),
            _ if live.run.status.is_terminal() => Err(Ignored::RunFinished.into()),
            _ => Ok(live.org),
        }
    }

    /// The run and the path of the step that a genuine token names.
    async fn callback_target(&self, token: &str) -> Result<(Box<Live>, String), Error> {
        let unknown = || Error::NotFound { what: "callback", name: token.chars().take(60).collect() };
        let named = Named::parse(token).ok_or_else(unknown)?;
        let id = self.genuine(&named).await?.ok_or_else(unknown)?;
        Ok((load(self.rooms, id, &named.run).await?, named.path))
    }

    /// The run of a token, if the token is genuine. Reads the run's secret only: a forged token must not cost more.
    async fn genuine(&self, named: &Named) -> Result<Option<RunId>, Error> {
        let found = self.rooms.cluster.store.run_secret(&named.run).await?;
        // An unknown run takes as long as a wrong code.
        let (id, secret) = found.map_or((None, [0; 16]), |(id, secret)| (Some(id), secret));
        let genuine = named.is_genuine(&secret);
        Ok(id.filter(|_| genuine))
    }

    /// The target of an approval link, and the user it answers for.
    pub async fn linked(&self, link: &str) -> Result<Linked, Error> {
        let unknown = || Error::NotFound { what: "link", name: link.chars().take(20).collect() };
        let named = links::Named::parse(link).ok_or_else(unknown)?;
        let id = self.genuine(&named.token).await?.ok_or_else(unknown)?;
        let live = load(self.rooms, id, &named.token.run).await?;
        let caller = user_caller(self.rooms, live.org, &named.user).await?;
        let linked = |asks| Linked {
            run: named.token.run.clone(),
            step: named.path.clone(),
            workflow: live.compiled.row.name.clone(),
            caller: caller.clone(),
            asks,
        };
        // A retry with a newer version may have removed the step.
        let Ok((path, state)) = step_named(&live, &named.path) else {
            return Ok(linked(Asks::Over("The run has continued without this step.".into())));
        };
        if let Some(over) = links::outcome(&live, &path, state, &named) {
            return Ok(linked(Asks::Over(over)));
        }
        Gates::new(self.rooms, &caller).may_answer(&live, state).await?;
        let approval = Gates::new(self.rooms, &caller).approval(&live, path, state).await;
        Ok(linked(Asks::Open(Box::new(approval))))
    }

    /// Answers by a link. The decision must have a digest. Returns the target as it was before the answer.
    pub async fn answer_link(&self, link: &str, decision: Decision) -> Result<Linked, Error> {
        let linked = self.linked(link).await?;
        if let Asks::Over(_) = linked.asks {
            return Ok(linked);
        }
        if decision.digest.is_none() {
            return Err(invalid("digest", "give the digest of the request that was shown"));
        }
        Gates::new(self.rooms, &linked.caller).answer(&linked.run, &linked.step, decision).await?;
        Ok(linked)
    }
}

/// A user as a caller, without a key.
pub(super) async fn user_caller(rooms: &Rooms, org: OrgId, user: &str) -> Result<Caller, Error> {
    let actor = Actor { user: user.to_string(), key: None };
    let missing = || Error::Refused(format!("the user {user:?} is gone or disabled"));
    let grants = rooms.access.grants(org, &actor).await?.ok_or_else(missing)?;
    Ok(Caller::new(org, user, (*grants).clone()))
}
