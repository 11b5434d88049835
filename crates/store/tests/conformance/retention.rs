//! Cases about retention, row counts and integrity checks.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

pub async fn purge_works_in_pieces_and_keeps_runs_under_retention(store: &dyn Store) {
    for (run, purge) in [(1, Some(Time(10))), (2, Some(Time(99))), (3, None)] {
        let mut commit = create(run);
        commit.head = Some(Head { purge, finished: purge, ..head(Time(1)) });
        commit.steps = (0..4).map(|n| step(&format!("s{n}"), 1, "success")).collect();
        commit.values = (0..4).map(|n| value(n, "0")).collect();
        accepted(store, commit).await;
    }
    let mut pieces = 0;
    while store.purge(Time(50), 3).await.unwrap() > 0 {
        pieces += 1;
        assert!(pieces < 50, "the purge must end");
    }
    assert!(pieces > 1, "more rows than fit in one piece");
    assert_eq!(store.load(RunId(1)).await.unwrap(), None);
    assert!(store.tail(RunId(1), Version(0), 10).await.unwrap().is_empty());
    assert!(store.values(RunId(1), &[ValueId(0)]).await.unwrap().is_empty());
    for run in [2, 3] {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().steps.len(), 4);
    }
}

pub async fn purge_removes_all_rows_of_the_run(store: &dyn Store) {
    let empty = rows(store).await;
    let mut first = create(1);
    first.steps = vec![step("a", 1, "failed"), step("a", 2, "success")];
    first.values = vec![value(0, "0")];
    first.unique = vec![unique("trigger", "k"), unique("tick", "k")];
    first.mail = vec![mail(1, "m")];
    first.outbox = vec![notice("n", 1)];
    accepted(store, first).await;
    accepted(store, finish(1, 1, Some(Time(10)))).await;
    assert_eq!(store.purge(Time(9), 100).await.unwrap(), 0);
    assert_eq!(store.purge(Time(10), 0).await.unwrap(), 0);
    // Two attempts, a value, two log rows, a message, a notice, two keys and the run itself.
    assert_eq!(store.purge(Time(10), 100).await.unwrap(), 10);
    assert_eq!(rows(store).await, empty);
    assert_eq!(store.find_run("run_1").await.unwrap(), None);
    assert_eq!(store.keyed("trigger", "k", Time(0)).await.unwrap(), None);
    assert!(store.feed(&Progress::default(), 10).await.unwrap().is_empty());
    assert!(notice_keys(store, 1, 10).await.is_empty());
    assert!(store.mailed(None, 10).await.unwrap().is_empty());
}

pub async fn an_interrupted_purge_continues(store: &dyn Store) {
    for (run, limit) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)] {
        let mut first = create(run);
        first.values = vec![value(0, "0")];
        first.unique = vec![unique("trigger", "k")];
        accepted(store, first).await;
        accepted(store, finish(run, 1, Some(Time(10)))).await;
        let mut gone = 0;
        loop {
            let piece = store.purge(Time(10), limit).await.unwrap();
            assert!(piece <= u64::from(limit));
            gone += piece;
            if piece == 0 {
                break;
            }
        }
        assert_eq!(gone, 5, "a value, a key, two log rows and the run, {limit} at a time");
        assert_eq!(store.load(RunId(run)).await.unwrap(), None);
    }
}

pub async fn the_backlog_counts_what_waits(store: &dyn Store) {
    assert_eq!(store.backlog(Time(9_000)).await.unwrap(), Backlog::default());
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 700, None), work("b", ORG, 300, None), work("claimed", ORG, 1, Some(NODE))];
    // On time, overdue, not due.
    first.timers.put = vec![timer("late", 7_999), timer("wake", 8_500), timer("later", 9_500)];
    accepted(store, first).await;
    let mut second = create(2);
    second.work.put = vec![work("c", OrgId(2), 500, None)];
    accepted(store, second).await;
    for (run, purge) in [(3, Some(Time(9_000))), (4, Some(Time(9_001))), (5, None)] {
        accepted(store, create(run)).await;
        accepted(store, finish(run, 1, purge)).await;
    }
    let expected = Backlog {
        ready: vec![(ORG, 2), (OrgId(2), 1)],
        oldest_ready: Some(Time(300)),
        unfinished: 2,
        overdue_timers: 1,
        purgeable: 1,
    };
    assert_eq!(store.backlog(Time(9_000)).await.unwrap(), expected);
}

