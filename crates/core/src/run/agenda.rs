//! Decisions that follow from the state and have not been made yet. Derived, like edge counts: folding the log or
//! restoring a snapshot gives the same agenda, so a transition may end anywhere and the next one continues.
//!
//! The order is part of the rules: skips, then closed passes and items, then steps to start and items to open, in the
//! order of the definition. It depends on the state alone, never on where a transition ended.

use super::{At, Instance, Phase, Run, RunStatus, StepState};
use crate::graph::{Each, Graph, Join, Kind, OnItemError};
use std::collections::BTreeMap;

/// A place in the order of the definition: the position of a step, the number of the pass or item in it, the position
/// of a step in there, and so on. Instance numbers would not do: they change when a run is restored.
type Rank = Vec<u32>;

/// Comes after all steps in the items that are open.
const NEXT_ITEM: u32 = u32::MAX;

#[derive(Clone, Default, Debug)]
pub(crate) struct Agenda {
    skips: BTreeMap<Rank, At>,
    /// Instances whose steps have all ended.
    closes: Vec<u32>,
    /// Steps to start, and for_each steps with items to open.
    starts: BTreeMap<Rank, At>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// The step's in-edges decided that it is skipped.
    Skip(At),
    /// Every step of the instance has ended.
    Close(u32),
    /// The step's in-edges decided that it runs.
    Start(At),
    /// The for_each may open its next item.
    OpenItem(At),
}

/// What the in-edges of an idle step decide (rules R1 and R2).
enum Readiness {
    Wait,
    Start,
    Skip,
}

fn readiness(join: Join, in_edges: u32, state: &StepState) -> Readiness {
    match join {
        Join::Any if state.live > 0 => Readiness::Start,
        _ if state.open > 0 => Readiness::Wait,
        // A step without in-edges is started by its scope.
        _ if in_edges == 0 => Readiness::Start,
        Join::Every if state.live == in_edges => Readiness::Start,
        Join::Some if state.failed == 0 && state.live > 0 => Readiness::Start,
        Join::Settled => Readiness::Start,
        Join::Any | Join::Every | Join::Some => Readiness::Skip,
    }
}

impl Run {
    /// Whether decisions follow from the state that the next transition has to make.
    pub fn has_decisions_left(&self) -> bool {
        !self.agenda.starts.is_empty() || !self.agenda.skips.is_empty() || !self.agenda.closes.is_empty()
    }

    pub(crate) fn next_decision(&self, graph: &Graph) -> Option<Decision> {
        if let Some((_, &at)) = self.agenda.skips.first_key_value() {
            return Some(Decision::Skip(at));
        }
        if let Some(&instance) = self.agenda.closes.first() {
            return Some(Decision::Close(instance));
        }
        let (_, &at) = self.agenda.starts.first_key_value()?;
        let idle = self.state(graph, at).phase == Phase::Idle;
        Some(if idle { Decision::Start(at) } else { Decision::OpenItem(at) })
    }

    /// Puts an idle step on the agenda once its in-edges have decided.
    pub(super) fn consider(&mut self, graph: &Graph, at: At) {
        let (step, state) = (graph.step(at.step), self.state(graph, at));
        if state.phase != Phase::Idle {
            return;
        }
        match readiness(step.def.join, step.in_edges, state) {
            Readiness::Wait => {}
            Readiness::Start => drop(self.agenda.starts.insert(self.rank(graph, at), at)),
            Readiness::Skip => drop(self.agenda.skips.insert(self.rank(graph, at), at)),
        }
    }

    /// Takes a step off the agenda that is no longer idle.
    pub(super) fn decided(&mut self, graph: &Graph, at: At) {
        let rank = self.rank(graph, at);
        self.agenda.starts.remove(&rank);
        self.agenda.skips.remove(&rank);
    }

    /// Puts a for_each on the agenda while it has items to open, and takes it off otherwise.
    pub(super) fn consider_items(&mut self, graph: &Graph, at: At) {
        let state = self.state(graph, at);
        let Some(scope) = state.scope().filter(|scope| scope.count.is_some()) else { return };
        let left = state.phase == Phase::Open && scope.opened < scope.due;
        let mut rank = self.rank(graph, at);
        rank.push(NEXT_ITEM);
        match left {
            true => drop(self.agenda.starts.insert(rank, at)),
            false => drop(self.agenda.starts.remove(&rank)),
        }
    }

    pub(super) fn consider_starts(&mut self, graph: &Graph, instance: u32) {
        for &step in &graph.scope(self.instances[instance as usize].scope).starts {
            self.consider(graph, At { instance, step });
        }
    }

    pub(super) fn consider_close(&mut self, instance: u32) {
        if self.instances[instance as usize].remaining == 0 {
            self.agenda.closes.push(instance);
        }
    }

    pub(super) fn closed(&mut self, instance: u32) {
        self.agenda.closes.retain(|&other| other != instance);
    }

    pub(super) fn clear_agenda(&mut self) {
        self.agenda = Agenda::default();
    }

    /// Derives the agenda from the steps.
    pub(super) fn derive_agenda(&mut self, graph: &Graph) {
        self.clear_agenda();
        if self.status != RunStatus::Running {
            return;
        }
        for instance in 0..self.instances.len() as u32 {
            if !self.is_open(graph, instance) {
                continue;
            }
            if self.is_to_close(graph, &self.instances[instance as usize]) {
                self.agenda.closes.push(instance);
                continue;
            }
            for &step in &graph.scope(self.instances[instance as usize].scope).steps {
                let at = At { instance, step };
                self.consider(graph, at);
                self.consider_items(graph, at);
            }
        }
    }

    fn is_to_close(&self, graph: &Graph, instance: &Instance) -> bool {
        instance.remaining == 0
            && instance.parent.is_none_or(|(owner, index)| {
                let owner = self.state(graph, owner);
                let closed = owner.scope().and_then(|scope| scope.closed.get(index as usize));
                owner.phase == Phase::Open && closed.is_some_and(Option::is_none)
            })
    }

    fn rank(&self, graph: &Graph, at: At) -> Rank {
        let mut rank = vec![graph.step(at.step).order];
        let mut instance = at.instance;
        while let Some((owner, index)) = self.instances[instance as usize].parent {
            rank.extend([index, graph.step(owner.step).order]);
            instance = owner.instance;
        }
        rank.reverse();
        rank
    }

    /// The agenda as paths, for tests of recovery.
    pub(super) fn agenda_text(&self, graph: &Graph) -> String {
        let paths =
            |steps: &BTreeMap<Rank, At>| -> Vec<String> { steps.values().map(|&at| self.path(graph, at)).collect() };
        let closes = self.agenda.closes.iter().map(|&instance| &self.instances[instance as usize].prefix);
        format!("{:?} {:?} {:?}", paths(&self.agenda.skips), closes.collect::<Vec<_>>(), paths(&self.agenda.starts))
    }
}

/// Whether a for_each opens no further items than those that are due already.
pub(super) fn is_stopped(each: &Each, unsuccessful: u32) -> bool {
    each.on_item_error == OnItemError::Stop && unsuccessful > 0
}

/// The for_each that the step is.
pub(super) fn each_of(graph: &Graph, at: At) -> Option<&Each> {
    match &graph.step(at.step).def.kind {
        Kind::Each(each) => Some(each),
        _ => None,
    }
}
