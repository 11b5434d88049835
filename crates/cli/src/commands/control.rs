//! `stepwell cancel`, `release` and `retry`, through a server or on a data directory.
//!
//! On a directory, cancelling executes nothing: it only records the end of the run.

use super::run::{Output, Progress, Session};
use super::watch::{self, Watching};
use super::{Exit, confirm};
use crate::backend::{Backend, Missing, RunRef, with};
use crate::client::{Client, Target};
use crate::draw::plain;
use crate::{embedded, logging};
use stepwell_server::view::Run;

#[derive(clap::Args)]
pub struct CancelArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    /// Reason to record
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    at: Target,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

pub fn cancel(args: CancelArgs) -> anyhow::Result<Exit> {
    let CancelArgs { run, reason, at, json } = args;
    with(&at, Missing::Refuse, async |backend| {
        let run = run.find(backend).await?;
        let after = backend.cancel(&run, reason.as_deref()).await?;
        confirm(&after, json, &format!("{run} is cancelled"))
    })
}

#[derive(clap::Args)]
pub struct ReleaseArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    #[command(flatten)]
    at: Target,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

pub fn release(args: ReleaseArgs) -> anyhow::Result<Exit> {
    let ReleaseArgs { run, at, json } = args;
    with(&at, Missing::Refuse, async |backend| {
        let run = run.find(backend).await?;
        let after = backend.release(&run).await?;
        confirm(&after, json, &format!("{run} is released"))
    })
}

#[derive(clap::Args)]
pub struct RetryArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    /// Use the newest version of the workflow instead of the run's own
    #[arg(long)]
    newest: bool,
    /// Do not follow the run
    #[arg(long, conflicts_with = "quiet")]
    detach: bool,
    #[command(flatten)]
    at: Target,
    #[command(flatten)]
    output: Output,
}

pub fn retry(args: RetryArgs) -> anyhow::Result<Exit> {
    if args.detach {
        return detach(&args);
    }
    logging::start();
    embedded::runtime()?.block_on(async {
        match args.at.server_or_data().await? {
            Some(client) => on_server(client, &args).await,
            None => on_directory(&args).await,
        }
    })
}

/// Only records the retry. On a directory the run goes on when a process executes its steps.
fn detach(args: &RetryArgs) -> anyhow::Result<Exit> {
    with(&args.at, Missing::Refuse, async |backend| {
        let before = backend.run(&args.run.find(backend).await?).await?;
        let notes = retry_run(backend, &before, args.newest).await?;
        if args.output.json {
            return confirm(&backend.run(&before.id).await?, true, "");
        }
        notes.iter().for_each(|note| eprintln!("{}", plain(note)));
        let (run, option) = (&before.id, args.at.option());
        eprintln!(
            "{}",
            plain(&match backend.is_idle().await? {
                true => format!("{run} goes on with: stepwell run --resume {run}{option}"),
                false => format!("{run} goes on; watch it with: stepwell watch {run}{option}"),
            })
        );
        Ok(Exit::Success)
    })
}

async fn on_server(client: Client, args: &RetryArgs) -> anyhow::Result<Exit> {
    let backend = Backend::Server(client);
    let mut progress = Progress::new(args.output.json, args.output.quiet);
    let before = backend.run(&args.run.find(&backend).await?).await?;
    let notes = retry_run(&backend, &before, args.newest).await?;
    notes.iter().for_each(|line| progress.note(line));
    let Backend::Server(client) = &backend else { return Ok(Exit::Success) };
    // A terminal shows the whole run.
    let after = (!progress.moves()).then_some(before.version);
    watch::follow(
        client,
        &before.id,
        Watching { progress, after, limit: None, document: false, option: args.at.option() },
    )
    .await
}

async fn on_directory(args: &RetryArgs) -> anyhow::Result<Exit> {
    let home = args.at.data.open_existing().await?;
    let run = args.run.find_in(&home).await?;
    let found = embedded::find(&*home.store, &run).await?;
    let mut session = Session::start(&home, &args.at.data, &args.output, Some(&found)).await?;
    let backend = Backend::of(&session.engine, &session.caller);
    let notes = match backend.run(&run).await {
        Ok(before) => retry_run(&backend, &before, args.newest).await,
        Err(error) => Err(error),
    };
    match notes {
        Ok(notes) => notes.iter().for_each(|line| session.note(line)),
        Err(error) => {
            session.stop().await;
            return Err(error);
        }
    }
    session.follow(found).await
}

/// Retries a run; returns lines that list which steps are kept and which run again.
async fn retry_run(backend: &Backend, before: &Run, newest: bool) -> anyhow::Result<Vec<String>> {
    let standing = backend.retry_preview(&before.id, newest).await?;
    backend.retry(&before.id, newest).await?;
    Ok(vec![list("stands", &standing.stands), list("runs again", &standing.again)])
}

fn list(what: &str, steps: &[String]) -> String {
    let steps = if steps.is_empty() { "nothing".to_string() } else { steps.join(", ") };
    format!("{what}: {steps}")
}
