//! Begins scheduled runs whose time has come, as soon as their workflow is enabled and not paused and the plan has room
//! for another run. Until then they stay scheduled.

use super::Runner;
use super::messages::Message;
use super::timers::FiredTimer;
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{OrgId, RunFilter, RunId};
use tokio::sync::{Mutex, MutexGuard};

/// How long a due run that cannot begin waits before it tries again.
const PAUSE: Duration = Duration::from_secs(5);
/// Scheduled runs per concurrent run of a plan.
const PER_PLACE: u32 = 100;
/// Scheduled runs of an organisation whose plan limits its runs.
const MAX_SCHEDULED: u32 = 1_000;

/// Lets due runs of limited organisations begin one at a time, so that they do not all see the same free place.
#[derive(Default)]
pub struct DueRuns(Mutex<()>);

/// Begins a scheduled run, whose timer has fired.
pub fn queue(runner: &Arc<Runner>, timer: FiredTimer) {
    // A node that is stopping takes no new work: the row stays for the next one.
    if runner.cluster.is_draining() {
        return;
    }
    let runner = runner.clone();
    tokio::spawn(async move {
        loop {
            match permission(&runner, timer.run).await {
                Ok(Some(_turn)) => {
                    // What went wrong is logged by the run's driver, and the row brings the run back.
                    let _ = runner.ask(timer.run, Message::Timer { key: timer }).await;
                    return;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(run = timer.run.0, %error, "cannot begin a scheduled run; will retry"),
            }
            runner.timers.set_aside(timer.run, &timer);
            runner.cluster.pause(PAUSE).await;
            if runner.cluster.is_draining() {
                return;
            }
        }
    });
}

/// Held while a due run of a limited organisation begins.
type Turn<'a> = Option<MutexGuard<'a, ()>>;

/// A permission to begin the run now, if it may. Its commit ends before the permission is dropped.
async fn permission(runner: &Runner, run: RunId) -> Result<Option<Turn<'_>>, Error> {
    let Some(stored) = runner.cluster.store.head(run).await? else { return Ok(Some(None)) };
    let compiled = runner.workflows.version(stored.row.definition).await?;
    let access = &runner.workflows.access;
    let switches = access.switches(stored.row.org, &compiled.row.workflow).await?;
    let enabled = switches.enabled.unwrap_or(compiled.definition.enabled);
    if stored.row.finished.is_none() && (!enabled || switches.hold(stored.group.as_deref()).is_some()) {
        return Ok(None);
    }
    let (_, limits) = access.limits_of(stored.row.org).await?;
    let Some(most) = limits.concurrent_runs else { return Ok(Some(None)) };
    let turn = runner.due_runs.0.lock().await;
    let has_room = runner.cluster.store.open_runs(stored.row.org).await? < u64::from(most);
    Ok(has_room.then_some(Some(turn)))
}

/// Refuses to schedule a run if too many are scheduled for the plan.
pub async fn check_count(runner: &Runner, org: OrgId) -> Result<(), Error> {
    let (_, limits) = runner.workflows.access.limits_of(org).await?;
    let Some(runs) = limits.concurrent_runs else { return Ok(()) };
    let most = runs.saturating_mul(PER_PLACE).clamp(1, MAX_SCHEDULED);
    let status = vec!["scheduled".to_string()];
    let filter = RunFilter { status, ..RunFilter::all(org, most) };
    if runner.cluster.store.runs(filter).await?.len() >= most as usize {
        let message = format!("the plan allows {most} scheduled runs");
        return Err(Error::Limit { limit: "scheduled_runs", message });
    }
    Ok(())
}
