//! The cases. Each says in its name what a store must do.

use crate::sample::*;
use std::collections::BTreeSet;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

pub async fn a_commit_is_there_when_it_is_loaded_again(store: &dyn Store) {
    let mut first = create(1);
    first.values = vec![value(0, "{\"value\":1}")];
    first.steps = vec![step("a", 1, "running")];
    let hash = first.log.hash;
    accepted(store, first).await;
    let loaded = store.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.hash), (Version(1), hash));
    assert_eq!((loaded.row.public.as_str(), loaded.row.by.as_str()), ("run_1", "ann"));
    assert_eq!(loaded.steps, vec![step("a", 1, "running")]);
    assert_eq!(loaded.values, vec![value(0, "{\"value\":1}")]);
    assert_eq!(store.find_run("run_1").await.unwrap(), Some(RunId(1)));
    assert_eq!(store.find_run("run_2").await.unwrap(), None);
    assert_eq!(store.load(RunId(2)).await.unwrap(), None);
}

pub async fn a_decision_on_an_older_version_is_refused_and_changes_nothing(store: &dyn Store) {
    accepted(store, create(1)).await;
    accepted(store, next(1, 1)).await;
    let before = store.load(RunId(1)).await.unwrap();
    let mut late = next(1, 1);
    late.steps = vec![step("a", 1, "running")];
    late.values = vec![value(0, "0")];
    late.work.put = vec![work("a", ORG, 1, None)];
    assert_eq!(commit(store, late).await, Err(Refused::Conflict));
    assert_eq!(commit(store, next(1, 7)).await, Err(Refused::Conflict));
    assert_eq!(commit(store, next(2, 1)).await, Err(Refused::Conflict));
    assert_eq!(store.load(RunId(1)).await.unwrap(), before);
    assert!(store.claim(NODE, 10).await.unwrap().is_empty());
}

pub async fn a_refused_commit_of_a_batch_does_not_touch_the_others(store: &dyn Store) {
    accepted(store, create(1)).await;
    let answers = store.commit(vec![create(2), next(1, 5), create(3), next(1, 1)]).await.unwrap();
    let refused: Vec<bool> = answers.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, true, false, false]);
    for (run, version) in [(1, 2), (2, 1), (3, 1)] {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().version, Version(version));
    }
}

pub async fn a_run_is_made_once(store: &dyn Store) {
    accepted(store, create(1)).await;
    assert_eq!(commit(store, create(1)).await, Err(Refused::Conflict));
}

pub async fn a_unique_key_belongs_to_the_first_run_until_it_expires(store: &dyn Store) {
    let keyed = |run: i64, digest: &str, at: i64| {
        let mut commit = create(run);
        commit.log.at = Time(at);
        let (scope, key, digest) = ("trigger".into(), "k".into(), digest.into());
        commit.unique = vec![UniqueKey { scope, key, digest, expires: Some(Time(5_000)) }];
        commit.work.put = vec![work("a", ORG, 1, None)];
        commit
    };
    accepted(store, keyed(1, "x", 1_000)).await;
    let duplicate = Err(Refused::Duplicate { run: RunId(1), digest: "x".into() });
    assert_eq!(commit(store, keyed(2, "y", 2_000)).await, duplicate);
    assert_eq!(store.load(RunId(2)).await.unwrap(), None);
    assert_eq!(store.claim(NODE, 10).await.unwrap().len(), 1);
    accepted(store, keyed(3, "y", 5_000)).await;
}

pub async fn a_counter_over_its_limit_refuses_and_leaves_nothing_behind(store: &dyn Store) {
    let counted = |commit: Commit, delta: i64| {
        let counters = vec![CounterDelta { key: "runs".into(), delta, limit: Some(2).filter(|_| delta > 0) }];
        Commit { counters, ..commit }
    };
    accepted(store, counted(create(1), 1)).await;
    accepted(store, counted(create(2), 1)).await;
    assert_eq!(commit(store, counted(create(3), 1)).await, Err(Refused::Full));
    assert_eq!(store.load(RunId(3)).await.unwrap(), None);
    accepted(store, counted(next(1, 1), -1)).await;
    accepted(store, counted(create(3), 1)).await;
    assert_eq!(commit(store, counted(create(4), 1)).await, Err(Refused::Full));
}

