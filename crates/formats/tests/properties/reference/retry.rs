//! Retries a run under its own version (R7; docs/semantics.md, "Retrying a run").

use super::compile::{Join, Kind, Target};
use super::{Exit, Phase, Place, Row, Run, State};
use std::collections::BTreeSet;

impl Run {
    /// Retries a run that did not complete; no effect on other runs.
    pub(super) fn retry(&mut self, root: &Place) -> bool {
        if !matches!(self.status, "failed" | "cancelled" | "timeout") {
            return false;
        }
        self.status = "running";
        self.reset(root);
        // Writes of reset steps are undone.
        let stands = |path: &String| path.is_empty() || self.rows.get(path).is_some_and(|row| row.ended().is_some());
        self.writes.retain(|(path, _, _)| stands(path));
        // Vars that had no value when the run started are computed again.
        if self.compute_vars() {
            self.settle(root);
        }
        true
    }

    fn is_root(&self, place: &Place, step: usize) -> bool {
        self.row(place, step).ended() == Some("cancelled") || self.unhandled(place, step)
    }

    /// Resets what has to run again in this instance, and recurses into reopened scope steps.
    fn reset(&mut self, place: &Place) {
        let roots: Vec<usize> = (0..place.scope.steps.len()).filter(|step| self.is_root(place, *step)).collect();
        let (reopened, mut again): (BTreeSet<usize>, BTreeSet<usize>) = roots.iter().partition(|step| {
            // A for_each that was cancelled before it had opened all items continues with them.
            !self.instances_with_roots(place, **step).is_empty() || self.has_items_left(place, **step)
        });
        again.extend(self.reached(place, roots));
        for step in &again {
            self.reset_whole(&place.path(*step));
        }
        for step in reopened.difference(&again) {
            let instances = self.instances_with_roots(place, *step);
            let row = self.row_mut(place, *step);
            row.state = State::Active(Phase::Open);
            row.exit = Exit::Undecided;
            for instance in instances {
                self.row_mut(place, *step).instances[instance] = None;
                self.reset(&place.inside(*step, instance));
            }
            if let Kind::Each(each) = &place.step(*step).kind {
                let row = self.row_mut(place, *step);
                let closed = row.instances.iter().flatten().count();
                row.due = row.due.max(row.items.len().min(closed + each.width));
            }
        }
    }

    /// The instances of a scope step that did not succeed and have a root inside. Items that failed under `continue`
    /// are results and are kept.
    fn instances_with_roots(&self, place: &Place, step: usize) -> Vec<usize> {
        let continues = matches!(&place.step(step).kind, Kind::Each(each) if !each.stops);
        let searched = |result: &Option<&str>| match result {
            None => true,
            Some("success") => false,
            Some(_) => !continues,
        };
        let instances = self.row(place, step).instances.iter().enumerate();
        let instances = instances.filter(|(_, result)| searched(result)).map(|(instance, _)| instance);
        let has_root = |instance: &usize| {
            let inside = place.inside(step, *instance);
            (0..inside.scope.steps.len()).any(|step| self.is_root(&inside, step))
        };
        instances.filter(has_root).collect()
    }

    /// Everything reachable from the roots, but not to or through an `any` step that ran.
    fn reached(&self, place: &Place, roots: Vec<usize>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut todo = roots;
        while let Some(from) = todo.pop() {
            for edge in place.out_edges(from) {
                let Target::Step(to) = edge.to else { continue };
                let stands = place.step(to).join == Join::Any && self.row(place, to).ran;
                if !stands && found.insert(to) {
                    todo.push(to);
                }
            }
        }
        found
    }

    /// Makes a step idle again; its instances are removed until it opens them again.
    fn reset_whole(&mut self, path: &str) {
        let inside = format!("{path}[");
        self.rows.retain(|other, _| !other.starts_with(&inside));
        self.rows.insert(path.to_string(), Row::default());
    }
}
