//! All data of the store, with its lookups.

use super::registry::RegistryTables;
use super::tables::{Groups, Message, Messages, Timers, WorkTable, remove_from};
use crate::*;
use std::collections::{BTreeMap, BTreeSet};
use stepwell_core::time::Time;
use tokio::time::Instant;

#[derive(Default)]
pub struct State {
    /// The epoch of each organisation's grants.
    pub epochs: BTreeMap<OrgId, i64>,
    pub definitions: Definitions,
    pub runs: BTreeMap<RunId, Run>,
    pub public: BTreeMap<String, RunId>,
    pub to_purge: BTreeSet<(Time, RunId)>,
    /// The highest position assigned so far.
    pub position: i64,
    pub feed: BTreeMap<Position, (RunId, Version)>,
    pub work: WorkTable,
    pub timers: Timers,
    pub mail: Messages<String>,
    pub outbox: Messages<Outgoing>,
    pub outbox_due: BTreeSet<(Time, i64)>,
    pub unique: BTreeMap<(String, String), Unique>,
    pub unique_of_run: BTreeMap<RunId, BTreeSet<(String, String)>>,
    pub groups: Groups,
    pub nodes: BTreeMap<NodeId, NewNode>,
    /// When each node last joined or sent a heartbeat.
    pub beats: BTreeMap<NodeId, Instant>,
    pub gates: BTreeMap<(OrgId, RunId, String), Time>,
    pub registry: RegistryTables,
}

/// A run and the rows that belong only to it.
pub struct Run {
    pub row: RunRow,
    pub version: Version,
    pub hash: [u8; 32],
    pub secret: [u8; 16],
    pub group: Option<String>,
    pub purge: Option<Time>,
    pub state: String,
    /// Step rows by path and attempt.
    pub steps: BTreeMap<String, BTreeMap<u32, StepRow>>,
    pub values: BTreeMap<ValueId, String>,
    pub log: BTreeMap<Version, StoredLog>,
}

impl Run {
    pub fn load(&self) -> LoadedRun {
        LoadedRun {
            row: self.row.clone(),
            version: self.version,
            hash: self.hash,
            secret: self.secret,
            group: self.group.clone(),
            state: self.state.clone(),
            steps: self.steps.values().filter_map(|attempts| Some(attempts.last_key_value()?.1.clone())).collect(),
            values: self.values.iter().map(|(&id, payload)| ValueRow { id, payload: payload.clone() }).collect(),
        }
    }
}

pub struct Outgoing {
    pub body: String,
    pub due: Time,
}

pub struct Unique {
    pub run: RunId,
    pub digest: String,
    pub expires: Option<Time>,
}

impl Unique {
    /// Whether the key still belongs to its run.
    pub fn counts_at(&self, now: Time) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

impl State {
    pub fn open_runs(&self, org: OrgId) -> u64 {
        let open = |row: &&RunRow| row.org == org && !row.test && row.finished.is_none() && row.status != "scheduled";
        self.runs.values().map(|run| &run.row).filter(open).count() as u64
    }

    pub fn has_open_child(&self, parent: &Parent) -> bool {
        self.open_descendants(parent.root).any(|of| of.run == parent.run)
    }

    /// Which steps wait for the unfinished descendants of a root.
    pub fn open_descendants(&self, root: RunId) -> impl Iterator<Item = &Parent> {
        let open = self.runs.values().filter(|run| run.row.finished.is_none());
        open.filter_map(|run| run.row.parent.as_ref()).filter(move |parent| parent.root == root)
    }

    /// The state of a new store: the same as a new SQLite file.
    pub fn new() -> State {
        let mut state = State { epochs: BTreeMap::from([(OrgId(1), 1)]), ..State::default() };
        state.registry.organisations.insert(OrgId(1), "default".into());
        state
    }

    pub fn put_notice(&mut self, run: RunId, notice: Notice) {
        let Notice { key, body, due } = notice;
        if let Some(id) = self.outbox.put(Message { run, key, content: Outgoing { body, due } }) {
            self.outbox_due.insert((due, id));
        }
    }

    pub fn remove_notice(&mut self, run: RunId, key: &str) {
        if let Some(id) = self.outbox.find(run, key) {
            self.remove_notice_by_id(id);
        }
    }