pub async fn a_change_of_grants_refuses_decisions_made_before_it(store: &dyn Store) {
    accepted(store, create(1)).await;
    assert_eq!(store.epoch(ORG).await.unwrap(), Some(1));
    store.grants_changed(ORG).await.unwrap();
    assert_eq!(commit(store, next(1, 1)).await, Err(Refused::AuthChanged));
    let newer = Commit { auth: Auth { org: ORG, epoch: 2 }, ..next(1, 1) };
    accepted(store, newer).await;
    let stranger = Commit { auth: Auth { org: OrgId(99), epoch: 1 }, ..next(1, 2) };
    assert_eq!(commit(store, stranger).await, Err(Refused::AuthChanged));
}

pub async fn no_two_claims_cover_one_attempt(store: &dyn Store) {
    for run in 0..50 {
        let mut commit = create(run);
        commit.work.put = vec![work("a", ORG, run, None), work("b", ORG, run, None)];
        accepted(store, commit).await;
    }
    let mut seen = BTreeSet::new();
    let (mut empty, mut node) = (0, 0);
    while empty < 2 {
        node += 1;
        let (one, two) = tokio::join!(store.claim(NodeId(node), 7), store.claim(NodeId(node + 1_000), 7));
        for claimed in [one.unwrap(), two.unwrap()] {
            empty += usize::from(claimed.is_empty());
            for work in claimed {
                assert!(seen.insert((work.run, work.key)), "claimed twice");
            }
        }
    }
    assert_eq!(seen.len(), 100);
}

pub async fn claims_take_turns_between_organisations(store: &dyn Store) {
    let mut flood = create(1);
    flood.work.put = (0..20).map(|n| work(&format!("a{n}"), ORG, n, None)).collect();
    accepted(store, flood).await;
    let mut quiet = create(2);
    quiet.work.put = vec![work("b", OrgId(2), 1_000, None)];
    accepted(store, quiet).await;
    let claimed = store.claim(NODE, 2).await.unwrap();
    let orgs: BTreeSet<OrgId> = claimed.iter().map(|work| work.org).collect();
    assert_eq!(orgs.len(), 2, "{claimed:?}");
    assert!(claimed.iter().any(|work| work.key.path == "a0"), "the longest waiting goes first: {claimed:?}");
}

pub async fn work_is_born_claimed_and_orphaned_when_its_node_is_gone(store: &dyn Store) {
    assert!(store.beat(NODE).await.unwrap());
    let mut commit = create(1);
    commit.work.put = vec![work("a", ORG, 1, Some(NODE)), work("b", ORG, 1, Some(NodeId(8)))];
    accepted(store, commit).await;
    assert!(store.claim(NODE, 10).await.unwrap().is_empty());
    let paths = |list: Vec<Claimed>| list.into_iter().map(|work| work.key.path).collect::<Vec<_>>();
    assert_eq!(paths(store.held(NODE).await.unwrap()), ["a"]);
    assert_eq!(paths(store.orphans(10).await.unwrap()), ["b"]);
    store.leave(NODE).await.unwrap();
    assert_eq!(paths(store.orphans(10).await.unwrap()), ["a", "b"]);
    let mut done = next(1, 1);
    done.work.remove = vec![WorkKey { path: "b".into(), attempt: 1 }];
    accepted(store, done).await;
    assert_eq!(paths(store.orphans(10).await.unwrap()), ["a"]);
}