pub async fn purgeable_runs_are_counted_before_a_purge(store: &dyn Store) {
    for (run, purge) in [(1, Some(Time(10))), (2, Some(Time(20))), (3, None)] {
        accepted(store, create(run)).await;
        accepted(store, finish(run, 1, purge)).await;
    }
    accepted(store, create(4)).await;
    let mut counts = Vec::new();
    for before in [9, 10, 19, 20, i64::MAX] {
        counts.push(store.purgeable(Time(before)).await.unwrap());
    }
    assert_eq!(counts, [0, 1, 1, 2, 2]);
    while store.purge(Time(10), 100).await.unwrap() > 0 {}
    assert_eq!(store.purgeable(Time(i64::MAX)).await.unwrap(), 1);
}

pub async fn only_a_finished_run_can_expire(store: &dyn Store) {
    for run in [1, 2, 3] {
        accepted(store, create(run)).await;
    }
    accepted(store, finish(2, 1, Some(Time(9_000)))).await;
    accepted(store, finish(3, 1, None)).await;
    assert!(!store.expire(RunId(1), Time(50)).await.unwrap());
    assert!(!store.expire(RunId(9), Time(50)).await.unwrap());
    assert_eq!(store.purgeable(Time(8_999)).await.unwrap(), 0);
    assert!(store.expire(RunId(2), Time(50)).await.unwrap());
    assert!(store.expire(RunId(3), Time(51)).await.unwrap());
    assert_eq!(store.purgeable(Time(50)).await.unwrap(), 1);
    while store.purge(Time(50), 100).await.unwrap() > 0 {}
    assert_eq!(store.load(RunId(2)).await.unwrap(), None);
    assert_eq!(store.load(RunId(3)).await.unwrap().unwrap().version, Version(2));
    while store.purge(Time(51), 100).await.unwrap() > 0 {}
    let left: Vec<RunId> = store.runs(every_run()).await.unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(left, [RunId(1)]);
}

pub async fn positions_are_never_reused(store: &dyn Store) {
    let mut given = std::collections::BTreeSet::new();
    for run in 1..=3 {
        for commit in [create(run), finish(run, 1, Some(Time(10)))] {
            let position = self::commit(store, commit).await.unwrap();
            assert!(given.insert(position), "{position:?} after {given:?}");
        }
        while store.purge(Time(10), 2).await.unwrap() > 0 {}
        assert!(store.feed(&Progress::default(), 10).await.unwrap().is_empty());
    }
    assert!(commit(store, next(1, 1)).await.is_err());
    assert!(given.insert(commit(store, create(4)).await.unwrap()));
}

pub async fn rows_are_counted_by_table(store: &dyn Store) {
    let mut first = create(1);
    first.steps = vec![step("a", 1, "failed"), step("a", 2, "running"), step("b", 1, "running")];
    first.values = vec![value(0, "0"), value(1, "1")];
    first.work.put = vec![work("a", ORG, 1, None), work("b", ORG, 1, Some(NODE))];
    first.timers.put = vec![timer("a", 1)];
    first.mail = vec![mail(1, "a"), mail(2, "a"), mail(2, "a")];
    first.outbox = vec![notice("a", 1)];
    first.unique = vec![unique("a", "a")];
    accepted(store, first).await;
    accepted(store, next(1, 1)).await;
    let counted = rows(store).await;
    let count = |table: &str| counted.iter().find(|(name, _)| name == table).map(|(_, rows)| *rows);
    for (table, expected) in [
        ("workflow_definitions", 0),
        ("workflow_runs", 1),
        ("workflow_step_runs", 3),
        ("workflow_events", 2),
        ("step_values", 2),
        ("work", 2),
        ("timers", 1),
        ("mail", 2),
        ("outbox", 1),
        ("unique_keys", 1),
    ] {
        assert_eq!(count(table), Some(expected), "{table}");
    }
}

pub async fn the_integrity_check_passes_after_every_kind_of_write(store: &dyn Store) {
    for run in 1..=9 {
        let mut first = create(run);
        first.steps = vec![step("a", 1, "running")];
        first.work.put = vec![work("a", ORG, 1, None), work("b", ORG, 1, Some(NODE))];
        first.timers.put = vec![timer("a", run), timer("b", run)];
        first.mail = vec![mail(run + 1, "a")];
        first.outbox = vec![notice("a", run)];
        first.unique = vec![UniqueKey { expires: Some(Time(0)), ..unique("a", "same") }];
        accepted(store, first).await;
        store.claim(claim(NodeId(run), 1)).await.unwrap();
        let mut second = finish(run, 1, Some(Time(run)));
        second.work.remove = vec![WorkKey { path: "b".into(), attempt: 1 }];
        second.timers = Diff { put: vec![timer("a", 99)], remove: vec!["b".into()] };
        second.sent = vec!["a".into()];
        accepted(store, second).await;
        assert!(commit(store, next(run, 1)).await.is_err());
        store.expire(RunId(run), Time(run + 1)).await.unwrap();
    }
    store.purge(Time(5), 17).await.unwrap();
    assert_eq!(store.integrity().await.unwrap(), [""; 0]);
}