    pub fn remove_notice_by_id(&mut self, id: i64) {
        if let Some(gone) = self.outbox.remove(id) {
            self.outbox_due.remove(&(gone.content.due, id));
        }
    }

    pub fn due_notices(&self, until: Time, after: i64, limit: u32) -> Vec<StoredNotice> {
        let due = self.outbox_due.range(..=(until, i64::MAX)).map(|&(_, id)| id);
        let due: BTreeSet<i64> = due.filter(|id| *id > after).collect();
        due.into_iter().filter_map(|id| self.notice(id)).take(limit as usize).collect()
    }

    pub fn notices(&self, run: RunId, prefix: &str, limit: u32) -> Vec<StoredNotice> {
        let ids = self.outbox.by_key(run).filter(|(key, _)| key.starts_with(prefix)).map(|(_, id)| id);
        ids.filter_map(|id| self.notice(id)).take(limit as usize).collect()
    }

    fn notice(&self, id: i64) -> Option<StoredNotice> {
        let Message { run, key, content } = self.outbox.get(id)?;
        Some(StoredNotice { id, run: *run, key: key.clone(), body: content.body.clone() })
    }

    /// Assigns the key to the run, replacing any previous owner.
    pub fn put_unique(&mut self, run: RunId, key: UniqueKey) {
        let UniqueKey { scope, key, digest, expires } = key;
        let name = (scope, key);
        if let Some(before) = self.unique.insert(name.clone(), Unique { run, digest, expires }) {
            remove_from(&mut self.unique_of_run, &before.run, &name);
        }
        self.unique_of_run.entry(run).or_default().insert(name);
    }

    pub fn remove_unique(&mut self, name: &(String, String)) {
        if let Some(gone) = self.unique.remove(name) {
            remove_from(&mut self.unique_of_run, &gone.run, name);
        }
    }

    pub fn set_purge(&mut self, run: RunId, at: Option<Time>) {
        let Some(row) = self.runs.get_mut(&run) else { return };
        if let Some(before) = std::mem::replace(&mut row.purge, at) {
            self.to_purge.remove(&(before, run));
        }
        self.to_purge.extend(at.map(|at| (at, run)));
    }

    pub fn runs(&self, filter: &RunFilter) -> Vec<RunRow> {
        let fits = |row: &&RunRow| {
            let workflow = || self.definitions.get(row.definition).map(|definition| &definition.workflow);
            row.org == filter.org
                && row.test == filter.tests
                && (filter.status.is_empty() || filter.status.contains(&row.status))
                && filter.since.is_none_or(|since| row.created >= since)
                && filter.until.is_none_or(|until| row.created < until)
                && filter.parent.is_none_or(|parent| row.parent.as_ref().is_some_and(|of| of.run == parent))
                && filter.by.as_ref().is_none_or(|by| *by == row.by)
                && filter.labels.iter().all(|label| row.labels.contains(label))
                && filter.text.as_ref().is_none_or(|text| {
                    row.public.contains(text) || row.by.contains(text) || row.labels.join("\n").contains(text)
                })
                && (filter.workflow.is_none() || filter.workflow.as_ref() == workflow())
        };
        let before = filter.before.unwrap_or(RunId(i64::MAX));
        let newest_first = self.runs.range(..before).rev().map(|(_, run)| &run.row);
        newest_first.filter(fits).take(filter.limit as usize).cloned().collect()
    }
}

/// Workflow versions. Ids are never reused, so callers may cache definitions by id.
#[derive(Default)]
pub struct Definitions {
    last: i64,
    rows: BTreeMap<i64, DefinitionRow>,
    /// Definitions of test runs: never found by name.
    tests: BTreeSet<i64>,
    newest: BTreeMap<(OrgId, String), i64>,
    /// When workflows were deleted, by public id.
    deleted: BTreeMap<String, Time>,
}

impl Definitions {
    pub fn get(&self, id: i64) -> Option<&DefinitionRow> {
        self.rows.get(&id)
    }

    pub fn find(&self, org: OrgId, name: &str) -> Option<&DefinitionRow> {
        let by_name = self.newest.get(&(org, name.to_string()));
        let by_id = || {
            let of_org = self.newest.iter().filter(|((of, _), _)| *of == org);
            of_org.map(|(_, id)| id).find(|id| self.rows.get(id).is_some_and(|row| row.workflow == name))
        };
        by_name.or_else(by_id).and_then(|id| self.rows.get(id))
    }