pub async fn timers_come_due_in_order_and_are_cleared(store: &dyn Store) {
    let timer = |key: &str, due: i64| TimerRow { key: key.into(), due: Time(due) };
    let mut first = create(1);
    first.timers.put = vec![timer("late", 300), timer("soon", 100)];
    accepted(store, first).await;
    let mut second = create(2);
    second.timers.put = vec![timer("middle", 200)];
    accepted(store, second).await;
    let keys = |list: Vec<DueTimer>| list.into_iter().map(|timer| timer.key).collect::<Vec<_>>();
    assert_eq!(keys(store.due(Time(250), 10).await.unwrap()), ["soon", "middle"]);
    assert_eq!(keys(store.due(Time(1_000), 1).await.unwrap()), ["soon"]);
    let mut moved = next(1, 1);
    moved.timers.put = vec![timer("soon", 900)];
    moved.timers.remove = vec!["late".into()];
    accepted(store, moved).await;
    assert_eq!(keys(store.due(Time(1_000), 10).await.unwrap()), ["middle", "soon"]);
}

pub async fn mail_is_delivered_once_and_gone_when_it_was_read(store: &dyn Store) {
    accepted(store, create(1)).await;
    let mail = |key: &str| Mail { to: RunId(1), key: key.into(), body: "{}".into() };
    let mut child = create(2);
    child.mail = vec![mail("child"), mail("child"), mail("other")];
    accepted(store, child).await;
    let waiting = store.mail(RunId(1)).await.unwrap();
    assert_eq!(waiting.iter().map(|mail| mail.key.as_str()).collect::<Vec<_>>(), ["child", "other"]);
    assert_eq!(store.mailed(10).await.unwrap(), [RunId(1)]);
    let mut reader = next(1, 1);
    reader.read = waiting.iter().map(|mail| mail.id).collect();
    accepted(store, reader).await;
    assert!(store.mail(RunId(1)).await.unwrap().is_empty());
    assert!(store.mailed(10).await.unwrap().is_empty());
}

pub async fn the_log_is_read_by_version_and_the_feed_by_position(store: &dyn Store) {
    for commit in [create(1), create(2), next(1, 1), next(2, 1), next(1, 2)] {
        accepted(store, commit).await;
    }
    let versions: Vec<i64> =
        store.tail(RunId(1), Version(1), 10).await.unwrap().iter().map(|log| log.version.0).collect();
    assert_eq!(versions, [2, 3]);
    let fed = store.feed(Position(0), 10).await.unwrap();
    let order: Vec<(i64, i64)> = fed.iter().map(|fed| (fed.run.0, fed.log.version.0)).collect();
    assert_eq!(order, [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]);
    let rest = store.feed(fed[2].log.position, 10).await.unwrap();
    assert_eq!(rest, fed[3..]);
}

pub async fn an_attempt_is_rewritten_and_the_newest_is_loaded(store: &dyn Store) {
    let mut first = create(1);
    first.steps = vec![step("a", 1, "running"), step("b", 0, "skipped")];
    accepted(store, first).await;
    let mut second = next(1, 1);
    second.steps = vec![step("a", 1, "failed"), step("a", 2, "running")];
    accepted(store, second).await;
    let mut steps = store.load(RunId(1)).await.unwrap().unwrap().steps;
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(steps, [step("a", 2, "running"), step("b", 0, "skipped")]);
}

pub async fn values_are_found_by_number(store: &dyn Store) {
    let mut first = create(1);
    first.values = vec![value(0, "\"a\""), value(1, "\"b\"")];
    accepted(store, first).await;
    let found = store.values(RunId(1), &[ValueId(1), ValueId(9), ValueId(0)]).await.unwrap();
    assert_eq!(found, [value(1, "\"b\""), value(0, "\"a\"")]);
}

