//! Schedules: keeps the records of a workflow's triggers in step with its versions, and fires the due ones.
//!
//! A tick starts one run, no matter which nodes try and how often: its time is the run's unique key.

use super::hooks::{Hook, sync_hooks};
use super::{SCHEDULE, Triggered, Triggers, start_as, stored_text};
use crate::access::{Actor, Switches};
use crate::error::Error;
use crate::records::{Kept, body, json};
use crate::run::Message;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::definition::{CatchUp, Cron, Definition, Overlap, Trigger};
use stepwell_core::time::{Millis, Time};
use stepwell_formats::cron::Schedule;
use stepwell_store::{Change, Due, OrgId, Record, RecordChange, RecordFilter};

/// A tick that is later than this counts as missed.
const ON_TIME: Millis = Millis::from_secs(60);
/// Schedules read in one batch.
const BATCH: u32 = 100;
const LONGEST_WAIT: Millis = Millis::from_secs(5);
/// If schedules were not polled for longer than this, the ticks in between were missed.
const LONGEST_GAP: Millis = Millis::from_secs(15);
/// Pause after a tick failed.
const PAUSE: Millis = Millis::from_secs(1);

/// A schedule of a workflow. Its record is due when it fires next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Scheduled {
    pub workflow: String,
    /// The position of its trigger in the definition.
    pub index: usize,
    /// The stored text of its trigger, to detect that a new version changed it.
    pub written: String,
    /// The user who added the schedule with a call. `written` has the fields of its trigger, and `index` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    pub last: Option<Time>,
    pub last_run: Option<String>,
    /// Why the last tick did not start a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// The user whose schedule it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    pub name: String,
    /// The principal that its runs act as, in the notation of [`Actor`].
    pub acts_as: String,
}

impl Scheduled {
    /// Its trigger. `None` if the definition no longer has it.
    pub fn trigger(&self, definition: &Definition) -> Option<Trigger> {
        match &self.owner {
            None => definition.triggers.get(self.index).cloned(),
            Some(_) => {
                let written = serde_json::from_str(&self.written).ok()?;
                read_cron(&written).ok().map(Trigger::Cron)
            }
        }
    }
}

/// The schedule that these fields of a `cron` trigger describe.
pub fn read_cron(written: &Value) -> Result<Cron, Error> {
    // Read as a definition is, so that a schedule means the same in both.
    let definition = json!({"name": "schedule", "trigger": written, "tasks": {"rest": {"sleep": 0}}});
    let read = stepwell_formats::read_value(&definition).map_err(|mut faults| {
        // The fields stand alone here.
        for fault in &mut faults.list {
            fault.path = fault.path.trim_start_matches("trigger").trim_start_matches('.').to_owned();
        }
        Error::Definition(faults)
    })?;
    match read.triggers.into_iter().next() {
        Some(Trigger::Cron(cron)) => Ok(cron),
        _ => Err(Error::Input { path: "cron".into(), message: "a cron expression is required".into() }),
    }
}

impl Kept for Scheduled {
    const KIND: &'static str = "schedule";
}

/// The changes that bring the records of a workflow's triggers in step with this version.
pub async fn sync(
    triggers: &Triggers,
    org: OrgId,
    workflow: &str,
    definition: &Definition,
) -> Result<Vec<RecordChange>, Error> {
    let now = triggers.cluster.clock.now();
    let mut changes = Vec::new();
    let mut schedules = of_workflow(triggers, Scheduled::KIND, org, workflow).await?;
    // Users keep the schedules that they added.
    schedules.retain(|record| body::<Scheduled>(record).is_ok_and(|scheduled| scheduled.owner.is_none()));
    let mut hooks = of_workflow(triggers, Hook::KIND, org, workflow).await?;
    for (index, trigger) in definition.triggers.iter().enumerate() {
        if !matches!(trigger, Trigger::Cron(_) | Trigger::At { .. }) {
            continue;
        }
        let id = format!("{workflow}.{index}");
        let written = stored_text(trigger);
        let before = schedules.iter().position(|record| record.id == id).map(|n| schedules.swap_remove(n));
        // An unchanged trigger keeps its record: an `at` that has fired does not fire again.
        if let Some(before) = &before
            && body::<Scheduled>(before)?.written == written
        {
            continue;
        }
        let due = first_tick(trigger, now);
        let scheduled = Scheduled {
            workflow: workflow.into(),
            index,
            written,
            owner: None,
            last: None,
            last_run: None,
            last_error: None,
        };
        let body = json(&scheduled);
        changes.push(match before {
            Some(before) => RecordChange::Replace(Record { due, body, ..before }),
            None => {
                let (kind, key) = (Scheduled::KIND.into(), id.clone());
                RecordChange::Create(Record { kind, id, org, key, due, body, version: 0 })
            }
        });
    }
    changes.extend(sync_hooks(triggers, org, workflow, definition, &mut hooks)?);
    let gone = schedules.into_iter().chain(hooks);
    changes.extend(gone.map(|record| RecordChange::Remove { kind: record.kind, id: record.id }));
    Ok(changes)
}

