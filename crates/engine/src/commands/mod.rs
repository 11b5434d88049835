//! The application API: the only way in. Each command takes the caller and checks their rights; REST, MCP, CLI and the
//! dashboard are thin over it.

mod agents;
mod change;
mod channels;
mod connections;
mod control;
mod define;
mod everyday;
mod gates;
mod labels;
mod links;
mod look;
mod organisation;
mod people;
mod policies;
mod queries;
mod secrets;
mod servers;
mod trigger;
mod view;
mod workflows;

pub use crate::rights::Right;
pub use agents::Refusal;
pub use channels::{NewChannel, Wishes};
pub use connections::NewConnection;
pub use control::Retry;
pub use define::{Defined, Source};
pub use everyday::{Bulk, Override};
pub use gates::{Approval, Decision};
pub use links::{Asks, Linked};
pub use look::{EventView, RunQuery};
pub use organisation::{AuditQuery, Organisation, Usage};
pub use people::{KeyChange, NewKey, NewUser, UserChange, With};
pub use policies::NewPolicy;
pub use queries::NewQuery;
pub use secrets::{NewSecret, Rotated};
pub use servers::{Acceptance, CALLED, KnownServer, KnownTool};
pub use trigger::{End, Started, Trigger};
pub use view::{AttemptView, ParentView, RunView, StepView};
pub use workflows::{ScheduleView, State};

pub(crate) use links::link_of;
pub(crate) use people::note_use;
pub(crate) use trigger::{Begin, ChildOf, begin_as, start_child};

use crate::error::Error;
use crate::rights::{Actor, Grants, Need};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{NewAudit, OrgId};

/// Who asks, and what they may.
#[derive(Clone, Debug)]
pub struct Caller {
    pub org: OrgId,
    /// The user.
    pub name: Arc<str>,
    /// The id of the key they came with; none in person.
    pub key: Option<Arc<str>>,
    pub grants: Grants,
    local: bool,
}

impl Caller {
    pub fn new(org: OrgId, name: impl Into<Arc<str>>, grants: Grants) -> Caller {
        Caller { org, name: name.into(), key: None, grants, local: false }
    }

    pub fn with_key(self, key: impl Into<Arc<str>>) -> Caller {
        Caller { key: Some(key.into()), ..self }
    }

    /// The person at this machine, who may do everything in the default organisation.
    pub fn local(name: impl Into<Arc<str>>) -> Caller {
        let grants = [Right::Admin, Right::Operate].map(|right| right.name().to_string());
        Caller { local: true, ..Caller::new(OrgId(1), name, Grants::new(grants)) }
    }

    pub fn may(&self, right: Right) -> bool {
        self.grants.allow(Need::Right(right))
    }

    pub fn check(&self, right: Right) -> Result<(), Error> {
        if self.may(right) { Ok(()) } else { Err(Error::Forbidden { who: self.name.to_string(), right }) }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// In whose name things are done that the caller starts.
    pub fn actor(&self) -> Actor {
        if self.local {
            return Actor::local();
        }
        Actor { user: self.name.to_string(), key: self.key.as_ref().map(|key| key.to_string()) }
    }

    /// A row that says what the caller did.
    pub(crate) fn audit(&self, at: Time, action: &str, target: &str, mut detail: Value) -> NewAudit {
        if detail.is_null() {
            detail = Value::Object(serde_json::Map::new());
        }
        if let (Some(key), Value::Object(detail)) = (&self.key, &mut detail) {
            detail.insert("key".into(), Value::String(key.to_string()));
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
