//! Follows a run and its children to the end: reads the log whenever something was committed, shows it, and asks the
//! person at the terminal what the run asks for.

use super::ask::{Action, Asks, Next, Question};
use super::show::{Show, Told};
use super::steps::{Doing, Steps};
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

/// Log rows read in one go.
const PAGE: u32 = 1_000;
/// How often a terminal is drawn while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// Which step of which run, in which attempt.
type Where = (usize, String, u32);

struct Followed {
    id: RunId,
    public: String,
    /// The newest version that was read, and from which one on it is shown.
    read: i64,
    shown: i64,
    ended: bool,
}

pub struct Follow<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    show: &'a mut Show,
    commits: broadcast::Receiver<Activity>,
    /// The run, then its children as they appear.
    runs: Vec<Followed>,
    prefixes: Vec<String>,
    steps: Steps,
    /// Steps whose child was found.
    known: HashSet<Where>,
    question: Option<(Where, Question)>,
    /// Asked already, or told that it waits.
    asked: HashSet<Where>,
    lines: Option<mpsc::UnboundedReceiver<String>>,
    may_ask: bool,
}

pub enum How {
    Ended,
    Interrupted,
}

impl<'a> Follow<'a> {
    /// Facts up to the version that was found are known; they are not shown.
    pub fn new(engine: &'a Engine, caller: &'a Caller, show: &'a mut Show, from: Found) -> Follow<'a> {
        let may_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let may_ask = may_ask && !matches!(show, Show::Json);
        let run = Followed { id: from.id, public: from.public, read: 0, shown: from.version, ended: false };
        Follow {
            engine,
            caller,
            show,
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
            self.see_to_questions().await?;
            if !self.wait(signals).await? {
                return Ok(How::Interrupted);
            }
        }
    }

    /// Until there is something new in the log. False if a signal came.
    async fn wait(&mut self, signals: &mut Signals) -> anyhow::Result<bool> {
        loop {
            self.draw();
            let tick = if self.show.moves() { TICK } else { Duration::MAX };
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

    /// A commit of one of the runs, or of one that may turn out to be a child.
    fn concerns(&self, commit: &Committed) -> bool {
        self.runs.iter().any(|run| run.id == commit.run) || self.childless().next().is_some()
    }

    fn draw(&mut self) {
        self.show.draw(&self.steps.active, &self.prefixes, SystemClock.now());
    }

    /// Steps that wait for a child that was not found yet.
    fn childless(&self) -> impl Iterator<Item = Where> {
        let children = self.steps.active.iter().filter(|step| step.doing == Doing::Child);
        let places = children.map(|step| (step.run, step.path.clone(), step.attempt));
        places.filter(|place| !self.known.contains(place))
    }

    async fn catch_up(&mut self) -> anyhow::Result<()> {
        let mut next = 0;
        while next < self.runs.len() {
            self.read(next).await?;
            // Children are followed too: theirs is the work, and they may ask as well.
            let childless: Vec<Where> = self.childless().filter(|(run, ..)| *run == next).collect();
            for place in childless {
                self.find_child(place).await?;
            }
            next += 1;
        }
        Ok(())
    }

    async fn find_child(&mut self, place: Where) -> anyhow::Result<()> {
        let (run, path, attempt) = &place;
        let Some(id) = self.engine.child(self.runs[*run].id, path, *attempt).await? else { return Ok(()) };
        let Some(row) = self.engine.log().run(id).await? else { return Ok(()) };
        // A child that began before this process did is shown as its parent is.
        let shown = if self.runs[*run].shown > 0 { self.newest(id).await? } else { 0 };
        self.prefixes.push(format!("{}{} › ", self.prefixes[*run], super::steps::shown(path)));
        self.runs.push(Followed { id, public: row.public, read: 0, shown, ended: false });
        self.known.insert(place);
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
                    let done = self.steps.take(run, row.row.at, &fact);
                    if row.version.0 > followed.shown {
                        let (public, prefix) = (&followed.public, &self.prefixes[run]);
                        let (version, at) = (row.version.0, row.row.at);
                        self.show.fact(&Told { run: public, prefix, version, at, raw, fact: &fact }, &done)?;
                    }
                }
            }
            if whole {
                return Ok(());
            }
        }
    }

