//! Child runs: limits of a root's descendants and of open runs.

use crate::sample::{ORG, accepted, commit, create, finish, head, next, unique};
use stepwell_core::time::Time;
use stepwell_store::*;

/// The first commit of a child, at one below the depth of its parent.
fn child(run: i64, parent: i64, depth: u32, limits: (Option<u32>, u32)) -> Commit {
    let mut commit = create(run);
    let new = commit.create.as_mut().unwrap();
    new.parent = Some(Parent { run: RunId(parent), path: format!("c{run}"), attempt: 1, depth, root: RunId(1) });
    (new.most_open, new.most_descendants) = (limits.0, Some(limits.1));
    commit
}

pub async fn descendants_are_counted_by_root_and_limited(store: &dyn Store) {
    accepted(store, create(1)).await;
    let limit = (None, 3);
    accepted(store, child(2, 1, 1, limit)).await;
    accepted(store, child(3, 2, 2, limit)).await;
    // Descendants that have ended still count.
    accepted(store, finish(3, 1, Some(Time(5)))).await;
    while store.purge(Time(5), 10).await.unwrap() > 0 {}
    let keyed = Commit { unique: vec![unique("child", "k")], ..child(4, 2, 2, limit) };
    accepted(store, keyed.clone()).await;
    assert_eq!(store.counted(&descendants(RunId(1))).await.unwrap(), 3);
    let refused = Commit { outbox: vec![crate::sample::notice("n", 1)], ..child(5, 1, 1, limit) };
    assert_eq!(commit(store, refused).await, Err(Refused::TooManyDescendants));
    assert_eq!(store.load(RunId(5)).await.unwrap(), None);
    // A request that is repeated finds its run, even at the limit, and is not counted again.
    let again = Commit { run: RunId(6), ..keyed };
    let again = Commit { create: child(6, 2, 2, limit).create, ..again };
    assert_eq!(commit(store, again).await, Err(Refused::Duplicate { run: RunId(4), digest: "d".into() }));
    assert_eq!(store.counted(&descendants(RunId(1))).await.unwrap(), 3);
    // Another root has its own count.
    let mut other = child(8, 7, 1, limit);
    other.create.as_mut().unwrap().parent.as_mut().unwrap().root = RunId(7);
    accepted(store, create(7)).await;
    accepted(store, other).await;
}

pub async fn concurrent_children_do_not_exceed_the_limit_of_descendants(store: &dyn Store) {
    accepted(store, create(1)).await;
    let starts = (2..42).map(|run| async move { commit(store, child(run, 1, 1, (None, 7))).await.is_ok() });
    let started = futures_util::future::join_all(starts).await.into_iter().filter(|started| *started).count();
    assert_eq!(started, 7);
    assert_eq!(store.counted(&descendants(RunId(1))).await.unwrap(), 7);
}

pub async fn a_full_plan_lets_each_run_have_one_child_at_a_time(store: &dyn Store) {
    let limit = (Some(3), 100);
    accepted(store, create(1)).await;
    accepted(store, child(2, 1, 1, limit)).await;
    accepted(store, child(3, 1, 1, limit)).await;
    // The plan is full: only runs without an unfinished child may start one.
    assert_eq!(commit(store, child(4, 1, 1, limit)).await, Err(Refused::TooManyOpen));
    accepted(store, child(4, 2, 2, limit)).await;
    assert_eq!(commit(store, child(5, 2, 2, limit)).await, Err(Refused::TooManyOpen));
    accepted(store, child(5, 3, 2, limit)).await;
    accepted(store, finish(4, 1, None)).await;
    accepted(store, child(6, 2, 2, limit)).await;
    let mut root = create(7);
    root.create.as_mut().unwrap().most_open = Some(3);
    assert_eq!(commit(store, root.clone()).await, Err(Refused::TooManyOpen));
    for run in [6, 5, 3] {
        accepted(store, finish(run, 1, None)).await;
    }
    // There is room for one run of any kind.
    accepted(store, root).await;
    assert_eq!(commit(store, child(8, 1, 1, limit)).await, Err(Refused::TooManyOpen));
}

pub async fn a_scheduled_run_counts_as_open_once_it_is_due(store: &dyn Store) {
    let status = |status: &str| Some(Head { status: status.into(), started: None, ..head(Time(1)) });
    accepted(store, Commit { head: status("scheduled"), ..create(1) }).await;
    let mut second = create(2);
    second.create.as_mut().unwrap().most_open = Some(1);
    accepted(store, second).await;
    assert_eq!(store.open_runs(ORG).await.unwrap(), 1);
    accepted(store, Commit { head: status("queued"), ..next(1, 1) }).await;
    assert_eq!(store.open_runs(ORG).await.unwrap(), 2);
    let listed = store.runs(RunFilter { status: vec!["scheduled".into()], ..RunFilter::all(ORG, 10) }).await.unwrap();
    assert!(listed.is_empty());
}

pub async fn the_count_of_descendants_goes_with_its_root(store: &dyn Store) {
    accepted(store, create(1)).await;
    accepted(store, child(2, 1, 1, (None, 9))).await;
    accepted(store, child(3, 1, 1, (None, 9))).await;
    accepted(store, finish(2, 1, Some(Time(5)))).await;
    while store.purge(Time(5), 10).await.unwrap() > 0 {}
    assert_eq!(store.counted(&descendants(RunId(1))).await.unwrap(), 2);
    accepted(store, finish(3, 1, None)).await;
    accepted(store, finish(1, 1, Some(Time(6)))).await;
    while store.purge(Time(6), 10).await.unwrap() > 0 {}
    assert_eq!(store.counted(&descendants(RunId(1))).await.unwrap(), 0);
    // While a descendant is unfinished the count stays, so that a purged root does not give it a new one.
    accepted(store, create(1)).await;
    accepted(store, child(4, 1, 1, (None, 9))).await;
    accepted(store, finish(1, 1, Some(Time(7)))).await;
    while store.purge(Time(7), 10).await.unwrap() > 0 {}
    assert_eq!(store.counted(&descendants(RunId(1))).await.unwrap(), 1);
}
