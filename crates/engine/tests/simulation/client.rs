//! Clients: they start runs, cancel, retry, answer and deliver, sometimes twice, late, or with a short timeout; and
//! they check what was acknowledged.

use crate::past::{Story, Waits};
use crate::rules::{self, PEOPLE};
use crate::sim::Sim;
use crate::workflows::{ALL, Workflow};
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::Verdict;
use stepwell_core::fact::Fact;
use stepwell_core::run::StoredFact;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{Decision, Override, Retry, RunQuery, Source, Started, Trigger, When};
use stepwell_engine::{Caller, Engine, Error};
use stepwell_store::{OrgId, Store};

/// A request to start a run, made until it is answered.
#[derive(Clone)]
pub struct Wish {
    pub workflow: &'static str,
    pub input: Value,
    pub key: Option<String>,
    /// The run begins after so many milliseconds.
    pub delay: Option<u64>,
}

impl Sim {
    /// Gives a command to whichever process is up. `None` if no one knows what became of it: the process was over
    /// before it answered, or the client lost patience.
    pub async fn ask<T, F>(
        self: &Arc<Sim>,
        what: &'static str,
        command: impl FnOnce(Engine) -> F,
    ) -> Option<Result<T, Error>>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let process = self.some_process().await;
        let patience = {
            let mut chance = self.chance();
            (self.is_noisy() && chance.one_in(8)).then(|| Duration::from_millis(chance.below(200)))
        };
        let _open = self.open(what.into());
        let answer = tokio::select! {
            biased;
            () = process.life.cancelled() => None,
            () = async { match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            } } => None,
            answer = command(process.engine) => Some(answer),
        };
        if matches!(answer, Some(Ok(_))) {
            self.saw(what);
        }
        answer
    }

    fn caller(&self) -> Caller {
        let name = *self.chance().pick(&PEOPLE).unwrap();
        Caller::local(name)
    }

    async fn pause(&self, most: u64) {
        let pause = self.chance().below(most);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    /// What was acknowledged is on disk.
    pub fn was_told(&self, run: &str, what: &str, is_it: impl Fn(&StoredFact) -> bool) {
        let told = self.past().named(run).is_some_and(|story| story.facts().any(is_it));
        if !told {
            self.breaks(format!("{what} of {run} was acknowledged and is not on disk"));
        }
    }
}

/// Until it is known that the run was started, or that it will not be.
pub async fn start(sim: Arc<Sim>, wish: Wish) {
    let caller = Caller::local("ann");
    let _open = sim.open(format!("a wish for {}", wish.workflow));
    loop {
        let (key, input) = (wish.key.as_deref(), wish.input.clone());
        let when = wish.delay.map(|delay| When::After(Millis(delay)));
        let trigger = Trigger { key, when, ..Trigger::new(wish.workflow, input) };
        let caller = &caller;
        let answer = sim.ask("trigger", |engine| async move { engine.runs(caller).trigger(trigger).await }).await;
        match answer {
            Some(Ok(started)) => return started_well(&sim, &wish, started),
            Some(Err(Error::Full)) => return,
            Some(Err(Error::Limit { limit: "concurrent_runs", .. })) if sim.mood.open.is_some() => return,
            Some(Err(Error::Unavailable(_))) | None => {}
            Some(Err(error)) => return sim.breaks(format!("a trigger of {} is refused: {error}", wish.workflow)),
        }
        sim.pause(4_000).await;
    }
}

fn started_well(sim: &Arc<Sim>, wish: &Wish, started: Started) {
    sim.was_told(&started.run, "the trigger", |fact| matches!(fact, Fact::Created { .. }));
    let input = sim.past().runs.get(&started.id).map(|story| story.input.clone());
    if input.as_ref() != Some(&wish.input) {
        sim.breaks(format!("{} was started with {input:?} for {:?}", started.run, wish.input));
    }
    if sim.chance().one_in(2) {
        tokio::spawn(watch(sim.clone(), started));
    }
    if let Some(key) = wish.key.clone().filter(|_| sim.chance().one_in(6)) {
        tokio::spawn(reuse(sim.clone(), wish.workflow, key));
    }
}