    /// Opens the next question, or takes back one that is settled otherwise.
    async fn see_to_questions(&mut self) -> anyhow::Result<()> {
        let open: Vec<Where> = self
            .steps
            .active
            .iter()
            .filter(|step| matches!(step.doing, Doing::Approval | Doing::Call | Doing::Verdict))
            .map(|step| (step.run, step.path.clone(), step.attempt))
            .collect();
        if let Some((asked, _)) = &self.question
            && !open.contains(asked)
        {
            self.withdraw();
            self.show.note("this is no longer asked");
        }
        for place in open {
            if self.question.is_some() || self.asked.contains(&place) {
                continue;
            }
            self.asked.insert(place.clone());
            let Some(question) = self.question(&place).await? else { continue };
            let label = self.label(&place);
            if self.may_ask {
                self.show.ask(Some(&question.intro(&label)), &question.prompt());
                self.question = Some((place, question));
            } else {
                self.show.note(&format!("{}{}", question.intro(&label), self.way_out(&place)));
            }
        }
        Ok(())
    }

    async fn question(&self, place: &Where) -> anyhow::Result<Option<Question>> {
        let (run, path, _) = place;
        Ok(match self.doing(place) {
            Some(Doing::Approval) => {
                match self.engine.gates(self.caller).get(&self.runs[*run].public, path).await {
                    Ok(approval) => Some(Question::gate(&approval.asks)),
                    // Answered just now, as the next facts will say.
                    Err(Error::Conflict(_)) => None,
                    Err(error) => return Err(error.into()),
                }
            }
            Some(Doing::Call) => Some(Question::new(Asks::Call)),
            Some(Doing::Verdict) => Some(Question::new(Asks::Verdict)),
            _ => None,
        })
    }

    fn doing(&self, (run, path, attempt): &Where) -> Option<&Doing> {
        let mut active = self.steps.active.iter();
        let step = active.find(|step| (step.run, &step.path, step.attempt) == (*run, path, *attempt));
        step.map(|step| &step.doing)
    }

    fn label(&self, (run, path, _): &Where) -> String {
        format!("{}{}", self.prefixes[*run], super::steps::shown(path))
    }

    /// What can be done without a terminal.
    fn way_out(&self, place: &Where) -> String {
        let public = &self.runs[place.0].public;
        let path = crate::home::quoted(&place.1);
        match self.doing(place) {
            Some(Doing::Approval) => format!(
                " (stop this process, `stepwell approve {public} {path}` or `deny`, then `stepwell run --resume`)"
            ),
            _ => " (on a terminal, `stepwell run --resume` asks for the answer)".to_string(),
        }
    }

    fn withdraw(&mut self) {
        if self.question.take().is_some() {
            self.show.answered(false);
        }
    }

    async fn line(&mut self, line: Option<String>) -> anyhow::Result<()> {
        let Some((place, mut question)) = self.question.take() else { return Ok(()) };
        let Some(line) = line else {
            // The terminal is closed to us: the run goes on without it.
            self.show.answered(false);
            self.may_ask = false;
            self.show.note("nothing more is asked; the run waits, and ^C leaves it as it is");
            return Ok(());
        };
        match question.take(&line) {
            Next::Ask(complaint) => {
                self.show.ask(complaint.as_deref(), &question.prompt());
                self.question = Some((place, question));
            }
            Next::Later => {
                self.show.answered(true);
                self.show.note(&format!("{} waits; `stepwell run --resume` asks again", self.label(&place)));
            }
            Next::Act(action) => {
                self.show.answered(true);
                self.act(&place, action).await?;
            }
        }
        Ok(())
    }

    async fn act(&mut self, place: &Where, action: Action) -> anyhow::Result<()> {
        let (run, path, _) = place;
        let public = &self.runs[*run].public;
        let done = match action {
            Action::Answer(decision) => self.engine.gates(self.caller).answer(public, path, decision).await,
            Action::Deliver(body) => self.engine.steps(self.caller).deliver_to(public, path, body).await,
            Action::Settle(verdict) => self.engine.steps(self.caller).settle(public, path, verdict).await,
        };
        if let Err(error) = done {
            self.show.note(&format!("{}: {error}", self.label(place)));
            // Something was filled in wrongly: once more.
            if matches!(error, Error::Input { .. } | Error::Inputs(_)) {
                self.asked.remove(place);
            }
        }
        Ok(())
    }
}

/// The next line from the terminal. Read on a thread of its own, which nobody waits for: it may block for ever.
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
