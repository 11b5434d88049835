//! Verifies the hash chain of an organisation's audit trail.

use crate::error::Error;
use std::collections::BTreeMap;
use stepwell_store::{AuditFilter, AuditRow, OrgId, Store, audit_hash};

/// Rows read per page.
const PAGE: u32 = 1_000;

/// The result of following the hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    pub rows: u64,
    /// The first row whose hash does not follow from the one before.
    pub broken_at: Option<i64>,
}

pub async fn verify(store: &dyn Store, org: OrgId) -> Result<Verdict, Error> {
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
            if let Some(later) = later.filter(|later| audit_hash(&hash, &later.row) != later.hash) {
                verdict.broken_at = Some(later.id);
            }
        }
        if last {
            break;
        }
    }
    let firsts = later.values().filter(|first| audit_hash(&[0; 32], &first.row) != first.hash);
    verdict.broken_at = firsts.map(|first| first.id).chain(verdict.broken_at).min();
    Ok(verdict)
}
