//! Databases that query steps can be pointed at, by name: where an executor finds one at the moment of a call.

use crate::error::Error;
use async_trait::async_trait;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;

#[async_trait]
pub trait Connections: Send + Sync {
    async fn connection(&self, org: OrgId, name: &str) -> Result<Option<Connection>, Error>;
}

/// Has no `Debug`: the URL holds a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// `postgres://…`, or `sqlite:` and a path.
    pub url: String,
    /// Steps may write, if they also have the right to.
    pub write: bool,
    /// The most rows that a step may ask for.
    pub rows: Option<u32>,
    /// The longest that a statement may take.
    pub timeout: Option<Millis>,
    /// Grows with every change, so that what was opened under an older one is not used again.
    pub version: i64,
}
