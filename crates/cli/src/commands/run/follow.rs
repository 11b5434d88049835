//! Follows a run and its children to the end: reads the log after every commit, shows the facts, and asks the user the
//! questions of the run.

use super::progress::{Progress, ShownFact};
use super::question::{Action, Asks, Next, Question};
use super::steps::{Doing, Step, Steps};
use crate::embedded::Found;
use crate::signals::Signals;
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;
use stepwell_core::fact::Fact;
use stepwell_core::run::StoredFact;
use stepwell_engine::{Activity, Caller, Clock, Committed, Engine, Error, SystemClock};
use stepwell_store::{RunId, Version};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::mpsc;

/// Log rows read per page.
const PAGE: u32 = 1_000;
/// Redraw interval of a terminal while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// One attempt of a step of one of the followed runs.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Attempt {
    /// Index into [`Follow::runs`].
    run: usize,
    path: String,
    number: u32,
}

impl Attempt {
    fn of(step: &Step) -> Attempt {
        Attempt { run: step.run, path: step.path.clone(), number: step.attempt }
    }
}

struct Followed {
    id: RunId,
    public: String,
    /// The newest version read, and the version after which facts are shown.
    read: i64,
    shown: i64,
    ended: bool,
}

pub struct Follow<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    progress: &'a mut Progress,
    commits: broadcast::Receiver<Activity>,
    /// The run, then its children as they appear.
    runs: Vec<Followed>,
    prefixes: Vec<String>,
    steps: Steps,
    /// Attempts whose child run was found.
    known: HashSet<Attempt>,
    question: Option<(Attempt, Question)>,
    /// Attempts whose question was asked or reported.
    asked: HashSet<Attempt>,
    lines: Option<mpsc::UnboundedReceiver<String>>,
    may_ask: bool,
}

pub enum How {
    Ended,
    Interrupted,
}

