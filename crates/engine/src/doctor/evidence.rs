//! Compares the rows of a store with its signed tallies: whether rows were added, changed or removed from outside.

use super::{Check, Fault, Report};
use crate::error::Error;
use serde::Serialize;
use stepwell_core::time::Time;
use stepwell_store::{ChainKey, Class, Compared, ComparedTrail, Evidence, Store, hex};

/// How the evidence of a store is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct EvidenceReport {
    /// The store keeps tallies.
    pub kept: bool,
    /// The id of the secret key that hashes and tallies are kept under. Without one, anyone who can write the store can
    /// compute them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Tallies were signed with a key that is not here, so hashes cannot be checked.
    pub locked: bool,
    /// Since when they are kept under this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

impl EvidenceReport {
    /// The key that hashes can be checked with, if it is here.
    pub fn key(&self, store: &dyn Store) -> Option<ChainKey> {
        (!self.locked).then(|| store.chain_key())
    }
}

pub async fn check(store: &dyn Store, report: &mut Report) -> Result<(), Error> {
    let evidence = match store.evidence(Vec::new()).await {
        Ok(evidence) => evidence,
        // The integrity faults found before explain the error.
        Err(_) if !report.faults.is_empty() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let key = store.chain_key();
    let secret = key.is_secret();
    report.evidence = EvidenceReport {
        kept: evidence.kept,
        locked: !evidence.other_keys.is_empty(),
        key: secret.then(|| hex(&key.id())),
        since: secret.then(|| key.since()),
    };
    for message in faults(&evidence) {
        report.add(Fault { run: None, check: Check::Evidence, message });
    }
    Ok(())
}

/// What is wrong, in words.
pub(super) fn faults(evidence: &Evidence) -> Vec<String> {
    let other = evidence.other_keys.iter().map(|id| {
        let id = hex(id);
        format!("a tally was signed with the chain key {id}, which needs the master key: rows cannot be verified")
    });
    let broken = evidence.broken.iter().map(|writer| {
        format!(
            "the tally of writer {writer} was tampered with: its signature does not hold, so rows cannot be verified"
        )
    });
    let classes = evidence.classes.iter().filter(|class| !class.same).map(class_fault);
    let trails = evidence.trails.iter().filter(|trail| !trail.same).map(trail_fault);
    let missed = evidence.missed.iter().map(|point| {
        let (writer, rows) = (point.writer, point.trail.rows);
        format!("the audit trail of writer {writer} does not contain the anchored row {rows}: it was cut or changed")
    });
    other.chain(broken).chain(classes).chain(trails).chain(missed).collect()
}

fn class_fault(compared: &Compared) -> String {
    let Compared { class, expected, found, .. } = *compared;
    let rows = match class {
        Class::Runs => "runs",
        Class::Definitions => "definitions",
        Class::Records => "records (users, roles, keys, policies, schedules and the like)",
    };
    match expected - found {
        0 => format!("{rows} are not those that were written: a row was changed or replaced from outside"),
        missing if missing > 0 => format!("{missing} of {expected} {rows} were deleted from outside"),
        more => format!("{} {rows} were added from outside: there should be {expected}", -more),
    }
}

fn trail_fault(compared: &ComparedTrail) -> String {
    let ComparedTrail { writer, expected, found, .. } = *compared;
    match expected - found {
        0 => format!("the audit trail of writer {writer} is not the one that was written: a row was changed"),
        missing if missing > 0 => {
            format!("{missing} of {expected} rows of the audit trail of writer {writer} were deleted from outside")
        }
        more => format!("{} rows were added to the audit trail of writer {writer} from outside", -more),
    }
}
