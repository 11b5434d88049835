//! The caller of a command.

use super::rights::{Actor, Grants, Need, Right};
use crate::error::Error;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{NewAudit, OrgId};

/// The user who makes a request, and their grants.
#[derive(Clone, Debug)]
pub struct Caller {
    pub org: OrgId,
    /// The name of the user.
    pub name: Arc<str>,
    /// The id of the API key of the request. `None` for a browser session.
    pub key: Option<Arc<str>>,
    pub grants: Grants,
    /// The name and version by which an MCP client introduced itself.
    pub client: Option<Arc<str>>,
    local: bool,
}

impl Caller {
    pub fn new(org: OrgId, name: impl Into<Arc<str>>, grants: Grants) -> Caller {
        Caller { org, name: name.into(), key: None, grants, client: None, local: false }
    }

    pub fn with_key(self, key: impl Into<Arc<str>>) -> Caller {
        Caller { key: Some(key.into()), ..self }
    }

    pub fn with_client(self, client: impl Into<Arc<str>>) -> Caller {
        Caller { client: Some(client.into()), ..self }
    }

    /// The same caller with other grants.
    pub(crate) fn with_grants(&self, grants: Grants) -> Caller {
        Caller { grants, ..self.clone() }
    }

    /// The user of this machine, who has all rights in the default organisation.
    pub fn local(name: impl Into<Arc<str>>) -> Caller {
        let grants = [Right::Admin, Right::Operate].map(|right| right.name().to_string());
        Caller { local: true, ..Caller::new(OrgId(1), name, Grants::new(grants)) }
    }

    pub fn may(&self, right: Right) -> bool {
        self.grants.allow(Need::Right(right))
    }

    pub fn check(&self, right: Right) -> Result<(), Error> {
        if self.may(right) {
            return Ok(());
        }
        if self.grants.is_withheld(right) {
            let message = format!("an agent's key never has the right {right}: use a key that is not an agent's");
            return Err(Error::Refused(message));
        }
        Err(Error::Forbidden { who: self.name.to_string(), right: right.name() })
    }

    /// Refuses what only people may do, whatever an agent's key was granted.
    pub(crate) fn check_person(&self, what: &str) -> Result<(), Error> {
        if self.grants.is_agent() { Err(Error::Refused(format!("an agent's key cannot {what}"))) } else { Ok(()) }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// The actor that runs started by the caller act as.
    pub fn actor(&self) -> Actor {
        if self.local {
            return Actor::local();
        }
        Actor { user: self.name.to_string(), key: self.key.as_ref().map(|key| key.to_string()) }
    }

    /// An audit row for an action of the caller.
    pub(crate) fn audit(&self, at: Time, action: &str, target: &str, mut detail: Value) -> NewAudit {
        if detail.is_null() {
            detail = Value::Object(serde_json::Map::new());
        }
        if let Value::Object(detail) = &mut detail {
            let named = [("key", &self.key), ("client", &self.client)];
            let known = named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
            detail.extend(known.map(|(name, value)| (name.to_string(), Value::String(value.to_string()))));
        }
        NewAudit {
            org: self.org,
            at,
            by: self.name.to_string(),
            action: action.to_string(),
            target: target.to_string(),
            detail: detail.to_string(),
        }
    }
}
