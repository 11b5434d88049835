//! Paths: how people, the log and the store refer to a step of a run. `charge`, `each[3].charge`, `loop:poll[0].check`.

use super::{At, Run};
use crate::graph::{Graph, ScopeIx};

impl Run {
    pub fn path(&self, graph: &Graph, at: At) -> String {
        format!("{}{}", self.instances[at.instance as usize].prefix, graph.step(at.step).def.name)
    }

    /// The step with this path, if its instance was ever opened.
    pub fn find(&self, graph: &Graph, path: &str) -> Option<At> {
        let mut instance = 0u32;
        let mut rest = path;
        self.instances.first()?;
        loop {
            let scope: ScopeIx = self.instances[instance as usize].scope;
            // Names contain neither dots nor brackets.
            match rest.find(['[', '.']) {
                None => return graph.find(scope, rest).map(|step| At { instance, step }),
                Some(end) => {
                    let step = graph.find(scope, &rest[..end])?;
                    let (index, after) = rest[end..].strip_prefix('[')?.split_once("].")?;
                    let scope = self.state(graph, At { instance, step }).scope()?;
                    instance = *scope.instances.get(index.parse::<usize>().ok()?)?;
                    rest = after;
                }
            }
        }
    }
}
