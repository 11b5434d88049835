//! Runs: starting, awaiting, listing and controlling them.

use crate::client::or_empty;
use crate::pages::{Pages, filters};
use crate::webhooks::random;
use crate::{ATTEMPTS, Call, Client, Created, Error, Events, Run, RunStatus, RunSummary, Started};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long one call asks the server to wait.
const LONG_POLL: Duration = Duration::from_secs(30);

/// How to start a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TriggerOptions {
    /// Calls with the same key start only one run. By default it is random.
    pub idempotency_key: Option<String>,
    /// Labels of the run. A value cannot contain a comma.
    pub labels: BTreeMap<String, String>,
    /// When the run begins, in RFC 3339; until then it is scheduled.
    pub at: Option<String>,
    /// How long until the run begins; instead of `at`.
    pub delay: Option<Duration>,
}

/// How to start a run and wait for it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunOptions {
    /// How to start it.
    pub trigger: TriggerOptions,
    /// How long to wait; by default as long as it takes.
    pub timeout: Option<Duration>,
}

/// Which runs to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunFilters {
    /// Any of these; all if empty.
    pub status: Vec<RunStatus>,
    /// By name or id.
    pub workflow: Option<String>,
    /// All of these.
    pub labels: BTreeMap<String, String>,
    /// Who started them.
    pub created_by: Option<String>,
    /// Created at or after this instant, in RFC 3339.
    pub since: Option<String>,
    /// Created before this instant, in RFC 3339.
    pub until: Option<String>,
    /// Part of the id, of the creator's name or of a label.
    pub q: Option<String>,
    /// Test runs in place of real ones.
    pub tests: bool,
    /// The size of a page.
    pub limit: Option<u32>,
}

pub(crate) fn labels(labels: &BTreeMap<String, String>) -> Option<String> {
    let written: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(written.join(",")).filter(|labels| !labels.is_empty())
}

impl Client {
    /// Starts a run and returns as soon as it is on disk. Nothing as input is an empty object.
    pub async fn trigger(
        &self,
        workflow: &str,
        input: Value,
        options: TriggerOptions,
    ) -> Result<Created<Started>, Error> {
        self.created(start(&["workflows", workflow, "trigger"], input, &options)?).await
    }

    /// Starts a run and waits for its end, however it ends.
    pub async fn run(&self, workflow: &str, input: Value, options: RunOptions) -> Result<Run, Error> {
        within(options.timeout, async {
            let wait = options.timeout.unwrap_or(LONG_POLL).min(LONG_POLL);
            let path = ["workflows", workflow, "trigger"];
            let call = start(&path, input, &options.trigger)?.patience(wait);
            let run: Run = self.data(call.query("wait", Some(format!("{}ms", wait.as_millis())))).await?;
            if run.status.is_ended() { Ok(run) } else { self.ended(&run.run_id).await }
        })
        .await
    }

    /// The run, once it has ended.
    pub async fn wait(&self, run: &str, timeout: Option<Duration>) -> Result<Run, Error> {
        within(timeout, self.ended(run)).await
    }

    async fn ended(&self, id: &str) -> Result<Run, Error> {
        loop {
            let run = self.get(id).await?;
            if run.status.is_ended() {
                return Ok(run);
            }
            let mut events = self.watch(id);
            while events.next().await?.is_some() {}
        }
    }

    /// The run as it is.
    pub async fn get(&self, run: &str) -> Result<Run, Error> {
        self.data(Call::get(&["runs", run]).attempts(ATTEMPTS)).await
    }

    /// All runs that match, newest first.
    pub fn runs(&self, with: RunFilters) -> Pages<'_, RunSummary> {
        let status: Vec<&str> = with.status.iter().map(|status| status.as_str()).collect();
        let filters = filters([
            ("status", Some(status.join(",")).filter(|status| !status.is_empty())),
            ("workflow", with.workflow),
            ("label", labels(&with.labels)),
            ("created_by", with.created_by),
            ("since", with.since),
            ("until", with.until),
            ("q", with.q),
            ("tests", with.tests.then(|| "true".to_string())),
            ("limit", with.limit.map(|limit| limit.to_string())),
        ]);
        Pages::new(self, &["runs"], filters)
    }

    /// The events of a run from its first, as they happen, until it ends. The stream resumes by itself after a lost
    /// connection, without gaps or repetitions.
    pub fn watch(&self, run: &str) -> Events<'_> {
        Events::new(self, run, None)
    }

    /// Like [`Client::watch`], from behind this version of the run on.
    pub fn watch_after(&self, run: &str, version: i64) -> Events<'_> {
        Events::new(self, run, Some(version))
    }

    /// Cancels a run.
    pub async fn cancel(&self, run: &str, reason: Option<&str>) -> Result<Run, Error> {
        self.data(Call::post(&["runs", run, "cancel"]).json(json!({"reason": reason}))).await
    }

    /// Runs again what did not succeed.
    pub async fn retry(&self, run: &str) -> Result<Run, Error> {
        self.data(Call::post(&["runs", run, "retry"]).json(json!({}))).await
    }

    /// Like [`Client::retry`], on the newest version of the workflow.
    pub async fn retry_newest(&self, run: &str) -> Result<Run, Error> {
        self.data(Call::post(&["runs", run, "retry"]).json(json!({"newest": true}))).await
    }
}

/// A trigger always has an idempotency key, so that it can be repeated after a lost answer.
fn start<'a>(path: &[&'a str], input: Value, options: &TriggerOptions) -> Result<Call<'a>, Error> {
    if let Some((name, value)) = options.labels.iter().find(|(name, value)| name.contains(',') || value.contains(',')) {
        return Err(Error::Invalid(format!("the label {name}={value} contains a comma")));
    }
    let key = options.idempotency_key.clone().unwrap_or_else(|| format!("sdk-{}", random()));
    let delay = options.delay.map(|delay| format!("{}ms", delay.as_millis()));
    let call = Call::post(path).json(or_empty(input)).query("label", labels(&options.labels)).attempts(ATTEMPTS);
    let call = call.query("at", options.at.as_deref()).query("delay", delay);
    call.header("idempotency-key", Some(&key))
}

async fn within<T>(limit: Option<Duration>, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or(Err(Error::TimedOut)),
        None => work.await,
    }
}
