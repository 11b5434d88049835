//! An engine in this process that follows one run from its start to its result.

use super::follow::{Follow, How};
use super::progress::Progress;
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

/// Unfinished runs are counted up to this number.
const MANY: u32 = 100;

/// Output options of commands that follow a run.
#[derive(clap::Args, Clone)]
pub struct Output {
    /// Print one JSON event per line and the result last; never asks questions
    #[arg(long)]
    pub json: bool,
    /// Hide progress
    #[arg(long)]
    pub quiet: bool,
}

pub struct Session {
    pub engine: Engine,
    pub caller: Caller,
    progress: Progress,
    signals: Signals,
    store: Arc<dyn Store>,
    /// Options to repeat in suggested commands.
    data: String,
}

impl Session {
    /// Starts the engine, which continues every unfinished run in the directory, not only the followed one.
    pub async fn start(home: &Home, data: &Data, output: &Output, watched: Option<&Found>) -> anyhow::Result<Session> {
        let signals = Signals::listen()?;
        let mut progress = Progress::new(output.json, output.quiet);
        let others = embedded::count_unfinished(&*home.store, MANY, watched.map(|run| run.id)).await?;
        if others > 0 {
            let more = if others >= MANY { "or more " } else { "" };
            let runs = if others == 1 { "run" } else { "runs" };
            progress.note(&format!("continuing {others} {more}other unfinished {runs}"));
        }
        let engine = embedded::start(home).await?;
        let (store, caller) = (home.store.clone(), embedded::caller());
        Ok(Session { engine, caller, progress, signals, store, data: data.option() })
    }

    pub fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    /// Reports the run that was started.
    pub fn begun(&mut self, started: &Started) -> anyhow::Result<()> {
        let Started { run, workflow, version, repeated, .. } = started;
        let again = if *repeated { ", already started by this key" } else { "" };
        self.progress.note(&format!("{run}: {workflow}, version {version}{again}"));
        let line = json!({"run": run, "type": "run", "workflow": workflow, "workflow_version": version,
                          "repeated": repeated});
        Ok(self.progress.json(&line)?)
    }

    /// Follows a run to its end, or until a signal arrives.
    pub async fn follow(mut self, mut run: Found) -> anyhow::Result<Exit> {
        if self.progress.moves() {
            // A terminal shows the whole run, including what happened before this process started.
            run.version = 0;
        }
        let (id, public) = (run.id, run.public.clone());
        let how = Follow::new(&self.engine, &self.caller, &mut self.progress, run).run(&mut self.signals).await;
        self.progress.close();
        if matches!(how, Ok(How::Interrupted)) {
            let again = format!("stepwell run --resume {public}{}", self.data);
            eprintln!("stopping (^C again stops at once). {public} is on disk; continue with: {}", plain(&again));
        }
        self.stop().await;
        how?;
        let end = embedded::ended(&*self.store, id).await?;
        // The run may have ended while running steps finished.
        match end.filter(|end| end.status.is_terminal()) {
            Some(end) => result(&mut self.progress, &end, &self.data),
            None => {
                self.progress.json(&json!({"run": public, "type": "interrupted"}))?;
                Ok(Exit::Interrupted)
            }
        }
    }

    /// Stops the engine and gives running steps some time to finish.
    pub async fn stop(&mut self) {
        self.progress.close();
        self.signals.stop(&self.engine).await;
    }
}

/// Reports how a run ended. `option` is repeated in suggested commands.
pub fn result(progress: &mut Progress, end: &Ended, option: &str) -> anyhow::Result<Exit> {
    let mut line = json!({"run": end.run, "type": "result", "status": end.status, "output": end.output});
    if let Some(error) = &end.error {
        line["error"] = error.clone();
    }
    progress.json(&line)?;
    let exit = end.exit();
    if exit == Exit::Success {
        if !matches!(progress, Progress::Json) {
            writeln!(std::io::stdout().lock(), "{}", plain(&format!("{:#}", end.output)))?;
        }
    } else {
        let why = end.error.as_ref().and_then(|error| error["message"].as_str());
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let more = format!("`stepwell show {}{}` shows the details", end.run, option);
        eprintln!("{}", plain(&format!("{} {}{why} ({more})", end.run, end.status.name())));
    }
    Ok(exit)
}
