//! The events of all runs of an organisation, from now on or from a client's cursor.

use super::frames::{Reached, by_progress, named, stopped, without_ids};
use super::hub::About;
use super::stream::{Credentials, Next, Over, Stream};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Params;
use crate::error::Problem;
use crate::rest::Problems;
use crate::view::OfRun;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;
use stepwell_engine::Caller;
use stepwell_engine::commands::Right;
use stepwell_store::{Fed, Position};
use utoipa::IntoParams;

/// Rows read at a time.
const PAGE: u32 = 200;

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Only runs of this workflow, by name or id
    workflow: Option<String>,
    /// Include test runs
    tests: bool,
    /// Only events after this position in the log; `Last-Event-ID` takes precedence
    after: Option<String>,
}

/// The events of all runs of the organisation, from now on or from where you stopped
///
/// Server-sent events in the format of a run's stream. Ids are positions in the log of all runs. Events of one run
/// arrive in order. Events that concern you personally, such as a gate that you may answer, are also sent as
/// `notification`.
#[utoipa::path(get, path = "/api/v1/events", operation_id = "streamEvents", tag = "live", params(
    ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event you received"), Filter), responses(
    (status = 200, description = "Events as they happen", content_type = "text/event-stream", body = String),
    Problems))]
pub async fn event_stream(
    State(app): State<App>,
    Auth(caller): Auth,
    credentials: Credentials,
    Params(filter): Params<Filter>,
) -> Result<Response, Problem> {
    caller.check(Right::Read)?;
    let stopped = stopped(&credentials.headers, filter.after.as_deref())?;
    let workflow = match &filter.workflow {
        Some(name) => Some(app.engine.workflows(&caller).get(name).await?.row.workflow.clone()),
        None => None,
    };
    let watch = app.hub.watch(&caller).await?;
    let now = app.engine.log().progress().await?;
    let (mut reached, seen) = stopped.unwrap_or_else(|| (Reached { progress: now.clone(), row: None }, None));
    if !now.covers(&reached.progress) {
        return Err(Problem::input("Last-Event-ID", format!("the log is at {now}: this id belongs to another log")));
    }
    let partly = reached.row.zip(seen);
    if let Some((row, _)) = partly {
        // The row is sent again in part.
        reached.progress.back(row);
    }
    let (stream, response) = Stream::new(app, watch, credentials);
    let mut events = Events { stream, caller, workflow, tests: filter.tests, partly, reached };
    tokio::spawn(async move {
        if let Err(over) = events.send().await {
            over.count();
        }
    });
    Ok(response)
}

struct Events {
    stream: Stream,
    caller: Caller,
    workflow: Option<String>,
    tests: bool,
    /// A row that the client has in part, up to this event.
    partly: Option<(Position, usize)>,
    reached: Reached,
}

impl Events {
    async fn send(&mut self) -> Result<(), Over> {
        if self.partly.is_none() {
            self.here().await?;
        }
        loop {
            self.past().await?;
            self.live().await?;
        }
    }

    /// Sends the position, so that the client can resume even if it received no event.
    async fn here(&mut self) -> Result<(), Over> {
        let text = format!(": here\nid: {}\n\n", self.reached);
        self.stream.write(text, None).await
    }

    /// Sends the rows of the organisation in the store.
    async fn past(&mut self) -> Result<(), Over> {
        // Read first: all rows up to here are on disk, and those of others are passed without being read.
        let now = self.stream.app.engine.log().progress().await?;
        loop {
            // Many pages may contain no event for this client.
            self.stream.tend().await?;
            let log = self.stream.app.engine.log();
            let rows = log.feed_of(self.caller.org, &self.reached.progress, PAGE).await?;
            let last = rows.len() < PAGE as usize;
            for fed in rows {
                self.take(fed.log.position);
                if let Some(about) = self.wanted(&fed).await? {
                    let seen = self.partly.filter(|(row, _)| *row == fed.log.position).map(|(_, seen)| seen);
                    let text = by_progress(
                        &without_ids(OfRun { run: &fed.public, workflow: &about.name }, &fed.log),
                        &self.reached,
                        seen,
                    );
                    self.stream.rows(text, None).await?;
                }
            }
            if last {
                now.positions().for_each(|position| self.reached.progress.pass(position));
                return Ok(());
            }
        }
    }

    /// Sends new rows until some were missed.
    async fn live(&mut self) -> Result<(), Over> {
        loop {
            let batch = match self.stream.next().await? {
                Next::Batch(batch) => batch,
                Next::Missed => return Ok(()),
                Next::Quiet => {
                    self.here().await?;
                    continue;
                }
            };
            if !self.reached.progress.covers(&batch.after) {
                // The batch is read again from the store, together with the missing rows before it.
                return Ok(());
            }
            for row in &batch.rows {
                let position = row.fed.log.position;
                if self.reached.progress.has(position) {
                    continue;
                }
                self.take(position);
                if let Some(about) = self.wanted(&row.fed).await? {
                    let text = by_progress(row.without_ids(&about.name), &self.reached, None);
                    self.stream.rows(text, row.since).await?;
                    // Without an id: notifications are not repeated after a reconnect.
                    for message in row.announced(&self.stream.watch.hub, &self.caller).await {
                        self.stream.write(named("notification", &message), None).await?;
                    }
                }
            }
        }
    }

    fn take(&mut self, position: Position) {
        self.reached.progress.pass(position);
        self.reached.row = Some(position);
    }

    /// What is known of the run, if the client wants its events.
    async fn wanted(&self, fed: &Fed) -> Result<Option<Arc<About>>, Over> {
        if fed.org != self.caller.org {
            return Ok(None);
        }
        let about = self.stream.watch.hub.about(fed.run).await?;
        let ours = |workflow: &String| self.workflow.as_ref().is_none_or(|wanted| wanted == workflow);
        Ok(about.filter(|about| (self.tests || !about.test) && ours(&about.workflow)))
    }
}
