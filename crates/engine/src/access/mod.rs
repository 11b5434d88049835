//! Access control: callers, users and their grants, plans, and the switches of workflows.
//!
//! Lookups are cached until the organisation's epoch changes. Every change to data that decisions depend on increments
//! the epoch, and the store refuses a commit that was decided on an older one.
//!
//! May use: `cluster`, `records`, `error`. Not here: commands that change users, keys or plans (`commands`).

mod cache;
mod caller;
mod epochs;
mod people;
mod plans;
mod rights;
mod starter;
mod switches;

pub use cache::ByEpoch;
pub use caller::Caller;
pub use people::{BUILT_IN_ROLES, Key, Role, Session, Used, User, secret_hash};
pub use plans::{
    CONCURRENT_RUNS, DESCENDANTS_PER_RUN, Limits, Plans, Subscription, counter, too_many_descendants, too_many_runs,
};
pub use rights::{Actor, Grants, Need, Right, actors, check_grant, matches};
pub use starter::{StartedWith, Starter};
pub use switches::{Pause, Switches};

use crate::cluster::Cluster;
use crate::error::Error;
use epochs::Epochs;
use people::People;
use std::sync::Arc;
use stepwell_store::{Hint, OrgId};

pub struct Access {
    pub cluster: Arc<Cluster>,
    pub plans: Plans,
    epochs: Epochs,
    people: People,
    limits: ByEpoch<OrgId, (String, Limits)>,
    switches: ByEpoch<String, Arc<Switches>>,
}

impl Access {
    pub fn new(cluster: Arc<Cluster>, plans: Plans) -> Access {
        Access {
            epochs: Epochs::new(cluster.shared),
            cluster,
            plans,
            people: People::default(),
            limits: ByEpoch::default(),
            switches: ByEpoch::default(),
        }
    }

    /// The organisation's epoch, possibly cached.
    pub async fn epoch(&self, org: OrgId) -> Result<i64, Error> {
        let lookup = match self.epochs.get(org) {
            Ok(epoch) => return Ok(epoch),
            Err(lookup) => lookup,
        };
        let none = || Error::NotFound { what: "organisation", name: org.0.to_string() };
        let number = self.cluster.store.epoch(org).await?.ok_or_else(none)?;
        self.epochs.store(lookup, number);
        Ok(number)
    }

    /// Invalidates the cached epoch: the next decision reads it again.
    pub fn forget_epoch(&self, org: OrgId) {
        self.epochs.invalidate(org);
    }

    pub fn forget_all_epochs(&self) {
        self.epochs.invalidate_all();
    }

    /// Invalidates the cached epoch here and on the other nodes, after a change that may have incremented it.
    pub fn epoch_moved(&self, org: OrgId) {
        self.epochs.invalidate(org);
        self.cluster.send_hint(Hint { orgs: vec![org], ..Hint::default() });
    }
}
