//! A run in memory.

use super::loads::Room;
use crate::workflows::{Compiled, Origin};
use std::sync::Arc;
use stepwell_core::run::Run;
use stepwell_store::{OrgId, Parent, RunId, Version};
use tokio::sync::oneshot;

/// A run in memory, as of its last commit.
pub struct Live {
    pub id: RunId,
    pub org: OrgId,
    pub compiled: Arc<Compiled>,
    pub run: Run,
    pub version: Version,
    pub hash: [u8; 32],
    pub secret: [u8; 16],
    pub parent: Option<Parent>,
    /// The concurrency group it counts against.
    pub group: Option<String>,
    pub test: bool,
    /// The actors whose rights it has, in addition to the author of its version.
    pub acts_as: Arc<str>,
    /// Its payloads were erased: it can only be read.
    pub erased: bool,
    /// Fires when the run ends. Registered once the run is on disk, because a run that is not there counts as ended.
    pub watcher: Option<oneshot::Sender<()>>,
    /// The memory for its payloads, if it was read from the store.
    pub room: Room,
}

impl Live {
    pub fn origin(&self) -> Origin {
        Origin {
            compiled: self.compiled.clone(),
            run: self.run.id.clone(),
            parent: self.parent.as_ref().map(|parent| parent.run),
            acts_as: self.acts_as.clone(),
        }
    }

    /// All actors whose rights limit the run now, in the form that [`crate::access::actors`] parses.
    pub fn actors(&self) -> String {
        let retriers = self.run.retried_as.iter().map(|actor| &**actor);
        let retriers = retriers.filter(|actor| self.acts_as.split(' ').all(|known| known != *actor));
        std::iter::once(&*self.acts_as).chain(retriers).collect::<Vec<_>>().join(" ")
    }
}
