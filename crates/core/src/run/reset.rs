//! Makes parts of a finished run idle again, and recomputes the derived state of the remaining steps.

use super::agenda::each_of;
use super::{At, Exit, Names, Phase, Run, RunStatus, ScopeState, StepState};
use crate::graph::Graph;
use crate::time::Time;

impl Run {
    /// Rule R7. Steps in `reset` become idle again (a scope step with everything in it); scopes in `reopened` continue.
    pub(super) fn retry(&mut self, graph: &Graph, reset: &[At], reopened: &[At], expires: Time) {
        let mut todo = reset.to_vec();
        while let Some(at) = todo.pop() {
            let inner = self.reset_step(graph, at);
            for instance in inner {
                let steps = &graph.scope(self.instances[instance as usize].scope).steps;
                todo.extend(steps.iter().map(|&step| At { instance, step }));
            }
        }
        for &at in reopened {
            let state = self.state_mut(graph, at);
            state.phase = Phase::Open;
            state.exit = Exit::Open;
            state.output = None;
            state.ended = 0;
            state.more().failure = None;
            state.more().variable = None;
        }
        self.resume(expires);
        self.recount(graph);
        for &at in reopened {
            let most = each_of(graph, at).map_or(0, |each| each.max_parallel);
            if let Some(scope) = self.state_mut(graph, at).more().scope.as_mut() {
                let closed = scope.opened - scope.running;
                scope.due = scope.due.max(scope.count.unwrap_or(0).min(closed + most));
            }
        }
        self.derive_agenda(graph);
    }

    /// Resets a step as if it had never started, except for its attempt count. Returns the instances inside it.
    fn reset_step(&mut self, graph: &Graph, at: At) -> Vec<u32> {
        let in_edges = graph.step(at.step).in_edges;
        let state = self.state_mut(graph, at);
        let attempt = state.attempt;
        let instances = state.more.take().and_then(|more| more.scope).map(|scope| scope.instances).unwrap_or_default();
        *state = StepState { attempt, uncounted: attempt, ..StepState::idle(in_edges) };
        if !instances.is_empty() {
            state.more().scope = Some(ScopeState { instances: instances.clone(), ..ScopeState::default() });
        }
        instances
    }

    pub(super) fn resume(&mut self, expires: Time) {
        self.status = RunStatus::Running;
        self.generation += 1;
        self.output = None;
        self.failure = None;
        self.expires = Some(expires);
    }

    /// Recomputes everything derived from the phases and exits of steps: edge counts, open instances, names.
    pub(super) fn recount(&mut self, graph: &Graph) {
        let mut ended: Vec<(u32, At)> = Vec::new();
        (self.gates, self.working) = (0, 0);
        for id in 0..self.instances.len() as u32 {
            let open = self.is_open(graph, id);
            let instance = &mut self.instances[id as usize];
            let steps = &graph.scope(instance.scope).steps;
            instance.remaining = 0;
            instance.failures.clear();
            instance.names = Names::default();
            for (&step, state) in steps.iter().zip(&mut instance.steps) {
                (state.open, state.live, state.failed) = (graph.step(step).in_edges, 0, 0);
                match state.phase {
                    Phase::Done(_) if state.ended > 0 && open => ended.push((state.ended, At { instance: id, step })),
                    Phase::Done(_) => {}
                    phase => {
                        instance.remaining += 1;
                        self.gates += u32::from(matches!(phase, Phase::Gate | Phase::Unsure));
                        self.working += u32::from(matches!(phase, Phase::Running | Phase::Child));
                    }
                }
            }
        }
        ended.sort_unstable_by_key(|(order, _)| *order);
        for (_, at) in ended {
            if self.state(graph, at).status().is_some_and(|status| status.is_failure()) {
                self.instances[at.instance as usize].failures.push(at.step);
            }
            self.note_names(graph, at);
            if self.state(graph, at).exit != Exit::Open {
                self.decide_edges(graph, at);
            }
        }
        self.recount_scopes(graph);
        self.derive_agenda(graph);
    }

    /// Recomputes the progress of scopes. An instance with unfinished steps is running, whatever it was before, and so
    /// is one that is still to be closed.
    fn recount_scopes(&mut self, graph: &Graph) {
        for id in 0..self.instances.len() {
            for &step in &graph.scope(self.instances[id].scope).steps {
                let at = At { instance: id as u32, step };
                let Some(scope) = self.state(graph, at).scope() else { continue };
                let unfinished: Vec<bool> = scope.instances[..scope.opened as usize]
                    .iter()
                    .map(|&inner| self.instances[inner as usize].remaining > 0)
                    .collect();
                let Some(scope) = self.state_mut(graph, at).more().scope.as_mut() else { continue };
                scope.running = 0;
                (scope.unsuccessful, scope.denied) = (0, 0);
                for (k, unfinished) in unfinished.into_iter().enumerate() {
                    match scope.closed[k] {
                        Some((end, _)) if !unfinished => scope.count_end(end),
                        Some(_) | None => {
                            scope.closed[k] = None;
                            scope.running += 1;
                        }
                    }
                }
            }
        }
    }
}
