//! The application API: the only way in. Each command takes the caller and checks their rights; REST, MCP, CLI and the
//! dashboard are thin over it.

mod control;
mod define;
mod look;
mod trigger;
mod view;

pub use control::{Decision, Retry};
pub use define::{Defined, Source};
pub use look::{EventView, RunQuery};
pub use trigger::{End, Started, Trigger};
pub use view::{AttemptView, RunView, StepView};

pub(crate) use trigger::{ChildOf, start_child};

use crate::error::Error;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use stepwell_store::OrgId;

/// What a command may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Define,
    Run,
    Read,
    Approve,
}

impl Right {
    pub fn name(self) -> &'static str {
        match self {
            Right::Define => "workflow.define",
            Right::Run => "workflow.run",
            Right::Read => "workflow.read",
            Right::Approve => "workflow.approve",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asks, and what they may.
#[derive(Clone, Debug)]
pub struct Caller {
    pub org: OrgId,
    pub name: Arc<str>,
    /// An agent never answers a gate unless it was given that right by name.
    pub agent: bool,
    grants: BTreeSet<String>,
}

impl Caller {
    pub fn new(org: OrgId, name: impl Into<Arc<str>>, grants: impl IntoIterator<Item = String>) -> Caller {
        Caller { org, name: name.into(), agent: false, grants: grants.into_iter().collect() }
    }

    /// The person at this machine, who may do everything in the default organisation.
    pub fn local(name: impl Into<Arc<str>>) -> Caller {
        Caller::new(OrgId(1), name, ["admin".to_string()])
    }

    pub fn may(&self, right: Right) -> bool {
        let by_name = self.grants.contains(right.name());
        by_name || (self.grants.contains("admin") && !(self.agent && right == Right::Approve))
    }

    pub(crate) fn check(&self, right: Right) -> Result<(), Error> {
        if self.may(right) { Ok(()) } else { Err(Error::Forbidden { who: self.name.to_string(), right }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_answers_gates_only_if_it_was_given_that_right_by_name() {
        let agent = |grants: &[&str]| {
            let caller = Caller::new(OrgId(1), "bot", grants.iter().map(|grant| grant.to_string()));
            Caller { agent: true, ..caller }
        };
        assert!(Caller::local("ann").may(Right::Approve));
        assert!(agent(&["admin"]).may(Right::Run));
        assert!(!agent(&["admin"]).may(Right::Approve));
        assert!(agent(&["admin", "workflow.approve"]).may(Right::Approve));
        assert!(!Caller::new(OrgId(1), "eve", []).may(Right::Read));
    }
}
