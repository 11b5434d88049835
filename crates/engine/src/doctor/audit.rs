//! Verifies the hash chain of an organisation's audit trail.

use crate::error::Error;
use std::collections::BTreeMap;
use stepwell_store::{AuditFilter, AuditRow, ChainKey, OrgId, Store, audit_hash};

/// Rows read per page.
const PAGE: u32 = 1_000;

/// The result of following the hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    pub rows: u64,
    /// The first row whose hash does not follow from the one before.
    pub broken_at: Option<i64>,
}

/// Follows the hashes. `key` is `None` if they are keyed with one that is not here; then rows are only counted.
pub async fn verify(store: &dyn Store, org: OrgId, key: Option<ChainKey>) -> Result<Verdict, Error> {
    let mut verdict = Verdict::default();
    // Newest first: a row is verified when the row before it in its chain is read.
    let (mut before, mut later) = (None, BTreeMap::<i32, AuditRow>::new());
    loop {
        let filter = AuditFilter { org, by: None, action: None, target: None, before, limit: PAGE };
        let page = store.audit(filter).await?;
        let last = page.len() < PAGE as usize;
        before = page.last().map(|row| row.id);
        for row in page {
            verdict.rows += 1;
            let hash = row.hash;
            let later = later.insert(row.writer, row);
            if let Some(later) = later.filter(|later| !follows(key, &hash, later)) {
                verdict.broken_at = Some(later.id);
            }
        }
        if last {
            break;
        }
    }
    let firsts = later.values().filter(|first| !follows(key, &[0; 32], first));
    verdict.broken_at = firsts.map(|first| first.id).chain(verdict.broken_at).min();
    Ok(verdict)
}

/// Whether a row's hash follows from that of the row before it.
fn follows(key: Option<ChainKey>, previous: &[u8; 32], row: &AuditRow) -> bool {
    key.is_none_or(|key| key.fits(audit_hash(previous, &row.row), &row.hash, row.row.at))
}
