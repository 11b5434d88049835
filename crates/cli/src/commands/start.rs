//! `stepwell trigger` and `rerun`: a run on a server, left to itself, waited for, or watched.

use super::run::Show;
use super::watch::{Watching, follow};
use super::{Exit, document};
use crate::backend::with_server;
use crate::client::{At, Call, Client};
use crate::draw::plain;
use crate::input;
use anyhow::{Context, bail};
use std::io::Write;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_server::view::Triggered;

#[derive(clap::Args)]
pub struct TriggerArgs {
    /// The workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// JSON, @FILE, `-` for standard input, or key=value (may be repeated; values are JSON where they are JSON)
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    /// Starts only one run, however often it is asked for with this key
    #[arg(long)]
    key: Option<String>,
    /// A label of the run (may be repeated)
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    #[command(flatten)]
    then: Then,
    #[command(flatten)]
    at: At,
}

#[derive(clap::Args)]
pub struct RerunArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    /// Another input than the run had: JSON, @FILE, `-` for standard input, or key=value (may be repeated)
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    #[command(flatten)]
    then: Then,
    #[command(flatten)]
    at: At,
}

/// What to do once it is started.
#[derive(clap::Args)]
struct Then {
    /// Wait for its end, at most so long, and print its output
    #[arg(long, value_name = "DURATION", num_args = 0..=1)]
    wait: Option<Option<String>>,
    /// Watch it to its end
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
    /// What the API answers, as one JSON document; with --watch one event per line
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
        let call =
            Call::post(&path).json(input).query("label", label).header("idempotency-key", args.key.as_deref())?;
        let started = client.make(call).await?;
        args.then.go(client, started, limit, args.at.option()).await
    })
}

pub fn rerun(args: RerunArgs) -> anyhow::Result<Exit> {
    let input = if args.input.is_empty() { None } else { Some(input::input(&args.input)?) };
    let limit = args.then.limit()?;
    with_server(&args.at, async |client| {
        let path = ["runs", &args.run, "rerun"];
        let call = Call::post(&path);
        let call = match input {
            Some(input) => call.json(input),
            None => call,
        };
        let started = client.make(call).await?;
        args.then.go(client, started, limit, args.at.option()).await
    })
}

/// Labels travel in one text.
pub fn labels(labels: &[String]) -> anyhow::Result<()> {
    match labels.iter().find(|label| !label.contains('=') || label.contains(',')) {
        Some(odd) => bail!("--label {odd}: expected NAME=VALUE, without commas"),
        None => Ok(()),
    }
}

impl Then {
    fn limit(&self) -> anyhow::Result<Option<Duration>> {
        let Some(Some(text)) = &self.wait else { return Ok(None) };
        let length = Millis::parse(text).with_context(|| format!("--wait {text}: expected a length such as 30s"))?;
        Ok(Some(Duration::from_millis(length.0)))
    }

    async fn go(
        &self,
        client: &Client,
        (started, new): (Triggered, bool),
        limit: Option<Duration>,
        option: String,
    ) -> anyhow::Result<Exit> {
        let Triggered { run_id, workflow, workflow_version, .. } = &started;
        let again = if new { "" } else { ", which this key had started before" };
        let said = format!("{run_id}: {workflow}, version {workflow_version}{again}");
        if self.wait.is_none() && !self.watch {
            if self.json {
                document(&started)?;
            } else {
                eprintln!("{}", plain(&said));
                writeln!(std::io::stdout().lock(), "{run_id}")?;
            }
            return Ok(Exit::Success);
        }
        let mut show = Show::new(self.watch && self.json, self.wait.is_some());
        show.note(&said);
        let document = self.wait.is_some() && self.json;
        follow(client, run_id, Watching { show, after: None, limit, document, option }).await
    }
}