impl<'a> Follow<'a> {
    /// Facts up to the version in `from` are not shown.
    pub fn new(engine: &'a Engine, caller: &'a Caller, progress: &'a mut Progress, from: Found) -> Follow<'a> {
        let may_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let may_ask = may_ask && !matches!(progress, Progress::Json);
        let run = Followed { id: from.id, public: from.public, read: 0, shown: from.version, ended: false };
        Follow {
            engine,
            caller,
            progress,
            commits: engine.activity(),
            runs: vec![run],
            prefixes: vec![String::new()],
            steps: Steps::default(),
            known: HashSet::new(),
            question: None,
            asked: HashSet::new(),
            lines: None,
            may_ask,
        }
    }

    pub async fn run(mut self, signals: &mut Signals) -> anyhow::Result<How> {
        loop {
            self.catch_up().await?;
            if self.runs[0].ended {
                self.withdraw();
                self.draw();
                return Ok(How::Ended);
            }
            self.update_questions().await?;
            if !self.wait(signals).await? {
                return Ok(How::Interrupted);
            }
        }
    }

    /// Waits until the log has something new. Returns false if a signal arrived.
    async fn wait(&mut self, signals: &mut Signals) -> anyhow::Result<bool> {
        loop {
            self.draw();
            let tick = if self.progress.moves() { TICK } else { Duration::MAX };
            tokio::select! {
                () = signals.next() => return Ok(false),
                commit = self.commits.recv() => match commit {
                    Ok(Activity::Committed(commit)) if !self.concerns(&commit) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => return Ok(true),
                    Err(RecvError::Closed) => anyhow::bail!("the engine has stopped"),
                },
                line = next_line(&mut self.lines), if self.question.is_some() => {
                    self.line(line).await?;
                    return Ok(true);
                }
                () = tokio::time::sleep(tick) => {}
            }
        }
    }

    /// Whether the commit belongs to a followed run, or to one that may be a child not yet found.
    fn concerns(&self, commit: &Committed) -> bool {
        self.runs.iter().any(|run| run.id == commit.run) || self.childless().next().is_some()
    }

    fn draw(&mut self) {
        self.progress.draw(&self.steps.active, &self.prefixes, SystemClock.now());
    }

    /// Attempts that wait for a child run not yet found.
    fn childless(&self) -> impl Iterator<Item = Attempt> {
        let children = self.steps.active.iter().filter(|step| step.doing == Doing::Child);
        let attempts = children.map(Attempt::of);
        attempts.filter(|attempt| !self.known.contains(attempt))
    }

    async fn catch_up(&mut self) -> anyhow::Result<()> {
        let mut next = 0;
        while next < self.runs.len() {
            self.read(next).await?;
            // Children are followed too: they do the work and may ask questions.
            let childless: Vec<Attempt> = self.childless().filter(|attempt| attempt.run == next).collect();
            for attempt in childless {
                self.find_child(attempt).await?;
            }
            next += 1;
        }
        Ok(())
    }

    async fn find_child(&mut self, attempt: Attempt) -> anyhow::Result<()> {
        let Attempt { run, path, number } = &attempt;
        let Some(id) = self.engine.child(self.runs[*run].id, path, *number).await? else { return Ok(()) };
        let Some(row) = self.engine.log().run(id).await? else { return Ok(()) };
        // The earlier facts of a child are hidden if those of its parent are.
        let shown = if self.runs[*run].shown > 0 { self.newest(id).await? } else { 0 };
        self.prefixes.push(format!("{}{} › ", self.prefixes[*run], super::steps::shown(path)));
        self.steps.child_of(self.runs.len(), *run, path);
        self.runs.push(Followed { id, public: row.public, read: 0, shown, ended: false });
        self.known.insert(attempt);
        Ok(())
    }

    async fn newest(&self, id: RunId) -> anyhow::Result<i64> {
        Ok(self.engine.log().load(id).await?.map_or(0, |stored| stored.version.0))
    }

    async fn read(&mut self, run: usize) -> anyhow::Result<()> {
        loop {
            let followed = &mut self.runs[run];
            let rows = self.engine.log().tail(followed.id, Version(followed.read), PAGE).await?;
            let whole = rows.len() < PAGE as usize;
            for row in rows {
                followed.read = row.version.0;
                let facts: Vec<Value> = serde_json::from_str(&row.row.facts)?;
                for raw in &facts {
                    let fact: StoredFact = serde_json::from_value(raw.clone())?;
                    match fact {
                        Fact::Ended { .. } => followed.ended = true,
                        Fact::Retried { .. } | Fact::Adopted { .. } => followed.ended = false,
                        _ => {}
                    }
                    let done = self.steps.apply(run, row.row.at, &fact);
                    if row.version.0 > followed.shown {
                        let (public, prefix) = (&followed.public, &self.prefixes[run]);
                        let (version, at) = (row.version.0, row.row.at);
                        self.progress.fact(&ShownFact { run: public, prefix, version, at, raw, fact: &fact }, &done)?;
                    }
                }
            }
            if whole {
                return Ok(());
            }
        }
    }

    /// Opens the next question, or withdraws one that was settled elsewhere.
    async fn update_questions(&mut self) -> anyhow::Result<()> {
        let open: Vec<Attempt> = self
            .steps
            .active
            .iter()
            .filter(|step| matches!(step.doing, Doing::Approval | Doing::Call | Doing::Verdict))
            .map(Attempt::of)
            .collect();
        if let Some((asked, _)) = &self.question
            && !open.contains(asked)
        {
            self.withdraw();
            self.progress.note("the question was settled elsewhere");
        }
        for attempt in open {
            if self.question.is_some() || self.asked.contains(&attempt) {
                continue;
            }
            self.asked.insert(attempt.clone());
            let Some(question) = self.question(&attempt).await? else { continue };
            let label = self.label(&attempt);
            if self.may_ask {
                self.progress.ask(Some(&question.intro(&label)), &question.prompt());
                self.question = Some((attempt, question));
            } else {
                self.progress.note(&format!("{}{}", question.intro(&label), self.how_to_answer(&attempt)));
            }
        }
        Ok(())
    }

    async fn question(&self, attempt: &Attempt) -> anyhow::Result<Option<Question>> {
        let Attempt { run, path, .. } = attempt;
        Ok(match self.doing(attempt) {
            Some(Doing::Approval) => {
                match self.engine.gates(self.caller).get(&self.runs[*run].public, path).await {
                    Ok(approval) => Some(Question::gate(&approval.asks, approval.until)),
                    // Answered just now; the next facts will show it.
                    Err(Error::Conflict(_)) => None,
                    Err(error) => return Err(error.into()),
                }
            }
            Some(Doing::Call) => Some(Question::new(Asks::Call)),
            Some(Doing::Verdict) => Some(Question::new(Asks::Verdict)),
            _ => None,
        })
    }

    fn doing(&self, attempt: &Attempt) -> Option<&Doing> {
        let mut active = self.steps.active.iter();
        let Attempt { run, path, number } = attempt;
        let step = active.find(|step| (step.run, &step.path, step.attempt) == (*run, path, *number));
        step.map(|step| &step.doing)
    }

    fn label(&self, attempt: &Attempt) -> String {
        format!("{}{}", self.prefixes[attempt.run], super::steps::shown(&attempt.path))
    }

    /// How to answer without a terminal.
    fn how_to_answer(&self, attempt: &Attempt) -> String {
        let public = &self.runs[attempt.run].public;
        let path = crate::home::quoted(&attempt.path);
        match self.doing(attempt) {
            Some(Doing::Approval) => format!(
                " (stop this process, `stepwell approve {public} {path}` or `deny`, then `stepwell run --resume`)"
            ),
            _ => " (on a terminal, `stepwell run --resume` asks for the answer)".to_string(),
        }
    }

    fn withdraw(&mut self) {
        if self.question.take().is_some() {
            self.progress.answered(false);
        }
    }

    async fn line(&mut self, line: Option<String>) -> anyhow::Result<()> {
        let Some((attempt, mut question)) = self.question.take() else { return Ok(()) };
        let Some(line) = line else {
            // The terminal closed its input: the run continues without it.
            self.progress.answered(false);
            self.may_ask = false;
            self.progress.note(
                "standard input is closed, so no more questions are asked; the run waits, and ^C leaves it unchanged",
            );
            return Ok(());
        };
        match question.take(&line) {
            Next::Ask(complaint) => {
                self.progress.ask(complaint.as_deref(), &question.prompt());
                self.question = Some((attempt, question));
            }
            Next::Later => {
                self.progress.answered(true);
                self.progress.note(&format!("{} waits; `stepwell run --resume` asks again", self.label(&attempt)));
            }
            Next::Act(action) => {
                self.progress.answered(true);
                self.act(&attempt, action).await?;
            }
        }
        Ok(())
    }

    async fn act(&mut self, attempt: &Attempt, action: Action) -> anyhow::Result<()> {
        let Attempt { run, path, .. } = attempt;
        let public = &self.runs[*run].public;
        let done = match action {
            Action::Answer(decision) => self.engine.gates(self.caller).answer(public, path, decision).await,
            Action::Deliver(body) => self.engine.steps(self.caller).deliver_to(public, path, body).await,
            Action::Settle(verdict) => self.engine.steps(self.caller).settle(public, path, verdict).await,
        };
        if let Err(error) = done {
            self.progress.note(&format!("{}: {error}", self.label(attempt)));
            // The input was invalid: ask again.
            if matches!(error, Error::Input { .. } | Error::Inputs(_)) {
                self.asked.remove(attempt);
            }
        }
        Ok(())
    }
}

/// The next line from the terminal. Read on a detached thread, since the read may block for ever.
async fn next_line(lines: &mut Option<mpsc::UnboundedReceiver<String>>) -> Option<String> {
    let lines = lines.get_or_insert_with(|| {
        let (send, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        lines
    });
    lines.recv().await
}
