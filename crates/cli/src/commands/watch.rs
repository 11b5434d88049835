//! `stepwell watch`: a run of a server, live, to its end. Drawn as `stepwell run` draws it; a child run is one line of its
//! parent. A lost connection is made again, and nothing is shown twice.

use super::run::{Output, Show, Steps, Told, result};
use super::{Exit, document};
use crate::backend::with_server;
use crate::client::{At, Client, Next, Stream};
use crate::embedded::Ended;
use crate::signals::Signals;
use crate::words;
use anyhow::Context;
use serde_json::json;
use std::time::Duration;
use stepwell_engine::{Clock, SystemClock};
use stepwell_server::view::{Event, Run};

/// How often a terminal is drawn while nothing happens.
const TICK: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
pub struct Args {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    output: Output,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    with_server(&args.at, async |client| {
        let show = Show::new(args.output.json, args.output.quiet);
        let option = args.at.option();
        follow(client, &args.run, Watching { show, after: None, limit: None, document: false, option }).await
    })
}

/// How a run is watched.
pub struct Watching {
    pub show: Show,
    /// What came up to this version is not shown.
    pub after: Option<i64>,
    /// Not longer than this.
    pub limit: Option<Duration>,
    /// The run is printed at the end, as a document.
    pub document: bool,
    /// To be put into commands that are suggested.
    pub option: String,
}

enum Why {
    Ended,
    Interrupted,
    TimeIsUp,
}

pub async fn follow(client: &Client, run: &str, mut watching: Watching) -> anyhow::Result<Exit> {
    let why = to_the_end(client, run, &mut watching).await;
    watching.show.close();
    let Watching { mut show, document: whole, option, .. } = watching;
    match why? {
        Why::Ended => {
            let run: Run = client.insist(&["runs", run]).await?;
            let end = ended(&run)?;
            if whole {
                document(&run)?;
                return Ok(end.exit());
            }
            result(&mut show, &end, &option)
        }
        Why::Interrupted => {
            eprintln!("{run} goes on; watch it again with: stepwell watch {run}{option}");
            show.json(&json!({"run": run, "type": "interrupted"}))?;
            Ok(Exit::Interrupted)
        }
        Why::TimeIsUp => {
            eprintln!("{run} has not ended in this time and goes on; watch it with: stepwell watch {run}{option}");
            if whole {
                document(&client.insist::<Run>(&["runs", run]).await?)?;
            }
            Ok(Exit::Stopped)
        }
    }
}

async fn to_the_end(client: &Client, run: &str, watching: &mut Watching) -> anyhow::Result<Why> {
    let mut signals = Signals::listen()?;
    let mut stream = Stream::new(client, run, watching.after);
    let mut steps = Steps::default();
    let show = &mut watching.show;
    let limit = tokio::time::sleep(watching.limit.unwrap_or(Duration::MAX));
    tokio::pin!(limit);
    loop {
        let next = stream.next();
        tokio::pin!(next);
        let next = loop {
            show.draw(&steps.active, &[String::new()], SystemClock.now());
            let tick = if show.moves() { TICK } else { Duration::MAX };
            tokio::select! {
                next = &mut next => break next?,
                () = signals.next() => return Ok(Why::Interrupted),
                () = &mut limit => return Ok(Why::TimeIsUp),
                () = tokio::time::sleep(tick) => {}
            }
        };
        match next {
            Next::Frame(frame) if frame.event == "end" => return Ok(Why::Ended),
            Next::Over => return Ok(Why::Ended),
            Next::Lost => show.note("the connection is lost; trying again"),
            Next::Back => show.note("connected again"),
            Next::Frame(frame) => {
                let event: Event = serde_json::from_str(&frame.data).context("an event cannot be read")?;
                tell(show, &mut steps, run, &event)?;
            }
        }
    }
}

fn tell(show: &mut Show, steps: &mut Steps, run: &str, event: &Event) -> anyhow::Result<()> {
    let (raw, fact) = words::stored(event);
    let Some(fact) = fact else {
        show.note(&words::event(event, &words::instant));
        return Ok(());
    };
    let (version, at) = (event.version, event.at.0);
    let done = steps.take(0, at, &fact);
    Ok(show.fact(&Told { run, prefix: "", version, at, raw: &raw, fact: &fact }, &done)?)
}

fn ended(run: &Run) -> anyhow::Result<Ended> {
    let status = serde_json::from_value(json!(run.status)).with_context(|| format!("the run is {}", run.status))?;
    let error = run.error.as_ref().map(|error| json!(error));
    Ok(Ended { run: run.id.clone(), status, output: run.output.clone().unwrap_or_default(), error })
}