/// The same key with another input.
async fn reuse(sim: Arc<Sim>, workflow: &'static str, key: String) {
    let caller = Caller::local("ann");
    let trigger = Trigger { key: Some(&key), ..Trigger::new(workflow, json!({"other": true})) };
    let answer =
        sim.ask("trigger with a used key", |engine| async move { engine.runs(&caller).trigger(trigger).await }).await;
    match answer {
        Some(Err(Error::KeyReused(refused))) if refused == key => sim.saw("a used key was refused"),
        Some(Err(Error::Unavailable(_))) | None => {}
        // A purged run takes its key with it.
        Some(_) if workflow.starts_with("short") => {}
        Some(other) => sim.breaks(format!("the used key {key} was answered with {:?}", other.map(|run| run.run))),
    }
}

/// Waits for a run's end, then looks. The end is reported to every waiter.
async fn watch(sim: Arc<Sim>, started: Started) {
    let _open = sim.open(format!("watching {}", started.run));
    loop {
        let (caller, run) = (Caller::local("ann"), &started.run);
        match sim.ask("wait", |engine| async move { engine.runs(&caller).wait(run).await }).await {
            Some(Ok(())) => {
                return sim.was_told(&started.run, "the end", |fact| matches!(fact, Fact::Ended { .. }));
            }
            // It was purged.
            Some(Err(Error::NotFound { .. })) => return,
            Some(Err(_)) | None => sim.pause(2_000).await,
        }
    }
}

/// Gives a command as one of the people.
pub async fn call_as_person<T, F>(
    sim: &Arc<Sim>,
    what: &'static str,
    command: impl FnOnce(Engine, Caller) -> F,
) -> Option<Result<T, Error>>
where
    F: Future<Output = Result<T, Error>>,
{
    let person = sim.caller();
    sim.ask(what, |engine| command(engine, person)).await
}

pub async fn cancel(sim: Arc<Sim>, run: String) {
    let caller = sim.caller();
    let name = &run;
    let answer =
        sim.ask("cancel", |engine| async move { engine.runs(&caller).cancel(name, Some("enough")).await }).await;
    if let Some(Ok(())) = answer {
        sim.was_told(&run, "cancelling", |fact| matches!(fact, Fact::Ended { by: Some(_), .. }));
    }
}

pub async fn retry(sim: Arc<Sim>, run: String, how: Retry) {
    let caller = sim.caller();
    let name = &run;
    let answer = sim.ask("retry", |engine| async move { engine.runs(&caller).retry(name, how).await }).await;
    if let Some(Ok(())) = answer {
        sim.was_told(&run, "retrying", |fact| matches!(fact, Fact::Retried { .. } | Fact::Adopted { .. }));
    }
}

pub async fn answer(sim: Arc<Sim>, run: String, path: String) {
    let caller = sim.caller();
    let approve = !sim.chance().one_in(4);
    let (name, step) = (&run, &path);
    let told = sim.ask("answer", |engine| async move {
        // A person looks first.
        let digest = engine.gates(&caller).get(name, step).await?.digest;
        engine.gates(&caller).answer(name, step, Decision { approve, digest, ..Decision::default() }).await
    });
    let told = told.await;
    if let Some(Ok(())) = told {
        sim.was_told(&run, "the answer", |fact| {
            let answered = matches!(fact, Fact::Finished { .. } | Fact::Approved { .. });
            answered && fact.step() == Some(&path)
        });
    }
}

pub async fn deliver(sim: Arc<Sim>, run: String, path: String) {
    let caller = sim.caller();
    let body = json!({"state": "paid", "n": sim.number()});
    let (name, step) = (&run, &path);
    let told =
        sim.ask("deliver", |engine| async move { engine.steps(&caller).deliver_to(name, step, body).await }).await;
    if let Some(Ok(())) = told {
        delivered(&sim, &run, &path);
    }
}

