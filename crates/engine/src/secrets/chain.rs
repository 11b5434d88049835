//! The chain key of an installation: the store keys its hashes and tallies with it.
//!
//! It is made once, when an engine starts and there is a master key, and stored sealed. A new master key only seals it
//! again, so what was written before can still be verified.

use super::vault::{Owner, Sealed};
use super::{SealedRecord, SealedStore, Secrets};
use crate::error::Error;
use crate::records::{Kept, body, json};
use serde::{Deserialize, Serialize};
use stepwell_core::time::Time;
use stepwell_store::{ChainKey, Change, NewAudit, OrgId, Record, RecordChange, hex};

/// The id of the only record.
const ID: &str = "evidence";
const OWNER: Owner<'static> = Owner { org: OrgId(1), kind: Chain::KIND, name: ID };

/// The stored chain key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chain {
    name: String,
    /// The key in hexadecimal and since when it is used, so that neither can be changed.
    sealed: Sealed,
}

impl Kept for Chain {
    const KIND: &'static str = "chain_key";
}

impl SealedRecord for Chain {
    fn name(&self) -> &str {
        &self.name
    }

    fn sealed(&mut self) -> &mut Sealed {
        &mut self.sealed
    }
}

impl SealedStore {
    /// Gives the store its chain key, if there is one. Returns false if there is none yet.
    pub async fn unlock(&self) -> Result<bool, Error> {
        let Some(record) = self.store.record(Chain::KIND, ID).await? else { return Ok(false) };
        let chain: Chain = body(&record)?;
        let text = self.open::<Chain>(&record, ID, &chain.sealed)?;
        let key = read(&text).ok_or_else(|| Error::Broken("the chain key cannot be read".into()))?;
        if self.store.chain_key() != key {
            self.store.unlock(key).await?;
        }
        Ok(true)
    }
}

impl Secrets {
    /// Opens the chain key, or makes one if there is a master key to seal it with. Evidence that does not hold is not
    /// signed: `stepwell doctor` reports it.
    pub async fn start_chain(&self) -> Result<(), Error> {
        let cluster = &self.access.cluster;
        cluster.store.keep_evidence().await?;
        if self.sealed.unlock().await? || self.sealed.vault.ids().is_empty() {
            return Ok(());
        }
        let evidence = cluster.store.evidence(Vec::new()).await?;
        if !evidence.kept {
            return Ok(());
        }
        if !evidence.holds() {
            tracing::warn!("rows were changed from outside, so evidence stays without a key: run `stepwell doctor`");
            return Ok(());
        }
        let (bytes, now): ([u8; 32], Time) = (cluster.ids.bytes(), cluster.clock.now());
        let key = ChainKey::new(bytes, now);
        let text = format!("{} {}", hex(&bytes), now.0);
        let sealed = self.sealed.vault.seal(OWNER, cluster.ids.bytes(), &text).map_err(Error::NotNow)?;
        let chain = json(&Chain { name: ID.into(), sealed });
        let (kind, id, key_of) = (Chain::KIND.to_string(), ID.to_string(), ID.to_string());
        let record = Record { kind, id, org: OWNER.org, key: key_of, due: None, body: chain, version: 0 };
        let audit = NewAudit {
            org: OWNER.org,
            at: now,
            by: "stepwell".into(),
            action: "evidence.start".into(),
            target: hex(&key.id()),
            detail: "{}".into(),
        };
        let change = Change { records: vec![RecordChange::Create(record)], audit: vec![audit], ..Change::default() };
        if cluster.store.rekey(key, change).await?.is_err() {
            // Another node was faster.
            self.sealed.unlock().await?;
        }
        Ok(())
    }
}

fn read(text: &str) -> Option<ChainKey> {
    let (key, since) = text.split_once(' ')?;
    let digits = (0..32).map(|n| u8::from_str_radix(key.get(2 * n..2 * n + 2)?, 16).ok());
    let bytes = digits.collect::<Option<Vec<u8>>>()?.try_into().ok()?;
    Some(ChainKey::new(bytes, Time(since.parse().ok()?)))
}
