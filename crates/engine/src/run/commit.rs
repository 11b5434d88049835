//! Writes a plan as a commit, and acts on it once it is on disk.

use super::keys::{is_begin, is_continuation};
use super::live::Live;
use super::plan::Plan;
use super::record::{CommitContext, record};
use super::sink::{Sink, Slot};
use super::{Activity, Committed, Message, Runner, children, continuing, queue};
use crate::access::counter;
use crate::error::Error;
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::fact::{Fact, Reason};
use stepwell_core::plan::{Effect, Transition};
use stepwell_core::run::{At, RunStatus};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{
    Auth, Commit, GroupChange, Hint, NodeId, Notice, Position, Refused, StepRow, Version, Work, WorkKey,
};

/// How long test runs are kept.
const TEST_RETENTION: Millis = Millis::DAY;

/// The actions that follow once a commit is on disk.
pub struct Follow {
    /// The node that claimed the attempts to begin.
    node: NodeId,
    begin: Vec<(WorkKey, Slot)>,
    abort: Vec<WorkKey>,
    set: Vec<(String, Time)>,
    cleared: Vec<String>,
    /// Notices about child runs, by key.
    children: Vec<String>,
    /// Notifications for users.
    notices: Vec<Notice>,
    /// Notices about suspended calls that are over.
    abandoned: Vec<Notice>,
    hash: [u8; 32],
    left_ready: bool,
    position: Position,
}

/// Writes a plan as one commit. If it is refused, the slots taken for it are released.
pub async fn write(
    runner: &Runner,
    sink: &dyn Sink,
    live: &Live,
    plan: &Plan<'_>,
    before: &'static str,
) -> Result<Result<Follow, Refused>, Error> {
    let mut commit = commit(runner, live, plan, before).await?;
    let children = commit.outbox.iter().map(|notice| notice.key.clone()).collect();
    let notices = sink.notices(live, &plan.transition.facts, plan.now).await?;
    let abandoned = sink.abandoned(live, &plan.transition, plan.now);
    commit.outbox.extend(notices.iter().chain(&abandoned).cloned());
    let node = runner.cluster.node.id();
    let slots = sink.reserve(node, &mut commit.work.put);
    let (begin, left): (Vec<&Work>, Vec<&Work>) = commit.work.put.iter().partition(|work| work.node.is_some());
    let mut follow = Follow {
        node,
        begin: begin.iter().map(|work| work.key.clone()).zip(slots).collect(),
        abort: aborted(live, &plan.transition),
        set: commit.timers.put.iter().map(|timer| (timer.key.clone(), timer.due)).collect(),
        cleared: commit.timers.remove.clone(),
        children,
        notices,
        abandoned,
        hash: commit.log.hash,
        left_ready: !left.is_empty() || (sink.limits_organisations() && !commit.work.remove.is_empty()),
        position: Position::new(0, 0),
    };
    let answer = runner.cluster.store.commit(vec![commit]).await;
    match answer.map(|mut answers| answers.pop()) {
        Ok(Some(Ok(position))) => {
            follow.position = position;
            report_quarantine(live, &plan.transition.facts);
            Ok(Ok(follow))
        }
        Ok(Some(Err(refused))) => Ok(Err(refused)),
        Ok(None) => Err(Error::Unavailable("the store returned no result".into())),
        Err(error) => Err(error.into()),
    }
}

/// Reports the steps that are quarantined from now on.
fn report_quarantine(live: &Live, facts: &[Fact]) {
    for fact in facts {
        if let Fact::Unsure { step, attempt } = fact
            && let Some(state) = live.run.step(&live.compiled.definition.graph, *step)
            && state.is_quarantined()
        {
            let step = live.run.path(&live.compiled.definition.graph, *step);
            tracing::error!(run = &*live.run.id, %step, attempt, "a step is quarantined: its node was lost too often");
            metrics::counter!("stepwell_quarantined_total", "what" => "step").increment(1);
        }
    }
}

/// The rows of a plan.
async fn commit(runner: &Runner, live: &Live, plan: &Plan<'_>, before: &'static str) -> Result<Commit, Error> {
    let epoch = match plan.epoch {
        Some(epoch) => epoch,
        None => runner.workflows.access.epoch(live.org).await?,
    };
    let context = CommitContext {
        run: live.id,
        version: live.version,
        hash: live.hash,
        key: runner.cluster.store.chain_key(),
        auth: Auth { org: live.org, epoch },
        create: plan.create.clone(),
        now: plan.now,
        status: before,
        definition: live.compiled.row.id,
        purge: Some(plan.now + retention(live)),
        fired: plan.fired.clone(),
        read: plan.read.clone(),
    };
    let mut commit = record(&live.compiled.definition.graph, &live.run, &plan.transition, context);
    commit.sent = plan.sent.clone();
    commit.unique.extend(plan.unique.clone());
    commit.groups = plan.groups.clone();
    commit.audit = plan.audit.clone();
    commit.audit.extend(plan.rules.audit(live, &plan.transition, plan.now));
    // A row that is written again replaces the row of the version that the run has left.
    let written: BTreeSet<(&str, u32)> = commit.steps.iter().map(|row| (&*row.path, row.attempt)).collect();
    let retired = plan.retired.iter().filter(|row| !written.contains(&(&*row.path, row.attempt)));
    let retired: Vec<StepRow> = retired.cloned().collect();
    commit.steps.extend(retired);
    if live.run.status.is_terminal() {
        commit.mail.extend(live.parent.as_ref().map(|parent| children::result_mail(live, parent)));
        commit.groups.extend(live.group.clone().map(|key| GroupChange::Leave { key }));
    }
    let executions = executions(live, &plan.transition, &commit.work.put);
    if executions > 0 {
        commit.counted.push((counter(live.org, plan.now), executions));
    }
    Ok(commit)
}