fn delivered(sim: &Sim, run: &str, path: &str) {
    sim.was_told(run, "the delivery", |fact| {
        let delivered = matches!(fact, Fact::Finished { .. } | Fact::Kept { .. });
        delivered && fact.step().is_some_and(|step| step == path)
    });
}

/// By a URL that a call was given.
pub async fn call_back(sim: Arc<Sim>, url: String) {
    let token = url.rsplit('/').next().unwrap().to_string();
    let run = token.split('.').next().unwrap().to_string();
    let body = json!({"state": "paid", "n": sim.number()});
    let token = &token;
    let told =
        sim.ask("webhook", |engine| async move { engine.inbound().deliver_webhook(token, body.into()).await }).await;
    match told {
        Some(Ok(())) => sim.was_told(&run, "the call", |fact| {
            let kept = matches!(fact, Fact::Finished { .. } | Fact::Kept { .. });
            kept && fact.step().is_some_and(|step| step.ends_with("hook"))
        }),
        Some(Err(Error::NotFound { what: "callback", .. })) if sim.past().named(&run).is_some() => {
            sim.breaks(format!("the URL {url} of {run} is not known"));
        }
        Some(Err(_)) | None => {}
    }
}

pub async fn ready(sim: Arc<Sim>, run: String, path: String) {
    sim.wake(&run, &path);
    let caller = sim.caller();
    let (name, step) = (&run, &path);
    sim.ask("ready", |engine| async move { engine.steps(&caller).ready(name, step).await }).await;
}

pub async fn settle(sim: Arc<Sim>, run: String, path: String) {
    let verdict = match sim.chance().below(3) {
        0 => Verdict::Happened { body: json!({"n": 0, "state": "done"}) },
        1 => Verdict::RunAgain,
        _ => Verdict::Fail,
    };
    if matches!(verdict, Verdict::RunAgain) {
        *sim.ledger().asked_again.entry((run.clone(), path.clone())).or_default() += 1;
    }
    let caller = sim.caller();
    let (name, step) = (&run, &path);
    sim.ask("settle", |engine| async move { engine.steps(&caller).settle(name, step, verdict).await }).await;
}

/// Looks around: must not disturb anything, and the last known state of a run must be readable.
pub async fn read(sim: Arc<Sim>, run: String) {
    let caller = Caller::local("ann");
    let name = &run;
    let view = sim.ask("status", |engine| async move { engine.runs(&caller).get(name).await }).await;
    if let Some(Ok(view)) = view
        && view.waiting_for.is_empty() != view.finished_at.is_some()
    {
        sim.breaks(format!("{run} is {} and waits for {:?}", view.status, view.waiting_for));
    }
    let caller = Caller::local("ann");
    let query = RunQuery { limit: 5, ..RunQuery::default() };
    sim.ask("runs", |engine| async move { engine.runs(&caller).list(query).await }).await;
}

pub async fn define(sim: Arc<Sim>, text: &'static str) {
    let caller = Caller::local("ann");
    let source = Source { text, file: Some("sim.yaml") };
    loop {
        let caller = &caller;
        let defined = sim.ask("define", |engine| async move { engine.workflows(caller).define(source).await }).await;
        match defined {
            Some(Ok(_)) => return,
            Some(Err(Error::Unavailable(_))) | None => sim.pause(1_000).await,
            Some(Err(error)) => return sim.breaks(format!("a definition is refused: {error}\n{text}")),
        }
    }
}

/// Defines a newer version and lets a few failed runs go on under the newest version of their workflow.
async fn repair(sim: Arc<Sim>, newer: &'static str) {
    define(sim.clone(), newer).await;
    let failed = |story: &&Story| story.status == "failed" && story.parent.is_none();
    let failed: Vec<String> = sim.past().runs.values().filter(failed).map(|story| story.public.clone()).collect();
    for run in failed.into_iter().rev().take(3) {
        retry(sim.clone(), run, Retry::Newest).await;
    }
}

