//! Applies one commit. All checks come before the first write, except for concurrency groups, which are restored.

use super::state::{Run, State};
use super::tables::{Membership, Message};
use crate::*;
use std::collections::{BTreeMap, BTreeSet};

/// Applies a commit or changes nothing. Returns `Err` for rows that already exist, which is a bug of the planner.
pub fn apply(state: &mut State, commit: Commit) -> Result<Result<Position, Refused>, Error> {
    if let Err(refused) = check(state, &commit) {
        return Ok(Err(refused));
    }
    let Some(before) = change_groups(state, &commit) else { return Ok(Err(Refused::Full)) };
    if let Some(fault) = duplicate_row(state, &commit) {
        restore_groups(state, commit.run, before);
        return Err(Error::Unavailable(fault));
    }
    Ok(Ok(write(state, commit)))
}

fn check(state: &State, commit: &Commit) -> Result<(), Refused> {
    if state.epochs.get(&commit.auth.org) != Some(&commit.auth.epoch) {
        return Err(Refused::AuthChanged);
    }
    let new = commit.create.as_ref();
    if let Some((new, most)) = new.and_then(|new| Some((new, new.most_open?)))
        && state.open_runs(commit.auth.org) >= u64::from(most)
        && new.parent.as_ref().is_none_or(|parent| state.has_open_child(parent))
    {
        return Err(Refused::TooManyOpen);
    }
    let found = state.runs.get(&commit.run);
    let fits = match (&commit.create, found) {
        (Some(new), None) => {
            commit.expect == Version(0) && commit.head.is_some() && !state.public.contains_key(&new.public)
        }
        (None, Some(run)) => run.version == commit.expect && run.row.erased.is_none(),
        (Some(_), Some(_)) | (None, None) => false,
    };
    if !fits {
        return Err(Refused::Conflict);
    }
    for (n, key) in commit.unique.iter().enumerate() {
        if let Some(earlier) = commit.unique[..n].iter().find(|other| other.scope == key.scope && other.key == key.key)
        {
            return Err(Refused::Duplicate { run: commit.run, digest: earlier.digest.clone() });
        }
        let owner = state.unique.get(&(key.scope.clone(), key.key.clone()));
        if let Some(owner) = owner.filter(|owner| owner.counts_at(commit.log.at)) {
            return Err(Refused::Duplicate { run: owner.run, digest: owner.digest.clone() });
        }
    }
    if let Some((counter, most)) = new.and_then(NewRun::counted)
        && state.registry.counters.get(&counter).is_some_and(|count| *count >= i64::from(most))
    {
        return Err(Refused::TooManyDescendants);
    }
    Ok(())
}

/// Changes the run's groups and returns its previous memberships, oldest change first. Returns `None`, and changes
/// nothing, if a group is full.
fn change_groups(state: &mut State, commit: &Commit) -> Option<Vec<(String, Membership)>> {
    let (run, groups) = (commit.run, &mut state.groups);
    let mut before = Vec::new();
    for change in &commit.groups {
        let (key, membership, given) = match change {
            GroupChange::Enter { key, limit } => {
                (key, Membership::Entered, limit.is_none_or(|limit| groups.has_room(key, run, limit)))
            }
            GroupChange::Queue { key } => (key, Membership::Queued, true),
            GroupChange::Leave { key } => (key, Membership::Outside, true),
        };
        if !given {
            restore_groups(state, run, before);
            return None;
        }
        before.push((key.clone(), groups.membership(key, run)));
        groups.set(key, run, membership);
    }
    Some(before)
}

fn restore_groups(state: &mut State, run: RunId, before: Vec<(String, Membership)>) {
    for (key, membership) in before.into_iter().rev() {
        state.groups.set(&key, run, membership);
    }
}

