//! Records, the audit trail, organisations and counters.

use super::MemoryStore;
use super::state::State;
use crate::*;
use std::collections::BTreeMap;
use stepwell_core::time::Time;

#[derive(Default)]
pub struct RegistryTables {
    /// Records by kind and id.
    pub records: BTreeMap<(String, String), Record>,
    pub audit: Vec<AuditRow>,
    /// Organisation names; the default organisation exists from the start.
    pub organisations: BTreeMap<OrgId, String>,
    pub counters: BTreeMap<String, i64>,
    /// The key of hashes, if it is secret.
    pub key: Option<ChainKey>,
}

impl RegistryTables {
    pub fn append(&mut self, row: NewAudit) {
        let previous = self.audit.iter().rev().find(|before| before.row.org == row.org).map_or([0; 32], |row| row.hash);
        let (id, hash) = (self.audit.len() as i64 + 1, self.key().seal(audit_hash(&previous, &row)));
        self.audit.push(AuditRow { id, row, writer: 0, hash });
    }

    pub fn key(&self) -> ChainKey {
        self.key.unwrap_or(ChainKey::PUBLIC)
    }

    fn with_key<'a>(&'a self, kind: &'a str, key: &str) -> Option<&'a Record> {
        self.of_kind(kind).find(|record| record.key == key)
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Record> {
        let from = (kind.to_string(), String::new());
        self.records.range(from..).take_while(move |((of, _), _)| of == kind).map(|(_, record)| record)
    }

    fn put(&mut self, change: RecordChange) -> Result<(), Refused> {
        match change {
            RecordChange::Create(record) => {
                let id = (record.kind.clone(), record.id.clone());
                if self.records.contains_key(&id) || self.with_key(&record.kind, &record.key).is_some() {
                    return Err(Refused::Taken);
                }
                self.records.insert(id, Record { version: 1, ..record });
            }
            RecordChange::Replace(record) => {
                if self.with_key(&record.kind, &record.key).is_some_and(|other| other.id != record.id) {
                    return Err(Refused::Taken);
                }
                let id = (record.kind.clone(), record.id.clone());
                let before = self.records.get_mut(&id).filter(|before| before.version == record.version);
                let before = before.ok_or(Refused::Conflict)?;
                *before = Record { version: record.version + 1, org: before.org, ..record };
            }
            RecordChange::Remove { kind, id } => {
                self.records.remove(&(kind, id));
            }
        }
        Ok(())
    }
}

/// Applies the whole change, or nothing if a part is refused.
pub fn apply(state: &mut State, change: Change) -> Result<(), Refused> {
    if change.decided.is_some_and(|auth| state.epochs.get(&auth.org) != Some(&auth.epoch)) {
        return Err(Refused::AuthChanged);
    }
    let before = state.registry.records.clone();
    for record in change.records {
        if let Err(refused) = state.registry.put(record) {
            state.registry.records = before;
            return Err(refused);
        }
    }
    change.audit.into_iter().for_each(|row| state.registry.append(row));
    if let Some(epoch) = change.grants_of.and_then(|org| state.epochs.get_mut(&org)) {
        *epoch += 1;
    }
    Ok(())
}

#[async_trait]
impl Registry for MemoryStore {
    async fn change(&self, change: Change) -> Result<Result<(), Refused>, Error> {
        Ok(apply(&mut self.lock(), change))
    }

    async fn record(&self, kind: &str, id: &str) -> Result<Option<Record>, Error> {
        Ok(self.lock().registry.records.get(&(kind.to_string(), id.to_string())).cloned())
    }

    async fn record_with_key(&self, kind: &str, key: &str) -> Result<Option<Record>, Error> {
        Ok(self.lock().registry.with_key(kind, key).cloned())
    }

    async fn records(&self, filter: RecordFilter) -> Result<Vec<Record>, Error> {
        let state = self.lock();
        let fits = |record: &&Record| {
            filter.org.is_none_or(|org| record.org == org)
                && record.key.starts_with(&filter.prefix)
                && filter.after.as_ref().is_none_or(|after| record.key > *after)
        };
        let mut found: Vec<Record> = state.registry.of_kind(&filter.kind).filter(fits).cloned().collect();
        found.sort_by(|one, two| one.key.cmp(&two.key));
        found.truncate(filter.limit as usize);
        Ok(found)
    }

    async fn due_records(&self, kind: &str, due: Due, limit: u32) -> Result<Vec<Record>, Error> {
        let state = self.lock();
        let of_kind = state.registry.of_kind(kind);
        let by_due: BTreeMap<(Time, String), Record> =
            of_kind.filter_map(|record| Some(((record.due?, record.id.clone()), record.clone()))).collect();
        let wanted = by_due.into_iter().filter(|((at, _), _)| *at <= due.until);
        let wanted = wanted.filter(|(place, _)| due.after.as_ref().is_none_or(|after| place > after));
        Ok(wanted.take(limit as usize).map(|(_, record)| record).collect())
    }

    async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRow>, Error> {
        let state = self.lock();
        let is = |wanted: &Option<String>, have: &str| wanted.as_ref().is_none_or(|wanted| wanted == have);
        let fits = |row: &&AuditRow| {
            row.row.org == filter.org
                && row.id < filter.before.unwrap_or(i64::MAX)
                && is(&filter.by, &row.row.by)
                && is(&filter.action, &row.row.action)
                && is(&filter.target, &row.row.target)
        };
        Ok(state.registry.audit.iter().rev().filter(fits).take(filter.limit as usize).cloned().collect())
    }

    async fn found(&self, name: &str, _at: Time) -> Result<Option<OrgId>, Error> {
        let mut state = self.lock();
        if state.registry.organisations.values().any(|taken| taken == name) {
            return Ok(None);
        }
        let id = OrgId(state.registry.organisations.keys().next_back().map_or(1, |last| last.0 + 1));
        state.registry.organisations.insert(id, name.to_string());
        state.epochs.insert(id, 1);
        Ok(Some(id))
    }

    async fn organisations(&self) -> Result<Vec<(OrgId, String)>, Error> {
        let state = self.lock();
        Ok(state.registry.organisations.iter().map(|(id, name)| (*id, name.clone())).collect())
    }

    async fn counted(&self, counter: &str) -> Result<i64, Error> {
        Ok(self.lock().registry.counters.get(counter).copied().unwrap_or_default())
    }

    async fn open_runs(&self, org: OrgId) -> Result<u64, Error> {
        Ok(self.lock().open_runs(org))
    }
}