/// Only a run that is over is erased, and then nothing happens to it any more.
pub async fn erase(sim: Arc<Sim>, run: String) {
    let (caller, name) = (sim.caller(), &run);
    let erased = sim.ask("erase", |engine| async move { engine.runs(&caller).erase(name).await }).await;
    if !matches!(erased, Some(Ok(()))) {
        return;
    }
    sim.was_told(&run, "erasing", |fact| matches!(fact, Fact::Ended { .. }));
    let caller = sim.caller();
    let again = sim.ask("retry", |engine| async move { engine.runs(&caller).retry(name, Retry::SameVersion).await });
    match again.await {
        Some(Ok(())) => sim.breaks(format!("{run} was erased and is retried")),
        Some(Err(_)) => sim.saw("an erased run cannot be retried"),
        None => {}
    }
}

/// Ends a step that waits with a result of a person's choice.
pub async fn override_step(sim: Arc<Sim>, run: String, path: String) {
    sim.wake(&run, &path);
    sim.overrides(&run, &path);
    let outcome = if sim.chance().one_in(2) { Ok(json!({"n": 0, "state": "done"})) } else { Err("given up".into()) };
    let (caller, how) = (sim.caller(), Override { outcome, comment: None });
    let (name, step) = (&run, &path);
    let told = sim.ask("override", |engine| async move { engine.steps(&caller).override_step(name, step, how).await });
    if let Some(Ok(())) = told.await {
        sim.was_told(&run, "overriding", |fact| matches!(fact, Fact::Overridden { .. }));
    }
}

pub async fn pause(sim: Arc<Sim>, workflow: &'static str) {
    let caller = sim.caller();
    sim.ask("pause", |engine| async move { engine.workflows(&caller).pause(workflow, None).await }).await;
    sim.pause(10_000).await;
    resume(sim, workflow).await;
}

pub async fn resume(sim: Arc<Sim>, workflow: &'static str) {
    loop {
        let caller = sim.caller();
        let told = sim.ask("resume", |engine| async move { engine.workflows(&caller).resume(workflow, None).await });
        match told.await {
            Some(Ok(())) => return,
            Some(Err(Error::Unavailable(_) | Error::Changed(_))) | None => sim.pause(1_000).await,
            Some(Err(error)) => return sim.breaks(format!("{workflow} cannot be resumed: {error}")),
        }
    }
}

