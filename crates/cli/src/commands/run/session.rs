//! An engine in this process and whoever watches a run of it, from the start to the result.

use super::follow::{Follow, How};
use super::show::Show;
use crate::commands::Exit;
use crate::draw::plain;
use crate::embedded::{self, Ended, Found};
use crate::home::{Data, Home};
use crate::signals::Signals;
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use stepwell_engine::commands::Started;
use stepwell_engine::{Caller, Engine};
use stepwell_store::Store;

/// Unfinished runs are counted up to here.
const MANY: u32 = 100;

/// How a run that is followed is shown.
#[derive(clap::Args, Clone)]
pub struct Output {
    /// One JSON event per line, and the result as the last one; never asks
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
}

pub struct Session {
    pub engine: Engine,
    pub caller: Caller,
    show: Show,
    signals: Signals,
    store: Arc<dyn Store>,
    /// To be put into commands that are suggested.
    data: String,
}

impl Session {
    /// Everything unfinished in the directory goes on with this, not only the run that is watched.
    pub async fn start(home: &Home, data: &Data, output: &Output, watched: Option<&Found>) -> anyhow::Result<Session> {
        let signals = Signals::listen()?;
        let mut show = Show::new(output.json, output.quiet);
        let others = embedded::count_unfinished(&*home.store, MANY, watched.map(|run| run.id)).await?;
        if others > 0 {
            let more = if others >= MANY { "or more " } else { "" };
            let runs = if others == 1 { "run goes" } else { "runs go" };
            show.note(&format!("{others} {more}other unfinished {runs} on here"));
        }
        let engine = embedded::start(home).await?;
        let (store, caller) = (home.store.clone(), embedded::caller());
        Ok(Session { engine, caller, show, signals, store, data: data.option() })
    }

    pub fn note(&mut self, text: &str) {
        self.show.note(text);
    }

    /// Says what was started.
    pub fn begun(&mut self, started: &Started) -> anyhow::Result<()> {
        let Started { run, workflow, version, repeated, .. } = started;
        let again = if *repeated { ", which this key had started before" } else { "" };
        self.show.note(&format!("{run}: {workflow}, version {version}{again}"));
        let line = json!({"run": run, "type": "run", "workflow": workflow, "workflow_version": version,
                          "repeated": repeated});
        Ok(self.show.json(&line)?)
    }

    /// Watches a run to its end, or until a signal comes.
    pub async fn follow(mut self, mut run: Found) -> anyhow::Result<Exit> {
        if self.show.moves() {
            // A terminal shows the whole run, also what happened before this process.
            run.version = 0;
        }
        let (id, public) = (run.id, run.public.clone());
        let how = Follow::new(&self.engine, &self.caller, &mut self.show, run).run(&mut self.signals).await;
        self.show.close();
        if matches!(how, Ok(How::Interrupted)) {
            let again = format!("stepwell run --resume {public}{}", self.data);
            eprintln!("stopping (^C again: at once). {public} is on disk; go on with: {}", plain(&again));
        }
        self.stop().await;
        how?;
        let end = embedded::ended(&*self.store, id).await?;
        // It may have ended while what ran was let run on.
        match end.filter(|end| end.status.is_terminal()) {
            Some(end) => result(&mut self.show, &end, &self.data),
            None => {
                self.show.json(&json!({"run": public, "type": "interrupted"}))?;
                Ok(Exit::Interrupted)
            }
        }
    }

    /// Lets what runs come to its end, for a while.
    pub async fn stop(&mut self) {
        self.show.close();
        self.signals.stop(&self.engine).await;
    }
}

/// Says how a run ended. `option` is put into commands that are suggested.
pub fn result(show: &mut Show, end: &Ended, option: &str) -> anyhow::Result<Exit> {
    let mut line = json!({"run": end.run, "type": "result", "status": end.status, "output": end.output});
    if let Some(error) = &end.error {
        line["error"] = error.clone();
    }
    show.json(&line)?;
    let exit = end.exit();
    if exit == Exit::Success {
        if !matches!(show, Show::Json) {
            writeln!(std::io::stdout().lock(), "{}", plain(&format!("{:#}", end.output)))?;
        }
    } else {
        let why = end.error.as_ref().and_then(|error| error["message"].as_str());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let more = format!("`stepwell show {}{}` has the details", end.run, option);
        eprintln!("{}", plain(&format!("{} {}{why} ({more})", end.run, end.status.name())));
    }
    Ok(exit)
}
