//! `stepwell cancel`, `approve`, `deny` and `retry` on a data directory.
//!
//! All but `retry` execute nothing: they write what was decided, and the run goes on when something next runs it.

use super::Exit;
use super::run::{Output, Session};
use crate::draw::plain;
use crate::home::Data;
use crate::{embedded, logging};
use anyhow::Context;
use std::time::Duration;
use stepwell_core::fact::Fact;
use stepwell_core::run::StoredFact;
use stepwell_engine::commands::{Decision, Retry};
use stepwell_engine::{Caller, Engine, Error};
use stepwell_store::{RunId, Version};

/// What was decided may lead to more, such as the cancelling of children.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub struct CancelArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    /// For whoever asks later
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    data: Data,
}

pub fn cancel(args: CancelArgs) -> anyhow::Result<Exit> {
    let CancelArgs { run, reason, data } = args;
    let done = format!("{run} is cancelled");
    tell(&data, done, async |engine, caller| engine.cancel(caller, &run, reason.as_deref()).await)
}

#[derive(clap::Args)]
pub struct AnswerArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    /// The gate, by its path, or by its name if that says which
    #[arg(value_name = "STEP")]
    step: String,
    #[arg(long)]
    comment: Option<String>,
    /// What the gate's form asks for
    #[arg(long, value_name = "JSON")]
    form: Option<String>,
    #[command(flatten)]
    data: Data,
}

pub fn answer(args: AnswerArgs, approve: bool) -> anyhow::Result<Exit> {
    let AnswerArgs { run, step, comment, form, data } = args;
    let form = form.map(|form| serde_json::from_str(&form).context("--form is not JSON")).transpose()?;
    let decision = Decision { approve, comment, data: form };
    let word = if approve { "approved" } else { "denied" };
    let done = format!("{step} is {word}; go on with: stepwell run --resume {run}{}", data.option());
    tell(&data, done, async |engine, caller| engine.answer(caller, &run, &step, decision).await)
}

/// Writes one decision to an engine that executes nothing.
fn tell(
    data: &Data,
    done: String,
    what: impl AsyncFnOnce(&Engine, &Caller) -> Result<(), Error>,
) -> anyhow::Result<Exit> {
    logging::start();
    let store = data.open_existing()?;
    embedded::runtime()?.block_on(async {
        let engine = embedded::at_rest(store);
        let result = what(&engine, &embedded::caller()).await;
        engine.shutdown(PATIENCE).await;
        logging::end();
        match result {
            Ok(()) => eprintln!("{}", plain(&done)),
            Err(error) => return refused(error),
        }
        Ok(Exit::Success)
    })
}

/// Told apart from a mistake on the command line: it could have been done at another time, or by another.
fn refused(error: Error) -> anyhow::Result<Exit> {
    match error {
        Error::Conflict(_) | Error::Refused(_) | Error::Forbidden { .. } => {
            eprintln!("error: {}", plain(&error.to_string()));
            Ok(Exit::Failed)
        }
        other => Err(other.into()),
    }
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
    data: Data,
    #[command(flatten)]
    output: Output,
}

pub fn retry(args: RetryArgs) -> anyhow::Result<Exit> {
    logging::start();
    let store = args.data.open_existing()?;
    embedded::runtime()?.block_on(async {
        let found = embedded::find(&*store, &args.run).await?;
        let mut session = Session::start(store, &args.data, &args.output, Some(&found)).await?;
        match again(&session, &args, (found.id, found.version)).await {
            Ok(said) => said.iter().for_each(|line| session.note(line)),
            Err(error) => {
                session.stop().await;
                return refused(error);
            }
        }
        session.follow(found).await
    })
}

/// Retries, and says what stands and what runs again.
async fn again(session: &Session, args: &RetryArgs, (id, version): (RunId, i64)) -> Result<Vec<String>, Error> {
    let (engine, caller) = (&session.engine, &session.caller);
    if args.newest {
        let standing = engine.retry_preview(caller, &args.run).await?;
        engine.retry(caller, &args.run, Retry::Newest).await?;
        return Ok(vec![list("stands", &standing.stands), list("runs again", &standing.again)]);
    }
    let before = engine.status(caller, &args.run).await?;
    engine.retry(caller, &args.run, Retry::SameVersion).await?;
    let rows = engine.store().tail(id, Version(version), 1).await?;
    let facts = rows.first().and_then(|row| serde_json::from_str::<Vec<StoredFact>>(&row.row.facts).ok());
    let reset = facts.into_iter().flatten().find_map(|fact| match fact {
        Fact::Retried { reset, .. } => Some(reset),
        _ => None,
    });
    let reset = reset.unwrap_or_default();
    let done = before.tasks.into_iter().filter(|task| task.attempt > 0).map(|task| task.path);
    let stands: Vec<String> = done.filter(|path| !reset.contains(path)).collect();
    Ok(vec![list("stands", &stands), list("runs again", &reset)])
}

fn list(what: &str, steps: &[String]) -> String {
    let steps = if steps.is_empty() { "nothing".to_string() } else { steps.join(", ") };
    format!("{what}: {steps}")
}
