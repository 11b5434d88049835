//! Progress notifications of pending calls, collected as the log of the waiting step.

use crate::javascript::{Line, Log};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ExtensionCapabilities, Implementation, JsonObject, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stepwell_engine::Mask;
use tokio::sync::Notify;

/// Maximum number of lines kept for calls that are not registered yet: a notification can arrive before `open` is
/// called.
const MAX_EARLY: usize = 100;

/// The pending calls of one connection.
pub struct ProgressTracker {
    calls: Mutex<Calls>,
    mask: Arc<Mask>,
    /// Notified when the server reports that its tools have changed.
    pub changed: Notify,
}

#[derive(Default)]
struct Calls {
    open: HashMap<ProgressToken, Log>,
    early: VecDeque<(ProgressToken, f64, Line)>,
}

/// The progress of a pending call.
pub struct CallProgress {
    progress: Arc<ProgressTracker>,
    token: ProgressToken,
}

impl ProgressTracker {
    pub fn new(mask: Arc<Mask>) -> ProgressTracker {
        ProgressTracker { calls: Mutex::default(), mask, changed: Notify::new() }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(self: &Arc<ProgressTracker>, token: ProgressToken) -> CallProgress {
        let mut calls = self.calls();
        let early = std::mem::take(&mut calls.early);
        let (mine, others): (Vec<_>, Vec<_>) = early.into_iter().partition(|(owner, ..)| *owner == token);
        calls.early = others.into();
        let mut log = Log::default();
        mine.into_iter().for_each(|(_, order, line)| log.keep_at(order, line));
        calls.open.insert(token.clone(), log);
        drop(calls);
        CallProgress { progress: self.clone(), token }
    }

    /// Notifications are handled in tasks of their own, so they may come out of order; progress only grows.
    fn record(&self, progress: ProgressNotificationParam) {
        let text = self.mask.shown(&describe(&progress)).into_owned();
        let line = Line { level: "info".into(), text };
        let mut calls = self.calls();
        match calls.open.get_mut(&progress.progress_token) {
            Some(log) => log.keep_at(progress.progress, line),
            None => {
                if calls.early.len() >= MAX_EARLY {
                    calls.early.pop_front();
                }
                calls.early.push_back((progress.progress_token, progress.progress, line));
            }
        }
    }
}

impl CallProgress {
    /// Ends the call and returns its log.
    pub fn close(self) -> Option<Arc<Value>> {
        let log = self.progress.calls().open.remove(&self.token);
        log.and_then(Log::into_value).map(Arc::new)
    }
}

impl Drop for CallProgress {
    fn drop(&mut self) {
        self.progress.calls().open.remove(&self.token);
    }
}

fn describe(progress: &ProgressNotificationParam) -> String {
    let amount = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{amount}: {message}"),
        None => amount,
    }
}

/// Handles notifications. As a client, Stepwell supports tasks and nothing else.
pub struct Handler {
    pub progress: Arc<ProgressTracker>,
}

pub fn client_info() -> Implementation {
    Implementation::new("stepwell", env!("CARGO_PKG_VERSION"))
}

pub fn capabilities() -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    let extensions = [(TASKS_EXTENSION_ID.to_string(), JsonObject::new())];
    capabilities.extensions = Some(ExtensionCapabilities::from(extensions));
    capabilities
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(capabilities(), client_info()).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.record(params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.progress.changed.notify_one();
    }
}
