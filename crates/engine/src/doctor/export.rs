//! The audit trail as a file that can be verified: one JSON object per line, newest rows first, and at the end the heads
//! of the trail and a signature over everything before.
//!
//! Rows are read in pages, and one row per writer is held back until the row before it is known, so memory does not grow
//! with the trail.

use super::anchor::{Heads, heads, unhex};
use crate::error::Error;
use crate::records::json;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use stepwell_core::time::Time;
use stepwell_store::{AuditFilter, AuditRow, ChainKey, NewAudit, OrgId, Store, audit_hash, hex};

/// Rows read per page.
const PAGE: u32 = 1_000;
/// Faults of a file that are listed.
const MOST_FAULTS: usize = 100;
const FORMAT: u32 = 1;

/// A line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line {
    Head { format: u32, at: Time, key: Option<String>, since: Option<Time> },
    Row(Row),
    End { rows: u64, heads: Heads, signature: String },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Row {
    id: i64,
    organisation: i64,
    writer: i32,
    at: Time,
    by: String,
    action: String,
    target: String,
    detail: String,
    /// The hash of the writer's previous row in this organisation.
    previous: String,
    hash: String,
}

/// Receives the lines of an export.
#[async_trait]
pub trait Lines: Send {
    async fn line(&mut self, text: &str) -> std::io::Result<()>;
}

/// An export in progress.
pub struct Export<'a> {
    store: &'a dyn Store,
    digest: Sha256,
    rows: u64,
    out: &'a mut dyn Lines,
}

impl<'a> Export<'a> {
    pub fn new(store: &'a dyn Store, out: &'a mut dyn Lines) -> Export<'a> {
        Export { store, digest: Sha256::new(), rows: 0, out }
    }

    /// Writes the audit trail of all organisations, or its rows since a time. Returns how many rows.
    pub async fn run(mut self, now: Time, since: Option<Time>) -> Result<u64, Error> {
        let key = self.store.chain_key();
        // Rows that are written meanwhile may be in the file, but those that the heads count are.
        let heads = heads(self.store, now).await?;
        self.write(&Line::Head { format: FORMAT, at: now, key: heads.key.clone(), since }).await?;
        for (org, _) in self.store.organisations().await? {
            self.organisation(org, since).await?;
        }
        let signature = signature(&key, self.digest.clone(), &heads);
        let rows = self.rows;
        self.write(&Line::End { rows, heads, signature }).await?;
        Ok(rows)
    }

    async fn organisation(&mut self, org: OrgId, since: Option<Time>) -> Result<(), Error> {
        let wanted = |row: &AuditRow| since.is_none_or(|since| row.row.at >= since);
        let (mut before, mut later) = (None, BTreeMap::<i32, AuditRow>::new());
        loop {
            let filter = AuditFilter { org, by: None, action: None, target: None, before, limit: PAGE };
            let page = self.store.audit(filter).await?;
            // Rows of different writers are nearly in order of time: a page of older ones ends the search.
            let last = page.len() < PAGE as usize || (later.is_empty() && !page.iter().any(wanted));
            before = page.last().map(|row| row.id);
            for row in page {
                let hash = row.hash;
                let newer = if wanted(&row) { later.insert(row.writer, row) } else { later.remove(&row.writer) };
                if let Some(newer) = newer {
                    self.row(newer, hash).await?;
                }
            }
            if last {
                break;
            }
        }
        for first in later.into_values() {
            self.row(first, [0; 32]).await?;
        }
        Ok(())
    }

    async fn row(&mut self, row: AuditRow, previous: [u8; 32]) -> Result<(), Error> {
        let AuditRow { id, row, writer, hash } = row;
        let NewAudit { org, at, by, action, target, detail } = row;
        let (previous, hash) = (hex(&previous), hex(&hash));
        self.rows += 1;
        let row = Row { id, organisation: org.0, writer, at, by, action, target, detail, previous, hash };
        self.write(&Line::Row(row)).await
    }

    async fn write(&mut self, line: &Line) -> Result<(), Error> {
        let text = json(line);
        self.digest.update(text.as_bytes());
        self.digest.update(b"\n");
        let written = self.out.line(&text).await;
        written.map_err(|error| Error::Unavailable(format!("cannot write the export: {error}")))
    }
}

fn signature(key: &ChainKey, digest: Sha256, heads: &Heads) -> String {
    hex(&key.sign("export", &[&digest.finalize(), json(heads).as_bytes()]))
}

/// The result of verifying a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileVerdict {
    pub rows: u64,
    pub faults: Vec<String>,
}

/// Verifies an exported file line by line. Needs the chain key that it was exported with.
pub struct FileCheck {
    key: ChainKey,
    digest: Sha256,
    verdict: FileVerdict,
    /// The hash that the next older row of a writer in an organisation must have.
    expected: BTreeMap<(i64, i32), String>,
    ended: bool,
}

impl FileCheck {
    pub fn new(key: ChainKey) -> FileCheck {
        let (digest, verdict) = (Sha256::new(), FileVerdict::default());
        FileCheck { key, digest, verdict, expected: BTreeMap::new(), ended: false }
    }

    fn fault(&mut self, message: String) {
        if self.verdict.faults.len() < MOST_FAULTS {
            self.verdict.faults.push(message);
        }
    }

    pub fn line(&mut self, text: &str) {
        match serde_json::from_str::<Line>(text) {
            Err(error) => self.fault(format!("a line cannot be read: {error}")),
            Ok(_) if self.ended => self.fault("there are lines after the end".into()),
            Ok(Line::Head { key, .. }) => {
                let own = self.key.is_secret().then(|| hex(&self.key.id()));
                if key != own {
                    let name =
                        |key: Option<String>| key.map_or("no key".to_string(), |key| format!("the chain key {key}"));
                    self.fault(format!("it was exported with {}, but this installation has {}", name(key), name(own)));
                }
            }
            Ok(Line::Row(row)) => self.row(row),
            Ok(Line::End { rows, heads, signature: signed }) => {
                if rows != self.verdict.rows || signature(&self.key, self.digest.clone(), &heads) != signed {
                    self.fault("the signature does not hold: the file was changed or cut".into());
                }
                self.ended = true;
            }
        }
        self.digest.update(text.as_bytes());
        self.digest.update(b"\n");
    }

    fn row(&mut self, row: Row) {
        self.verdict.rows += 1;
        let chain = (row.organisation, row.writer);
        let follows = self.expected.insert(chain, row.previous.clone()).is_none_or(|expected| expected == row.hash);
        let new = NewAudit {
            org: OrgId(row.organisation),
            at: row.at,
            by: row.by,
            action: row.action,
            target: row.target,
            detail: row.detail,
        };
        let plain = unhex(&row.previous).map(|previous| audit_hash(&previous, &new));
        let fits = plain.zip(unhex(&row.hash)).is_some_and(|(plain, hash)| self.key.fits(plain, &hash, new.at));
        if !follows || !fits {
            self.fault(format!("row {} was changed, or a row beside it is missing", row.id));
        }
    }

    pub fn end(mut self) -> FileVerdict {
        if !self.ended {
            self.fault("the file has no end: it was cut".into());
        }
        self.verdict
    }
}
