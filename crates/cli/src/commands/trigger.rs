//! `stepwell trigger` and `rerun`: start a run on a server, and optionally wait for it or follow it.

use super::run::Progress;
use super::watch::{Watching, follow};
use super::{Exit, document};
use crate::backend::{RunRef, with_server};
use crate::client::{Call, Client, Created, Target};
use crate::describe::instant;
use crate::draw::plain;
use crate::input;
use anyhow::{Context, bail};
use std::io::Write;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_server::view::Triggered;

#[derive(clap::Args)]
pub struct TriggerArgs {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Input: JSON, @FILE, `-` for standard input, or key=value (repeatable; a value that parses as JSON is JSON)
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    /// Idempotency key: repeated requests with the same key start only one run
    #[arg(long)]
    key: Option<String>,
    /// Label of the run (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// Begin the run at this time, such as 2026-12-24T18:00:00+01:00
    #[arg(long = "at", value_name = "TIME", conflicts_with = "delay")]
    when: Option<String>,
    /// Begin the run after this time, such as 90m
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    #[command(flatten)]
    then: Then,
    #[command(flatten)]
    at: Target,
}

#[derive(clap::Args)]
pub struct RerunArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    /// Input instead of the original one: JSON, @FILE, `-` for standard input, or key=value (repeatable)
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    #[command(flatten)]
    then: Then,
    #[command(flatten)]
    at: Target,
}

/// What to do after the start.
#[derive(clap::Args)]
struct Then {
    /// Wait for the end, at most DURATION, and print the output
    #[arg(long, value_name = "DURATION", num_args = 0..=1)]
    wait: Option<Option<String>>,
    /// Follow the run to its end
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
    /// Print the run as JSON; with --watch, one event per line
    #[arg(long)]
    json: bool,
}

pub fn trigger(args: TriggerArgs) -> anyhow::Result<Exit> {
    let input = input::input(&args.input)?;
    labels(&args.label)?;
    let limit = args.then.limit()?;
    with_server(&args.at, async |client| {
        let path = ["workflows", &args.workflow, "trigger"];
        let label = Some(args.label.join(",")).filter(|labels| !labels.is_empty());
        let call = Call::post(&path).json(input).query("label", label);
        let call = call.query("at", args.when.clone()).query("delay", args.delay.clone());
        let call = call.header("idempotency-key", args.key.as_deref())?;
        let Created { data: run, is_new: new } = client.created(call).await?;
        args.then.run(client, Start { run, new, limit, option: args.at.option() }).await
    })
}

pub fn rerun(args: RerunArgs) -> anyhow::Result<Exit> {
    let input = if args.input.is_empty() { None } else { Some(input::input(&args.input)?) };
    let limit = args.then.limit()?;
    with_server(&args.at, async |client| {
        let run = args.run.find_on(client).await?;
        let path = ["runs", &run, "rerun"];
        let call = Call::post(&path);
        let call = match input {
            Some(input) => call.json(input),
            None => call,
        };
        let Created { data: run, is_new: new } = client.created(call).await?;
        args.then.run(client, Start { run, new, limit, option: args.at.option() }).await
    })
}

/// Checks labels. They are sent as one comma-separated value, so a label cannot contain a comma.
pub fn labels(labels: &[String]) -> anyhow::Result<()> {
    match labels.iter().find(|label| !label.contains('=') || label.contains(',')) {
        Some(odd) => bail!("--label {odd}: expected NAME=VALUE, without commas"),
        None => Ok(()),
    }
}

/// A run that was just requested.
struct Start {
    run: Triggered,
    /// Whether this request started it; an idempotency key may have started it before.
    new: bool,
    /// How long `--wait` waits.
    limit: Option<Duration>,
    /// Options to repeat in suggested commands.
    option: String,
}

impl Then {
    fn limit(&self) -> anyhow::Result<Option<Duration>> {
        let Some(Some(text)) = &self.wait else { return Ok(None) };
        let length = Millis::parse(text).with_context(|| format!("--wait {text}: expected a duration such as 30s"))?;
        Ok(Some(Duration::from_millis(length.0)))
    }

    async fn run(&self, client: &Client, start: Start) -> anyhow::Result<Exit> {
        let Start { run, new, limit, option } = start;
        let Triggered { run_id, workflow, workflow_version, .. } = &run;
        let again = if new { "" } else { ", already started by this key" };
        let begins = run.scheduled_for.map(|at| format!(", begins {}", instant(at.0))).unwrap_or_default();
        let text = format!("{run_id}: {workflow}, version {workflow_version}{again}{begins}");
        if self.wait.is_none() && !self.watch {
            if self.json {
                document(&run)?;
            } else {
                eprintln!("{}", plain(&text));
                writeln!(std::io::stdout().lock(), "{run_id}")?;
            }
            return Ok(Exit::Success);
        }
        let mut progress = Progress::new(self.watch && self.json, self.wait.is_some());
        progress.note(&text);
        let document = self.wait.is_some() && self.json;
        follow(client, run_id, Watching { progress, after: None, limit, document, option }).await
    }
}