pub async fn a_changed_definition_is_a_new_version_and_an_equal_one_is_not(store: &dyn Store) {
    let define = |id: &str, source: &str| NewDefinition {
        workflow: id.into(),
        org: ORG,
        name: "hello".into(),
        source: source.into(),
        by: "ann".into(),
        at: Time(1),
    };
    let first = store.define(define("wf_1", "{}")).await.unwrap();
    assert_eq!((first.version, first.workflow.as_str()), (1, "wf_1"));
    assert_eq!(store.define(define("wf_2", "{}")).await.unwrap(), first);
    let second = store.define(define("wf_3", "{\"a\":1}")).await.unwrap();
    assert_eq!((second.version, second.workflow.as_str()), (2, "wf_1"));
    assert_eq!(store.find_definition(ORG, "hello").await.unwrap(), Some(second.clone()));
    assert_eq!(store.find_definition(OrgId(2), "hello").await.unwrap(), None);
    assert_eq!(store.definition(first.id).await.unwrap(), Some(first));
    assert_eq!(store.definitions(ORG).await.unwrap(), [second]);
}

pub async fn runs_are_listed_newest_first_by_page_and_filter(store: &dyn Store) {
    for run in 1..=5 {
        let mut commit = create(run);
        if run % 2 == 0 {
            commit.head.status = "completed".into();
        }
        accepted(store, commit).await;
    }
    let all = RunFilter { org: ORG, status: None, workflow: None, since: None, tests: false, before: None, limit: 2 };
    let ids = |list: Vec<RunRow>| list.into_iter().map(|run| run.id.0).collect::<Vec<_>>();
    assert_eq!(ids(store.runs(all.clone()).await.unwrap()), [5, 4]);
    assert_eq!(ids(store.runs(RunFilter { before: Some(RunId(4)), ..all.clone() }).await.unwrap()), [3, 2]);
    let done = RunFilter { status: Some("completed".into()), limit: 9, ..all.clone() };
    assert_eq!(ids(store.runs(done).await.unwrap()), [4, 2]);
    assert_eq!(ids(store.runs(RunFilter { since: Some(Time(4)), limit: 9, ..all.clone() }).await.unwrap()), [5, 4]);
    assert!(store.runs(RunFilter { org: OrgId(2), ..all.clone() }).await.unwrap().is_empty());
    assert!(store.runs(RunFilter { tests: true, ..all }).await.unwrap().is_empty());
}

pub async fn purge_goes_in_pieces_and_spares_what_is_kept(store: &dyn Store) {
    for (run, purge) in [(1, Some(Time(10))), (2, Some(Time(99))), (3, None)] {
        let mut commit = create(run);
        commit.head.purge = purge;
        commit.steps = (0..4).map(|n| step(&format!("s{n}"), 1, "success")).collect();
        commit.values = (0..4).map(|n| value(n, "0")).collect();
        accepted(store, commit).await;
    }
    let mut pieces = 0;
    while store.purge(Time(50), 3).await.unwrap() > 0 {
        pieces += 1;
        assert!(pieces < 50, "it ends");
    }
    assert!(pieces > 1, "more rows than fit in one piece");
    assert_eq!(store.load(RunId(1)).await.unwrap(), None);
    assert!(store.tail(RunId(1), Version(0), 10).await.unwrap().is_empty());
    assert!(store.values(RunId(1), &[ValueId(0)]).await.unwrap().is_empty());
    for run in [2, 3] {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().steps.len(), 4);
    }
}

pub async fn many_writers_at_once_lose_nothing(store: &dyn Store) {
    let writer = |run: i64| async move {
        accepted(store, create(run)).await;
        for version in 1..20 {
            accepted(store, next(run, version)).await;
        }
    };
    let all: Vec<_> = (0..64).map(writer).collect();
    futures_join(all).await;
    for run in 0..64 {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().version, Version(20));
    }
    assert_eq!(store.feed(Position(0), 10_000).await.unwrap().len(), 64 * 20);
}

/// Waits for all of them, polled side by side.
async fn futures_join<F: Future<Output = ()>>(all: Vec<F>) {
    let mut all: Vec<_> = all.into_iter().map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(move |context| {
        for slot in &mut all {
            if let Some(future) = slot
                && future.as_mut().poll(context).is_ready()
            {
                *slot = None;
            }
        }
        if all.iter().all(Option::is_none) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
