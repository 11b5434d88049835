//! `stepwell runs`, `show` and `events`: read runs on a server or in a data directory. Nothing is executed or changed.

use super::{Exit, document};
use crate::backend::{Missing, RunRef, with};
use crate::client::Target;
use crate::describe::{brief, event, instant, length, listed_run, waiting};
use crate::draw::plain;
use anyhow::bail;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use stepwell_core::time::Millis;
use stepwell_server::view::{Attempt, ErrorView, Run, RunFilters, StartedBy, Step};

/// Maximum characters shown of an input or output.
const BRIEF: usize = 200;
const STATUSES: [&str; 8] = ["scheduled", "queued", "running", "paused", "completed", "failed", "cancelled", "timeout"];

#[derive(clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    at: Target,
    /// Only runs with this status: scheduled, queued, running, paused, completed, failed, cancelled or timeout
    #[arg(long)]
    status: Option<String>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs with this label (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub fn list(args: ListArgs) -> anyhow::Result<Exit> {
    let ListArgs { at, status, workflow, label, limit, json } = args;
    if let Some(status) = status.as_deref().filter(|status| !STATUSES.contains(status)) {
        bail!("--status {status}: expected one of {}", STATUSES.join(", "));
    }
    super::trigger::labels(&label)?;
    let label = Some(label.join(",")).filter(|labels| !labels.is_empty());
    let mut filters = RunFilters { status, workflow, label, ..RunFilters::default() };
    with(&at, Missing::Refuse, async |backend| {
        let mut out = std::io::stdout().lock();
        let mut left = limit;
        while left > 0 {
            filters.limit = Some(left);
            let page = backend.runs(&filters).await?;
            for run in &page.data {
                writeln!(out, "{}", if json { json!(run).to_string() } else { listed_run(run) })?;
            }
            left = left.saturating_sub(page.data.len() as u32);
            filters.cursor = page.next;
            if filters.cursor.is_none() {
                break;
            }
        }
        Ok(Exit::Success)
    })
}

#[derive(clap::Args)]
pub struct ShowArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    #[command(flatten)]
    at: Target,
    /// Print the whole run as JSON
    #[arg(long)]
    json: bool,
}

pub fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    with(&args.at, Missing::Refuse, async |backend| {
        let run = backend.run(&args.run.find(backend).await?).await?;
        if args.json {
            document(&run)?;
        } else {
            std::io::stdout().lock().write_all(page(&run).as_bytes())?;
        }
        Ok(Exit::Success)
    })
}

fn page(run: &Run) -> String {
    let mut text = String::new();
    let mut line = |content: String| {
        let _ = writeln!(text, "{}", plain(&content));
    };
    line(format!("{}: {}, version {}: {}", run.id, run.workflow, run.workflow_version, run.status));
    let created = run.created_at.0;
    let ended = run.finished_at.map(|end| format!(", ended {} ({})", instant(end.0), length(end.0.since(created))));
    let retries = match run.generation {
        0 => String::new(),
        1 => ", retried once".into(),
        n => format!(", retried {n} times"),
    };
    let means = run.started_by.as_ref().map(means).unwrap_or_default();
    line(format!("created {} by {}{means}{}{retries}", instant(created), run.created_by, ended.unwrap_or_default()));
    run.retried_by.iter().for_each(|by| line(format!("last retried by {by}")));
    run.scheduled_for.iter().for_each(|at| line(format!("scheduled for {}", instant(at.0))));
    if !run.labels.is_empty() {
        let labels: Vec<String> = run.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        line(format!("labels {}", labels.join(", ")));
    }
    run.erased_at.iter().for_each(|at| line(format!("input and output erased {}", instant(at.0))));
    line(format!("input {}", brief(&run.input, BRIEF)));
    run.output.iter().for_each(|output| line(format!("output {}", brief(output, BRIEF))));
    run.error.iter().for_each(|error| line(format!("error {}", message(error))));
    run.waiting_for.iter().for_each(|wait| line(format!("waiting: {}", waiting(wait))));
    for (path, step) in &run.tasks.0 {
        line(String::new());
        describe(path, step, &mut line);
    }
    if run.tasks_next.is_some() {
        line(String::new());
        line(format!("and more than these {} steps", run.tasks.0.len()));
    }
    text
}

/// What a user started the run with, or what did it for the user.
fn means(started: &StartedBy) -> String {
    let key = started.key.as_ref().map(|key| {
        let kind = if key.agent { "agent's key" } else { "key" };
        format!(" with the {kind} {}", key.name.as_ref().unwrap_or(&key.id))
    });
    let by = match started.how.as_str() {
        "schedule" => " (on a schedule)",
        "webhook" => " (by a webhook)",
        "run" => " (by another run)",
        _ => "",
    };
    format!("{}{by}", key.unwrap_or_default())
}

fn describe(path: &str, step: &Step, line: &mut impl FnMut(String)) {
    let attempt = if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
    let code = step.status_code.map(|code| format!(", HTTP {code}")).unwrap_or_default();
    let took = step.duration_ms.map(|millis| format!(", {}", length(Millis(millis.unsigned_abs()))));
    let took = took.unwrap_or_default();
    line(format!("{path} ({}): {}{attempt}{code}{took}", step.kind, step.status));
    step.input.iter().for_each(|input| line(format!("  input {}", brief(input, BRIEF))));
    step.output.iter().for_each(|output| line(format!("  output {}", brief(output, BRIEF))));
    step.error.iter().for_each(|error| line(format!("  error {}", message(error))));
    step.callback_url.iter().for_each(|url| line(format!("  ends with a call to {url}")));
    step.child_run_id.iter().for_each(|run| line(format!("  child run {run}")));
    step.log.iter().for_each(|entry| line(format!("  {} {}", entry.level, entry.text)));
    for Attempt { attempt, status, started_at, error, .. } in &step.attempts {
        let why = error.as_ref().map(|error| format!(": {}", message(error))).unwrap_or_default();
        line(format!("  attempt {attempt} at {}: {status}{why}", instant(started_at.0)));
    }
}

fn message(error: &ErrorView) -> String {
    format!("{} [{}]", error.message, error.code)
}

#[derive(clap::Args)]
pub struct EventsArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    #[command(flatten)]
    at: Target,
    /// Only events after this version of the run
    #[arg(long, value_name = "VERSION", default_value_t = 0)]
    after: i64,
    /// Print one JSON object per line, with payloads referenced by number
    #[arg(long)]
    json: bool,
}

pub fn events(args: EventsArgs) -> anyhow::Result<Exit> {
    with(&args.at, Missing::Refuse, async |backend| {
        let run = args.run.find(backend).await?;
        let mut out = std::io::stdout().lock();
        let mut after = args.after;
        loop {
            let page = backend.events(&run, after).await?;
            let Some(last) = page.last() else { return Ok(Exit::Success) };
            after = last.version;
            for one in &page {
                if args.json {
                    writeln!(out, "{}", json!(one))?;
                } else {
                    writeln!(out, "{:>5}  {}  {}", one.version, one.at.0, plain(&event(one, &instant)))?;
                }
            }
        }
    })
}
