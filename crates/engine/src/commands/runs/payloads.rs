//! Reading a run for a view of it, with no more payloads than a view may have, whatever the size of the run.
//!
//! A small run is read whole. Of a large one its state is read first, then the payloads that are shown.

use super::view::{Attempts, StepView, by_path, payloads_of, step_view};
use crate::error::Error;
use crate::rooms::Rooms;
use crate::run::{Live, SMALL, drive, read_apart};
use std::collections::{HashMap, HashSet};
use stepwell_core::run::At;
use stepwell_core::value::{Payload, ValueId};
use stepwell_store::{LoadedRun, RunId, RunRow, StepRow};

/// Bytes of payloads of the steps in one view. The run's own input and output are shown in any case.
const MAX_BYTES: u64 = 4 << 20;

/// Which steps of a run to show, in the order of the definition.
#[derive(Clone, Default, Debug)]
pub struct StepQuery {
    /// One of these; empty for any.
    pub status: Vec<String>,
    /// Only the step with this path.
    pub path: Option<String>,
    /// What the path begins with.
    pub prefix: Option<String>,
    /// The last step of the previous page.
    pub after: Option<String>,
    pub limit: usize,
}

/// Steps of a run. `next` is the cursor of the next page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepPage {
    pub steps: Vec<StepView>,
    pub next: Option<String>,
}

/// A run in memory, without payloads if it is large.
pub struct Opened {
    pub row: RunRow,
    pub live: Box<Live>,
    pub attempts: Vec<StepRow>,
    /// The sizes of its payloads, if they are not in memory.
    sizes: Option<HashMap<ValueId, u64>>,
}

/// Reads a run as far as that takes little memory. `None` if it does not exist.
pub async fn open(rooms: &Rooms, id: RunId) -> Result<Option<Opened>, Error> {
    let store = &rooms.cluster.store;
    // Row and steps are read together, so that they are consistent. Payloads never change.
    let (stored, sizes) = match store.load_small(vec![id], SMALL).await?.pop() {
        Some(stored) => (stored, None),
        None => {
            let Some(outline) = store.outline(id).await? else { return Ok(None) };
            (outline, Some(store.sizes(id).await?.into_iter().collect()))
        }
    };
    let LoadedRun { row, .. } = &stored;
    let row = row.clone();
    let live = drive::revive(&rooms.runner, stored).await?;
    Ok(Some(Opened { row, live, attempts: store.attempts(id).await?, sizes }))
}

impl Opened {
    /// Reads the payloads for a view of the whole run: those of the run itself, and those of each step that fit.
    /// Returns the steps whose payloads do not.
    pub async fn read_run(&mut self, rooms: &Rooms) -> Result<HashSet<String>, Error> {
        let Some(sizes) = self.sizes.take() else { return Ok(HashSet::new()) };
        let (run, graph) = (&self.live.run, &self.live.compiled.definition.graph);
        let attempts = by_path(&self.attempts);
        let mut ids: Vec<ValueId> = [run.headers, run.input, run.output].into_iter().flatten().collect();
        let (mut left, mut omitted) = (MAX_BYTES, HashSet::new());
        for (at, _) in run.steps(graph) {
            let path = run.path(graph, at);
            let of_step = self.payloads(&path, at, &attempts);
            match left.checked_sub(size(&sizes, &of_step)) {
                Some(rest) => {
                    left = rest;
                    ids.extend(of_step);
                }
                None => drop(omitted.insert(path)),
            }
        }
        self.read(rooms, ids, &sizes).await?;
        Ok(omitted)
    }

    /// Reads a page of steps with their payloads: as many as fit, and at least one.
    pub async fn page(&mut self, rooms: &Rooms, query: &StepQuery) -> Result<StepPage, Error> {
        let sizes = self.sizes.take();
        let attempts = by_path(&self.attempts);
        let (mut shown, mut next) = (Vec::new(), None);
        let (mut ids, mut left) = (Vec::new(), MAX_BYTES);
        for (path, at) in self.wanted(query)? {
            let of_step = self.payloads(&path, at, &attempts);
            let rest = left.checked_sub(sizes.as_ref().map_or(0, |sizes| size(sizes, &of_step)));
            if shown.len() == query.limit || (rest.is_none() && !shown.is_empty()) {
                next = shown.last().map(|(path, _): &(String, At)| path.clone());
                break;
            }
            left = rest.unwrap_or_default();
            ids.extend(of_step);
            shown.push((path, at));
        }
        if let Some(sizes) = sizes {
            self.read(rooms, ids, &sizes).await?;
        }
        let attempts = by_path(&self.attempts);
        let steps = shown.into_iter().filter_map(|(path, at)| step_view(&self.live, path, at, &attempts)).collect();
        Ok(StepPage { steps, next })
    }

    /// The steps that match, after the cursor.
    fn wanted(&self, query: &StepQuery) -> Result<Vec<(String, At)>, Error> {
        let (run, graph) = (&self.live.run, &self.live.compiled.definition.graph);
        let mut begun = query.after.is_none();
        let mut wanted = Vec::new();
        for (at, state) in run.steps(graph) {
            let path = run.path(graph, at);
            if !begun {
                begun = query.after.as_deref() == Some(&path);
                continue;
            }
            if query.path.as_ref().is_some_and(|only| *only != path) {
                continue;
            }
            let status = query.status.is_empty() || query.status.iter().any(|status| status == state.phase.name());
            if status && query.prefix.as_deref().is_none_or(|prefix| path.starts_with(prefix)) {
                wanted.push((path, at));
            }
        }
        let message = "this is not the `next` of an earlier page";
        let unknown = || Error::Input { path: "cursor".into(), message: message.into() };
        begun.then_some(wanted).ok_or_else(unknown)
    }

    fn payloads(&self, path: &str, at: At, attempts: &Attempts<'_>) -> Vec<ValueId> {
        let state = self.live.run.step(&self.live.compiled.definition.graph, at);
        let rows = attempts.get(path).map(Vec::as_slice).unwrap_or_default();
        state.map(|state| payloads_of(state, rows)).unwrap_or_default()
    }

    /// Reads payloads into the run.
    async fn read(&mut self, rooms: &Rooms, mut ids: Vec<ValueId>, sizes: &HashMap<ValueId, u64>) -> Result<(), Error> {
        // What several steps show is read once, and shown several times.
        let bytes = size(sizes, &ids);
        self.live.room = rooms.runner.views.room(self.live.org, bytes).await?;
        ids.sort_unstable();
        ids.dedup();
        let rows = rooms.cluster.store.values(self.live.id, &ids).await?;
        let parse = move || {
            let payload = |payload: &str| serde_json::from_str::<Payload>(payload);
            rows.into_iter()
                .map(|row| Ok((row.id, payload(&row.payload)?)))
                .collect::<Result<Vec<_>, serde_json::Error>>()
        };
        let payloads = read_apart(bytes as usize, parse).await?;
        let payloads = payloads.map_err(|error| Error::Broken(format!("the stored run cannot be read: {error}")))?;
        payloads.into_iter().for_each(|(id, payload)| self.live.run.values.put(id, payload));
        Ok(())
    }
}

fn size(sizes: &HashMap<ValueId, u64>, ids: &[ValueId]) -> u64 {
    ids.iter().filter_map(|id| sizes.get(id)).sum()
}
