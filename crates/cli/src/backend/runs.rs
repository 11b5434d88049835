//! Runs: looking at them, and deciding about them.

use super::{Backend, Directory, or_refusal};
use crate::client::{Call, Client};
use serde::Deserialize;
use serde_json::json;
use stepwell_engine::commands::{self as engine, Retry};
use stepwell_server::view::{Event, Page, Run, RunFilters, RunSummary};

/// Rows asked for in one go.
const PAGE: u32 = 1_000;

/// What a retry keeps.
#[derive(Deserialize)]
pub struct Standing {
    pub stands: Vec<String>,
    pub again: Vec<String>,
}

impl Backend {
    /// A page, newest first. What it ends with leads to the next one.
    pub async fn runs(&self, filters: &RunFilters) -> anyhow::Result<Page<RunSummary>> {
        match self {
            Backend::Server(client) => on_server(client, filters).await,
            Backend::Directory(directory) => directory.runs(filters).await,
        }
    }

    pub async fn run(&self, run: &str) -> anyhow::Result<Run> {
        match self {
            Backend::Server(client) => client.data(Call::get(&["runs", run])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.runs(caller).get(run).await)?.into())
            }
        }
    }

    /// The next events after a version; none at the end.
    pub async fn events(&self, run: &str, after: i64) -> anyhow::Result<Vec<Event>> {
        match self {
            Backend::Server(client) => {
                let path = ["runs", run, "events"];
                let call = Call::get(&path).query("after", Some(after)).query("limit", Some(PAGE));
                Ok(client.body::<Page<Event>>(call).await?.data)
            }
            Backend::Directory(Directory { engine, caller }) => {
                let events = or_refusal(engine.runs(caller).events(run, after, PAGE).await)?;
                Ok(events.events.into_iter().map(|event| Event::new(run, event)).collect())
            }
        }
    }

    pub async fn cancel(&self, run: &str, reason: Option<&str>) -> anyhow::Result<Run> {
        match self {
            Backend::Server(client) => {
                client.data(Call::post(&["runs", run, "cancel"]).json(json!({"reason": reason}))).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.runs(caller).cancel(run, reason).await)?;
                self.run(run).await
            }
        }
    }

    pub async fn release(&self, run: &str) -> anyhow::Result<Run> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["runs", run, "release"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.runs(caller).release(run).await)?;
                self.run(run).await
            }
        }
    }

    pub async fn retry(&self, run: &str, newest: bool) -> anyhow::Result<Run> {
        match self {
            Backend::Server(client) => {
                client.data(Call::post(&["runs", run, "retry"]).json(json!({"newest": newest}))).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let retry = if newest { Retry::Newest } else { Retry::SameVersion };
                or_refusal(engine.runs(caller).retry(run, retry).await)?;
                self.run(run).await
            }
        }
    }

    /// What would stand if the run went on, under the newest version or its own.
    pub async fn retry_preview(&self, run: &str, newest: bool) -> anyhow::Result<Standing> {
        match self {
            Backend::Server(client) => {
                client.data(Call::get(&["runs", run, "retry"]).query("newest", Some(newest))).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let retry = if newest { Retry::Newest } else { Retry::SameVersion };
                let standing = or_refusal(engine.runs(caller).retry_preview(run, retry).await)?;
                Ok(Standing { stands: standing.stands, again: standing.again })
            }
        }
    }
}

pub async fn on_server(client: &Client, filters: &RunFilters) -> anyhow::Result<Page<RunSummary>> {
    let RunFilters { status, workflow, label, q, tests, limit, cursor, .. } = filters;
    let call = Call::get(&["runs"]).query("status", status.as_ref()).query("workflow", workflow.as_ref());
    let call = call.query("label", label.as_ref()).query("q", q.as_ref()).query("tests", *tests);
    let call = call.query("cursor", cursor.as_ref());
    client.body(call.query("limit", Some(limit.unwrap_or(PAGE).min(PAGE)))).await
}

impl Directory {
    pub async fn runs(&self, filters: &RunFilters) -> anyhow::Result<Page<RunSummary>> {
        let limit = Some(filters.limit.unwrap_or(PAGE).min(PAGE));
        let query = or_refusal(engine::RunFilters::from(RunFilters { limit, ..filters.clone() }).query())?;
        Ok(or_refusal(self.engine.runs(&self.caller).page(query).await)?.into())
    }
}
