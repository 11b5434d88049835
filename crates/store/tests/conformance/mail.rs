//! Cases about timers, mail and outbox notices.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_store::*;

pub async fn timers_come_due_in_order_and_are_cleared(store: &dyn Store) {
    let mut first = create(1);
    first.timers.put = vec![timer("late", 300), timer("soon", 100)];
    accepted(store, first).await;
    let mut second = create(2);
    second.timers.put = vec![timer("middle", 200)];
    accepted(store, second).await;
    let keys = |list: Vec<DueTimer>| list.into_iter().map(|timer| timer.key).collect::<Vec<_>>();
    assert_eq!(keys(store.due(Time(250), Share::ALL, 10).await.unwrap()), ["soon", "middle"]);
    assert_eq!(keys(store.due(Time(1_000), Share::ALL, 1).await.unwrap()), ["soon"]);
    let mut moved = next(1, 1);
    moved.timers.put = vec![timer("soon", 900)];
    moved.timers.remove = vec!["late".into()];
    accepted(store, moved).await;
    assert_eq!(keys(store.due(Time(1_000), Share::ALL, 10).await.unwrap()), ["middle", "soon"]);
}

pub async fn mail_is_delivered_once_and_removed_when_read(store: &dyn Store) {
    accepted(store, create(1)).await;
    let mut child = create(2);
    child.mail = vec![mail(1, "child"), mail(1, "child"), mail(1, "other")];
    accepted(store, child).await;
    let waiting = store.mail(RunId(1)).await.unwrap();
    assert_eq!(waiting.iter().map(|mail| mail.key.as_str()).collect::<Vec<_>>(), ["child", "other"]);
    assert_eq!(store.mailed(None, 10).await.unwrap(), [RunId(1)]);
    let mut reader = next(1, 1);
    reader.read = waiting.iter().map(|mail| mail.id).collect();
    accepted(store, reader).await;
    assert!(store.mail(RunId(1)).await.unwrap().is_empty());
    assert!(store.mailed(None, 10).await.unwrap().is_empty());
}

pub async fn mail_is_consumed_only_by_its_own_run(store: &dyn Store) {
    accepted(store, Commit { mail: vec![mail(1, "a"), mail(2, "b")], ..create(1) }).await;
    accepted(store, create(2)).await;
    let ids: Vec<i64> = store.mail(RunId(1)).await.unwrap().iter().map(|mail| mail.id).collect();
    accepted(store, Commit { read: ids.clone(), ..next(2, 1) }).await;
    assert_eq!(mail_keys(store, 1).await, ["a"]);
    accepted(store, Commit { read: ids, ..next(1, 1) }).await;
    assert_eq!(store.mailed(None, 10).await.unwrap(), [RunId(2)]);
}

pub async fn mail_ids_are_not_reused(store: &dyn Store) {
    accepted(store, Commit { mail: vec![mail(1, "a")], ..create(1) }).await;
    let stale = Stale { mail: vec![store.mail(RunId(1)).await.unwrap()[0].id], ..Stale::default() };
    store.forget(stale.clone()).await.unwrap();
    accepted(store, Commit { mail: vec![mail(1, "b")], ..next(1, 1) }).await;
    // A late repetition must not remove the new message.
    store.forget(stale).await.unwrap();
    assert_eq!(mail_keys(store, 1).await, ["b"]);
}

pub async fn a_message_repeated_by_the_commit_that_reads_it_is_not_kept(store: &dyn Store) {
    accepted(store, Commit { mail: vec![mail(1, "a")], ..create(1) }).await;
    let read = store.mail(RunId(1)).await.unwrap().iter().map(|mail| mail.id).collect();
    accepted(store, Commit { mail: vec![mail(1, "a"), mail(1, "b")], read, ..next(1, 1) }).await;
    assert_eq!(mail_keys(store, 1).await, ["b"]);
}

pub async fn due_notices_are_returned_in_write_order(store: &dyn Store) {
    accepted(store, Commit { outbox: vec![notice("late", 300), notice("z", 100)], ..create(1) }).await;
    accepted(store, Commit { outbox: vec![notice("other", 50)], ..create(2) }).await;
    accepted(store, Commit { outbox: vec![notice("a", 100), notice("z", 1)], ..next(1, 1) }).await;
    assert_eq!(notice_keys(store, 49, 10).await, [""; 0], "a key is written once");
    assert_eq!(notice_keys(store, 50, 10).await, ["other"]);
    assert_eq!(notice_keys(store, 100, 10).await, ["z", "other", "a"]);
    assert_eq!(notice_keys(store, 300, 10).await, ["late", "z", "other", "a"]);
    assert_eq!(notice_keys(store, 300, 2).await, ["late", "z"]);
    let first = store.outbox(Time(100), 0, 1).await.unwrap().remove(0);
    assert_eq!(first, StoredNotice { id: first.id, run: RunId(1), key: "z".into(), body: "body of z".into() });
}

pub async fn a_sent_notice_is_removed_by_the_commit_that_reports_it(store: &dyn Store) {
    accepted(store, Commit { outbox: vec![notice("a", 1), notice("b", 1)], ..create(1) }).await;
    accepted(store, Commit { outbox: vec![notice("a", 1)], ..create(2) }).await;
    let sent = || vec!["a".to_string(), "never written".to_string()];
    assert_eq!(commit(store, Commit { sent: sent(), ..next(1, 7) }).await, Err(Refused::Conflict));
    assert_eq!(notice_keys(store, 1, 10).await, ["a", "b", "a"]);
    accepted(store, Commit { sent: sent(), ..next(1, 1) }).await;
    let left: Vec<_> = store.outbox(Time(1), 0, 10).await.unwrap().into_iter().map(|it| (it.run.0, it.key)).collect();
    assert_eq!(left, [(1, "b".to_string()), (2, "a".to_string())]);
    accepted(store, Commit { outbox: vec![notice("a", 2)], ..next(1, 2) }).await;
    assert_eq!(notice_keys(store, 2, 10).await, ["b", "a", "a"]);
}

pub async fn stale_rows_are_removed_and_the_rest_stays(store: &dyn Store) {
    for run in [1, 2] {
        let mut commit = create(run);
        commit.mail = vec![mail(run, "a"), mail(run, "b")];
        commit.outbox = vec![notice("a", 1), notice("b", 1)];
        commit.timers.put = vec![timer("a", run), timer("b", 10 + run)];
        accepted(store, commit).await;
    }
    store.forget(Stale::default()).await.unwrap();
    let stale = Stale {
        mail: vec![store.mail(RunId(1)).await.unwrap()[0].id, 999],
        notices: vec![(RunId(1), "b".into()), (RunId(9), "a".into())],
        timers: vec![(RunId(2), "a".into()), (RunId(2), "none".into())],
    };
    store.forget(stale).await.unwrap();
    assert_eq!(mail_keys(store, 1).await, ["b"]);
    assert_eq!(mail_keys(store, 2).await, ["a", "b"]);
    assert_eq!(notice_keys(store, 1, 10).await, ["a", "a", "b"]);
    assert_eq!(keys_due(store).await, ["a", "b", "b"]);
    assert_eq!(store.load(RunId(1)).await.unwrap().unwrap().version, Version(1));
}
