//! Two processes that write concurrently.

use super::{PgStore, eventually, two};
use crate::sample::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::*;

/// Commits on the current version of the run, retrying conflicts.
async fn commit_somehow(store: &PgStore, run: i64, change: impl Fn(Commit) -> Commit) {
    loop {
        let version = store.load(RunId(run)).await.unwrap().unwrap().version;
        match commit(store, change(next(run, version.0))).await {
            Ok(_) => return,
            Err(Refused::Conflict) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_claimed_by_two_processes_goes_to_one() {
    let (one, other, _schema) = two().await;
    for run in 0..40 {
        let mut commit = create(run);
        commit.work.put = vec![work("a", ORG, run, None), work("b", ORG, run, None)];
        accepted(&one, commit).await;
    }
    // The second half is claimed under a limit per organisation.
    let mut seen = BTreeSet::new();
    for per_org in [None, Some(60)] {
        let mut empty = 0;
        while empty < 2 && (per_org.is_some() || seen.len() < 40) {
            let ask = |node: i64| Claim { per_org, ..Claim::new(NodeId(node), 5) };
            let (first, second) = tokio::join!(one.claim(ask(1)), other.claim(ask(2)));
            for claimed in [first.unwrap(), second.unwrap()] {
                empty += usize::from(claimed.is_empty());
                claimed.into_iter().for_each(|work| assert!(seen.insert((work.run, work.key)), "claimed twice"));
            }
        }
    }
    assert_eq!(seen.len(), 60, "the limit of the organisation");
    let (first, second) = (one.held(NodeId(1)).await.unwrap(), one.held(NodeId(2)).await.unwrap());
    assert_eq!(first.len() + second.len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_commits_through_two_processes_lose_nothing() {
    const EACH: i64 = 4;
    let (one, other, _schema) = two().await;
    let stores = [Arc::new(one), Arc::new(other)];
    for run in 0..8 {
        accepted(&*stores[0], create(run)).await;
    }
    let tasks: Vec<_> = (0..64_i64)
        .map(|task| {
            let store = stores[(task % 2) as usize].clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    let id = (task * EACH + n) as u32;
                    let change =
                        |commit| Commit { values: vec![value(id, "1")], counted: vec![("all".into(), 1)], ..commit };
                    commit_somehow(&store, task % 8, change).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for run in 0..8 {
        let loaded = stores[1].load(RunId(run)).await.unwrap().unwrap();
        assert_eq!(loaded.version, Version(1 + 8 * EACH));
        assert_eq!(stores[1].attempts(RunId(run)).await.unwrap().len(), 0);
        let versions: Vec<i64> =
            stores[0].tail(RunId(run), Version(0), 1_000).await.unwrap().iter().map(|log| log.version.0).collect();
        assert_eq!(versions, (1..=1 + 8 * EACH).collect::<Vec<_>>());
        let ids: Vec<_> = (0..64 * EACH as u32).map(stepwell_core::value::ValueId).collect();
        assert_eq!(stores[0].values(RunId(run), &ids).await.unwrap().len() as i64, 8 * EACH);
    }
    assert_eq!(stores[0].counted("all").await.unwrap(), 64 * EACH);
    assert!(stores[0].integrity().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_grants_in_one_process_refuses_earlier_decisions_of_another() {
    let (one, other, _schema) = two().await;
    for run in 1..=2 {
        accepted(&one, create(run)).await;
    }
    other.grants_changed(ORG).await.unwrap();
    let grouped = Commit { groups: vec![GroupChange::Queue { key: "p".into() }], ..next(2, 1) };
    for stale in [next(1, 1), create(3), grouped.clone()] {
        assert_eq!(commit(&one, stale).await, Err(Refused::AuthChanged));
    }
    assert_eq!(one.load(RunId(3)).await.unwrap(), None);
    let auth = Auth { org: ORG, epoch: one.epoch(ORG).await.unwrap().unwrap() };
    for again in [next(1, 1), create(3), grouped] {
        accepted(&one, Commit { auth, ..again }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_returns_every_commit_once_and_each_run_in_order() {
    const RUNS: i64 = 6;
    const EACH: i64 = 25;
    let (one, other, schema) = two().await;
    let reader = super::open(schema.url()).await;
    for run in 0..RUNS {
        accepted(&one, create(run)).await;
    }
    let stores = [Arc::new(one), Arc::new(other)];
    // Both processes commit to the same runs.
    let writers: Vec<_> = (0..RUNS * 2)
        .map(|task| {
            let store = stores[(task % 2) as usize].clone();
            tokio::spawn(async move {
                for _ in 0..EACH {
                    commit_somehow(&store, task / 2, |commit| commit).await;
                }
            })
        })
        .collect();
    let mut progress = Progress::default();
    let mut seen: BTreeMap<RunId, i64> = BTreeMap::new();
    let all = RUNS * (1 + 2 * EACH);
    // Small pages, so that many end between concurrent commits.
    eventually("all commits", async || {
        for fed in reader.feed(&progress, 7).await.unwrap() {
            assert!(!progress.has(fed.log.position), "{fed:?} was returned before");
            progress.pass(fed.log.position);
            let last = seen.entry(fed.run).or_default();
            assert_eq!(fed.log.version.0, *last + 1, "{fed:?} is out of order");
            *last += 1;
        }
        (seen.values().sum::<i64>() == all).then_some(())
    })
    .await;
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(reader.feed(&progress, 7).await.unwrap().is_empty());
    assert!(progress.covers(&reader.progress().await.unwrap()), "all positions have been read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_reaches_another_process_that_listens() {
    let (one, other, _schema) = two().await;
    let mut heard = other.hear().unwrap();
    let hint_for = |run: i64| Hint { runs: vec![RunId(run)], orgs: vec![ORG], ready: true, freed: vec![] };
    // Repeated until the other process listens.
    eventually("a process that listens", async || {
        one.tell(hint_for(1));
        let hint = tokio::time::timeout(Duration::from_millis(50), heard.recv()).await.ok()?.ok()?;
        hint.runs.contains(&RunId(1)).then_some(())
    })
    .await;
    one.tell(hint_for(2));
    let hears = async {
        loop {
            let hint = heard.recv().await.unwrap();
            if hint.runs.contains(&RunId(2)) {
                return hint;
            }
        }
    };
    // It is sent once, so if it is not heard now, it never is.
    let hint = tokio::time::timeout(Duration::from_secs(60), hears).await.expect("the hint arrives");
    assert!(hint.orgs.contains(&ORG) && hint.ready);
}
