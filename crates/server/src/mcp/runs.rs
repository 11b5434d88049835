//! Runs as results of tools, and waiting for them.

use super::{bounds, gates, resources, text};
use crate::app::App;
use crate::error::Problem;
use crate::view::{ApprovalView, Run};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_engine::commands::Right;
use stepwell_engine::{Activity, Caller};
use stepwell_store::RunId;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// Maximum wait of a call: proxies and clients time out soon after.
pub const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// How long a call waits for the end of a run by default.
pub const USUAL_WAIT: Duration = Duration::from_secs(5);
/// How often a run is polled, in case another node executes it.
const POLL: Duration = Duration::from_millis(500);
/// Statuses of runs that did not succeed.
const BAD: [&str; 3] = ["failed", "timeout", "cancelled"];

/// How much of a run is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Its state.
    Brief,
    /// Its state and its steps.
    Full,
}

/// A run and its open gates.
pub struct RunState {
    pub run: Run,
    pub approvals: Vec<ApprovalView>,
    may_read: bool,
    /// Where people answer gates.
    address: String,
}

/// Reads a run with what the caller may see.
pub async fn read(app: &App, caller: &Caller, run: &str) -> Result<RunState, Problem> {
    if !caller.may(Right::Run) {
        caller.check(Right::Read)?;
    }
    let run = Run::from(app.engine.runs(caller).get_after_change(run).await?);
    let approvals = gates::open(app, caller, &run).await?;
    Ok(RunState { run, approvals, may_read: caller.may(Right::Read), address: address(app) })
}

impl RunState {
    /// Without reading its gates.
    pub fn without_gates(run: Run, caller: &Caller, app: &App) -> RunState {
        RunState { run, approvals: Vec::new(), may_read: caller.may(Right::Read), address: address(app) }
    }

    /// The result of a call whose subject is the run itself: an error if the run did not succeed.
    pub fn outcome(&self) -> CallToolResult {
        let mut result = self.shown(Detail::Brief);
        result.is_error = Some(BAD.contains(&self.run.status.as_str()));
        result
    }

    pub fn shown(&self, detail: Detail) -> CallToolResult {
        self.shown_within(detail, bounds::STRUCTURED)
    }

    /// With at most this many bytes of structured content. If something is cut, a link leads to all of it.
    pub fn shown_within(&self, detail: Detail, most: usize) -> CallToolResult {
        let mut text = self.text(self.may_read);
        if detail == Detail::Full {
            text += &text::steps(&self.run);
        }
        let whole = self.structured(detail);
        let cut = bounds::size(&whole) > most;
        if cut && self.may_read {
            text += &format!("\nThe results are cut: read them with step_result, run_id {:?}.", self.run.id);
        }
        let mut result = text::result_within(whole, text, most);
        if cut && self.may_read {
            let link = Resource::new(resources::of_run(&self.run.id), format!("run {}", self.run.id));
            result.content.push(ContentBlock::resource_link(link.with_mime_type("application/json")));
        }
        result
    }

    /// The state in words.
    pub fn text(&self, may_read: bool) -> String {
        text::run(&self.run, &self.approvals, &self.address, may_read)
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
            "approvals": self.approvals.iter().map(|gate| self.gate(gate)).collect::<Vec<_>>(),
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

    /// A gate, with what to tell the person who answers it.
    fn gate(&self, approval: &ApprovalView) -> Value {
        let mut shown = json!(approval);
        shown["address"] = json!(self.address);
        shown["command"] = json!(text::command(approval));
        shown
    }
}

fn address(app: &App) -> String {
    format!("{}/approvals", app.public_url)
}

/// Waits for a run that the caller may see. Runs of others are reported as missing.
pub async fn wait(app: &App, caller: &Caller, run: &str, longest: Duration) -> Result<(), Problem> {
    let state = read(app, caller, run).await?;
    if !longest.is_zero()
        && state.run.finished_at.is_none()
        && let Some(row) = app.engine.log().find(run).await?
    {
        settled(app, row.id, longest).await?;
    }
    Ok(())
}

/// Waits until a run has ended or only a person can continue it, at most for this time.
pub async fn settled(app: &App, run: RunId, longest: Duration) -> Result<(), Problem> {
    let until = Instant::now() + longest.min(LONGEST_WAIT);
    // Subscribes before the first read, so that nothing is missed in between.
    let mut commits = app.engine.activity();
    loop {
        let row = app.engine.log().run(run).await?;
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

/// Resolves when the run has changed.
async fn moved(commits: &mut tokio::sync::broadcast::Receiver<Activity>, run: RunId) {
    loop {
        match commits.recv().await {
            Ok(Activity::Committed(commit)) if commit.run != run => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            // The engine has stopped: the caller ends by its timeout.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
