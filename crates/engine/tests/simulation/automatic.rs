//! What happens without a client: schedules fire, each tick once, and somebody is told of every run that failed.
//!
//! Each is part of some seeds only, because both cost polls.

use crate::life::sleep_or_restart;
use crate::past::Story;
use crate::sim::Sim;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::fact::Fact;
use stepwell_core::run::RunStatus;
use stepwell_core::time::Millis;
use stepwell_engine::commands::NewChannel;
use stepwell_engine::notify::{Courier, Medium, Parcel, Settings, Topic, Undelivered};
use stepwell_engine::{Caller, Config, Error, Vault};
use tokio_util::sync::CancellationToken;

const EVERY: Millis = Millis::from_secs(5);
/// Catches up with all ticks, so that none may be missing in the end.
const TICKS: &str = r#"
name: ticks
retention: 900d
trigger: {cron: "*/5 * * * * *", catch_up: all}
tasks:
  a: {tool: sure}
"#;
/// After the noise a schedule fires within this time, and a failure is told.
const SOON: Duration = Duration::from_secs(120);

fn ticks(sim: &Sim) -> bool {
    sim.seed.is_multiple_of(4)
}

fn tells(sim: &Sim) -> bool {
    sim.seed % 4 == 1
}

/// What was sent to the only channel.
#[derive(Default)]
pub struct Post {
    /// The runs that were said to have failed, by the id of the message.
    sent: BTreeMap<String, String>,
    refused: BTreeSet<String>,
}

struct Postman {
    sim: Arc<Sim>,
    life: CancellationToken,
}

#[async_trait]
impl Courier for Postman {
    fn check(&self, _settings: &Settings) -> Result<(), (&'static str, String)> {
        Ok(())
    }

    /// A message is refused or lost once at most: pauses between attempts grow fast.
    async fn send(&self, parcel: &Parcel) -> Result<(), Undelivered> {
        let sim = &self.sim;
        let fails = sim.is_noisy() && sim.chance().one_in(3) && sim.post().refused.insert(parcel.id.clone());
        if self.life.is_cancelled() || (fails && sim.chance().one_in(2)) {
            return std::future::pending().await;
        }
        if fails {
            return Err(Undelivered::for_now("so the dice fell"));
        }
        if sim.post().refused.contains(&parcel.id) {
            sim.saw("a message was sent again");
        }
        sim.post().sent.insert(parcel.id.clone(), parcel.message.run.clone());
        sim.saw("a failure was told");
        Ok(())
    }
}

/// The configuration of a process that can send, which takes a master key. That seals the chains of logs, too.
pub fn with_courier(sim: &Arc<Sim>, life: &CancellationToken, config: Config) -> Config {
    if !tells(sim) {
        return config;
    }
    let vault = Arc::new(Vault::read(&"07".repeat(32)).unwrap());
    let courier: Arc<dyn Courier> = Arc::new(Postman { sim: sim.clone(), life: life.clone() });
    Config { vault, courier: Some(courier), ..config }
}

/// Before anything goes wrong.
pub async fn begin(sim: &Arc<Sim>) {
    if ticks(sim) {
        crate::client::define(sim.clone(), TICKS).await;
    }
    if tells(sim) {
        let url = Some("https://post.test".into());
        let events = Some(vec![Topic::RunFailed]);
        let all = NewChannel {
            name: "all".into(),
            medium: Some(Medium::Slack),
            url,
            organisation: true,
            events,
            ..NewChannel::default()
        };
        let engine = sim.some_process().await.engine;
        engine.channels(&Caller::local("ann")).create(all).await.unwrap();
    }
}

/// After the noise: lets the schedule catch up, then ends it, so that the runs come to an end.
pub async fn end(sim: &Arc<Sim>) {
    if !ticks(sim) {
        return;
    }
    let calm = sim.now();
    let caught_up = |sim: &Sim| fired(sim).last().is_some_and(|last| *last + EVERY.0 as i64 >= calm.0);
    let since = tokio::time::Instant::now();
    while !caught_up(sim) && sim.mood.open.is_none() && since.elapsed() < SOON {
        sleep_or_restart(sim, Duration::from_secs(1)).await;
    }
    loop {
        let engine = sim.some_process().await.engine;
        match engine.workflows(&Caller::local("ann")).enable("ticks", false).await {
            Ok(()) => break,
            Err(Error::Unavailable(_) | Error::Changed(_)) => sleep_or_restart(sim, Duration::from_secs(1)).await,
            Err(error) => return sim.breaks(format!("a schedule cannot be ended: {error}")),
        }
    }
    // One run of each tick; none is missing, unless the plan refused it.
    let all = fired(sim);
    let repeated = all.windows(2).find(|pair| pair[0] == pair[1]);
    let missing = all.windows(2).find(|pair| pair[1] - pair[0] > EVERY.0 as i64);
    if let Some(pair) = repeated {
        sim.breaks(format!("the tick of {} fired twice", pair[0]));
    }
    if sim.mood.open.is_none()
        && let Some(pair) = missing
    {
        sim.breaks(format!("between {} and {} a tick did not fire", pair[0], pair[1]));
    }
    if sim.mood.open.is_none() && !caught_up(sim) {
        sim.breaks(format!("the schedule did not go on after {:?}", all.last()));
    }
}

/// The ticks for which there are runs, in order.
fn fired(sim: &Sim) -> Vec<i64> {
    let past = sim.past();
    let mut all: Vec<i64> = past.runs.values().filter_map(|story| Some(story.tick?.0)).collect();
    all.sort();
    all
}

/// Once all runs are over: every failure was told, each under one id.
pub async fn verify(sim: &Arc<Sim>) {
    if !tells(sim) {
        return;
    }
    let since = tokio::time::Instant::now();
    let untold = loop {
        let untold: Vec<String> =
            failures(sim).into_iter().filter(|(run, times)| told(sim, run) < *times).map(|(run, _)| run).collect();
        if untold.is_empty() || since.elapsed() > SOON {
            break untold;
        }
        sleep_or_restart(sim, Duration::from_secs(1)).await;
    };
    untold.into_iter().for_each(|run| sim.breaks(format!("no one was told that {run} failed")));
    for (run, times) in failures(sim) {
        if told(sim, &run) > times {
            sim.breaks(format!("{run} failed {times} times, and {} messages say so", told(sim, &run)));
        }
    }
}

fn told(sim: &Sim, run: &str) -> usize {
    sim.post().sent.values().filter(|of| *of == run).count()
}

/// How often each run failed. Children are their parents' business.
fn failures(sim: &Sim) -> BTreeMap<String, usize> {
    let failed = |fact: &&stepwell_core::run::StoredFact| {
        matches!(fact, Fact::Ended { status: RunStatus::Failed | RunStatus::Timeout, .. })
    };
    let past = sim.past();
    let stories = past.runs.values().filter(|story: &&Story| story.parent.is_none());
    stories
        .map(|story| (story.public.clone(), story.facts().filter(failed).count()))
        .filter(|(_, times)| *times > 0)
        .collect()
}
