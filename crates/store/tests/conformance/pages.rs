//! What recovery reads page by page: no row is out of reach, however many come before it.

use crate::sample::{ORG, accepted, create, mail, notice, work};
use stepwell_core::time::Time;
use stepwell_store::*;

const RUNS: i64 = 5;

pub async fn all_mailboxes_are_found_by_page(store: &dyn Store) {
    for run in 1..=RUNS {
        accepted(store, Commit { mail: vec![mail(run, "a"), mail(run, "b")], ..create(run) }).await;
    }
    let mut found: Vec<RunId> = Vec::new();
    loop {
        let page = store.mailed(found.last().copied(), 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, (1..=RUNS).map(RunId).collect::<Vec<_>>());
}

pub async fn all_due_notices_are_found_by_page_and_by_run(store: &dyn Store) {
    for run in 1..=RUNS {
        let outbox = vec![notice("start:b", 1), notice("later", 9), notice("start:a", 1), notice("stop", 1)];
        accepted(store, Commit { outbox, ..create(run) }).await;
    }
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = store.outbox(Time(1), after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.id;
        found.extend(page.into_iter().map(|notice| (notice.run.0, notice.key)));
    }
    let of_run = |run| ["start:b", "start:a", "stop"].map(|key| (run, key.to_string()));
    assert_eq!(found, (1..=RUNS).flat_map(of_run).collect::<Vec<_>>());
    let keys = |limit: u32| async move {
        let found = store.notices(RunId(3), "start:", limit).await.unwrap();
        found.into_iter().map(|notice| notice.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(9).await, ["start:a", "start:b"]);
    assert_eq!(keys(1).await, ["start:a"]);
}

pub async fn all_queues_are_found_by_page(store: &dyn Store) {
    for run in 1..=RUNS {
        let queue = |key: String| GroupChange::Queue { key };
        let groups = vec![queue(format!("g{run}")), queue("all".into())];
        accepted(store, Commit { groups, ..create(run) }).await;
    }
    let mut found: Vec<(String, RunId)> = Vec::new();
    loop {
        let page = store.queued(found.last().map(|(key, _)| key.as_str()), 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    let mut expected = vec![("all".to_string(), RunId(1))];
    expected.extend((1..=RUNS).map(|run| (format!("g{run}"), RunId(run))));
    assert_eq!(found, expected);
}

pub async fn all_orphans_are_found_by_page(store: &dyn Store) {
    for run in 1..=RUNS {
        let mut commit = create(run);
        // Nodes that never joined.
        commit.work.put = vec![work("b", ORG, 1, Some(NodeId(90 - run))), work("a", ORG, 1, Some(NodeId(80)))];
        accepted(store, commit).await;
    }
    let mut found: Vec<(RunId, WorkKey)> = Vec::new();
    loop {
        let page = store.orphans(found.last().cloned(), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        found.extend(page.into_iter().map(|work| (work.run, work.key)));
    }
    let of_run = |run| ["a", "b"].map(|path| (RunId(run), WorkKey { path: path.into(), attempt: 1 }));
    assert_eq!(found, (1..=RUNS).flat_map(of_run).collect::<Vec<_>>());
}
