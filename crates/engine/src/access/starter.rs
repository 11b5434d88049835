//! Who asked for a run: the user, the key that was used, and what the client called itself. Approvers see it.

use super::{Access, Actor, Key};
use crate::error::Error;
use crate::records::{Kept, body};
use serde::Serialize;
use std::fmt;
use stepwell_store::OrgId;

/// The key that started a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StartedWith {
    pub id: String,
    /// Missing if the key was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub agent: bool,
}

/// The user who asked for a run, and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Starter {
    pub user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<StartedWith>,
    /// The name and version by which an MCP client introduced itself. Only what it says: nothing checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl Starter {
    /// What the run itself says. The key has no name yet.
    pub fn of(user: &str, acts_as: &str, client: Option<&str>) -> Starter {
        // The first actor is the one that asked; others limit the rights of child runs and retries.
        let first = acts_as.split(' ').next().unwrap_or_default();
        let key = Actor::parse(first).key.map(|id| StartedWith { id, name: None, agent: false });
        Starter { user: user.to_string(), key, client: client.map(str::to_string) }
    }
}

impl fmt::Display for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) if key.agent => {
                write!(f, "agent key {} of {}", key.name.as_ref().unwrap_or(&key.id), self.user)?;
            }
            _ => f.write_str(&self.user)?,
        }
        match &self.client {
            Some(client) => write!(f, ", client {client}"),
            None => Ok(()),
        }
    }
}

impl Access {
    /// Adds the name of the key.
    pub async fn name_key(&self, org: OrgId, starter: &mut Starter) -> Result<(), Error> {
        let Some(key) = &mut starter.key else { return Ok(()) };
        let record = self.cluster.store.record(Key::KIND, &key.id).await?.filter(|record| record.org == org);
        if let Some(record) = record {
            let found: Key = body(&record)?;
            (key.name, key.agent) = (Some(found.name), found.agent);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_named_with_its_user_and_its_client() {
        let check = |agent: bool, name: Option<&str>, client: Option<&str>, expected: &str| {
            let mut starter = Starter::of("ann", "ann#key_1 bob#key_2", client);
            let key = starter.key.as_mut().unwrap();
            assert_eq!(key.id, "key_1");
            (key.agent, key.name) = (agent, name.map(str::to_string));
            assert_eq!(starter.to_string(), expected);
        };
        check(true, Some("desk"), Some("bot 1.2"), "agent key desk of ann, client bot 1.2");
        check(true, None, None, "agent key key_1 of ann");
        check(false, Some("desk"), None, "ann");
        assert_eq!(Starter::of("ann", "ann", None).to_string(), "ann");
    }
}
