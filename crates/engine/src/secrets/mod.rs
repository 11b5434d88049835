//! Secrets: sealed at rest, revealed for each call, and masked in all responses.
//!
//! May use: `access` and below. Not here: which calls may use a secret (`execute`), connections (`workflows`).

mod chain;
mod hosts;
mod mask;
mod resolve;
mod sealed;
mod vault;

pub use chain::Chain;
pub use hosts::{Bound, MOST_HOSTS, check_host, host_name, host_of, host_pattern};
pub use mask::{Mask, SHORTEST, outcome_size};
pub use resolve::{EnvironmentSecrets, Reveal, SIGNING, SecretSource, UsedSecrets};
pub use sealed::{CHECK, CHECK_OWNER, Check, Opened, SealedRecord, SealedStore, Secret, is_name};
pub use vault::{Owner, Sealed, Vault};

use crate::access::{Access, ByEpoch};
use std::sync::Arc;
use stepwell_store::OrgId;

pub struct Secrets {
    pub access: Arc<Access>,
    pub sealed: SealedStore,
    opened: ByEpoch<(OrgId, String), Option<Opened>>,
}

impl Secrets {
    pub fn new(access: Arc<Access>, vault: Arc<Vault>, source: Arc<dyn SecretSource>) -> Secrets {
        let sealed = SealedStore::new(access.cluster.store.clone(), vault, source);
        Secrets { access, sealed, opened: ByEpoch::default() }
    }
}
