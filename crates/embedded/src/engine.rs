//! The engine in a program: definitions, runs, answers.

use crate::builder::Builder;
use crate::error::Error;
use crate::run::{Approval, Event, Run};
use serde_json::Value;
use std::time::Duration;
use stepwell_engine::commands::{Decision, NewSecret, Retry, Source, Trigger};
use stepwell_engine::{Activity, Caller};
use tokio::sync::broadcast;

/// How long running calls may take to end when the engine stops.
const PATIENCE: Duration = Duration::from_secs(10);
/// Entries per page.
const PAGE: u32 = 500;
/// The user of programs that name none.
const LOCAL: &str = "local";

/// A running engine. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    engine: stepwell_engine::Engine,
    caller: Caller,
}

/// Changes of runs: see [`Engine::changes`].
pub struct Changes(broadcast::Receiver<Activity>);

impl Changes {
    /// Waits until something has changed, in any run of this process. Read then what you show. `false` once the engine is
    /// gone.
    pub async fn next(&mut self) -> bool {
        // One that fell behind has missed changes, which is a change too.
        !matches!(self.0.recv().await, Err(broadcast::error::RecvError::Closed))
    }
}

/// What is said with an answer to an [`Approval`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// Why.
    pub comment: Option<String>,
    /// The filled form.
    pub data: Option<Value>,
    /// [`Approval::digest`] of what the person saw. The answer is refused if the question has changed since.
    pub digest: Option<String>,
}

impl Engine {
    /// Settings, to open an engine with.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(engine: stepwell_engine::Engine) -> Engine {
        Engine { engine, caller: Caller::local(LOCAL) }
    }

    /// This engine, acting for a user of your program: what is done with it is recorded under that name, and tools see it as
    /// [`Call::user`](crate::Call::user). The name is not checked.
    pub fn acting_for(&self, user: &str) -> Engine {
        Engine { caller: Caller::local(user), ..self.clone() }
    }

    /// Stores a definition in YAML or JSON as a new workflow, or as the next version of the one with its name. Returns its
    /// name.
    pub async fn define(&self, definition: &str) -> Result<String, Error> {
        let source = Source { text: definition, file: None };
        Ok(self.engine.workflows(&self.caller).define(source).await?.compiled.row.name.clone())
    }

    /// Starts a run and returns its id as soon as it is on disk. Runs start by themselves on the schedules of workflows.
    pub async fn start(&self, workflow: &str, input: Value) -> Result<String, Error> {
        Ok(self.engine.runs(&self.caller).trigger(Trigger::new(workflow, input)).await?.run)
    }

    /// Like [`Engine::start`], but calls with the same key start only one run.
    pub async fn start_once(&self, key: &str, workflow: &str, input: Value) -> Result<String, Error> {
        let trigger = Trigger { key: Some(key), ..Trigger::new(workflow, input) };
        Ok(self.engine.runs(&self.caller).trigger(trigger).await?.run)
    }

    /// Starts a run and waits for its end, however it ends.
    pub async fn run(&self, workflow: &str, input: Value) -> Result<Run, Error> {
        let runs = self.engine.runs(&self.caller);
        let (started, end) = runs.trigger_and_watch(Trigger::new(workflow, input)).await?;
        end.reached().await?;
        self.get(&started.run).await
    }

    /// The run, once it has ended. To wait at most for a while, use `tokio::time::timeout`; the run goes on.
    pub async fn wait(&self, run: &str) -> Result<Run, Error> {
        self.engine.runs(&self.caller).wait(run).await?;
        self.get(run).await
    }

    /// The run as it is.
    pub async fn get(&self, run: &str) -> Result<Run, Error> {
        Ok(self.engine.runs(&self.caller).get(run).await?.into())
    }

    /// The next entries of a run's log behind this version, at most 500; none at its end. Begin with 0.
    pub async fn events(&self, run: &str, after: i64) -> Result<Vec<Event>, Error> {
        let events = self.engine.runs(&self.caller).events(run, after, PAGE).await?;
        Ok(events.events.into_iter().map(Event::from).collect())
    }

    /// Cancels a run.
    pub async fn cancel(&self, run: &str, reason: Option<&str>) -> Result<(), Error> {
        Ok(self.engine.runs(&self.caller).cancel(run, reason).await?)
    }

    /// Runs again what did not succeed, on the newest version of the workflow.
    pub async fn retry(&self, run: &str) -> Result<(), Error> {
        Ok(self.engine.runs(&self.caller).retry(run, Retry::Newest).await?)
    }

    /// All open approvals, oldest first.
    pub async fn approvals(&self) -> Result<Vec<Approval>, Error> {
        let gates = self.engine.gates(&self.caller);
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = gates.list(after, PAGE).await?;
            all.extend(page.into_iter().map(Approval::from));
            match next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Approves what a step asks.
    pub async fn approve(&self, run: &str, step: &str, answer: Answer) -> Result<(), Error> {
        self.answer(run, step, true, answer).await
    }

    /// Denies what a step asks.
    pub async fn deny(&self, run: &str, step: &str, answer: Answer) -> Result<(), Error> {
        self.answer(run, step, false, answer).await
    }

    async fn answer(&self, run: &str, step: &str, approve: bool, answer: Answer) -> Result<(), Error> {
        let Answer { comment, data, digest } = answer;
        let decision = Decision { approve, comment, data, digest, input: None };
        Ok(self.engine.gates(&self.caller).answer(run, step, decision).await?)
    }

    /// Delivers a call to a step that waits for a webhook.
    pub async fn deliver(&self, run: &str, step: &str, body: Value) -> Result<(), Error> {
        Ok(self.engine.steps(&self.caller).deliver_to(run, step, body).await?)
    }

    /// Tells of every change of a run from now on.
    pub fn changes(&self) -> Changes {
        Changes(self.engine.activity())
    }

    /// Creates or changes a secret, which templates read as `{{secrets.NAME}}`. It is encrypted at rest and masked in logs.
    /// It can be sent to these hosts only, or to any if there are none.
    pub async fn set_secret(&self, name: &str, value: &str, hosts: &[&str]) -> Result<(), Error> {
        let hosts = Some(hosts.iter().map(|host| host.to_string()).collect());
        let secret = NewSecret { value: Some(value.to_string()), hosts };
        self.engine.secrets(&self.caller).put(name, secret).await?;
        Ok(())
    }

    /// Takes no new work, gives running calls ten seconds to end, and stops. The next engine on the same store continues.
    /// An engine that is dropped without it stops as a crash would: nothing is lost, but calls may be repeated.
    pub async fn shutdown(&self) {
        self.engine.shutdown(PATIENCE).await;
    }
}
