//! Notifications to people: when a gate opens, escalates, is answered or expires, and when a run fails.
//!
//! | part | file |
//! | --- | --- |
//! | messages made from facts | `message.rs` |
//! | channels of users and organisations | `channel.rs` |
//! | the notice that a commit writes, and its recipients | `recipients.rs` |
//! | sending each delivery until it succeeds or is given up | `deliver.rs` |
//! | rate limit of a channel, limits on concurrent attempts | `channel_rate.rs` |
//! | announcements to connected browsers | `live.rs` |
//!
//! A notice is written in the commit that it is about, so a message is sent if and only if its event happened. A notice
//! becomes deliveries. Their ids are derived from the notice, so creating them twice has no effect. A node claims a
//! delivery for a while, sends it and writes the result. After a crash in between it is sent again, under the same id.
//!
//! Not here: the protocols of the channels (`steps`, behind [`Courier`]).

mod channel;
mod channel_rate;
mod deliver;
mod live;
mod message;
mod recipients;

pub use channel::{Channel, Medium, Preferences, Settings};
pub use deliver::{Delivery, Progress};
pub use live::{Announcement, Gates};
pub use message::{Message, Topic};

pub(crate) use channel::{Channels, channels};
pub(crate) use deliver::{To, attempt, run};
pub(crate) use message::on_timeout;
pub(crate) use recipients::{create_deliveries, deliver, is_for_people, notices, quarantined, unreached};

use crate::access::{Access, ByEpoch};
use crate::cluster::Cluster;
use crate::run::{HostGuard, Runner};
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
    /// Without a courier, this process sends nothing.
    pub courier: Option<Arc<dyn Courier>>,
    /// Notified when there are new deliveries.
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

/// Sends messages to their destinations.
#[async_trait]
pub trait Courier: Send + Sync {
    /// Checks the settings of a channel. The error names the wrong setting and says how to fix it.
    fn check(&self, settings: &Settings) -> Result<(), (&'static str, String)>;

    /// Makes one attempt. The engine sets its deadline.
    async fn send(&self, parcel: &Parcel) -> Result<(), Undelivered>;
}

/// A message to send through one channel.
#[derive(Clone)]
pub struct Parcel {
    /// The same for every attempt, so that a receiver can recognise duplicates.
    pub id: String,
    pub message: Message,
    /// Where the recipient can see the run, and answer.
    pub link: Option<String>,
    pub to: Settings,
    /// The organisation's host policies, which apply to requests of channels too.
    pub guard: Option<Arc<dyn HostGuard>>,
    pub now: Time,
}

/// Why an attempt failed.
#[derive(Clone, PartialEq, Debug)]
pub struct Undelivered {
    /// Shown to users, so it must not contain a secret of the channel.
    pub why: String,
    /// Whether a retry may succeed.
    pub again: bool,
    /// The shortest time until a retry.
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
