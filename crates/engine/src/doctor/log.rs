//! Checks the log of one run: whether it is complete, whether its hash chain holds, and whether folding it gives the
//! stored rows.

use super::{Check, RunState, Versions, guarded, rows};
use crate::error::Error;
use crate::workflows::{Compiled, Definitions};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use stepwell_core::fact::Fact;
use stepwell_core::graph::Graph;
use stepwell_core::run::{Run, StoredFact};
use stepwell_core::time::{Millis, Time};
use stepwell_core::value::ValueId;
use stepwell_store::{ChainKey, LoadedRun, LogRow, Origin, RunRow, Store, StoredLog, Version, digest, hash};

/// Rows read per page.
const PAGE: u32 = 1_000;
/// Payloads read at a time.
const PAYLOADS: usize = 100;

#[derive(Default)]
pub struct Log {
    pub faults: Vec<(Check, String)>,
    facts: Vec<(Time, StoredFact)>,
    /// Digests of payloads, by id.
    payloads: HashMap<u32, String>,
    /// For each step, the attempts that it was in after a commit.
    pub attempts: BTreeMap<String, Vec<u32>>,
    /// The first row.
    first: Option<LogRow>,
    key: Option<ChainKey>,
}

impl Log {
    /// `key` is `None` if hashes are keyed with one that is not here; then they are not checked.
    pub async fn read(store: &dyn Store, stored: &LoadedRun, key: Option<ChainKey>) -> Result<Log, Error> {
        let mut log = Log { key, ..Log::default() };
        let (mut version, mut previous) = (0, [0; 32]);
        loop {
            let page = store.tail(stored.row.id, Version(version), PAGE).await?;
            let whole = page.len() < PAGE as usize;
            for row in page {
                log.add(&row, version, &previous);
                (version, previous) = (row.version.0, row.row.hash);
            }
            if whole {
                break;
            }
        }
        if version != stored.version.0 {
            let message = format!("the log ends with row {version}, but the run is at version {}", stored.version.0);
            log.faults.push((Check::Complete, message));
        } else if previous != stored.hash && log.faults.is_empty() {
            let message = format!("the hash of log row {version}, the last one, is not the hash of the run");
            log.faults.push((Check::Chain, message));
        }
        if stored.row.erased.is_none() {
            log.check_payloads(store, stored).await?;
        }
        Ok(log)
    }

    /// Checks that every logged payload is there and has the digest that was logged with its commit, and that there
    /// are no others.
    async fn check_payloads(&mut self, store: &dyn Store, stored: &LoadedRun) -> Result<(), Error> {
        // The run is older than digests in the log.
        if self.payloads.is_empty() {
            return Ok(());
        }
        let mut logged: Vec<ValueId> = self.payloads.keys().map(|id| ValueId(*id)).collect();
        logged.sort_unstable();
        let mut found = Vec::new();
        for ids in logged.chunks(PAYLOADS) {
            let values = store.values(stored.row.id, ids).await?;
            let values: HashMap<u32, String> = values.iter().map(|row| (row.id.0, digest(&row.payload))).collect();
            for id in ids {
                match values.get(&id.0) {
                    None => found.push(format!("payload {} is missing", id.0)),
                    found_digest if found_digest == self.payloads.get(&id.0) => {}
                    Some(_) => {
                        found.push(format!("payload {} was tampered with: its digest does not match the log", id.0));
                    }
                }
            }
        }
        let extra = stored.values.iter().filter(|value| !self.payloads.contains_key(&value.id.0));
        found.extend(extra.map(|value| format!("payload {} was added: it is not in the log", value.id.0)));
        self.faults.extend(found.into_iter().map(|message| (Check::Payloads, message)));
        Ok(())
    }

