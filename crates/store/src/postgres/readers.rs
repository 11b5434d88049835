//! Connections for single statements: reads, and writes that need no transaction around them. Statements of many callers
//! share a connection and are answered in their order, so a burst of them never runs out of connections.

use super::session::{Answer, Failed, Purpose, Session};
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

    /// Asks something that may be asked again: if the connection breaks it is, once, on another one.
    pub async fn ask<T, F>(&self, question: impl Fn(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Answer<T>>,
    {
        match self.once(&question).await {
            Err(Failed::Lost(_)) => Ok(self.once(&question).await?),
            answer => Ok(answer?),
        }
    }

    /// Does something that may not be done twice without its author knowing.
    pub async fn tell<T, F>(&self, work: impl Fn(Arc<Session>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Answer<T>>,
    {
        Ok(self.once(&work).await?)
    }

    async fn once<T, F>(&self, question: &impl Fn(Arc<Session>) -> F) -> Answer<T>
    where
        F: Future<Output = Answer<T>>,
    {
        question(self.session().await?).await
    }

    async fn session(&self) -> Answer<Arc<Session>> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.sessions.len();
        let mut place = self.sessions[next].lock().await;
        if let Some(session) = place.as_ref().filter(|session| !session.is_closed()) {
            return Ok(session.clone());
        }
        let session = Arc::new(Session::connect(&self.options, self.purpose).await?);
        *place = Some(session.clone());
        Ok(session)
    }
}