/// The changes that remove all records of a deleted workflow.
pub async fn removed(triggers: &Triggers, org: OrgId, workflow: &str) -> Result<Vec<RecordChange>, Error> {
    let mut all = of_workflow(triggers, Scheduled::KIND, org, workflow).await?;
    all.extend(of_workflow(triggers, Hook::KIND, org, workflow).await?);
    all.extend(triggers.cluster.store.record(Switches::KIND, workflow).await?);
    Ok(all.into_iter().map(|record| RecordChange::Remove { kind: record.kind, id: record.id }).collect())
}

/// The records of this kind that belong to a workflow. Their ids start with its id; their keys may not.
pub async fn of_workflow(triggers: &Triggers, kind: &str, org: OrgId, workflow: &str) -> Result<Vec<Record>, Error> {
    let prefix = format!("{workflow}.");
    let keys = if kind == Scheduled::KIND { prefix.clone() } else { String::new() };
    let filter = RecordFilter { kind: kind.into(), org: Some(org), prefix: keys, after: None, limit: u32::MAX };
    let found = triggers.cluster.store.records(filter).await?;
    Ok(found.into_iter().filter(|record| record.id.starts_with(&prefix)).collect())
}

fn first_tick(trigger: &Trigger, now: Time) -> Option<Time> {
    match trigger {
        Trigger::Cron(cron) => Schedule::new(cron)?.next(now),
        // A time that passed before it was defined does not fire.
        Trigger::At { at, .. } => Some(*at).filter(|at| now.since(*at) <= ON_TIME),
        Trigger::Api | Trigger::Webhook(_) => None,
    }
}

/// The changes that fire each `at` trigger whose time came while the workflow was disabled.
pub async fn enabled(triggers: &Triggers, org: OrgId, workflow: &str) -> Result<Vec<RecordChange>, Error> {
    let now = triggers.cluster.clock.now();
    let mut changes = Vec::new();
    for record in of_workflow(triggers, Scheduled::KIND, org, workflow).await? {
        let scheduled: Scheduled = body(&record)?;
        if record.due.is_none() && scheduled.last.is_none() && scheduled.last_error.is_some() {
            changes.push(RecordChange::Replace(Record { due: Some(now), ..record }));
        }
    }
    Ok(changes)
}

/// Since when this process polls schedules without a gap. Tells ticks that came during an outage from late ones.
struct Watch {
    since: Time,
    polled: Time,
}

impl Watch {
    fn at(&mut self, now: Time) {
        if now.since(self.polled) > LONGEST_GAP {
            self.since = now;
        }
    }
}

/// Fires schedules until the engine stops.
pub async fn run(triggers: Arc<Triggers>) {
    let started = triggers.cluster.clock.now();
    let mut watch = Watch { since: started, polled: started };
    while !triggers.cluster.stop.is_cancelled() {
        let now = triggers.cluster.clock.now();
        watch.at(now);
        let wait = match fire_due(&triggers, Moment { watched: watch.since, now }).await {
            Ok(next) => {
                // Not `now`: many schedules may take long to fire.
                watch.polled = triggers.cluster.clock.now();
                next.map_or(LONGEST_WAIT, |next| next.since(now).min(LONGEST_WAIT))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read due schedules; will retry");
                PAUSE
            }
        };
        tokio::select! {
            biased;
            () = triggers.cluster.stop.cancelled() => {}
            () = triggers.rescheduled.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait.0.max(1))) => {}
        }
    }
}

/// The time of a poll, and since when there were polls without a gap.
#[derive(Clone, Copy)]
struct Moment {
    watched: Time,
    now: Time,
}

/// Fires due schedules. Returns when the next one is due, if that is known.
async fn fire_due(triggers: &Triggers, moment: Moment) -> Result<Option<Time>, Error> {
    let now = moment.now;
    let soon = now + LONGEST_WAIT;
    let (mut due, mut ready_count, mut fired) = (Due::by(soon), 0, 0);
    // Page by page: schedules that cannot fire now must not hide those behind them.
    loop {
        let page = triggers.cluster.store.due_records(Scheduled::KIND, due.clone(), BATCH).await?;
        if triggers.cluster.is_draining() {
            return Ok(None);
        }
        due.after = page.last().and_then(|last| Some((last.due?, last.id.clone())));
        let (ready, later): (Vec<Record>, Vec<Record>) =
            page.into_iter().partition(|record| record.due.is_some_and(|due| due <= now));
        ready_count += ready.len();
        let last_page = ready.is_empty() || !later.is_empty();
        fired += fire_all(triggers, ready, moment).await;
        if last_page {
            return Ok(match () {
                // Those that failed are retried after a pause.
                () if fired < ready_count => Some(now + PAUSE),
                // Fired schedules have a new due time.
                () if fired > 0 => Some(now),
                () => later.first().and_then(|record| record.due),
            });
        }
    }
}

