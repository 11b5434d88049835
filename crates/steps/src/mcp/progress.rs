//! Progress notifications of pending calls, collected as the log of the waiting step.

use super::connect::truncated;
use crate::javascript::{Line, Log};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ExtensionCapabilities, Implementation, JsonObject, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stepwell_engine::Mask;
use tokio::sync::Notify;

/// The pending calls of one connection.
pub struct ProgressTracker {
    calls: Mutex<HashMap<ProgressToken, Log>>,
    mask: Arc<Mask>,
    /// Notified when the server reports that its tools have changed.
    pub changed: Notify,
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

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, Log>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the progress of a request from now on.
    pub fn expect(&self, token: &ProgressToken) {
        self.calls().entry(token.clone()).or_default();
    }

    pub fn forget(&self, token: &ProgressToken) {
        self.calls().remove(token);
    }

    pub fn open(self: &Arc<ProgressTracker>, token: ProgressToken) -> CallProgress {
        self.expect(&token);
        CallProgress { progress: self.clone(), token }
    }

    /// Progress of requests that nothing waits for is dropped.
    pub fn record(&self, progress: ProgressNotificationParam) {
        let mut calls = self.calls();
        let Some(log) = calls.get_mut(&progress.progress_token) else { return };
        let text = truncated(&self.mask.shown(&describe(&progress)));
        log.keep_at(progress.progress, Line { level: "info".into(), text });
    }
}

impl CallProgress {
    /// Ends the call and returns its log.
    pub fn close(self) -> Option<Arc<Value>> {
        let log = self.progress.calls().remove(&self.token);
        log.and_then(Log::into_value).map(Arc::new)
    }
}

impl Drop for CallProgress {
    fn drop(&mut self) {
        self.progress.calls().remove(&self.token);
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

/// Handles the notifications that the guard lets through. As a client, Stepwell supports tasks and nothing else.
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

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.progress.changed.notify_one();
    }
}
