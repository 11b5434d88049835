//! Loops and for_each (R5): opening instances, and the consequences of closing them.

use super::compile::{Each, Kind, Scope, Target};
use super::{EdgeState, Exit, Phase, Place, Run, State, Sweep};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

impl Run {
    /// Starts a scope step: fixes the items, or opens the first pass.
    pub(super) fn enter(&mut self, place: &Place, index: usize) -> bool {
        if let Kind::Each(each) = &place.step(index).kind {
            let Some(Value::Array(items)) = self.render(place, &each.items) else {
                return self.fail(place, index, "template_error");
            };
            if items.len() > each.limit {
                return self.fail(place, index, "failed");
            }
            let due = items.len().min(each.width);
            let row = self.row_mut(place, index);
            (row.items, row.due) = (items, due);
            if due == 0 {
                return self.succeed(place, index, Value::Null);
            }
        } else {
            self.open_next(place, index);
        }
        self.row_mut(place, index).state = State::Active(Phase::Open);
        true
    }

    fn open_next(&mut self, place: &Place, index: usize) {
        let row = self.row_mut(place, index);
        let instance = row.instances.len();
        row.instances.push(None);
        let item = row.items.get(instance).cloned();
        if let (Kind::Each(each), Some(item)) = (&place.step(index).kind, item) {
            self.writes.extend(each.item.clone().map(|variable| (String::new(), variable, item)));
            self.writes.extend(each.index.clone().map(|variable| (String::new(), variable, json!(instance))));
        }
        self.open(&place.inside(index, instance));
    }

    pub(super) fn open_instances(&self, place: &Place, index: usize) -> Vec<usize> {
        let instances = self.row(place, index).instances.iter().enumerate();
        instances.filter(|(_, result)| result.is_none()).map(|(instance, _)| instance).collect()
    }

    /// Whether a for_each has items that are due and were not opened.
    pub(super) fn has_items_left(&self, place: &Place, index: usize) -> bool {
        let row = self.row(place, index);
        row.instances.len() < row.due
    }

    /// Sweeps the open instances; then closes one of them, or opens the next item.
    pub(super) fn advance(&mut self, place: &Place, index: usize, sweep: Sweep) -> bool {
        let open = self.open_instances(place, index);
        if open.iter().any(|instance| self.sweep(&place.inside(index, *instance), sweep)) {
            return true;
        }
        match sweep {
            Sweep::Skips => false,
            Sweep::Closes => {
                let ended = |instance: usize| Some((instance, self.result(&place.inside(index, instance))?));
                let Some((instance, result)) = open.into_iter().find_map(ended) else { return false };
                self.row_mut(place, index).instances[instance] = Some(result);
                match &place.step(index).kind {
                    Kind::Cycle { body, limit } => self.close_pass(place, index, body, *limit),
                    Kind::Each(each) => self.close_item(place, index, each),
                    _ => false,
                }
            }
            Sweep::Begins => {
                let left = self.has_items_left(place, index);
                if left {
                    self.open_next(place, index);
                }
                left
            }
        }
    }

    fn close_pass(&mut self, place: &Place, index: usize, body: &Scope, limit: usize) -> bool {
        let pass = self.row(place, index).instances.len() - 1;
        match self.row(place, index).instances[pass] {
            None | Some("success") => {}
            Some(status) => return self.fail(place, index, status),
        }
        let inside = place.inside(index, pass);
        let states = |to: Target| -> BTreeMap<usize, EdgeState> {
            let edges = body.edges.iter().filter(|edge| edge.to == to);
            edges.map(|edge| (edge.id, self.edge(&inside, edge))).collect()
        };
        let live = |states: &BTreeMap<usize, EdgeState>| states.values().any(|state| *state == EdgeState::Live);
        let leaving = states(Target::Leave);
        if live(&leaving) {
            return self.end(place, index, "success", Exit::Leaving(leaving));
        }
        if !live(&states(Target::Back)) {
            return self.end(place, index, "success", Exit::AllUntaken);
        }
        if pass + 1 >= limit {
            return self.fail(place, index, "failed");
        }
        self.open_next(place, index);
        true
    }

    fn close_item(&mut self, place: &Place, index: usize, each: &Each) -> bool {
        let row = self.row_mut(place, index);
        let bad: Vec<&str> = row.instances.iter().flatten().copied().filter(|result| *result != "success").collect();
        let stopped = each.stops && !bad.is_empty();
        if !stopped {
            row.due = row.items.len().min(row.due + 1);
        }
        let items = row.items.len();
        if self.has_items_left(place, index) || !self.open_instances(place, index).is_empty() {
            return true;
        }
        if stopped {
            let status = if bad.iter().all(|result| *result == "denied") { "denied" } else { "failed" };
            // If all items run at once, all are due before any can fail; if one at a time, they run in order.
            self.order_mattered |= each.width > 1 && items > each.width;
            return self.fail(place, index, status);
        }
        self.succeed(place, index, Value::Null)
    }
}

impl Run {
    /// R4: how a closed scope ended; `None` while a step is idle or active.
    pub(super) fn result(&self, place: &Place) -> Option<&'static str> {
        let steps = 0..place.scope.steps.len();
        if steps.clone().any(|step| self.row(place, step).ended().is_none()) {
            return None;
        }
        let unhandled: Vec<usize> = steps.filter(|step| self.unhandled(place, *step)).collect();
        let denied = |step: &usize| self.row(place, *step).ended() == Some("denied");
        Some(match &unhandled[..] {
            [] => "success",
            all if all.iter().all(denied) => "denied",
            _ => "failed",
        })
    }

    /// A failure with no live out-edge, from which no path of failed edges leads to a step that ran.
    pub(super) fn unhandled(&self, place: &Place, step: usize) -> bool {
        if !self.row(place, step).failed() || place.step(step).tolerates {
            return false;
        }
        if place.out_edges(step).any(|edge| self.edge(place, edge) == EdgeState::Live) {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut todo = vec![step];
        while let Some(from) = todo.pop() {
            for edge in place.out_edges(from).filter(|edge| self.edge(place, edge) == EdgeState::Failed) {
                let Target::Step(to) = edge.to else { continue };
                if self.row(place, to).ran {
                    return false;
                }
                if seen.insert(to) {
                    todo.push(to);
                }
            }
        }
        true
    }
}
