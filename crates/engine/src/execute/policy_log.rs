//! What policies in the mode `log` would have done: counts and the newest samples, per policy.
//!
//! A node collects in memory and writes once a second, so that a busy policy costs one write a second. A crash loses
//! what was not written. Samples show the arguments without secrets.

use super::policies::{Match, Policy};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::records::{Kept, body, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::time::Time;
use stepwell_store::{Change, OrgId, Record, RecordChange};

/// Samples per policy.
pub const MAX_SAMPLES: usize = 20;
/// Bytes of the arguments of one sample.
const MAX_ARGS: usize = 1_000;
/// Time between two writes.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Attempts of one write, against those of other nodes.
const MAX_ATTEMPTS: u32 = 10;

/// What a policy would have done since it was set.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct PolicyLog {
    pub counts: Counts,
    /// The newest calls that it would have stopped, newest first.
    pub samples: VecDeque<Sample>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    pub denied: u64,
    pub held: u64,
    /// Calls over the rate.
    pub delayed: u64,
    /// Calls that it matches and would let through.
    pub allowed: u64,
    /// Calls on which its condition could not be decided, which count as matching.
    pub undecided: u64,
}

/// What a policy does with a call, from the weakest to the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allowed,
    Delayed,
    Held,
    Denied,
}

/// A call that a policy would have stopped.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub at: Time,
    pub verdict: Verdict,
    #[serde(default)]
    pub run: Option<String>,
    #[serde(default)]
    pub step: Option<String>,
    #[serde(default)]
    pub workflow: Option<String>,
    #[serde(default)]
    pub user: Option<String>,
    /// `tool pay`.
    pub call: String,
    /// JSON, cut off if it is long.
    pub args: String,
    /// Why the condition could not be decided.
    #[serde(default)]
    pub undecided: Option<String>,
}

impl Kept for PolicyLog {
    const KIND: &'static str = "policy_log";
}

impl Counts {
    pub fn add(&mut self, verdict: Verdict, undecided: bool) {
        let counter = match verdict {
            Verdict::Denied => &mut self.denied,
            Verdict::Held => &mut self.held,
            Verdict::Delayed => &mut self.delayed,
            Verdict::Allowed => &mut self.allowed,
        };
        *counter += 1;
        self.undecided += u64::from(undecided);
    }

    fn add_all(&mut self, other: Counts) {
        let Counts { denied, held, delayed, allowed, undecided } = other;
        self.denied += denied;
        self.held += held;
        self.delayed += delayed;
        self.allowed += allowed;
        self.undecided += undecided;
    }
}

/// The arguments as a sample shows them.
pub fn shown_args(args: &Value) -> String {
    let mut text = args.to_string();
    if text.len() > MAX_ARGS {
        text.truncate(text.floor_char_boundary(MAX_ARGS));
        text.push('\u{2026}');
    }
    text
}

impl PolicyLog {
    /// The id and the key of a policy's log.
    pub fn id(org: OrgId, policy: &str) -> String {
        format!("{}/{policy}", org.0)
    }

    /// Removes the log of a policy.
    pub fn removal(org: OrgId, policy: &str) -> RecordChange {
        RecordChange::Remove { kind: PolicyLog::KIND.into(), id: PolicyLog::id(org, policy) }
    }

    /// Counts a call, and keeps it as a sample unless it would have been let through.
    pub fn add(&mut self, sample: Sample) {
        self.counts.add(sample.verdict, sample.undecided.is_some());
        if sample.verdict != Verdict::Allowed {
            self.samples.push_front(sample);
            self.samples.truncate(MAX_SAMPLES);
        }
    }

    /// Counts a call that was made before all others.
    pub fn add_older(&mut self, sample: Sample) {
        self.counts.add(sample.verdict, sample.undecided.is_some());
        if sample.verdict != Verdict::Allowed && self.samples.len() < MAX_SAMPLES {
            self.samples.push_back(sample);
        }
    }

