//! `stepwell watch`: follows a run on a server to its end, with the display of `stepwell run`; a child run is one line
//! of its parent. After a lost connection it reconnects and shows nothing twice.

use super::run::{Output, Progress, ShownFact, Steps, result};
use super::{Exit, document};
use crate::backend::{RunRef, with_server};
use crate::client::{Client, Next, Refusal, Target};
use crate::describe;
use crate::embedded::Ended;
use crate::signals::Signals;
use anyhow::Context;
use serde_json::json;
use std::time::Duration;
use stepwell_engine::{Clock, SystemClock};
use stepwell_server::view::{Event, Run};

/// Redraw interval of a terminal while nothing happens.
const TICK: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
pub struct Args {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    #[command(flatten)]
    at: Target,
    #[command(flatten)]
    output: Output,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    with_server(&args.at, async |client| {
        let progress = Progress::new(args.output.json, args.output.quiet);
        let option = args.at.option();
        let run = args.run.find_on(client).await?;
        follow(client, &run, Watching { progress, after: None, limit: None, document: false, option }).await
    })
}

/// How to follow a run.
pub struct Watching {
    pub progress: Progress,
    /// Events up to this version are not shown.
    pub after: Option<i64>,
    /// How long to follow the run.
    pub limit: Option<Duration>,
    /// Whether to print the run as a JSON document at the end.
    pub document: bool,
    /// Options to repeat in suggested commands.
    pub option: String,
}

enum Stopped {
    Ended,
    Interrupted,
    TimedOut,
}

pub async fn follow(client: &Client, run: &str, mut watching: Watching) -> anyhow::Result<Exit> {
    let stopped = stream_to_end(client, run, &mut watching).await;
    watching.progress.close();
    let Watching { mut progress, document: whole, option, .. } = watching;
    match stopped? {
        Stopped::Ended => {
            let run: Run = client.data_with_retry(&["runs", run]).await?;
            let end = ended(&run)?;
            if whole {
                document(&run)?;
                return Ok(end.exit());
            }
            result(&mut progress, &end, &option)
        }
        Stopped::Interrupted => {
            eprintln!("{run} goes on; watch it again with: stepwell watch {run}{option}");
            progress.json(&json!({"run": run, "type": "interrupted"}))?;
            Ok(Exit::Interrupted)
        }
        Stopped::TimedOut => {
            eprintln!("{run} has not ended yet and goes on; watch it with: stepwell watch {run}{option}");
            if whole {
                document(&client.data_with_retry::<Run>(&["runs", run]).await?)?;
            }
            Ok(Exit::Stopped)
        }
    }
}

async fn stream_to_end(client: &Client, run: &str, watching: &mut Watching) -> anyhow::Result<Stopped> {
    let mut signals = Signals::listen()?;
    let mut stream = client.stream(run, watching.after);
    let mut steps = Steps::default();
    let progress = &mut watching.progress;
    let limit = tokio::time::sleep(watching.limit.unwrap_or(Duration::MAX));
    tokio::pin!(limit);
    loop {
        let next = stream.next();
        tokio::pin!(next);
        let next = loop {
            progress.draw(&steps.active, &[String::new()], SystemClock.now());
            let tick = if progress.moves() { TICK } else { Duration::MAX };
            tokio::select! {
                next = &mut next => break next.map_err(Refusal::from)?,
                () = signals.next() => return Ok(Stopped::Interrupted),
                () = &mut limit => return Ok(Stopped::TimedOut),
                () = tokio::time::sleep(tick) => {}
            }
        };
        match next {
            Next::Frame(frame) if frame.event == "end" => return Ok(Stopped::Ended),
            Next::Over => return Ok(Stopped::Ended),
            Next::Lost => progress.note("connection lost; reconnecting"),
            Next::Back => progress.note("reconnected"),
            Next::Frame(frame) => {
                let event: Event = serde_json::from_str(&frame.data).context("cannot parse an event")?;
                report(progress, &mut steps, run, &event)?;
            }
        }
    }
}

fn report(progress: &mut Progress, steps: &mut Steps, run: &str, event: &Event) -> anyhow::Result<()> {
    let (raw, fact) = describe::stored(event);
    let Some(fact) = fact else {
        progress.note(&describe::event(event, &describe::instant));
        return Ok(());
    };
    let (version, at) = (event.version, event.at.0);
    let done = steps.apply(0, at, &fact);
    Ok(progress.fact(&ShownFact { run, prefix: "", version, at, raw: &raw, fact: &fact }, &done)?)
}

fn ended(run: &Run) -> anyhow::Result<Ended> {
    let status = serde_json::from_value(json!(run.status)).with_context(|| format!("the run is {}", run.status))?;
    let error = run.error.as_ref().map(|error| json!(error));
    Ok(Ended { run: run.id.clone(), status, output: run.output.clone().unwrap_or_default(), error })
}
