//! The events of one run, from the client's cursor to the end of the run.

use super::frames::{Cursor, Seen, Turn, by_version, frame};
use super::stream::{Credentials, Next, Over, Stream};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Params;
use crate::error::Problem;
use crate::rest::Problems;
use crate::view::OfRun;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use stepwell_engine::commands::Right;
use stepwell_engine::{Caller, Error};
use stepwell_store::{RunId, RunRow, Version};
use utoipa::IntoParams;

/// Rows read at a time.
const PAGE: u32 = 200;

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub struct After {
    /// Only events after this version of the run; `Last-Event-ID` takes precedence
    after: Option<String>,
}

/// All events of a run as they happen, from its start or from where you stopped
///
/// Server-sent events: `event` is the type of the fact, `data` is the event as JSON, `id` is the value to send as
/// `Last-Event-ID` to resume after it. When the run has ended, an event `end` with its status follows and the stream
/// closes. Reconnecting after that returns 204.
#[utoipa::path(get, path = "/api/v1/runs/{run}/stream", operation_id = "streamRun", tag = "live", params(
    ("run" = String, Path, description = "Id of the run"),
    ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event you received"), After), responses(
    (status = 200, description = "Events as they happen", content_type = "text/event-stream", body = String),
    (status = 204, description = "The run has ended and you have all its events"), Problems))]
pub async fn run_stream(
    State(app): State<App>,
    Auth(caller): Auth,
    credentials: Credentials,
    Path(run): Path<String>,
    Params(after): Params<After>,
) -> Result<Response, Problem> {
    caller.check(Right::Read)?;
    let cursor = Cursor::asked(&credentials.headers, after.after.as_deref())?.unwrap_or_default();
    let id = find(&app, &caller, &run).await?.id;
    let watch = app.hub.watch(&caller).await?;
    // Registered first: commits from here on are forwarded, and the rows read below connect to them.
    let row = find(&app, &caller, &run).await?;
    let ended = is_over(&row.status).then(|| row.status.clone());
    if cursor.at > 0 {
        let rows = app.engine.log().tail(id, Version(cursor.at - 1), 2).await?;
        if rows.is_empty() {
            return Err(Problem::input(
                "Last-Event-ID",
                "the run has not reached this version: the id belongs to another run",
            ));
        }
        if ended.is_some() && cursor.seen == Seen::End && rows.len() == 1 {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let (stream, response) = Stream::new(app, watch, credentials);
    let mut events = Events { stream, id, run, cursor, at: cursor.after(), ended };
    tokio::spawn(async move {
        if let Err(over) = events.send().await {
            over.count();
        }
    });
    Ok(response)
}

/// A run of the caller's organisation. Runs of others are reported as missing.
pub async fn find(app: &App, caller: &Caller, run: &str) -> Result<RunRow, Error> {
    let none = || Error::NotFound { what: "run", name: run.to_string() };
    app.engine.log().find(run).await?.filter(|row| row.org == caller.org).ok_or_else(none)
}

fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled" | "timeout")
}

struct Events {
    stream: Stream,
    id: RunId,
    run: String,
    cursor: Cursor,
    /// The version of the last row.
    at: i64,
    /// How the run ended, according to the rows so far. Before the first row: according to the store.
    ended: Option<String>,
}

impl Events {
    async fn send(&mut self) -> Result<(), Over> {
        loop {
            self.past().await?;
            self.live().await?;
        }
    }

    /// Sends the rows in the store.
    async fn past(&mut self) -> Result<(), Over> {
        let workflow = self.workflow().await?;
        let (run, id) = (self.run.clone(), self.id);
        loop {
            let rows = self.stream.app.engine.log().tail(id, Version(self.at), PAGE).await?;
            for row in &rows {
                let frames =
                    by_version(OfRun { run: &run, workflow: &workflow }, row, self.cursor.seen_of(row.version.0));
                self.stream.rows(frames.text.clone(), None).await?;
                self.passed(row.version, frames.turn);
            }
            if rows.len() < PAGE as usize {
                return self.end().await;
            }
        }
    }

    /// The name of the run's workflow.
    async fn workflow(&self) -> Result<String, Over> {
        let about = self.stream.watch.hub.about(self.id).await?;
        Ok(about.map(|about| about.name.clone()).unwrap_or_default())
    }

    /// Sends new rows until some were missed.
    async fn live(&mut self) -> Result<(), Over> {
        let workflow = self.workflow().await?;
        loop {
            let batch = match self.stream.next().await? {
                Next::Batch(batch) => batch,
                Next::Missed => return Ok(()),
                Next::Quiet => {
                    self.stream.write(": quiet\n\n", None).await?;
                    // A test run can be deleted before it ends.
                    if self.stream.app.engine.log().run(self.id).await?.is_none() {
                        return Err(Over::Done);
                    }
                    continue;
                }
            };
            let run = self.id;
            for row in batch.rows.iter().filter(|row| row.fed.run == run) {
                let version = row.fed.log.version;
                if version.0 <= self.at {
                    continue;
                }
                if version.0 > self.at + 1 {
                    return Ok(());
                }
                let frames = row.by_version(&workflow);
                self.stream.rows(frames.text.clone(), row.since).await?;
                self.passed(version, frames.turn.clone());
            }
            self.end().await?;
        }
    }

    fn passed(&mut self, version: Version, turn: Option<Turn>) {
        self.at = version.0;
        match turn {
            Some(Turn::Ended(status)) => self.ended = Some(status),
            Some(Turn::GoesOn) => self.ended = None,
            None => {}
        }
    }

    /// Sends the `end` event once everything up to the end of the run was sent.
    async fn end(&mut self) -> Result<(), Over> {
        let Some(status) = &self.ended else { return Ok(()) };
        let mut text = String::new();
        let data = json!({"run_id": self.run, "type": "end", "status": status, "version": self.at});
        frame(&mut text, format_args!("{}.end", self.at), "end", &data);
        self.stream.write(text, None).await?;
        Err(Over::Done)
    }
}
