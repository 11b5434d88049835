//! Databases that query steps can be pointed at, by name: where an executor finds one at the moment of a call.

use crate::error::Error;
use async_trait::async_trait;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;

#[async_trait]
pub trait Connections: Send + Sync {
    async fn connection(&self, org: OrgId, name: &str) -> Result<Option<Connection>, Error>;
}

/// One of them, ready to be used. Has no `Debug`: its URL holds credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// Opened, and with its secrets filled in: not for logs.
    pub url: String,
    /// Whether statements that write may use it.
    pub write: bool,
    /// Rows that a query may give at the most, if it is less than the server's limit.
    pub rows: Option<u32>,
    pub timeout: Option<Millis>,
    /// Grows with each change: what is pooled under an older one is not to be used again.
    pub version: i64,
}