    fn add_newer(&mut self, newer: PolicyLog) {
        self.counts.add_all(newer.counts);
        newer.samples.into_iter().rev().for_each(|sample| self.samples.push_front(sample));
        self.samples.truncate(MAX_SAMPLES);
    }
}

#[derive(Default)]
struct Pending {
    logs: HashMap<(OrgId, String), PolicyLog>,
    is_scheduled: bool,
}

/// The logs of this node that are not written yet.
pub struct PolicyLogs {
    cluster: Arc<Cluster>,
    pending: Mutex<Pending>,
}

impl PolicyLogs {
    pub fn new(cluster: Arc<Cluster>) -> Arc<PolicyLogs> {
        Arc::new(PolicyLogs { cluster, pending: Mutex::default() })
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().expect("nothing panics while it holds the logs of policies")
    }

    /// Counts a call. `sample` is without what the match says.
    pub fn add(self: &Arc<PolicyLogs>, org: OrgId, matched: &Match<'_>, verdict: Verdict, sample: Sample) {
        let sample = Sample { verdict, undecided: matched.undecided.clone(), ..sample };
        let Policy { name, .. } = matched.policy;
        let is_scheduled = {
            let mut pending = self.pending();
            pending.logs.entry((org, name.clone())).or_default().add(sample);
            std::mem::replace(&mut pending.is_scheduled, true)
        };
        if !is_scheduled {
            let logs = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(WRITE_EVERY).await;
                logs.pending().is_scheduled = false;
                if let Err(error) = logs.write().await {
                    tracing::warn!(%error, "cannot write what policies would have stopped; will retry");
                }
            });
        }
    }

    /// Writes what this node has collected.
    pub async fn write(&self) -> Result<(), Error> {
        let taken = std::mem::take(&mut self.pending().logs);
        let mut outcome = Ok(());
        for ((org, policy), log) in taken {
            if outcome.is_ok() {
                outcome = self.write_one(org, &policy, &log).await;
            }
            if outcome.is_err() {
                // The next write tries again.
                let mut pending = self.pending();
                let newer = std::mem::replace(pending.logs.entry((org, policy.clone())).or_default(), log);
                pending.logs.entry((org, policy)).or_default().add_newer(newer);
            }
        }
        outcome
    }

    async fn write_one(&self, org: OrgId, policy: &str, log: &PolicyLog) -> Result<(), Error> {
        let (store, id) = (&self.cluster.store, PolicyLog::id(org, policy));
        for _ in 0..MAX_ATTEMPTS {
            let before = store.record(PolicyLog::KIND, &id).await?;
            let mut sum = before.as_ref().map(body::<PolicyLog>).transpose()?.unwrap_or_default();
            sum.add_newer(log.clone());
            let change = match before {
                Some(before) => RecordChange::Replace(Record { body: json(&sum), ..before }),
                None => RecordChange::Create(Record {
                    kind: PolicyLog::KIND.into(),
                    id: id.clone(),
                    org,
                    key: id.clone(),
                    due: None,
                    body: json(&sum),
                    version: 0,
                }),
            };
            if store.change(Change { records: vec![change], ..Change::default() }).await?.is_ok() {
                return Ok(());
            }
        }
        Err(Error::Unavailable("other nodes write the log of the policy all the time".into()))
    }

    /// Drops what is not written of a policy that changes.
    pub fn forget(&self, org: OrgId, policy: &str) {
        self.pending().logs.remove(&(org, policy.to_string()));
    }

    /// What a policy would have done, on all nodes.
    pub async fn read(&self, org: OrgId, policy: &str) -> Result<PolicyLog, Error> {
        self.write().await?;
        let record = self.cluster.store.record(PolicyLog::KIND, &PolicyLog::id(org, policy)).await?;
        Ok(record.as_ref().map(body::<PolicyLog>).transpose()?.unwrap_or_default())
    }
}
