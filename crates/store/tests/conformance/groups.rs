//! Cases about concurrency groups.

use crate::sample::*;
use stepwell_store::*;

fn enter(key: &str, limit: u32) -> GroupChange {
    GroupChange::Enter { key: key.into(), limit: Some(limit) }
}

fn queue(key: &str) -> GroupChange {
    GroupChange::Queue { key: key.into() }
}

fn leave(key: &str) -> GroupChange {
    GroupChange::Leave { key: key.into() }
}

pub async fn a_full_group_refuses_the_run_and_leaves_nothing_behind(store: &dyn Store) {
    let entering = |run: i64| Commit { groups: vec![enter("runs", 2)], ..create(run) };
    accepted(store, entering(1)).await;
    accepted(store, entering(2)).await;
    assert_eq!(commit(store, entering(3)).await, Err(Refused::Full));
    assert_eq!(store.load(RunId(3)).await.unwrap(), None);
    accepted(store, Commit { groups: vec![leave("runs")], ..next(1, 1) }).await;
    accepted(store, entering(3)).await;
    assert_eq!(commit(store, entering(4)).await, Err(Refused::Full));
}

pub async fn a_run_refused_by_its_group_leaves_no_rows(store: &dyn Store) {
    accepted(store, Commit { groups: vec![enter("full", 1)], ..create(1) }).await;
    let before = rows(store).await;
    let mut refused = create(2);
    refused.groups = vec![enter("free", 1), queue("line"), enter("full", 1)];
    refused.unique = vec![unique("trigger", "k")];
    refused.steps = vec![step("a", 1, "running")];
    refused.values = vec![value(0, "0")];
    refused.work.put = vec![work("a", ORG, 1, None)];
    refused.timers.put = vec![timer("t", 1)];
    refused.mail = vec![mail(1, "m")];
    refused.outbox = vec![notice("n", 1)];
    assert_eq!(commit(store, refused).await, Err(Refused::Full));
    assert_eq!(rows(store).await, before);
    assert_eq!(store.holder("free").await.unwrap(), None);
    assert!(store.queued(None, 10).await.unwrap().is_empty());
    // The slot it would have taken is still free.
    accepted(store, Commit { groups: vec![enter("free", 1)], ..create(3) }).await;
}

pub async fn an_older_queued_run_goes_first(store: &dyn Store) {
    accepted(store, Commit { groups: vec![enter("p", 1)], ..create(1) }).await;
    accepted(store, Commit { groups: vec![queue("p")], ..create(2) }).await;
    accepted(store, Commit { groups: vec![leave("p")], ..next(1, 1) }).await;
    assert_eq!(commit(store, Commit { groups: vec![enter("p", 1)], ..create(3) }).await, Err(Refused::Full));
    accepted(store, Commit { groups: vec![queue("p")], ..create(3) }).await;
    assert_eq!(commit(store, Commit { groups: vec![enter("p", 1)], ..next(3, 1) }).await, Err(Refused::Full));
    accepted(store, Commit { groups: vec![enter("p", 1)], ..next(2, 1) }).await;
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(2)));
}

pub async fn a_younger_queued_run_does_not_block_an_older_one(store: &dyn Store) {
    accepted(store, Commit { groups: vec![queue("p")], ..create(5) }).await;
    accepted(store, Commit { groups: vec![enter("p", 1)], ..create(4) }).await;
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(4)));
    assert_eq!(store.queued(None, 10).await.unwrap(), [("p".to_string(), RunId(5))]);
}

pub async fn leaving_affects_only_the_run_s_own_slot_or_queue_entry(store: &dyn Store) {
    accepted(store, Commit { groups: vec![enter("p", 1)], ..create(1) }).await;
    accepted(store, Commit { groups: vec![queue("p")], ..create(2) }).await;
    // A run that holds no slot cannot free one.
    accepted(store, Commit { groups: vec![leave("p")], ..create(3) }).await;
    accepted(store, Commit { groups: vec![leave("p")], ..next(2, 1) }).await;
    assert!(store.queued(None, 10).await.unwrap().is_empty());
    assert_eq!(commit(store, Commit { groups: vec![enter("p", 1)], ..next(3, 1) }).await, Err(Refused::Full));
    accepted(store, Commit { groups: vec![leave("p")], ..next(1, 1) }).await;
    assert_eq!(store.holder("p").await.unwrap(), None);
    accepted(store, Commit { groups: vec![leave("p")], ..next(1, 2) }).await;
    accepted(store, Commit { groups: vec![enter("p", 1)], ..next(3, 1) }).await;
    assert_eq!(commit(store, Commit { groups: vec![enter("p", 1)], ..next(1, 3) }).await, Err(Refused::Full));
}

