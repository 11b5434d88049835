//! Runs as tools show them, and waiting for them.

use super::{gates, text};
use crate::app::App;
use crate::error::Problem;
use crate::view::{ApprovalView, Run};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_engine::commands::Right;
use stepwell_engine::{Activity, Caller};
use stepwell_store::RunId;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// A call does not wait longer than this: proxies and clients give up not long after.
pub const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How often a run that another node moves on is looked at.
const POLL: Duration = Duration::from_millis(500);
/// Statuses of runs that did not come to a good end.
const BAD: [&str; 3] = ["failed", "timeout", "cancelled"];

/// How much of a run is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// How it stands.
    Brief,
    /// And its steps.
    Full,
}

/// A run and the gates that are open in it.
pub struct RunState {
    pub run: Run,
    pub approvals: Vec<ApprovalView>,
    may_read: bool,
}

/// A run as this caller may see it.
pub async fn read(app: &App, caller: &Caller, run: &str) -> Result<RunState, Problem> {
    if !caller.may(Right::Run) {
        caller.check(Right::Read)?;
    }
    let run = Run::from(app.engine.runs(caller).get_after_change(run).await?);
    let approvals = gates::open(app, caller, &run).await?;
    Ok(RunState { run, approvals, may_read: caller.may(Right::Read) })
}

impl RunState {
    /// Without a look at its gates.
    pub fn alone(run: Run, caller: &Caller) -> RunState {
        RunState { run, approvals: Vec::new(), may_read: caller.may(Right::Read) }
    }

    /// For a call that was about the run itself: it is an error if the run came to a bad end.
    pub fn outcome(&self) -> CallToolResult {
        let mut result = self.shown(Detail::Brief);
        result.is_error = Some(BAD.contains(&self.run.status.as_str()));
        result
    }

    pub fn shown(&self, detail: Detail) -> CallToolResult {
        let mut text = text::run(&self.run, &self.approvals, self.may_read);
        if detail == Detail::Full {
            text += &text::steps(&self.run);
        }
        text::result(self.structured(detail), text)
    }

    fn structured(&self, detail: Detail) -> Value {
        let run = &self.run;
        let mut shown = json!({
            "run_id": run.id,
            "workflow": run.workflow,
            "workflow_version": run.workflow_version,
            "status": run.status,
            "finished": run.finished_at.is_some(),
            "error": run.error,
            "waiting_for": run.waiting_for,
            "approvals": self.approvals,
        });
        if let Some(output) = &run.output {
            shown["output"] = output.clone();
        }
        if detail == Detail::Full {
            let more = json!({"created_by": run.created_by, "created_at": run.created_at, "input": run.input,
                "started_at": run.started_at, "finished_at": run.finished_at, "tasks": run.tasks,
                "labels": run.labels, "generation": run.generation});
            if let (Value::Object(shown), Value::Object(more)) = (&mut shown, more) {
                shown.extend(more);
            }
        }
        shown
    }
}

/// Waits until a run has ended or nothing but a person can move it on, and no longer than this.
pub async fn settled(app: &App, run: RunId, longest: Duration) -> Result<(), Problem> {
    let until = Instant::now() + longest.min(LONGEST_WAIT);
    // From before the first look, so that nothing is missed in between.
    let mut commits = app.engine.activity();
    loop {
        let row = app.engine.log().run(run).await.map_err(stepwell_engine::Error::from)?;
        if row.is_none_or(|row| row.finished.is_some() || row.status == "paused") || Instant::now() >= until {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = moved(&mut commits, run) => {}
            () = app.hub.stopping() => return Ok(()),
            () = tokio::time::sleep_until(until.min(Instant::now() + POLL)) => {}
        }
    }
}

/// Comes when something happened to the run.
async fn moved(commits: &mut tokio::sync::broadcast::Receiver<Activity>, run: RunId) {
    loop {
        match commits.recv().await {
            Ok(Activity::Committed(commit)) if commit.run != run => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            // The engine has stopped: whoever waits ends by the clock.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
