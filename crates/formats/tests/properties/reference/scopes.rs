//! Loops and for_each (R5): opening instances, and the consequences of closing them.

use super::compile::{Each, Kind, Scope, Target};
use super::{EdgeState, Exit, Phase, Place, Run, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Run {
    /// Starts a scope step: fixes the items and opens the first instances.
    pub(super) fn enter(&mut self, place: &Place, index: usize) -> bool {
        if let Kind::Each(each) = &place.step(index).kind {
            let Some(Value::Array(items)) = self.render(place, &each.items) else {
                return self.fail(place, index, "template_error");
            };
            if items.len() > each.limit {
                return self.fail(place, index, "failed");
            }
            self.row_mut(place, index).items = items;
        } else {
            self.open_next(place, index);
        }
        self.row_mut(place, index).state = State::Active(Phase::Open);
        self.advance(place, index, false);
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

    /// Sweeps the open instances and applies the consequences of those that close.
    pub(super) fn advance(&mut self, place: &Place, index: usize, only_skips: bool) -> bool {
        if only_skips {
            let open = self.row(place, index).instances.iter().enumerate().filter(|(_, result)| result.is_none());
            let open: Vec<usize> = open.map(|(instance, _)| instance).collect();
            return open.into_iter().any(|instance| self.sweep(&place.inside(index, instance), true));
        }
        match &place.step(index).kind {
            Kind::Cycle { body, limit } => self.advance_cycle(place, index, body, *limit),
            Kind::Each(each) => self.advance_each(place, index, each),
            _ => false,
        }
    }

    /// Sweeps one open instance; the second value is how it ended, if it closed just now.
    fn sweep_instance(&mut self, place: &Place, index: usize, instance: usize) -> (bool, Option<&'static str>) {
        let inside = place.inside(index, instance);
        let changed = self.sweep(&inside, false);
        if !self.running() {
            return (true, None);
        }
        let result = self.result(&inside);
        self.row_mut(place, index).instances[instance] = result;
        (changed || result.is_some(), result)
    }

    fn advance_cycle(&mut self, place: &Place, index: usize, body: &Scope, limit: usize) -> bool {
        let pass = self.row(place, index).instances.len() - 1;
        let (changed, result) = self.sweep_instance(place, index, pass);
        match result {
            None => return changed,
            Some("success") => {}
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

    fn advance_each(&mut self, place: &Place, index: usize, each: &Each) -> bool {
        let mut changed = false;
        for instance in 0..self.row(place, index).instances.len() {
            if self.row(place, index).instances[instance].is_none() {
                changed |= self.sweep_instance(place, index, instance).0;
            }
            if !self.running() {
                return true;
            }
        }
        let row = self.row(place, index);
        let bad: Vec<&str> = row.instances.iter().flatten().copied().filter(|result| *result != "success").collect();
        let stopped = each.stops && !bad.is_empty();
        let open = row.instances.iter().filter(|result| result.is_none()).count();
        let waiting = row.items.len() - row.instances.len();
        if !stopped && waiting > 0 && open < each.width {
            for _ in 0..waiting.min(each.width - open) {
                self.open_next(place, index);
            }
            return true;
        }
        if open > 0 {
            return changed;
        }
        if stopped {
            let status = if bad.iter().all(|result| *result == "denied") { "denied" } else { "failed" };
            // If all items run at once, all are open before any can fail; if one at a time, they run in order.
            self.order_mattered |= each.width > 1 && row.items.len() > each.width;
            return self.fail(place, index, status);
        }
        self.succeed(place, index, Value::Null)
    }
}