pub async fn a_group_without_a_limit_is_never_full(store: &dyn Store) {
    let unlimited = || vec![GroupChange::Enter { key: "p".into(), limit: None }];
    accepted(store, Commit { groups: vec![enter("p", 1)], ..create(1) }).await;
    accepted(store, Commit { groups: vec![queue("p")], ..create(2) }).await;
    accepted(store, Commit { groups: unlimited(), ..create(3) }).await;
    accepted(store, Commit { groups: vec![leave("p")], ..next(1, 1) }).await;
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(3)));
    // A slot taken without a limit counts like any other.
    assert_eq!(commit(store, Commit { groups: vec![enter("p", 1)], ..next(2, 1) }).await, Err(Refused::Full));
    accepted(store, Commit { groups: vec![enter("p", 2)], ..next(2, 1) }).await;
}

pub async fn a_run_that_enters_a_group_leaves_its_queue(store: &dyn Store) {
    accepted(store, Commit { groups: vec![queue("p")], ..create(1) }).await;
    accepted(store, Commit { groups: vec![queue("p")], ..create(2) }).await;
    assert_eq!(store.queued(None, 10).await.unwrap(), [("p".to_string(), RunId(1))]);
    assert_eq!(store.holder("p").await.unwrap(), None);
    accepted(store, Commit { groups: vec![enter("p", 1)], ..next(1, 1) }).await;
    assert_eq!(store.queued(None, 10).await.unwrap(), [("p".to_string(), RunId(2))]);
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(1)));
    accepted(store, Commit { groups: vec![leave("p"), queue("q")], ..next(1, 2) }).await;
    accepted(store, Commit { groups: vec![queue("p"), enter("p", 1)], ..next(2, 1) }).await;
    assert_eq!(store.queued(None, 10).await.unwrap(), [("q".to_string(), RunId(1))]);
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(2)));
}

pub async fn entering_a_group_twice_takes_one_slot(store: &dyn Store) {
    accepted(store, Commit { groups: vec![enter("p", 1)], ..create(1) }).await;
    accepted(store, Commit { groups: vec![enter("p", 1)], ..next(1, 1) }).await;
    accepted(store, Commit { groups: vec![leave("p")], ..next(1, 2) }).await;
    accepted(store, Commit { groups: vec![enter("p", 1)], ..create(2) }).await;
    accepted(store, Commit { groups: vec![queue("p")], ..next(1, 3) }).await;
    accepted(store, Commit { groups: vec![enter("p", 1)], ..next(2, 1) }).await;
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(2)), "a run that holds a slot keeps it");
    // Going back to the queue gives up the slot.
    accepted(store, Commit { groups: vec![queue("p")], ..next(2, 2) }).await;
    assert_eq!(store.holder("p").await.unwrap(), None);
    accepted(store, Commit { groups: vec![enter("p", 1)], ..next(1, 4) }).await;
    assert_eq!(store.holder("p").await.unwrap(), Some(RunId(1)));
}

pub async fn the_first_of_each_queue_and_the_oldest_holder_are_returned(store: &dyn Store) {
    for run in [6, 4, 5] {
        accepted(store, Commit { groups: vec![queue("b"), enter("h", 9)], ..create(run) }).await;
    }
    accepted(store, Commit { groups: vec![queue("a"), queue("c")], ..create(9) }).await;
    let queued = |limit: u32| async move {
        let heads = store.queued(None, limit).await.unwrap();
        heads.into_iter().map(|(key, run)| format!("{key}{}", run.0)).collect::<Vec<_>>()
    };
    assert_eq!(queued(10).await, ["a9", "b4", "c9"]);
    assert_eq!(queued(2).await.len(), 2);
    assert_eq!(store.first_queued("b").await.unwrap(), Some(RunId(4)));
    assert_eq!(store.first_queued("h").await.unwrap(), None);
    assert_eq!(store.holder("h").await.unwrap(), Some(RunId(4)));
    accepted(store, Commit { groups: vec![leave("h")], ..next(4, 1) }).await;
    assert_eq!(store.holder("h").await.unwrap(), Some(RunId(5)));
    assert_eq!(store.holder("nowhere").await.unwrap(), None);
}
