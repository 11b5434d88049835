//! Connections for single statements: reads, and writes that need no transaction. Statements of many callers share a
//! connection and are pipelined on it, so a burst of calls never runs out of connections.

use super::hosts::Database;
use super::session::{DbResult, Failed, Purpose, Session};
use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

pub struct Readers {
    database: Arc<Database>,
    purpose: Purpose,
    sessions: Vec<Mutex<Option<Arc<Session>>>>,
    next: AtomicUsize,
}

impl Readers {
    pub fn new(database: Arc<Database>, purpose: Purpose, connections: u32) -> Readers {
        let sessions = (0..connections.max(1)).map(|_| Mutex::default()).collect();
        Readers { database, purpose, sessions, next: AtomicUsize::new(0) }
    }

    pub fn database(&self) -> Arc<Database> {
        self.database.clone()
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

    /// Like [`Readers::with_retry`] with a deadline for the answer: a peer that is silent for longer counts as dead, and
    /// its connection is closed.
    pub async fn with_deadline<T, F>(&self, deadline: Duration, work: impl Fn(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = DbResult<T>>,
    {
        let attempt = async || {
            let session = self.session().await?;
            tokio::time::timeout(deadline, work(session.clone())).await.unwrap_or_else(|_| {
                session.close();
                Err(Failed::Lost(format!("the database did not answer within {} ms", deadline.as_millis())))
            })
        };
        match attempt().await {
            Err(Failed::Lost(_)) => Ok(attempt().await?),
            answer => Ok(answer?),
        }
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
        let session = Arc::new(Session::connect(&self.database, self.purpose).await?);
        *slot = Some(session.clone());
        Ok(session)
    }
}