/// How many executions these attempts are for the plan's limit. One that continues a deferred or held call is not
/// counted again: a task that is polled for an hour is one execution.
fn executions(live: &Live, transition: &Transition, begun: &[Work]) -> i64 {
    let graph = &live.compiled.definition.graph;
    let continues = |fact: &Fact| match fact {
        Fact::Again { step, attempt, reason: Reason::Deferred | Reason::Approved, .. } => {
            Some(WorkKey { path: live.run.path(graph, *step), attempt: *attempt })
        }
        _ => None,
    };
    let continued: BTreeSet<WorkKey> = transition.facts.iter().filter_map(continues).collect();
    begun.iter().filter(|work| !continued.contains(&work.key)).count() as i64
}

/// How long a run is kept once it has ended.
fn retention(live: &Live) -> Millis {
    if live.test { TEST_RETENTION } else { live.compiled.definition.retention }
}

/// The attempts that the transition aborts.
fn aborted(live: &Live, transition: &Transition) -> Vec<WorkKey> {
    let key = |at: At, attempt| WorkKey { path: live.run.path(&live.compiled.definition.graph, at), attempt };
    let aborts = transition.effects.iter().filter_map(|effect| match *effect {
        Effect::Abort { at, attempt } => Some(key(at, attempt)),
        Effect::Dispatch { .. }
        | Effect::SetTimer { .. }
        | Effect::ClearTimer { .. }
        | Effect::StartChild { .. }
        | Effect::CancelChild { .. }
        | Effect::Abandon { .. } => None,
    });
    aborts.collect()
}

/// Acts on a commit that is on disk.
pub fn follow_up(runner: &Arc<Runner>, sink: &dyn Sink, live: &mut Live, follow: Follow) {
    live.version = Version(live.version.0 + 1);
    live.hash = follow.hash;
    if let Some(watcher) = live.watcher.take() {
        runner.notify_end(live.id, watcher);
    }
    let ended = live.run.status.is_terminal();
    if runner.activity.receiver_count() > 0 {
        let (run, org, version, at) = (live.id, live.org, live.version, std::time::Instant::now());
        let committed = Committed { run, org, version, position: follow.position, ended, at };
        // The last receiver may have left just now.
        let _ = runner.activity.send(Activity::Committed(committed));
    }
    let elsewhere = follow.abort.iter().filter(|key| !runner.mailboxes.abort(live.id, key)).count();
    for (key, slot) in follow.begin {
        sink.begin(live, key, follow.node, slot);
    }
    let ready = follow.left_ready && !sink.left_ready(live.org);
    let runs = if elsewhere > 0 { vec![live.id] } else { Vec::new() };
    let freed = if ended { vec![live.org] } else { Vec::new() };
    runner.cluster.send_hint(Hint { runs, ready, freed, ..Hint::default() });
    follow.cleared.iter().for_each(|key| runner.timers.clear(live.id, key));
    for (key, due) in follow.set {
        runner.timers.set(live.id, &key, due);
        if is_continuation(&key) {
            continuing::queue(runner, runner.timers.fire_early(live.id, key));
        }
    }
    if let Some(group) = live.group.clone().filter(|_| live.run.status == RunStatus::Queued)
        && follow.cleared.iter().any(|key| is_begin(key))
    {
        tokio::spawn(queue::admit(runner.clone(), live.org, group));
    }
    if !follow.children.is_empty() {
        // Sent as a message to this run, so that a child's start and its cancellation keep their order.
        runner.send(live.id, Message::Notices(follow.children));
    }
    if !follow.notices.is_empty() {
        sink.deliver(live.id, follow.notices);
    }
    if !follow.abandoned.is_empty() {
        sink.abandon(live.id, follow.abandoned);
    }
    if ended {
        metrics::counter!("stepwell_runs_ended_total", "status" => live.run.status.name()).increment(1);
        runner.ended(live.id);
        runner.place_freed(live.org, live.parent.as_ref().map(|parent| parent.run));
        if let Some(parent) = &live.parent {
            runner.send(parent.run, Message::Mail);
        }
        if let Some(group) = live.group.clone() {
            tokio::spawn(queue::admit(runner.clone(), live.org, group));
        }
    }
}
