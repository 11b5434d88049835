//! The messages a run can receive.

use super::sink::Slot;
use super::timers::FiredTimer;
use crate::error::Error;
use crate::workflows::Compiled;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::{Answer, Deferral, Outcome, Retrier, Verdict};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{NewAudit, NewRun, NodeId, UniqueKey, WorkKey};
use tokio::sync::oneshot;

/// A message on its way to a run.
pub struct Envelope {
    pub message: Message,
    /// Receives the result once the message is on disk or was ignored.
    pub reply: Option<oneshot::Sender<Result<(), Error>>>,
    /// Audit row that is written with the message.
    pub audit: Option<NewAudit>,
}

impl From<Message> for Envelope {
    fn from(message: Message) -> Envelope {
        Envelope { message, reply: None, audit: None }
    }
}

/// A message to a run. It names steps by path, because their numbers change when a run is loaded again.
pub enum Message {
    /// The run begins. Always the first message, when the run is not on disk yet.
    Begin(Box<Begin>),
    Admit,
    Report {
        key: WorkKey,
        outcome: Outcome,
    },
    /// The attempt needs an approval or an answer to continue.
    Held {
        key: WorkKey,
        ask: Arc<Value>,
        timeout: Option<Millis>,
        note: Option<Arc<Value>>,
    },
    /// The attempt is postponed until `due`.
    Deferred {
        key: WorkKey,
        due: Time,
        why: Deferral,
        note: Option<Arc<Value>>,
    },
    /// The node that held the attempt is gone. `stopped`: in an orderly way.
    Lost {
        key: WorkKey,
        stopped: bool,
    },
    /// This node claimed the attempt.
    Start {
        key: WorkKey,
        node: NodeId,
        slot: Slot,
    },
    Timer {
        key: FiredTimer,
    },
    Deliver {
        path: String,
        body: Arc<Value>,
        truncated: bool,
    },
    Answer {
        path: String,
        attempt: u32,
        answer: Answer,
    },
    Wake {
        path: String,
        attempt: u32,
        by: Arc<str>,
    },
    Settle {
        path: String,
        attempt: u32,
        verdict: Verdict,
        by: Arc<str>,
    },
    Override {
        path: String,
        attempt: u32,
        outcome: Outcome,
        by: Arc<str>,
        comment: Option<Arc<str>>,
    },
    Cancel {
        by: Arc<str>,
        reason: Option<Arc<str>>,
    },
    Retry {
        by: Retrier,
        onto: Option<Arc<Compiled>>,
    },
    /// A child has started; its start notice still exists.
    ChildStarted {
        notice: String,
    },
    /// A child cannot be started. Its notice is handled.
    ChildNotStarted {
        notice: String,
        outcome: Outcome,
    },
    /// There may be a place for a child that waits for one.
    PlaceFreed,
    /// There is mail in the store.
    Mail,
    /// Notices in the store that are not handled yet, by key.
    Notices(Vec<String>),
    /// The attempts that run here may differ from those in the store.
    Reconcile,
}

impl Message {
    /// The attempt that the message ends.
    pub fn reports_on(&self) -> Option<&WorkKey> {
        match self {
            Message::Report { key, .. } | Message::Held { key, .. } | Message::Deferred { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// The data for the first transition of a run.
pub struct Begin {
    pub body: Arc<Value>,
    pub headers: Option<Arc<Value>>,
    pub query: Option<Arc<Value>>,
    pub by: Arc<str>,
    /// The run waits in the queue of its concurrency group.
    pub queued: bool,
    /// The run is scheduled for this time.
    pub at: Option<Time>,
    /// The epoch under which the start was decided.
    pub epoch: i64,
    pub new: NewRun,
    pub unique: Option<UniqueKey>,
}
