//! `stepwell cancel` and `retry`, by a server or on a data directory.
//!
//! On a directory a cancellation executes nothing: it is written down, and the run is stopped.

use super::run::{Output, Session, Show};
use super::watch::{self, Watching};
use super::{Exit, document};
use crate::backend::{Backend, Missing, with};
use crate::client::{At, Client};
use crate::draw::plain;
use crate::{embedded, logging};
use stepwell_server::view::{Event, Run};

#[derive(clap::Args)]
pub struct CancelArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    /// For whoever asks later
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    at: At,
    /// The run as one JSON document
    #[arg(long)]
    json: bool,
}

pub fn cancel(args: CancelArgs) -> anyhow::Result<Exit> {
    let CancelArgs { run, reason, at, json } = args;
    with(&at, Missing::Refuse, async |backend| {
        let after = backend.cancel(&run, reason.as_deref()).await?;
        said(&after, json, &format!("{run} is cancelled"))
    })
}

pub(super) fn said(run: &Run, json: bool, words: &str) -> anyhow::Result<Exit> {
    if json {
        document(run)?;
    } else {
        eprintln!("{}", plain(words));
    }
    Ok(Exit::Success)
}

#[derive(clap::Args)]
pub struct RetryArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    /// Under the newest version of its workflow, not its own
    #[arg(long)]
    newest: bool,
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    output: Output,
}

pub fn retry(args: RetryArgs) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        match args.at.server_or_data().await? {
            Some(client) => on_server(client, &args).await,
            None => on_directory(&args).await,
        }
    })
}

async fn on_server(client: Client, args: &RetryArgs) -> anyhow::Result<Exit> {
    let backend = Backend::Server(client);
    let mut show = Show::new(args.output.json, args.output.quiet);
    let before = backend.run(&args.run).await?;
    let said = again(&backend, &before, args.newest).await;
    said?.iter().for_each(|line| show.note(line));
    let Backend::Server(client) = &backend else { return Ok(Exit::Success) };
    // A terminal shows the whole run.
    let after = (!show.moves()).then_some(before.version);
    watch::follow(client, &args.run, Watching { show, after, limit: None, document: false, option: args.at.option() })
        .await
}

async fn on_directory(args: &RetryArgs) -> anyhow::Result<Exit> {
    let home = args.at.data.open_existing().await?;
    let found = embedded::find(&*home.store, &args.run).await?;
    let mut session = Session::start(&home, &args.at.data, &args.output, Some(&found)).await?;
    let backend = Backend::of(&session.engine, &session.caller);
    let said = match backend.run(&args.run).await {
        Ok(before) => again(&backend, &before, args.newest).await,
        Err(error) => Err(error),
    };
    match said {
        Ok(said) => said.iter().for_each(|line| session.note(line)),
        Err(error) => {
            session.stop().await;
            return Err(error);
        }
    }
    session.follow(found).await
}

/// Retries, and says what stands and what runs again.
async fn again(backend: &Backend, before: &Run, newest: bool) -> anyhow::Result<Vec<String>> {
    if newest {
        let standing = backend.retry_preview(&before.id).await?;
        backend.retry(&before.id, newest).await?;
        return Ok(vec![list("stands", &standing.stands), list("runs again", &standing.again)]);
    }
    backend.retry(&before.id, newest).await?;
    let events = backend.events(&before.id, before.version).await?;
    let reset = events.iter().find(|event| event.kind == "retried").map(reset).unwrap_or_default();
    let done = before.tasks.0.iter().filter(|(_, task)| task.attempt > 0).map(|(path, _)| path.clone());
    let stands: Vec<String> = done.filter(|path| !reset.contains(path)).collect();
    Ok(vec![list("stands", &stands), list("runs again", &reset)])
}

fn reset(event: &Event) -> Vec<String> {
    let steps = event.fact.get("reset").and_then(|steps| steps.as_array());
    steps.into_iter().flatten().filter_map(|step| Some(step.as_str()?.to_string())).collect()
}

fn list(what: &str, steps: &[String]) -> String {
    let steps = if steps.is_empty() { "nothing".to_string() } else { steps.join(", ") };
    format!("{what}: {steps}")
}