    fn add(&mut self, row: &StoredLog, before: i64, previous: &[u8; 32]) {
        let version = row.version.0;
        let key = self.key;
        let fits = |previous: &[u8; 32]| {
            let plain = hash(previous, row.row.at, &row.row.facts, &row.row.payloads);
            key.is_none_or(|key| key.fits(plain, &row.row.hash, row.row.at))
        };
        if version == 1 {
            // Checked when it is known which definitions the run may have started with.
            self.first = Some(row.row.clone());
        }
        if version != before + 1 {
            let missing = if version == before + 2 {
                format!("log row {} is missing", before + 1)
            } else {
                format!("log rows {} to {} are missing", before + 1, version - 1)
            };
            self.faults.push((Check::Complete, missing));
        } else if version > 1 && !fits(previous) && !self.faults.iter().any(|(check, _)| *check == Check::Chain) {
            // Only the first one is reported: all later hashes depend on it.
            let message = format!("log row {version} was tampered with: its hash does not match");
            self.faults.push((Check::Chain, message));
        }
        let written = row.row.payloads.split(' ').filter_map(|part| part.split_once(':'));
        self.payloads.extend(written.filter_map(|(id, digest)| Some((id.parse().ok()?, digest.to_string()))));
        match serde_json::from_str::<Vec<StoredFact>>(&row.row.facts) {
            Ok(facts) => {
                let mut last: BTreeMap<&str, u32> = BTreeMap::new();
                for fact in &facts {
                    if let Fact::Entered { step, attempt, .. } | Fact::Again { step, attempt, .. } = fact {
                        last.insert(step, *attempt);
                    }
                }
                for (step, attempt) in last {
                    self.attempts.entry(step.to_string()).or_default().push(attempt);
                }
                self.facts.extend(facts.into_iter().map(|fact| (row.row.at, fact)));
            }
            Err(error) => self.faults.push((Check::Readable, format!("log row {version} cannot be read: {error}"))),
        }
    }

    /// Checks that the first row follows from what never changes about the run: its author, its parent, and the
    /// definition that it started with, which is one of these. Rows of older programs follow nothing.
    pub fn check_origin(&mut self, row: &RunRow, versions: &Versions) {
        let adopted = self.facts.iter().rev().find_map(|(_, fact)| match fact {
            Fact::Adopted { version, .. } => Some(*version),
            _ => None,
        });
        let current = versions.iter().find(|version| version.row.id == row.definition).map(|now| now.row.version);
        if let Some(adopted) = adopted.filter(|adopted| Some(*adopted) != current) {
            let message = format!("the run went on with version {adopted} of its workflow, but its row names another");
            self.faults.push((Check::Rows, message));
        }
        let (Some(first), Some(key)) = (&self.first, self.key) else { return };
        let plain = |previous: [u8; 32]| hash(&previous, first.at, &first.facts, &first.payloads);
        let origins = versions.iter().map(|version| Origin::of(row, version.row.id).hash());
        let starts = origins.map(|origin| key.fits(plain(origin), &first.hash, first.at));
        let older = (!key.is_secret() || first.at < key.since()) && plain([0; 32]) == first.hash;
        if !{ starts }.any(|fits| fits) && !older {
            // Only the first one is reported: all later hashes depend on it.
            self.faults.retain(|(check, _)| *check != Check::Chain);
            let message = "log row 1 was tampered with, or what never changes about the run (who started it, as whom, \
                           when, with which definition): its hash does not match";
            self.faults.push((Check::Chain, message.into()));
        }
    }

    /// Whether the log has no faults. Only then can it be folded.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    /// The versions with which the run may have started: its own, or all versions of the workflow if it adopted a newer
    /// one. The log does not record the first version, so the most likely one comes first.
    pub async fn versions(
        &self,
        store: &dyn Store,
        definitions: &Definitions,
        now: &Arc<Compiled>,
    ) -> Result<Versions, Error> {
        if !self.facts.iter().any(|(_, fact)| matches!(fact, Fact::Adopted { .. })) {
            return Ok(vec![now.clone()]);
        }
        let mut all = vec![now.clone()];
        for id in (1..now.row.id).rev() {
            match store.definition(id).await? {
                Some(row) if row.workflow == now.row.workflow => all.push(definitions.keep(row)?),
                _ => {}
            }
        }
        let created = self.facts.first().map_or(Time(0), |(at, _)| *at);
        all.sort_by_key(|version| (version.row.at > created, std::cmp::Reverse(version.row.version)));
        Ok(all)
    }

    /// Folds the log and compares the result with the rows. Returns the differences.
    pub fn compare(&self, stored: &LoadedRun, rows: RunState<'_>, versions: &Versions) -> Vec<(Check, String)> {
        let mut first = None;
        for version in versions {
            let differences = match self.fold(stored, &version.definition.graph, versions) {
                Ok(folded) => rows::differences(RunState { run: &folded, ..rows }, rows),
                Err(message) => vec![(Check::Rows, message)],
            };
            if differences.is_empty() {
                return differences;
            }
            first.get_or_insert(differences);
        }
        first.unwrap_or_default()
    }

    fn fold(&self, stored: &LoadedRun, first: &Graph, versions: &Versions) -> Result<Run, String> {
        let graph = |number: u32| {
            let found = versions.iter().find(|version| version.row.version == number);
            found.map(|version| &version.definition.graph)
        };
        guarded(|| {
            let mut run = Run::new(stored.row.public.as_str(), 0, Millis(0));
            run.replay(first, self.facts.iter().cloned(), &graph).map_err(|error| error.to_string())?;
            Ok(run)
        })
    }
}
