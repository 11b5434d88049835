//! `stepwell runs`, `show` and `events`: looking at runs in a data directory. Nothing is executed and nothing changes.

use super::Exit;
use crate::draw::plain;
use crate::embedded;
use crate::home::Data;
use crate::words::{brief, fact, instant, length, waiting};
use anyhow::bail;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::io::Write as _;
use stepwell_core::run::StoredFact;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{AttemptView, RunQuery, RunView, StepView};
use stepwell_store::RunRow;

/// Rows asked for in one go.
const PAGE: u32 = 1_000;
/// Characters of inputs and outputs that are shown.
const BRIEF: usize = 200;
const STATUSES: [&str; 7] = ["queued", "running", "paused", "completed", "failed", "cancelled", "timeout"];

#[derive(clap::Args)]
pub struct RunsArgs {
    #[command(flatten)]
    data: Data,
    /// queued, running, paused, completed, failed, cancelled or timeout
    #[arg(long)]
    status: Option<String>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// How many, newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

pub fn runs(args: RunsArgs) -> anyhow::Result<Exit> {
    if let Some(status) = args.status.as_deref().filter(|status| !STATUSES.contains(status)) {
        bail!("--status {status}: one of {}", STATUSES.join(", "));
    }
    let store = args.data.open_existing()?;
    embedded::runtime()?.block_on(async {
        let engine = embedded::at_rest(store.clone());
        let caller = embedded::caller();
        let mut out = std::io::stdout().lock();
        let mut names: HashMap<i64, String> = HashMap::new();
        let (mut left, mut before) = (args.limit, None);
        while left > 0 {
            let limit = left.min(PAGE);
            let (status, workflow) = (args.status.iter().cloned().collect(), args.workflow.clone());
            let query = RunQuery { status, workflow, before, limit, ..RunQuery::default() };
            let page = engine.runs(&caller, query).await?;
            for run in &page {
                if let Entry::Vacant(unknown) = names.entry(run.definition) {
                    let found = store.definition(run.definition).await?;
                    unknown.insert(found.map_or("?".into(), |row| format!("{} {}", row.name, row.version)));
                }
                writeln!(out, "{}", listed(run, &names[&run.definition], args.json))?;
            }
            before = page.last().map(|run| run.id);
            left -= page.len() as u32;
            if page.len() < limit as usize {
                break;
            }
        }
        Ok(Exit::Success)
    })
}

/// `name` has the version after a space.
fn listed(run: &RunRow, name: &str, as_json: bool) -> String {
    let (name, version) = name.rsplit_once(' ').unwrap_or((name, "0"));
    if as_json {
        let version: u32 = version.parse().unwrap_or_default();
        let times = (run.created, run.started, run.finished);
        return json!({"run": run.public, "workflow": name, "workflow_version": version, "status": run.status,
                      "created_by": run.by, "created_at": times.0, "started_at": times.1, "finished_at": times.2,
                      "child": run.parent.is_some()})
        .to_string();
    }
    let took = run.finished.map(|end| format!("  {}", length(end.since(run.created)))).unwrap_or_default();
    plain(&format!("{}  {:<9}  {}  {name} ({version}){took}", run.public, run.status, instant(run.created)))
}

#[derive(clap::Args)]
pub struct ShowArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    data: Data,
    /// The whole run as one JSON document
    #[arg(long)]
    json: bool,
}

pub fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let store = args.data.open_existing()?;
    let view = embedded::runtime()?.block_on(embedded::at_rest(store).status(&embedded::caller(), &args.run))?;
    let text = if args.json { format!("{:#}\n", json!(view)) } else { page(&view) };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Success)
}

fn page(view: &RunView) -> String {
    let mut text = String::new();
    let mut line = |what: String| {
        let _ = writeln!(text, "{}", plain(&what));
    };
    line(format!("{}: {}, version {}: {}", view.id, view.workflow, view.workflow_version, view.status));
    let ended =
        view.finished_at.map(|end| format!(", ended {} ({})", instant(end), length(end.since(view.created_at))));
    let retries = match view.generation {
        0 => String::new(),
        1 => ", retried once".into(),
        n => format!(", retried {n} times"),
    };
    let created = instant(view.created_at);
    line(format!("created {created} by {}{}{retries}", view.created_by, ended.unwrap_or_default()));
    line(format!("input {}", brief(&view.input, BRIEF)));
    view.output.iter().for_each(|output| line(format!("output {}", brief(output, BRIEF))));
    view.error.iter().for_each(|error| line(format!("error {}", message(error))));
    view.waiting_for.iter().for_each(|wait| line(format!("waiting: {}", waiting(wait))));
    for step in &view.tasks {
        line(String::new());
        describe(step, &mut line);
    }
    text
}

fn describe(step: &StepView, line: &mut impl FnMut(String)) {
    let attempt = if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
    let code = step.status_code.map(|code| format!(", HTTP {code}")).unwrap_or_default();
    let took = step.duration_ms.map(|millis| format!(", {}", length(Millis(millis.unsigned_abs()))));
    let took = took.unwrap_or_default();
    line(format!("{} ({}): {}{attempt}{code}{took}", step.path, step.kind, step.status));
    step.input.iter().for_each(|input| line(format!("  input {}", brief(input, BRIEF))));
    step.output.iter().for_each(|output| line(format!("  output {}", brief(output, BRIEF))));
    step.error.iter().for_each(|error| line(format!("  error {}", message(error))));
    for AttemptView { attempt, status, started_at, error, .. } in &step.attempts {
        let why = error.as_ref().map(|error| format!(": {}", message(error))).unwrap_or_default();
        line(format!("  attempt {attempt} at {}: {status}{why}", instant(*started_at)));
    }
}

fn message(error: &Value) -> String {
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_string();
    format!("{} [{}]", text("message"), text("code"))
}

#[derive(clap::Args)]
pub struct EventsArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    data: Data,
    /// Only what came after this version of the run
    #[arg(long, value_name = "VERSION", default_value_t = 0)]
    after: i64,
    /// One JSON object per line, as stored: payloads are named by number
    #[arg(long)]
    json: bool,
}

pub fn events(args: EventsArgs) -> anyhow::Result<Exit> {
    let store = args.data.open_existing()?;
    embedded::runtime()?.block_on(async {
        let engine = embedded::at_rest(store);
        let caller = embedded::caller();
        let mut out = std::io::stdout().lock();
        let mut after = args.after;
        loop {
            let page = engine.events(&caller, &args.run, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(Exit::Success) };
            after = last.version;
            for event in &page {
                if args.json {
                    writeln!(out, "{}", json!(event))?;
                } else {
                    let stored: StoredFact = serde_json::from_value(event.fact.clone())?;
                    let words = fact(&stored, &instant);
                    writeln!(out, "{:>5}  {}  {}", event.version, event.at, plain(&words))?;
                }
            }
        }
    })
}
