//! What servers say about calls under way: lines for the log of the step that waits.

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

/// Lines that came before their call was entered: the answer to a request can be faster than whoever sent it.
const MOST_EARLY: usize = 100;

/// The calls of one connection.
pub struct Book {
    pages: Mutex<Pages>,
    mask: Arc<Mask>,
    /// The server says that its tools are others now.
    pub changed: Notify,
}

#[derive(Default)]
struct Pages {
    open: HashMap<ProgressToken, Log>,
    early: VecDeque<(ProgressToken, Line)>,
}

/// A call that is under way.
pub struct Page {
    book: Arc<Book>,
    token: ProgressToken,
}

impl Book {
    pub fn new(mask: Arc<Mask>) -> Book {
        Book { pages: Mutex::default(), mask, changed: Notify::new() }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn open(self: &Arc<Book>, token: ProgressToken) -> Page {
        let mut pages = self.pages();
        let early = std::mem::take(&mut pages.early);
        let (mine, others): (Vec<_>, Vec<_>) = early.into_iter().partition(|(whose, _)| *whose == token);
        pages.early = others.into();
        let mut log = Log::default();
        mine.into_iter().for_each(|(_, line)| log.keep(line));
        pages.open.insert(token.clone(), log);
        drop(pages);
        Page { book: self.clone(), token }
    }

    fn write(&self, progress: ProgressNotificationParam) {
        let text = self.mask.shown(&words(&progress)).into_owned();
        let line = Line { level: "info".into(), text };
        let mut pages = self.pages();
        match pages.open.get_mut(&progress.progress_token) {
            Some(log) => log.keep(line),
            None => {
                if pages.early.len() >= MOST_EARLY {
                    pages.early.pop_front();
                }
                pages.early.push_back((progress.progress_token, line));
            }
        }
    }
}

impl Page {
    /// What was said so far.
    pub fn close(self) -> Option<Arc<Value>> {
        let log = self.book.pages().open.remove(&self.token);
        log.and_then(Log::into_value).map(Arc::new)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.book.pages().open.remove(&self.token);
    }
}

fn words(progress: &ProgressNotificationParam) -> String {
    let far = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{far}: {message}"),
        None => far,
    }
}

/// What Stepwell is to servers: it can wait for tasks, and has nothing else to offer.
pub struct Handler {
    pub book: Arc<Book>,
}

pub fn who() -> Implementation {
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
        ClientConfig::new(capabilities(), who()).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.book.write(params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.book.changed.notify_one();
    }
}