    pub fn versions(&self, org: OrgId, workflow: &str) -> Vec<DefinitionRow> {
        let rows = self.rows.values().filter(|row| row.org == org && row.workflow == workflow);
        rows.filter(|row| !self.tests.contains(&row.id)).rev().cloned().collect()
    }

    pub fn undefine(&mut self, org: OrgId, workflow: &str, at: Time) -> bool {
        let before = self.newest.len();
        let rows = &self.rows;
        self.newest.retain(|(of, _), id| *of != org || rows.get(id).is_none_or(|row| row.workflow != workflow));
        let gone = self.newest.len() < before;
        if gone {
            self.deleted.insert(workflow.to_string(), at);
        }
        gone
    }

    /// The newest versions of deleted workflows, latest deletion first.
    pub fn deleted(&self, org: OrgId, named: Option<&str>) -> Vec<(DefinitionRow, Time)> {
        let newest = self.deleted.iter().filter_map(|(id, at)| Some((self.versions(org, id).into_iter().next()?, *at)));
        let is_named = |row: &DefinitionRow| named.is_none_or(|named| row.name == named || row.workflow == named);
        let mut found: Vec<(DefinitionRow, Time)> = newest.filter(|(row, _)| is_named(row)).collect();
        found.sort_by_key(|(row, at)| std::cmp::Reverse((*at, row.id)));
        found
    }

    /// The newest version of a deleted workflow whose name is free.
    pub fn restorable(&self, org: OrgId, workflow: &str) -> Result<DefinitionRow, Refused> {
        let row = self.versions(org, workflow).into_iter().next().filter(|_| self.deleted.contains_key(workflow));
        let row = row.ok_or(Refused::Conflict)?;
        if self.newest.contains_key(&(org, row.name.clone())) { Err(Refused::Taken) } else { Ok(row) }
    }

    pub fn restore(&mut self, newest: DefinitionRow) {
        self.deleted.remove(&newest.workflow);
        self.newest.insert((newest.org, newest.name), newest.id);
    }

    pub fn of_org(&self, org: OrgId) -> Vec<DefinitionRow> {
        let named = self.newest.range((org, String::new())..).take_while(|((of, _), _)| *of == org);
        named.filter_map(|(_, id)| self.rows.get(id).cloned()).collect()
    }

    /// Returns the newest version, which the new one would follow.
    fn before(&self, new: &NewDefinition) -> Option<&DefinitionRow> {
        self.newest.get(&(new.org, new.name.clone())).and_then(|id| self.rows.get(id)).filter(|_| !new.test)
    }

    /// Whether the newest version is still the one that the decision was based on.
    pub fn accepts(&self, new: &NewDefinition) -> bool {
        let before = self.before(new);
        let same = before.is_none_or(|before| before.workflow == new.workflow || before.source == new.source);
        new.after.is_none_or(|after| same && before.map_or(0, |before| before.version) == after)
    }

    /// Returns the workflow and version under which the definition would be stored.
    pub fn check(&self, new: &NewDefinition) -> Result<(String, u32), Error> {
        let before = self.before(new);
        let (workflow, version) = before.map_or((&new.workflow, 1), |before| (&before.workflow, before.version + 1));
        if self.rows.values().any(|row| row.workflow == *workflow && row.version == version) {
            return Err(Error::Unavailable(format!("{workflow} already has a version {version}")));
        }
        Ok((workflow.clone(), version))
    }

    pub fn define(&mut self, new: NewDefinition) -> Result<DefinitionRow, Error> {
        let (workflow, version) = self.check(&new)?;
        let NewDefinition { org, name, source, by, author, at, test, .. } = new;
        self.last += 1;
        if test {
            self.tests.insert(self.last);
        } else {
            self.newest.insert((org, name.clone()), self.last);
        }
        let row = DefinitionRow { id: self.last, workflow, org, name, version, source, by, author, at };
        self.rows.insert(row.id, row.clone());
        Ok(row)
    }

    /// Removes the definition of a purged run if it was a test run.
    pub fn remove_if_test(&mut self, id: i64) {
        if self.tests.remove(&id) {
            self.rows.remove(&id);
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }
}