/// Something happens. Most of it to a run that waits for it, some of it to one that does not.
pub fn disturb(sim: &Arc<Sim>, chosen: &[&'static Workflow]) {
    let kind = sim.chance().below(26);
    match kind {
        0..7 => return begin(sim, chosen),
        7 => {
            let newer = sim.chance().pick(chosen).and_then(|workflow| workflow.newer);
            if let Some(newer) = newer {
                tokio::spawn(repair(sim.clone(), newer));
            }
            return;
        }
        8 => {
            let disk = sim.disk.clone();
            tokio::spawn(async move { disk.grants_changed(OrgId(1)).await });
            return;
        }
        9..12 => {
            let url = {
                let ledger = sim.ledger();
                sim.chance().pick(&ledger.callbacks).cloned()
            };
            return url.into_iter().for_each(|url| twice(sim, |sim| call_back(sim, url.clone())));
        }
        20 => {
            // A child that was held by the pause waits for the place of its own parent, which waits for it.
            let paused = sim.chance().pick(chosen).map(|workflow| workflow.name);
            let paused = paused.filter(|name| *name != "evicts-its-parent");
            return paused.into_iter().for_each(|name| drop(tokio::spawn(pause(sim.clone(), name))));
        }
        23 | 24 => return rules::act(sim, chosen),
        _ => {}
    }
    let Some(Someone { run, over, waiting }) = someone(sim) else { return };
    match kind {
        25 => twice(sim, |sim| rules::release(sim, run.clone())),
        12 => twice(sim, |sim| cancel(sim, run.clone())),
        13 | 14 if over => {
            let how = if sim.chance().one_in(2) { Retry::Newest } else { Retry::SameVersion };
            twice(sim, |sim| retry(sim, run.clone(), how));
        }
        15 => twice(sim, |sim| read(sim, run.clone())),
        21 if over => twice(sim, |sim| erase(sim, run.clone())),
        22 => {
            if let Some((path, _)) = waiting {
                twice(sim, |sim| override_step(sim, run.clone(), path.clone()));
            }
        }
        _ => {
            if let Some((path, waits)) = waiting {
                give(sim, &run, &path, waits);
            }
        }
    }
}

struct Someone {
    run: String,
    over: bool,
    /// Something it waits for.
    waiting: Option<(String, Waits)>,
}

fn someone(sim: &Sim) -> Option<Someone> {
    let past = sim.past();
    let stories: Vec<&Story> = past.runs.values().collect();
    let story = *sim.chance().pick(&stories)?;
    let waiting: Vec<_> = story.waiting.iter().map(|(path, waits)| (path.clone(), *waits)).collect();
    let waiting = sim.chance().pick(&waiting).cloned();
    Some(Someone { run: story.public.clone(), over: story.is_over(), waiting })
}

/// Gives a step what it waits for.
pub fn give(sim: &Arc<Sim>, run: &str, path: &str, waits: Waits) {
    let (run, path) = (run.to_string(), path.to_string());
    if sim.is_noisy() && sim.chance().one_in(4) {
        return twice(sim, |sim| ready(sim, run.clone(), path.clone()));
    }
    match waits {
        Waits::Gate => twice(sim, |sim| answer(sim, run.clone(), path.clone())),
        Waits::Webhook => twice(sim, |sim| deliver(sim, run.clone(), path.clone())),
        Waits::Verdict => twice(sim, |sim| settle(sim, run.clone(), path.clone())),
        Waits::Time => {}
    }
}

/// Sometimes twice, and then sometimes later.
fn twice<F>(sim: &Arc<Sim>, act: impl Fn(Arc<Sim>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    tokio::spawn(act(sim.clone()));
    if sim.chance().one_in(4) {
        let (again, sim) = (act(sim.clone()), sim.clone());
        tokio::spawn(async move {
            sim.pause(3_000).await;
            again.await;
        });
    }
}

fn begin(sim: &Arc<Sim>, chosen: &[&'static Workflow]) {
    let entries: Vec<&Workflow> = chosen.iter().copied().filter(|workflow| workflow.entry).collect();
    let Some(workflow) = sim.chance().pick(&entries).copied() else { return };
    let tag = sim.number();
    let key = sim.chance().one_in(2).then(|| format!("key-{tag}"));
    let group = sim.chance().below(2);
    let input = json!({"tag": tag, "key": format!("group-{group}"), "rows": [1, 2, 3], "keyed": key.is_some()});
    let later = sim.chance().one_in(8);
    let delay = if later { Some(sim.chance().between(1, 20_000)) } else { None };
    let wish = Wish { workflow: workflow.name, input, key, delay };
    let twins = if wish.key.is_some() { sim.chance().between(1, 2) } else { 1 };
    for _ in 0..twins {
        tokio::spawn(start(sim.clone(), wish.clone()));
    }
}

/// A few workflows, with those they start.
pub fn choose(sim: &Sim) -> Vec<&'static Workflow> {
    let mut chosen: Vec<&Workflow> = Vec::new();
    let entries: Vec<&Workflow> = ALL.iter().filter(|workflow| workflow.entry).collect();
    let count = sim.chance().between(2, 4);
    for _ in 0..count {
        chosen.extend(sim.chance().pick(&entries));
    }
    let needed = |workflow: &Workflow, by: &[&Workflow]| {
        by.iter().any(|other| other.text.contains(&format!("workflow: {}", workflow.name)))
    };
    for _ in 0..3 {
        let more: Vec<&Workflow> = ALL.iter().filter(|workflow| needed(workflow, &chosen)).collect();
        chosen.extend(more);
    }
    chosen.sort_by_key(|workflow| workflow.name);
    chosen.dedup_by_key(|workflow| workflow.name);
    chosen
}
