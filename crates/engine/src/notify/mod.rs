//! Telling people: when a gate opens, escalates, is answered or expires, and when a run fails.
//!
//! | part | file |
//! | --- | --- |
//! | what there is to tell, from facts | `message.rs` |
//! | where to: channels of people and of organisations | `channel.rs` |
//! | who is meant, and the notice that a commit carries | `spread.rs` |
//! | one delivery for each recipient and channel, until it has arrived | `deliver.rs`, `turns.rs` |
//! | those who are connected just now | `live.rs` |
//!
//! A notice is a row of the commit that it is about, so nothing is told that did not happen, and nothing that happened is
//! forgotten. It becomes deliveries, records with names that follow from it: making them twice makes them once. Whoever gets
//! to a delivery first takes it for a while, sends it and says so; a crash in between sends it again, under the same id.
//!
//! Not here: how a message gets to a phone (`steps`, behind [`Courier`]).

mod channel;
mod deliver;
mod live;
mod message;
mod spread;
mod turns;

pub use channel::{Channel, Medium, Preferences, Settings};
pub use deliver::{Delivery, Progress};
pub use live::{Announcement, Gates};
pub use message::{Message, Topic};

pub(crate) use channel::{Channels, channels};
pub(crate) use deliver::{To, attempt, run};
pub(crate) use spread::{belongs, deliver, notices};

use crate::access::{Access, ByEpoch};
use crate::cluster::Cluster;
use crate::run::Runner;
use crate::secrets::Secrets;
use async_trait::async_trait;
use std::sync::Arc;
use stepwell_core::time::{Millis, Time};
use stepwell_store::OrgId;

pub struct Notifier {
    pub cluster: Arc<Cluster>,
    pub access: Arc<Access>,
    pub secrets: Arc<Secrets>,
    pub runner: Arc<Runner>,
    /// Without one this process sends nothing.
    pub courier: Option<Arc<dyn Courier>>,
    /// There is something to deliver.
    wake: tokio::sync::Notify,
    channels: ByEpoch<OrgId, Arc<Channels>>,
}

impl Notifier {
    pub fn new(runner: Arc<Runner>, secrets: Arc<Secrets>, courier: Option<Arc<dyn Courier>>) -> Notifier {
        Notifier {
            cluster: runner.cluster.clone(),
            access: secrets.access.clone(),
            secrets,
            runner,
            courier,
            wake: tokio::sync::Notify::new(),
            channels: ByEpoch::default(),
        }
    }
}

/// Takes messages to where they go.
#[async_trait]
pub trait Courier: Send + Sync {
    /// What is wrong with these settings: which one, and how to mend it.
    fn check(&self, settings: &Settings) -> Result<(), (&'static str, String)>;

    /// One attempt. The engine bounds its time.
    async fn send(&self, parcel: &Parcel) -> Result<(), Undelivered>;
}

/// A message on its way through one channel.
#[derive(Clone)]
pub struct Parcel {
    /// The same for every attempt, so that a receiver can tell a repetition.
    pub id: String,
    pub message: Message,
    /// Where a person can look, and answer.
    pub link: Option<String>,
    pub to: Settings,
    pub now: Time,
}

/// Why a message did not arrive. The text is shown to people: no secret of the channel is in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Undelivered {
    pub why: String,
    /// Worth another attempt.
    pub again: bool,
    /// Not before this.
    pub after: Option<Millis>,
}

impl Undelivered {
    pub fn for_good(why: impl Into<String>) -> Undelivered {
        Undelivered { why: why.into(), again: false, after: None }
    }

    pub fn for_now(why: impl Into<String>) -> Undelivered {
        Undelivered { why: why.into(), again: true, after: None }
    }
}
