//! Connections for single statements: reads, and writes that need no transaction. Statements of many callers share a
//! connection and are pipelined on it, so a burst of calls never runs out of connections.

use super::session::{DbResult, Failed, Purpose, Session};
use crate::Error;
use crate::PostgresOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Mutex;

pub struct Readers {
    options: Arc<PostgresOptions>,
    purpose: Purpose,
    sessions: Vec<Mutex<Option<Arc<Session>>>>,
    next: AtomicUsize,
}

impl Readers {
    pub fn new(options: Arc<PostgresOptions>, purpose: Purpose, connections: u32) -> Readers {
        let sessions = (0..connections.max(1)).map(|_| Mutex::default()).collect();
        Readers { options, purpose, sessions, next: AtomicUsize::new(0) }
    }

    pub fn options(&self) -> Arc<PostgresOptions> {
        self.options.clone()
    }

    /// Runs idempotent work; if the connection breaks, retries it once on another one.
    pub async fn with_retry<T, F>(&self, work: impl Fn(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = DbResult<T>>,
    {
        match self.attempt(&work).await {
            Err(Failed::Lost(_)) => Ok(self.attempt(&work).await?),
            answer => Ok(answer?),
        }
    }

    /// Runs work that must not be repeated without the caller's knowledge.
    pub async fn once<T, F>(&self, work: impl Fn(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = DbResult<T>>,
    {
        Ok(self.attempt(&work).await?)
    }

    async fn attempt<T, F>(&self, work: &impl Fn(Arc<Session>) -> F) -> DbResult<T>
    where
        F: Future<Output = DbResult<T>>,
    {
        work(self.session().await?).await
    }

    async fn session(&self) -> DbResult<Arc<Session>> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.sessions.len();
        let mut slot = self.sessions[next].lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.is_closed()) {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::connect(&self.options, self.purpose).await?);
        *slot = Some(session.clone());
        Ok(session)
    }
}
