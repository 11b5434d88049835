//! Facts as the log stores them, with steps and exits by name, and the fold of a log into a state.

use super::{At, Exit, Run};
use crate::expr::StepIx;
use crate::fact::{Fact, Names};
use crate::graph::{Graph, Handle};
use crate::quote::quote;
use crate::time::Time;

/// A fact as the log stores it.
pub type StoredFact = Fact<String, String>;

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log refers to {}, which this version of the workflow does not have", quote(.0))]
    UnknownStep(String),
    #[error("the log continues with version {0} of the workflow, which does not exist")]
    UnknownVersion(u32),
}

impl Run {
    /// Converts a fact for the log. The fact must have been applied, so that the instance it refers to exists.
    pub fn store(&self, graph: &Graph, fact: &Fact) -> StoredFact {
        struct ToNames<'a>(&'a Run, &'a Graph);
        impl Names<At, Exit, String, String> for ToNames<'_> {
            fn step(&mut self, step: At) -> Result<String, At> {
                Ok(self.0.path(self.1, step))
            }
            fn exit(&mut self, step: At, exit: Exit) -> Result<(String, String), At> {
                Ok((self.0.path(self.1, step), exit_name(self.1, step, exit)))
            }
        }
        match fact.clone().map(&mut ToNames(self, graph)) {
            Ok(stored) => stored,
            Err(at) => unreachable!("every applied fact has names, but {at:?} has none"),
        }
    }

    /// Converts a fact from the log. Earlier facts of the log must have been applied.
    pub fn load(&self, graph: &Graph, stored: StoredFact) -> Result<Fact, LogError> {
        struct ToNumbers<'a>(&'a Run, &'a Graph);
        impl Names<String, String, At, Exit> for ToNumbers<'_> {
            fn step(&mut self, path: String) -> Result<At, String> {
                self.0.find(self.1, &path).ok_or(path)
            }
            fn exit(&mut self, path: String, exit: String) -> Result<(At, Exit), String> {
                let at = self.0.find(self.1, &path).ok_or(path)?;
                Ok((at, exit_named(self.1, at, &exit).ok_or(exit)?))
            }
        }
        stored.map(&mut ToNumbers(self, graph)).map_err(LogError::UnknownStep)
    }

    /// Whether a step's exit also exists in another version.
    pub(crate) fn exit_exists(old: &Graph, was: StepIx, new: &Graph, step: StepIx, exit: Exit) -> bool {
        let at = |step| At { instance: 0, step };
        exit_named(new, at(step), &exit_name(old, at(was), exit)).is_some()
    }

    /// Folds the rest of a log into the state. Returns the graph of the version that the run ends up on.
    pub fn replay<'g>(
        &mut self,
        graph: &'g Graph,
        log: impl IntoIterator<Item = (Time, StoredFact)>,
        versions: &dyn Fn(u32) -> Option<&'g Graph>,
    ) -> Result<&'g Graph, LogError> {
        let mut graph = graph;
        for (now, stored) in log {
            if let Fact::Adopted { version, stands, .. } = &stored {
                let newer = versions(*version).ok_or(LogError::UnknownVersion(*version))?;
                self.migrate(graph, newer, stands);
                graph = newer;
            }
            let fact = self.load(graph, stored)?;
            self.apply(graph, &fact, now);
        }
        Ok(graph)
    }
}

pub(super) fn exit_name(graph: &Graph, at: At, exit: Exit) -> String {
    match exit {
        Exit::Open => "open".into(),
        Exit::Failed => "failed".into(),
        Exit::Untaken => "untaken".into(),
        Exit::Left => "left".into(),
        Exit::Took(handle) if handle.0 >= Handle::FIRST_NAMED => format!("via:{}", handle_name(graph, at.step, handle)),
        Exit::Took(handle) => handle_name(graph, at.step, handle).into(),
    }
}

pub(super) fn exit_named(graph: &Graph, at: At, name: &str) -> Option<Exit> {
    match name {
        "open" => Some(Exit::Open),
        "failed" => Some(Exit::Failed),
        "untaken" => Some(Exit::Untaken),
        "left" => Some(Exit::Left),
        "success" => Some(Exit::Took(Handle::SUCCESS)),
        "error" => Some(Exit::Took(Handle::ERROR)),
        "denied" => Some(Exit::Took(Handle::DENIED)),
        _ => handle_named(graph, at, name.strip_prefix("via:")?).map(Exit::Took),
    }
}

/// The name of a handle.
pub fn handle_name(graph: &Graph, step: StepIx, handle: Handle) -> &str {
    match handle {
        Handle::SUCCESS => "success",
        Handle::ERROR => "error",
        Handle::DENIED => "denied",
        Handle(n) => &graph.step(step).def.handles[usize::from(n - Handle::FIRST_NAMED)],
    }
}

/// The handle that the author gave this name. A branch may be called `success`; it is not the built-in handle.
fn handle_named(graph: &Graph, at: At, name: &str) -> Option<Handle> {
    let position = graph.step(at.step).def.handles.iter().position(|handle| &**handle == name)?;
    Some(Handle(position as u16 + Handle::FIRST_NAMED))
}