/// Fires schedules. Returns how many fired.
async fn fire_all(triggers: &Triggers, ready: Vec<Record>, moment: Moment) -> usize {
    let fired = ready.into_iter().map(|record| async move {
        let fired = fire(triggers, record.clone(), moment).await;
        if let Err(error) = &fired {
            tracing::warn!(schedule = %record.id, %error, "cannot fire a schedule; will retry");
        }
        // A record that cannot be read must not block the others.
        if let Err(Error::Broken(_)) = fired {
            let records = vec![RecordChange::Replace(Record { due: Some(moment.now + ON_TIME), ..record })];
            let _ = triggers.cluster.store.change(Change { records, ..Change::default() }).await;
        }
        fired.is_ok()
    });
    futures_util::future::join_all(fired).await.into_iter().filter(|fired| *fired).count()
}

async fn fire(triggers: &Triggers, record: Record, moment: Moment) -> Result<(), Error> {
    let now = moment.now;
    let mut scheduled: Scheduled = body(&record)?;
    let found = triggers.runner.workflows.newest(record.org, &scheduled.workflow).await;
    let compiled = match found {
        Ok(compiled) => compiled,
        // The workflow was deleted and this record was left over.
        Err(Error::NotFound { .. }) => return remove(triggers, record).await,
        Err(error) => return Err(error),
    };
    let Some(trigger) = scheduled.trigger(&compiled.definition) else {
        return remove(triggers, record).await;
    };
    let acts_as = scheduled.owner.as_ref().map_or(compiled.row.author.as_str(), |owner| owner.acts_as.as_str());
    let actor = Actor::parse(acts_as);
    let due = record.due.unwrap_or(now);
    let (ticks, next, input, overlap) = match &trigger {
        Trigger::Cron(cron) => {
            let Some(schedule) = Schedule::new(cron) else { return remove(triggers, record).await };
            (ticks(cron, &schedule, due, moment), schedule.next(now), cron.input.clone(), cron.overlap)
        }
        Trigger::At { at, input } => (vec![*at], None, input.clone(), Overlap::Allow),
        Trigger::Api | Trigger::Webhook(_) => return remove(triggers, record).await,
    };
    let accepted = triggers.runner.workflows.reviewed(&compiled.row).await?.is_accepted();
    for tick in ticks {
        let due_tick = Tick { at: tick, actor: actor.clone(), input: input.clone(), overlap };
        let started = match accepted {
            true => tick_once(triggers, &record, &scheduled, due_tick).await,
            false => Err(Error::NotNow("an agent wrote this version, and no person has accepted it".into())),
        };
        match started {
            Ok(started) => {
                (scheduled.last, scheduled.last_error) = (Some(tick), None);
                scheduled.last_run = Some(started);
            }
            Err(error @ Error::Unavailable(_)) => return Err(error),
            // An `at` trigger is not lost: it fires when the workflow is enabled again or its version is accepted.
            Err(error @ (Error::Disabled(_) | Error::NotNow(_))) if matches!(trigger, Trigger::At { .. }) => {
                scheduled.last_error = Some(error.to_string());
            }
            Err(error) => {
                tracing::debug!(schedule = %record.id, %tick, %error, "a tick did not start a run");
                (scheduled.last, scheduled.last_error) = (Some(tick), Some(error.to_string()));
            }
        }
    }
    let records = vec![RecordChange::Replace(Record { due: next, body: json(&scheduled), ..record })];
    // If a new version or another node changed the record meanwhile, that change wins.
    let _ = triggers.cluster.store.change(Change { records, ..Change::default() }).await?;
    Ok(())
}

/// Removes a record, unless it was changed meanwhile.
async fn remove(triggers: &Triggers, record: Record) -> Result<(), Error> {
    let gone = RecordChange::Remove { kind: record.kind.clone(), id: record.id.clone() };
    let records = vec![RecordChange::Replace(record), gone];
    let _ = triggers.cluster.store.change(Change { records, ..Change::default() }).await?;
    Ok(())
}

