//! After every transition of a run, its rows are written to a real SQLite file. At random moments it is loaded
//! again and must equal the run in memory.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::event::{Answer, Event, Failure, Outcome, Reply};
use stepwell_core::plan::Transition;
use stepwell_core::run::{Phase, Run};
use stepwell_core::simulate::{Fed, World, someone};
use stepwell_engine::{CommitContext, record, restore, timer_key, timer_named};
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::*;

const ORG: OrgId = OrgId(1);
const WALKS: u64 = 12;

/// Definitions of all three dialects that others wrote for other tests.
fn definitions() -> Vec<(PathBuf, Definition)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["examples", "crates/formats/tests/cases/good", "crates/formats/tests/cases/seeds"];
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.to_str().unwrap().contains(".test.");
            if !is_test && path.extension().is_some_and(|ending| ending == "yaml" || ending == "json") {
                let definition = stepwell_formats::read(&std::fs::read(&path).unwrap(), path.to_str()).unwrap();
                found.push((path, definition));
            }
        }
    }
    assert!(found.len() > 20);
    found
}

/// splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % n as u64) as usize
    }
}

struct Walk<'a> {
    store: &'a SqliteStore,
    world: World<'a>,
    run: RunId,
    version: i64,
    hash: [u8; 32],
    chance: Chance,
}

impl Walk<'_> {
    /// Feeds an event and writes what it caused.
    async fn take(&mut self, fed: Fed, fired: Vec<String>) {
        let Ok(transition) = fed.unwrap() else { return };
        self.commit(transition, fired).await;
        if self.chance.below(3) == 0 {
            self.compare().await;
        }
    }

    async fn commit(&mut self, transition: Transition, fired: Vec<String>) {
        let public = format!("run_{}", self.run.0);
        let (by, now) = ("someone".into(), self.world.now);
        let create = NewRun {
            public,
            org: ORG,
            created: now,
            by,
            acts_as: "someone".into(),
            labels: Vec::new(),
            test: false,
            secret: [0; 16],
            parent: None,
            group: None,
            most_open: None,
            most_descendants: None,
        };
        let context = CommitContext {
            key: self.store.chain_key(),
            run: self.run,
            version: Version(self.version),
            hash: self.hash,
            auth: Auth { org: ORG, epoch: 1 },
            create: Some(create).filter(|_| self.version == 0),
            now,
            status: "",
            definition: 1,
            purge: None,
            fired,
            read: Vec::new(),
        };
        let mut commit = record(self.world.graph, &self.world.run, &transition, context);
        commit.work.put.iter_mut().for_each(|work| work.node = Some(NodeId(1)));
        self.hash = commit.log.hash;
        self.store.commit(vec![commit]).await.unwrap().remove(0).unwrap();
        self.version += 1;
    }

    /// The stored run, its work and its timers are those of the run in memory.
    async fn compare(&self) {
        let (graph, run) = (self.world.graph, &self.world.run);
        let stored = self.store.load(self.run).await.unwrap().unwrap();
        assert_eq!((stored.version, stored.hash), (Version(self.version), self.hash));
        assert_eq!(rows(&restore(graph, &stored).unwrap(), graph), rows(run, graph));
        let held = self.store.held(NodeId(1)).await.unwrap().into_iter().filter(|work| work.run == self.run);
        let held: BTreeSet<(String, u32)> = held.map(|work| (work.key.path, work.key.attempt)).collect();
        let running = self.world.running.iter().map(|(at, attempt)| (run.path(graph, *at), *attempt)).collect();
        assert_eq!(held, running);
        let due =
            self.store.due(stepwell_core::time::Time(i64::MAX), stepwell_store::Share::ALL, 100_000).await.unwrap();
        let due: BTreeMap<String, _> =
            due.into_iter().filter(|timer| timer.run == self.run).map(|timer| (timer.key, timer.due)).collect();
        let set = self.world.timers.iter().map(|(timer, due)| (timer_key(graph, run, timer), *due)).collect();
        assert_eq!(due, set);
        for timer in self.world.timers.keys() {
            assert_eq!(timer_named(graph, run, &timer_key(graph, run, timer)), Some(*timer));
        }
    }

    /// The log in the store, folded, is the run too, and its chain of hashes is whole.
    async fn check_log(&self) {
        let log = self.store.tail(self.run, Version(0), 1_000_000).await.unwrap();
        let row = self.store.run(self.run).await.unwrap().unwrap();
        let mut previous = stepwell_store::Origin::of(&row, row.definition).hash();
        let mut facts = Vec::new();
        for row in log {
            assert_eq!(row.row.hash, hash(&previous, row.row.at, &row.row.facts, &row.row.payloads));
            previous = row.row.hash;
            let stored: Vec<stepwell_core::run::StoredFact> = serde_json::from_str(&row.row.facts).unwrap();
            facts.extend(stored.into_iter().map(|fact| (row.row.at, fact)));
        }
        let graph = self.world.graph;
        let mut run = Run::new(self.world.run.id.clone(), 0, stepwell_core::time::Millis(0));
        run.replay(graph, facts, &|_| None).unwrap();
        assert_eq!(rows(&run, graph).1, rows(&self.world.run, graph).1);
    }

    /// Lets something happen; false when nothing can.
    async fn step(&mut self) -> bool {
        let (graph, world) = (self.world.graph, &mut self.world);
        let running: Vec<_> = world.running.iter().copied().collect();
        let children: Vec<_> = world.children.iter().copied().collect();
        let waiting: Vec<_> = world.waiting.iter().copied().collect();
        let timers: Vec<_> = world.timers.keys().copied().collect();
        let total = running.len() + children.len() + waiting.len() + timers.len();
        if total == 0 {
            return false;
        }
        let mut pick = self.chance.below(total);
        let outcome = match self.chance.below(6) {
            0 => Outcome::Failure { failure: Failure::retryable("test", "it failed"), reply: None },
            1 => Outcome::Failure { failure: Failure::new("test", "it broke"), reply: None },
            n => Outcome::Success(Reply::body(json!({"v": n, "more": n % 2 == 0, "image": "i", "state": "paid"}))),
        };
        if let Some(&(at, attempt)) = running.get(pick) {
            let fed =
                if self.chance.below(8) == 0 { world.lose(at, attempt) } else { world.report(at, attempt, outcome) };
            self.take(fed, Vec::new()).await;
            return true;
        }
        pick -= running.len();
        if let Some(&(at, attempt)) = children.get(pick) {
            let fed = world.child_ended(at, attempt, outcome);
            self.take(fed, Vec::new()).await;
            return true;
        }
        pick -= children.len();
        if let Some(&at) = waiting.get(pick) {
            let state = world.run.step(graph, at).unwrap();
            let (attempt, approve) = (state.attempt, self.chance.below(3) > 0);
            let event = match state.phase {
                Phase::Webhook => Event::Delivered { at, body: Arc::new(json!({"state": "paid"})), truncated: false },
                _ => Event::Answered {
                    at,
                    attempt,
                    answer: Answer { approve, by: someone(), comment: None, data: None, digest: None, input: None },
                },
            };
            let fed = world.feed(event);
            self.take(fed, Vec::new()).await;
            return true;
        }
        pick -= waiting.len();
        let timer = timers[pick];
        let key = timer_key(graph, &world.run, &timer);
        world.now = world.now.max(world.timers[&timer]);
        let fed = world.fire(timer);
        self.take(fed, vec![key]).await;
        true
    }
}

