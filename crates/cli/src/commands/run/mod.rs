//! `stepwell run`: runs one definition to its end on an embedded engine, with live progress. The run is on disk, so
//! `--resume` continues it whatever happens to this process.

mod follow;
mod progress;
mod question;
mod screen;
mod session;
mod steps;

pub use progress::{Progress, ShownFact};
pub use session::{Output, Session, result};
pub use steps::Steps;

use super::Exit;
use crate::backend::RunRef;
use crate::embedded::{self, Found};
use crate::home::Data;
use crate::source::Source;
use crate::{input, logging};
use anyhow::Context;
use serde_json::Value;
use stepwell_engine::commands::Trigger;

#[derive(clap::Args)]
pub struct Args {
    /// Definition file; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "resume", conflicts_with = "resume")]
    file: Option<String>,
    /// Input: JSON, @FILE, or key=value (repeatable; a value that parses as JSON is JSON)
    #[arg(long, value_name = "INPUT", conflicts_with = "resume")]
    input: Vec<String>,
    /// Another definition, for steps that run it as a child (repeatable)
    #[arg(long = "with", value_name = "FILE")]
    others: Vec<String>,
    /// Idempotency key: repeated requests with the same key start only one run
    #[arg(long, conflicts_with = "resume")]
    key: Option<String>,
    /// Continue an unfinished run to its end; its id, or a unique beginning or end of it
    #[arg(long, value_name = "RUN")]
    resume: Option<RunRef>,
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    output: Output,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    let input = input::input(&args.input)?;
    let files: Vec<String> = args.file.iter().chain(&args.others).cloned().collect();
    let Some(sources) = Source::read_all(&files)? else { return Ok(Exit::BadInput) };
    embedded::runtime()?.block_on(go(&args, input, &sources))
}

async fn go(args: &Args, input: Value, sources: &[Source]) -> anyhow::Result<Exit> {
    let home = if args.resume.is_some() { args.data.open_existing().await? } else { args.data.open().await? };
    // Find the run before anything starts.
    let resumed = match &args.resume {
        Some(run) => Some(embedded::find(&*home.store, &run.find_in(&home).await?).await?),
        None => None,
    };
    let mut session = Session::start(&home, &args.data, &args.output, resumed.as_ref()).await?;
    let begun = match resumed {
        Some(found) => embedded::define(&session.engine, &session.caller, sources).await.map(|_| found),
        None => begin(args, input, sources, &mut session).await,
    };
    match begun {
        Ok(found) => session.follow(found).await,
        Err(error) => {
            session.stop().await;
            Err(error)
        }
    }
}

async fn begin(args: &Args, input: Value, sources: &[Source], session: &mut Session) -> anyhow::Result<Found> {
    let names = embedded::define(&session.engine, &session.caller, sources).await?;
    let workflow = names.first().context("there is no definition")?;
    let trigger = Trigger { key: args.key.as_deref(), ..Trigger::new(workflow, input) };
    let started = session.engine.runs(&session.caller).trigger(trigger).await?;
    session.begun(&started)?;
    Ok(Found { id: started.id, public: started.run, version: 0 })
}
