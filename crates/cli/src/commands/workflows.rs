//! `stepwell workflows`, `enable`, `disable`, `pause`, `resume` and `schedule`.

use super::{Exit, confirm, lines};
use crate::backend::{Missing, with};
use crate::client::Target;
use crate::describe::instant;
use crate::draw::plain;
use crate::input;
use anyhow::Context;
use std::io::Write;
use stepwell_server::view::{NewSchedule, ScheduleSummary, WorkflowSummary};

#[derive(clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub fn list(args: ListArgs) -> anyhow::Result<Exit> {
    with(&args.at, Missing::Refuse, async |backend| lines(&backend.workflows().await?, args.json, listed))
}

pub fn listed(workflow: &WorkflowSummary) -> String {
    let WorkflowSummary { name, version, triggers, .. } = workflow;
    format!("{name} ({version})  {}  {}", state(workflow), triggers.join(", "))
}

pub fn state(workflow: &WorkflowSummary) -> &'static str {
    match (workflow.enabled, workflow.paused) {
        (false, _) => "disabled",
        (true, true) => "paused",
        (true, false) => "enabled",
    }
}

#[derive(clap::Args)]
pub struct SwitchArgs {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    #[command(flatten)]
    at: Target,
    /// Print the workflow as JSON
    #[arg(long)]
    json: bool,
}

pub fn enable(args: SwitchArgs, enabled: bool) -> anyhow::Result<Exit> {
    with(&args.at, Missing::Refuse, async |backend| {
        let after = backend.enable(&args.workflow, enabled).await?;
        let word = if enabled { "enabled" } else { "disabled" };
        confirm(&after, args.json, &format!("{} is {word}", after.name))
    })
}

#[derive(clap::Args)]
pub struct HoldArgs {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Only runs with this concurrency key
    #[arg(long, value_name = "JSON")]
    concurrency_key: Option<String>,
    #[command(flatten)]
    at: Target,
    /// Print the workflow as JSON
    #[arg(long)]
    json: bool,
}

pub fn hold(args: HoldArgs, hold: bool) -> anyhow::Result<Exit> {
    let key = args.concurrency_key.as_deref().map(serde_json::from_str::<serde_json::Value>).transpose();
    let key = key.context("--concurrency-key is not JSON; text needs quotes, such as '\"eu\"'")?;
    with(&args.at, Missing::Refuse, async |backend| {
        let of = key.as_ref().map(|key| format!(" with the key {key}")).unwrap_or_default();
        let after = backend.hold(&args.workflow, key, hold).await?;
        let word = if hold { "wait until it is resumed" } else { "are released" };
        confirm(&after, args.json, &format!("new runs of {}{of} {word}", after.name))
    })
}

#[derive(clap::Args)]
pub struct ScheduleArgs {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Add a schedule of your own: a cron expression, such as "0 8 * * 1-5" or @daily
    #[arg(long, value_name = "CRON")]
    add: Option<String>,
    /// With --add: its time zone (default: UTC)
    #[arg(long, value_name = "ZONE", requires = "add")]
    timezone: Option<String>,
    /// With --add: input of each run: JSON, @FILE, `-` for standard input, or key=value (repeatable)
    #[arg(long, value_name = "INPUT", requires = "add")]
    input: Vec<String>,
    /// With --add: while an earlier run is unfinished: allow, skip or cancel (default: allow)
    #[arg(long, value_name = "RULE", requires = "add")]
    overlap: Option<String>,
    /// Remove a schedule that was added, by its id
    #[arg(long, value_name = "SCHEDULE", conflicts_with = "add")]
    remove: Option<String>,
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

impl ScheduleArgs {
    fn new_schedule(&self) -> anyhow::Result<Option<NewSchedule>> {
        let Some(cron) = self.add.clone() else { return Ok(None) };
        let input = if self.input.is_empty() { serde_json::Value::Null } else { input::input(&self.input)? };
        let (timezone, overlap) = (self.timezone.clone(), self.overlap.clone());
        Ok(Some(NewSchedule { cron, timezone, input, overlap, ..NewSchedule::default() }))
    }
}

pub fn schedule(args: ScheduleArgs) -> anyhow::Result<Exit> {
    let new = args.new_schedule()?;
    with(&args.at, Missing::Refuse, async |backend| {
        if let Some(new) = &new {
            let added = backend.add_schedule(&args.workflow, new).await?;
            return confirm(&added, args.json, &format!("{} is added to {}", added.id, added.workflow));
        }
        if let Some(id) = &args.remove {
            backend.remove_schedule(id).await?;
            return confirm(&serde_json::json!({"id": id}), args.json, &format!("{id} is removed"));
        }
        let all = backend.schedule(&args.workflow).await?;
        if all.is_empty() && !args.json {
            eprintln!("{}", plain(&format!("{} has no schedule", args.workflow)));
        }
        if args.json {
            return lines(&all, true, |_| String::new());
        }
        let mut out = std::io::stdout().lock();
        for schedule in &all {
            write!(out, "{}", plain(&describe_schedule(schedule)))?;
        }
        Ok(Exit::Success)
    })
}

fn describe_schedule(schedule: &ScheduleSummary) -> String {
    let mut text = match (&schedule.cron, &schedule.timezone) {
        (Some(cron), zone) => {
            let by = schedule.by.as_ref().map(|by| format!(", added by {by}: {}", schedule.id)).unwrap_or_default();
            format!("cron {cron}, {}{by}\n", zone.as_deref().unwrap_or("UTC"))
        }
        (None, _) => "once\n".to_string(),
    };
    if let Some(last) = schedule.last {
        let run = schedule.last_run_id.as_deref().unwrap_or("no run");
        let why = schedule.last_error.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        text.push_str(&format!("  last {}: {run}{why}\n", instant(last.0)));
    }
    if schedule.next.is_empty() {
        text.push_str("  no further fire times\n");
    }
    schedule.next.iter().for_each(|next| text.push_str(&format!("  {}\n", instant(next.0))));
    text
}