/// Everything about a run that is not numbered by memory.
fn rows(run: &Run, graph: &stepwell_core::graph::Graph) -> (Value, BTreeMap<String, Value>) {
    let snapshot = run.snapshot(graph);
    let json = |value: &dyn Fn() -> serde_json::Result<Value>| value().unwrap();
    let steps = snapshot.steps.iter().map(|row| (row.path.clone(), json(&|| serde_json::to_value(row))));
    let ended = snapshot.instances.iter();
    let ended = ended.map(|row| (format!("{}[{}]", row.path, row.index), json(&|| serde_json::to_value(row))));
    (json(&|| serde_json::to_value(run.head())), steps.chain(ended).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_is_the_run_after_every_transition() {
    let directory = tempfile::TempDir::new().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut run = 0;
    for (path, definition) in &definitions() {
        for seed in 0..WALKS {
            run += 1;
            println!("{} seed {seed}", path.display());
            let world = World::new(&definition.graph, seed, definition.max_duration);
            let chance = Chance(seed);
            let mut walk = Walk { store: &store, world, run: RunId(run), version: 0, hash: [0; 32], chance };
            let input =
                json!({"items": [1, 2, 3], "messages": [{"text": "a"}], "order_id": 1, "email": "e", "ref": "r"});
            let body = Arc::new(input);
            let started = walk.world.feed(Event::Triggered {
                body,
                headers: None,
                query: None,
                by: someone(),
                queued: seed % 3 == 0,
            });
            walk.take(started, Vec::new()).await;
            if seed % 3 == 0 {
                let admitted = walk.world.feed(Event::Admitted);
                walk.take(admitted, Vec::new()).await;
            }
            for retry in 0..3 {
                for _ in 0..200 {
                    if !walk.step().await {
                        break;
                    }
                }
                let cancelled = walk.world.feed(Event::Cancelled { by: someone(), reason: None });
                walk.take(cancelled, Vec::new()).await;
                walk.compare().await;
                if retry < 2 {
                    let retried = walk.world.feed(Event::Retried { by: someone().into() });
                    walk.take(retried, Vec::new()).await;
                }
            }
            walk.compare().await;
            walk.check_log().await;
        }
    }
}