/// Returns an error message if the commit inserts a row that already exists.
fn duplicate_row(state: &State, commit: &Commit) -> Option<String> {
    let run = state.runs.get(&commit.run);
    let mut values = BTreeSet::new();
    for value in &commit.values {
        if run.is_some_and(|run| run.values.contains_key(&value.id)) || !values.insert(value.id) {
            return Some(format!("value {} of run {} already exists", value.id.0, commit.run.0));
        }
    }
    let mut work = BTreeSet::new();
    for Work { key, .. } in &commit.work.put {
        let there = state.work.contains(commit.run, key) && !commit.work.remove.contains(key);
        if there || !work.insert(key) {
            return Some(format!("work {}#{} of run {} already exists", key.path, key.attempt, commit.run.0));
        }
    }
    None
}

fn write(state: &mut State, commit: Commit) -> Position {
    let id = commit.run;
    let version = Version(commit.expect.0 + 1);
    state.position += 1;
    let position = Position::new(0, state.position);
    if let (Some(new), Some(head)) = (commit.create, &commit.head) {
        if let Some((counter, _)) = new.counted() {
            *state.registry.counters.entry(counter).or_default() += 1;
        }
        state.public.insert(new.public.clone(), id);
        state.runs.insert(id, create(id, new, head));
    }
    if let Some(head) = &commit.head {
        state.set_purge(id, head.purge);
    }
    if let Some(run) = state.runs.get_mut(&id) {
        if let Some(head) = commit.head {
            run.row.status = head.status;
            run.row.definition = head.definition;
            run.row.started = run.row.started.or(head.started);
            run.row.finished = head.finished;
        }
        (run.version, run.hash, run.state) = (version, commit.log.hash, commit.state);
        for mut step in commit.steps {
            let attempts = run.steps.entry(step.path.clone()).or_default();
            if let Some(before) = attempts.get(&step.attempt).filter(|before| before.status != "pending") {
                step.since = before.since;
            }
            attempts.insert(step.attempt, step);
        }
        run.values.extend(commit.values.into_iter().map(|value| (value.id, value.payload)));
        run.log.insert(version, StoredLog { version, position, row: commit.log });
    }
    state.feed.insert(position, (id, version));
    for key in commit.unique {
        state.put_unique(id, key);
    }
    for key in commit.work.remove {
        state.work.remove(id, key);
    }
    for work in commit.work.put {
        state.work.put(id, work);
    }
    for key in commit.timers.remove {
        state.timers.remove(id, key);
    }
    for timer in commit.timers.put {
        state.timers.put(id, timer);
    }
    let org = commit.auth.org;
    for path in commit.gates.remove {
        state.gates.remove(&(org, id, path));
    }
    for gate in commit.gates.put {
        state.gates.insert((org, id, gate.path), gate.since);
    }
    for (counter, delta) in commit.counted {
        *state.registry.counters.entry(counter).or_default() += delta;
    }
    commit.audit.into_iter().for_each(|row| state.registry.append(row));
    for Mail { to, key, body } in commit.mail {
        state.mail.put(Message { run: to, key, content: body });
    }
    for read in commit.read {
        if state.mail.get(read).is_some_and(|mail| mail.run == id) {
            state.mail.remove(read);
        }
    }
    for notice in commit.outbox {
        state.put_notice(id, notice);
    }
    for key in commit.sent {
        state.remove_notice(id, &key);
    }
    position
}

fn create(id: RunId, new: NewRun, head: &Head) -> Run {
    let row = RunRow {
        id,
        public: new.public,
        org: new.org,
        definition: head.definition,
        status: head.status.clone(),
        by: new.by,
        acts_as: new.acts_as,
        labels: new.labels,
        test: new.test,
        parent: new.parent,
        created: new.created,
        started: head.started,
        finished: head.finished,
        erased: None,
    };
    Run {
        row,
        version: Version(0),
        hash: [0; 32],
        secret: new.secret,
        group: new.group,
        purge: None,
        state: String::new(),
        steps: BTreeMap::new(),
        values: BTreeMap::new(),
        log: BTreeMap::new(),
    }
}