/// The ticks to fire, among all since the one that was due.
fn ticks(cron: &Cron, schedule: &Schedule, due: Time, moment: Moment) -> Vec<Time> {
    let Moment { watched, now } = moment;
    let on_time = |tick: &Time| now.since(*tick) <= ON_TIME;
    let before = Time(due.0 - 1);
    let all = schedule.between(before, now, CatchUp::MOST);
    let last = all.last().copied();
    match cron.catch_up {
        CatchUp::All => all,
        CatchUp::None => all.into_iter().filter(on_time).collect(),
        // A tick that is a little late because many came at once was not missed; one that came during an outage was.
        CatchUp::Last if last.is_some_and(|last| last > watched && on_time(&last)) => {
            all.into_iter().filter(|tick| *tick > watched && on_time(tick)).collect()
        }
        CatchUp::Last => last.into_iter().collect(),
    }
}

struct Tick {
    at: Time,
    /// Whose rights the run has.
    actor: Actor,
    input: Value,
    overlap: Overlap,
}

/// Fires one tick. Returns the run that it started.
async fn tick_once(triggers: &Triggers, record: &Record, scheduled: &Scheduled, tick: Tick) -> Result<String, Error> {
    let Tick { at, actor, input, overlap } = tick;
    if let Some(last) = scheduled.last_run.as_deref().filter(|_| overlap != Overlap::Allow)
        && let Some(id) = triggers.cluster.store.find_run(last).await?
        && triggers.cluster.store.run(id).await?.is_some_and(|row| row.finished.is_none())
    {
        if overlap == Overlap::Skip {
            return Err(Error::Refused(format!("the run {last} of an earlier tick has not finished")));
        }
        let reason: Arc<str> = "the next tick of its schedule fired".into();
        match triggers.runner.ask(id, Message::Cancel { by: actor.user.as_str().into(), reason: Some(reason) }).await {
            Ok(()) | Err(Error::Conflict(_) | Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let headers = json!({SCHEDULE: record.id, "x-stepwell-scheduled-at": at.to_string()});
    let begin = Triggered {
        workflow: &scheduled.workflow,
        by: scheduled.owner.as_ref().map(|owner| owner.name.as_str()),
        input: if input.is_null() { json!({}) } else { input },
        headers: Some(headers),
        query: None,
        scope: format!("schedule:{}", record.id),
        key: Some(at.to_string()),
        how: "schedule",
    };
    Ok(start_as(triggers, record.org, &actor, begin).await?.run)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ticks that `catch_up: last` fires when polls resume after an outage.
    fn after(expression: &str, due: &str, back: &str) -> Vec<String> {
        let cron = Cron { expression: expression.into(), timezone: Some("Europe/Berlin".into()), ..Cron::default() };
        let time = |text: &str| Time::parse(text).unwrap();
        let moment = Moment { watched: time(back), now: time(back) };
        let fired = ticks(&cron, &Schedule::new(&cron).unwrap(), time(due), moment);
        fired.iter().map(Time::to_string).collect()
    }

    #[test]
    fn only_the_newest_tick_of_an_outage_fires() {
        let due = "2026-01-05T10:00:10Z";
        assert_eq!(after("*/10 * * * * *", due, "2026-01-05T10:00:45Z"), ["2026-01-05T10:00:40.000Z"]);
        assert_eq!(after("*/10 * * * * *", due, "2026-01-05T10:02:25Z"), ["2026-01-05T10:02:20.000Z"]);
    }

    #[test]
    fn a_clock_change_inside_an_outage_leaves_its_newest_tick() {
        // Berlin goes from 02:00 to 03:00 at 01:00 UTC, and back from 03:00 to 02:00 at 01:00 UTC.
        assert_eq!(after("*/20 * * * *", "2026-03-29T00:20:00Z", "2026-03-29T01:20:30Z"), ["2026-03-29T01:20:00.000Z"]);
        assert_eq!(after("*/20 * * * *", "2026-10-25T00:20:00Z", "2026-10-25T01:20:30Z"), ["2026-10-25T01:20:00.000Z"]);
    }

    #[test]
    fn late_ticks_fire_as_long_as_schedules_are_polled() {
        let cron = Cron { expression: "*/10 * * * * *".into(), ..Cron::default() };
        let time = |text: &str| Time::parse(text).unwrap();
        let moment = Moment { watched: time("2026-01-05T09:00:00Z"), now: time("2026-01-05T10:00:32Z") };
        let fired = ticks(&cron, &Schedule::new(&cron).unwrap(), time("2026-01-05T10:00:10Z"), moment);
        assert_eq!(fired.len(), 3);
    }

    #[test]
    fn a_gap_between_polls_is_an_outage_and_a_wait_is_not() {
        let mut watch = Watch { since: Time(0), polled: Time(0) };
        watch.at(Time(5_000));
        assert_eq!(watch.since, Time(0));
        watch.at(Time(50_000));
        assert_eq!(watch.since, Time(50_000));
    }
}
