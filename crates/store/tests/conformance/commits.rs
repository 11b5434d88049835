//! Cases about commits: what is applied, what is refused, and what is read back.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

pub async fn a_loaded_run_contains_what_was_committed(store: &dyn Store) {
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

pub async fn a_commit_on_an_older_version_is_refused_and_changes_nothing(store: &dyn Store) {
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
    assert!(store.claim(claim(NODE, 10)).await.unwrap().is_empty());
}

pub async fn a_refused_commit_does_not_affect_the_rest_of_its_batch(store: &dyn Store) {
    accepted(store, create(1)).await;
    let answers = store.commit(vec![create(2), next(1, 5), create(3), next(1, 1)]).await.unwrap();
    let refused: Vec<bool> = answers.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, true, false, false]);
    for (run, version) in [(1, 2), (2, 1), (3, 1)] {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().version, Version(version));
    }
}

pub async fn a_run_is_created_once(store: &dyn Store) {
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
    assert_eq!(store.claim(claim(NODE, 10)).await.unwrap().len(), 1);
    accepted(store, keyed(3, "y", 5_000)).await;
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

pub async fn the_log_is_read_by_version_and_the_feed_by_position(store: &dyn Store) {
    for commit in [create(1), create(2), next(1, 1), next(2, 1), next(1, 2)] {
        accepted(store, commit).await;
    }
    let versions: Vec<i64> =
        store.tail(RunId(1), Version(1), 10).await.unwrap().iter().map(|log| log.version.0).collect();
    assert_eq!(versions, [2, 3]);
    let fed = store.feed(&Progress::default(), 10).await.unwrap();
    let order: Vec<(i64, i64)> = fed.iter().map(|fed| (fed.run.0, fed.log.version.0)).collect();
    for run in [1, 2] {
        let versions: Vec<i64> = order.iter().filter(|(of, _)| *of == run).map(|(_, version)| *version).collect();
        assert!(versions.is_sorted() && versions.len() == [3, 2][run as usize - 1], "{order:?}");
    }
    let read: Progress = fed[..3].iter().map(|fed| fed.log.position).collect();
    assert_eq!(store.feed(&read, 10).await.unwrap(), fed[3..]);
    assert_eq!(store.feed(&Progress::default(), 3).await.unwrap(), fed[..3]);
}

pub async fn the_feed_of_an_organisation_has_its_rows_only(store: &dyn Store) {
    let other = store.found("other", Time(1)).await.unwrap().unwrap();
    let mut theirs = Commit { auth: Auth { org: other, epoch: 1 }, ..create(2) };
    theirs.create = theirs.create.map(|new| NewRun { org: other, ..new });
    let later = Commit { auth: Auth { org: other, epoch: 1 }, ..next(2, 1) };
    for commit in [create(1), theirs, next(1, 1), later, next(1, 2)] {
        accepted(store, commit).await;
    }
    let all = store.feed(&Progress::default(), 10).await.unwrap();
    for org in [ORG, other] {
        let own: Vec<Fed> = all.iter().filter(|fed| fed.org == org).cloned().collect();
        assert_eq!(store.feed_of(org, &Progress::default(), 10).await.unwrap(), own);
        assert_eq!(store.feed_of(org, &Progress::default(), 1).await.unwrap(), own[..1]);
        let read = Progress::from_iter([own[0].log.position]);
        assert_eq!(store.feed_of(org, &read, 10).await.unwrap(), own[1..]);
    }
    assert!(store.feed_of(OrgId(99), &Progress::default(), 10).await.unwrap().is_empty());
}

pub async fn the_secret_of_a_run_is_found_by_its_public_id(store: &dyn Store) {
    accepted(store, create(1)).await;
    assert_eq!(store.run_secret("run_1").await.unwrap(), Some((RunId(1), [3; 16])));
    assert_eq!(store.run_secret("run_2").await.unwrap(), None);
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

pub async fn a_run_with_more_payloads_than_one_answer_holds_is_loaded(store: &dyn Store) {
    // More than a page of a store that pages, in all and in one of the two runs.
    for run in [1, 2] {
        let mut commit = create(run);
        let payload = |id: u32| format!("\"{}{id}\"", "x".repeat(1 << 20));
        let many = if run == 1 { 40 } else { 3 };
        commit.values = (0..many).map(|id| ValueRow { id: ValueId(id), payload: payload(id) }).collect();
        accepted(store, commit).await;
    }
    let ids = |run: &LoadedRun| {
        let all = run.values.iter().all(|value| value.payload.ends_with(&format!("x{}\"", value.id.0)));
        assert!(all, "each payload belongs to its id");
        let mut ids: Vec<u32> = run.values.iter().map(|value| value.id.0).collect();
        ids.sort_unstable();
        ids
    };
    let loaded = store.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!(ids(&loaded), (0..40).collect::<Vec<_>>());
    let head = store.head(RunId(1)).await.unwrap().unwrap();
    assert_eq!(head, LoadedRun { steps: Vec::new(), values: Vec::new(), ..loaded });
    assert_eq!(store.head(RunId(9)).await.unwrap(), None);
}

pub async fn runs_are_read_with_no_more_payloads_than_fit(store: &dyn Store) {
    let payload = |id: u32| format!("\"{}{id}\"", "x".repeat(1_000));
    for (run, count) in [(1, 3), (2, 40), (3, 2)] {
        let mut commit = create(run);
        commit.values = (0..count).map(|id| ValueRow { id: ValueId(id), payload: payload(id) }).collect();
        accepted(store, commit).await;
    }
    let found = async |runs: &[i64], bytes: u64| {
        let runs = runs.iter().map(|run| RunId(*run)).collect();
        let mut found = store.load_small(runs, bytes).await.unwrap();
        found.sort_by_key(|run| run.row.id);
        for run in &found {
            assert_eq!(*run, store.load(run.row.id).await.unwrap().unwrap());
        }
        found.iter().map(|run| run.row.id.0).collect::<Vec<_>>()
    };
    assert_eq!(found(&[1, 9], 3 * 1_003).await, [1], "a run that fits exactly");
    assert!(found(&[1], 3 * 1_003 - 1).await.is_empty());
    assert_eq!(found(&[1, 3], 5 * 1_003).await, [1, 3]);
    assert!(found(&[2], 20_000).await.is_empty());
    assert_eq!(found(&[1, 2, 3], 1_000_000).await, [1, 2, 3]);
    let sizes = store.sizes(RunId(1)).await.unwrap();
    assert_eq!(sizes, [0, 1, 2].map(|id| (ValueId(id), 1_003)));
    assert!(store.sizes(RunId(9)).await.unwrap().is_empty());
    let whole = store.load(RunId(2)).await.unwrap().unwrap();
    assert_eq!(store.outline(RunId(2)).await.unwrap(), Some(LoadedRun { values: Vec::new(), ..whole }));
    assert_eq!(store.outline(RunId(9)).await.unwrap(), None);
}

pub async fn values_are_returned_by_id(store: &dyn Store) {
    let mut first = create(1);
    first.values = vec![value(0, "\"a\""), value(1, "\"b\"")];
    accepted(store, first).await;
    let found = store.values(RunId(1), &[ValueId(1), ValueId(9), ValueId(0)]).await.unwrap();
    assert_eq!(found, [value(1, "\"b\""), value(0, "\"a\"")]);
}

pub async fn concurrent_commits_lose_nothing(store: &dyn Store) {
    let writer = |run: i64| async move {
        accepted(store, create(run)).await;
        for version in 1..20 {
            accepted(store, next(run, version)).await;
        }
    };
    all((0..64).map(writer).collect()).await;
    for run in 0..64 {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().version, Version(20));
    }
    assert_eq!(store.feed(&Progress::default(), 10_000).await.unwrap().len(), 64 * 20);
}

pub async fn a_run_is_created_only_at_its_first_version_and_with_a_head(store: &dyn Store) {
    assert_eq!(commit(store, Commit { expect: Version(3), ..create(1) }).await, Err(Refused::Conflict));
    assert_eq!(commit(store, Commit { head: None, ..create(1) }).await, Err(Refused::Conflict));
    assert_eq!(commit(store, next(1, 0)).await, Err(Refused::Conflict));
    accepted(store, create(1)).await;
    let mut namesake = create(2);
    namesake.create.as_mut().unwrap().public = "run_1".into();
    assert_eq!(commit(store, namesake).await, Err(Refused::Conflict));
    assert_eq!(store.find_run("run_1").await.unwrap(), Some(RunId(1)));
    assert_eq!(store.load(RunId(2)).await.unwrap(), None);
}

pub async fn immutable_fields_of_a_run_are_stored(store: &dyn Store) {
    let parent = Some(Parent { run: RunId(1), path: "ship/each[3]".into(), attempt: 2, depth: 4, root: RunId(9) });
    let secret: [u8; 16] = std::array::from_fn(|n| n as u8);
    let mut child = create(2);
    let new = child.create.take().unwrap();
    child.create = Some(NewRun { secret, parent: parent.clone(), group: Some("org/ship".into()), ..new });
    accepted(store, create(1)).await;
    accepted(store, child).await;
    accepted(store, next(2, 1)).await;
    let loaded = store.load(RunId(2)).await.unwrap().unwrap();
    assert_eq!((loaded.secret, loaded.group.as_deref()), (secret, Some("org/ship")));
    assert_eq!(loaded.row.parent, parent);
    assert_eq!(store.runs(every_run()).await.unwrap()[0], loaded.row);
    assert_eq!(store.run(RunId(2)).await.unwrap(), Some(loaded.row));
    assert_eq!(store.run(RunId(3)).await.unwrap(), None);
    let plain = store.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!((plain.secret, plain.group, plain.row.parent), ([3; 16], None, None));
}

pub async fn a_commit_without_a_head_keeps_the_head(store: &dyn Store) {
    accepted(store, create(1)).await;
    accepted(store, finish(1, 1, Some(Time(9_000)))).await;
    let before = store.load(RunId(1)).await.unwrap().unwrap();
    let plain = Commit { head: None, state: "{\"n\":2}".into(), ..next(1, 2) };
    let hash = plain.log.hash;
    accepted(store, plain).await;
    let after = store.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!(after.row, before.row);
    assert_eq!((after.version, after.hash, after.state.as_str()), (Version(3), hash, "{\"n\":2}"));
    assert_eq!(store.purgeable(Time(9_000)).await.unwrap(), 1);
}

pub async fn a_head_changes_the_definition_and_keeps_the_first_start(store: &dyn Store) {
    let mut fresh = create(1);
    fresh.head = Some(Head { started: None, ..head(Time(0)) });
    accepted(store, fresh).await;
    assert_eq!(store.load(RunId(1)).await.unwrap().unwrap().row.started, None);
    accepted(store, Commit { head: Some(head(Time(70))), ..next(1, 1) }).await;
    let moved = Head { definition: 5, status: "waiting".into(), ..head(Time(80)) };
    accepted(store, Commit { head: Some(moved), ..next(1, 2) }).await;
    let row = store.load(RunId(1)).await.unwrap().unwrap().row;
    assert_eq!((row.definition, row.status.as_str(), row.started), (5, "waiting", Some(Time(70))));
    accepted(store, finish(1, 3, Some(Time(9_000)))).await;
    // A reopened run is neither finished nor due for removal.
    accepted(store, Commit { head: Some(head(Time(90))), ..next(1, 4) }).await;
    assert_eq!(store.load(RunId(1)).await.unwrap().unwrap().row.finished, None);
    assert_eq!(store.purgeable(Time(i64::MAX)).await.unwrap(), 0);
}

pub async fn since_is_when_an_attempt_was_first_written_unless_it_was_pending(store: &dyn Store) {
    let at = |path: &str, status: &str, since: i64| StepRow { since: Time(since), ..step(path, 1, status) };
    accepted(store, Commit { steps: vec![at("a", "running", 10), at("b", "pending", 10)], ..create(1) }).await;
    accepted(store, Commit { steps: vec![at("a", "waiting", 20), at("b", "running", 20)], ..next(1, 1) }).await;
    accepted(store, Commit { steps: vec![at("a", "success", 30), at("b", "success", 30)], ..next(1, 2) }).await;
    let expected = [at("a", "success", 10), at("b", "success", 20)];
    assert_eq!(store.attempts(RunId(1)).await.unwrap(), expected);
    assert_eq!(store.load(RunId(1)).await.unwrap().unwrap().steps, expected);
}

pub async fn all_attempts_are_returned_in_order(store: &dyn Store) {
    let mut first = create(1);
    first.steps = vec![step("b", 1, "failed"), step("a", 2, "running"), step("a", 1, "failed")];
    accepted(store, first).await;
    let mut second = next(1, 1);
    second.steps = vec![step("b", 10, "running"), step("b", 9, "failed"), step("a", 2, "success")];
    accepted(store, second).await;
    let mut other = create(2);
    other.steps = vec![step("a", 3, "running")];
    accepted(store, other).await;
    let expected = [
        step("a", 1, "failed"),
        step("a", 2, "success"),
        step("b", 1, "failed"),
        step("b", 9, "failed"),
        step("b", 10, "running"),
    ];
    assert_eq!(store.attempts(RunId(1)).await.unwrap(), expected);
    assert!(store.attempts(RunId(3)).await.unwrap().is_empty());
}

pub async fn a_unique_key_returns_the_run_that_holds_it(store: &dyn Store) {
    accepted(store, Commit { unique: vec![unique("trigger", "k"), unique("tick", "k")], ..create(1) }).await;
    accepted(store, Commit { unique: vec![unique("trigger", "l")], ..create(2) }).await;
    // The first key is free: it must not be kept when the second is refused.
    let both = Commit { unique: vec![unique("trigger", "m"), unique("tick", "k")], ..create(3) };
    assert_eq!(commit(store, both).await, Err(Refused::Duplicate { run: RunId(1), digest: "d".into() }));
    let mut found = Vec::new();
    for (scope, key) in [("trigger", "k"), ("tick", "k"), ("trigger", "l"), ("tick", "l"), ("trigger", "m")] {
        found.push(store.keyed(scope, key, Time(0)).await.unwrap().map(|run| run.0));
    }
    assert_eq!(found, [Some(1), Some(1), Some(2), None, None]);
}

pub async fn an_expired_unique_key_returns_its_next_run(store: &dyn Store) {
    let expiring = |run: i64, at: i64| {
        let expires = Some(Time(at + 10));
        let mut commit = Commit { unique: vec![UniqueKey { expires, ..unique("trigger", "k") }], ..create(run) };
        commit.log.at = Time(at);
        commit
    };
    accepted(store, expiring(1, 100)).await;
    accepted(store, expiring(2, 110)).await;
    assert_eq!(store.keyed("trigger", "k", Time(0)).await.unwrap(), Some(RunId(2)));
    // Purging the first run must not remove the second run's key.
    accepted(store, finish(1, 1, Some(Time(0)))).await;
    while store.purge(Time(0), 10).await.unwrap() > 0 {}
    assert_eq!(store.keyed("trigger", "k", Time(0)).await.unwrap(), Some(RunId(2)));
}

pub async fn an_expired_unique_key_is_not_found(store: &dyn Store) {
    let key = UniqueKey { expires: Some(Time(5_000)), ..unique("trigger", "k") };
    accepted(store, Commit { unique: vec![key], ..create(1) }).await;
    for (now, found) in [(4_999, Some(RunId(1))), (5_000, None), (9_000, None)] {
        assert_eq!(store.keyed("trigger", "k", Time(now)).await.unwrap(), found, "at {now}");
    }
    // A commit that is refused for another reason does not report the expired key.
    let mut late = Commit { unique: vec![unique("trigger", "k")], ..create(1) };
    late.log.at = Time(6_000);
    assert_eq!(commit(store, late).await, Err(Refused::Conflict));
}

pub async fn a_duplicate_row_is_an_error_and_does_not_affect_other_commits(store: &dyn Store) {
    accepted(store, Commit { values: vec![value(0, "0")], ..create(1_000) }).await;
    let before = rows(store).await;
    let broken = |run: i64| {
        let mut commit = create(run);
        commit.values = vec![value(0, "0"), value(0, "1")];
        commit.unique = vec![unique("trigger", "broken")];
        commit.groups = vec![GroupChange::Enter { key: "p".into(), limit: None }];
        commit.work.put = vec![work("a", ORG, 1, None)];
        commit.mail = vec![mail(1_000, "broken")];
        commit
    };
    let tried = |run: i64| async move {
        let batch = vec![if run % 10 == 5 { broken(run) } else { create(run) }];
        assert_eq!(store.commit(batch).await.is_err(), run % 10 == 5, "run {run}");
    };
    all((0..40).map(tried).collect()).await;
    for run in 0..40 {
        assert_eq!(store.load(RunId(run)).await.unwrap().is_some(), run % 10 != 5, "run {run}");
    }
    assert!(store.commit(vec![Commit { values: vec![value(0, "1")], ..next(1_000, 1) }]).await.is_err());
    assert_eq!(store.load(RunId(1_000)).await.unwrap().unwrap().version, Version(1));
    assert_eq!(store.keyed("trigger", "broken", Time(0)).await.unwrap(), None);
    assert_eq!(store.holder("p").await.unwrap(), None);
    for ((table, before), (_, after)) in before.into_iter().zip(rows(store).await) {
        let made = if ["workflow_runs", "workflow_events"].contains(&table.as_str()) { 36 } else { 0 };
        assert_eq!(after, before + made, "{table}");
    }
}
