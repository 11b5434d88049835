//! Secrets and connections, without their secret parts.

use super::{DatabaseScheme, Instant};
use serde::{Deserialize, Serialize};
use stepwell_core::time::Millis;
use stepwell_engine::commands::{NewConnection, NewSecret, Rotated, With};
use stepwell_engine::{Database, Secret};
use utoipa::ToSchema;

/// A secret. Its value is never shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SecretView {
    pub id: String,
    pub name: String,
    /// Hosts it may be sent to; any host if empty.
    pub hosts: Vec<String>,
    /// Number of values it has had.
    pub version: u32,
    /// Whether it is masked in responses of services. Values shorter than 8 characters are not.
    pub masked: bool,
    /// The master key that seals it.
    pub sealed_with: String,
    pub created_at: Instant,
    pub changed_at: Instant,
    pub changed_by: String,
}

impl From<With<Secret>> for SecretView {
    fn from(With { id, is }: With<Secret>) -> SecretView {
        let Secret { name, hosts, sealed, created, changed, by, version, short } = is;
        SecretView {
            id,
            name,
            hosts,
            version,
            masked: !short,
            sealed_with: sealed.key,
            created_at: created.into(),
            changed_at: changed.into(),
            changed_by: by,
        }
    }
}

/// The content of a secret. Omitted fields keep their value.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SecretRequest {
    /// Required for a new secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(write_only)]
    pub value: Option<String>,
    /// Hosts it may be sent to, such as `api.example.com` or `*.example.org`; an empty list allows any host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
}

impl From<SecretRequest> for NewSecret {
    fn from(SecretRequest { value, hosts }: SecretRequest) -> NewSecret {
        NewSecret { value, hosts }
    }
}

/// The result of a master key rotation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RotatedView {
    /// The master key that now seals everything.
    pub key: String,
    /// Secrets and connections that another key sealed before.
    pub sealed: u64,
    /// Records that no key of this node opens, and why.
    pub locked: Vec<String>,
}

impl From<Rotated> for RotatedView {
    fn from(Rotated { key, sealed, locked }: Rotated) -> RotatedView {
        RotatedView { key, sealed, locked }
    }
}

/// A database for query steps. Its URL is never shown.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectionView {
    pub id: String,
    pub name: String,
    #[schema(value_type = DatabaseScheme)]
    pub scheme: String,
    #[serde(default)]
    pub host: Option<String>,
    /// The name of the database, or the path for SQLite.
    pub database: String,
    /// Whether statements may write.
    pub write: bool,
    /// Maximum number of rows of a query, if lower than the server's limit.
    #[serde(default)]
    pub rows: Option<u32>,
    /// Maximum duration of a statement in milliseconds, if lower than the server's limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    pub sealed_with: String,
    pub created_at: Instant,
    pub changed_at: Instant,
    pub changed_by: String,
}

impl From<With<Database>> for ConnectionView {
    fn from(With { id, is }: With<Database>) -> ConnectionView {
        let Database { name, sealed, scheme, host, database, write, rows, timeout, created, changed, by } = is;
        ConnectionView {
            id,
            name,
            scheme,
            host,
            database,
            write,
            rows,
            timeout_ms: timeout.map(|length| length.0),
            sealed_with: sealed.key,
            created_at: created.into(),
            changed_at: changed.into(),
            changed_by: by,
        }
    }
}

/// The content of a connection.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionRequest {
    /// `postgres://…` or `sqlite:/path`, optionally with `{{secrets.NAME}}`. If omitted, the current URL is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(write_only)]
    pub url: Option<String>,
    pub write: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl From<ConnectionRequest> for NewConnection {
    fn from(ConnectionRequest { url, write, rows, timeout_ms }: ConnectionRequest) -> NewConnection {
        NewConnection { url, write, rows, timeout: timeout_ms.map(Millis) }
    }
}
