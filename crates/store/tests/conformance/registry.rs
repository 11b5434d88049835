//! Cases about records, the audit trail, organisations and counters.

use crate::sample::*;
use std::sync::atomic::{AtomicU32, Ordering};
use stepwell_core::time::Time;
use stepwell_store::*;

fn record(kind: &str, id: &str, key: &str) -> Record {
    let body = format!("{{\"id\":\"{id}\"}}");
    Record { kind: kind.into(), id: id.into(), org: ORG, key: key.into(), due: None, body, version: 0 }
}

pub fn entry(org: OrgId, by: &str, action: &str, target: &str) -> NewAudit {
    let (by, action, target, detail) = (by.into(), action.into(), target.into(), "{}".into());
    NewAudit { org, at: Time(7), by, action, target, detail }
}

async fn change(store: &dyn Store, records: Vec<RecordChange>) -> Result<(), Refused> {
    store.change(Change { records, ..Change::default() }).await.unwrap()
}

async fn created(store: &dyn Store, record: Record) {
    change(store, vec![RecordChange::Create(record)]).await.unwrap();
}

fn of_kind(kind: &str) -> RecordFilter {
    RecordFilter { kind: kind.into(), org: None, prefix: String::new(), after: None, limit: 100 }
}

async fn keys(store: &dyn Store, filter: RecordFilter) -> Vec<String> {
    store.records(filter).await.unwrap().into_iter().map(|record| record.key).collect()
}

fn trail(org: OrgId) -> AuditFilter {
    AuditFilter { org, by: None, action: None, target: None, before: None, limit: 100 }
}

async fn targets(store: &dyn Store, filter: AuditFilter) -> Vec<String> {
    store.audit(filter).await.unwrap().into_iter().map(|row| row.row.target).collect()
}

pub async fn a_record_is_found_by_its_id_and_by_its_key(store: &dyn Store) {
    let new = Record { due: Some(Time(3)), version: 99, ..record("user", "u1", "ann") };
    created(store, new.clone()).await;
    // The store assigns versions itself.
    let kept = Some(Record { version: 1, ..new });
    assert_eq!(store.record("user", "u1").await.unwrap(), kept);
    assert_eq!(store.record_with_key("user", "ann").await.unwrap(), kept);
    assert_eq!(store.record("user", "ann").await.unwrap(), None);
    assert_eq!(store.record_with_key("user", "u1").await.unwrap(), None);
    assert_eq!(store.record("key", "u1").await.unwrap(), None);
    assert_eq!(store.record_with_key("use", "ann").await.unwrap(), None);
}

pub async fn ids_and_keys_are_unique_within_their_kind(store: &dyn Store) {
    created(store, record("user", "u1", "ann")).await;
    for taken in [record("user", "u1", "bob"), record("user", "u2", "ann")] {
        assert_eq!(change(store, vec![RecordChange::Create(taken)]).await, Err(Refused::Taken));
    }
    // This includes other organisations: a lookup by key does not name the organisation.
    let elsewhere = Record { org: OrgId(2), ..record("user", "u2", "ann") };
    assert_eq!(change(store, vec![RecordChange::Create(elsewhere)]).await, Err(Refused::Taken));
    created(store, record("role", "u1", "ann")).await;
    created(store, record("user", "u2", "bob")).await;
    let as_ann = Record { version: 1, ..record("user", "u2", "ann") };
    assert_eq!(change(store, vec![RecordChange::Replace(as_ann)]).await, Err(Refused::Taken));
    assert_eq!(keys(store, of_kind("user")).await, ["ann", "bob"]);
}

pub async fn a_record_is_replaced_only_at_the_version_it_was_read_at(store: &dyn Store) {
    created(store, record("user", "u1", "ann")).await;
    let second = Record { version: 1, due: Some(Time(9)), body: "2".into(), ..record("user", "u1", "anna") };
    change(store, vec![RecordChange::Replace(second.clone())]).await.unwrap();
    let kept = Record { version: 2, ..second.clone() };
    assert_eq!(store.record("user", "u1").await.unwrap(), Some(kept.clone()));
    assert_eq!(store.record_with_key("user", "ann").await.unwrap(), None);
    for version in [0, 1, 3] {
        let late = RecordChange::Replace(Record { version, body: "late".into(), ..second.clone() });
        assert_eq!(change(store, vec![late]).await, Err(Refused::Conflict), "version {version}");
    }
    let none = RecordChange::Replace(record("user", "nobody", "nobody"));
    assert_eq!(change(store, vec![none]).await, Err(Refused::Conflict));
    assert_eq!(store.record("user", "u1").await.unwrap(), Some(kept));
}

pub async fn a_record_stays_with_its_organisation(store: &dyn Store) {
    created(store, record("user", "u1", "ann")).await;
    let moved = Record { org: OrgId(2), version: 1, ..record("user", "u1", "ann") };
    change(store, vec![RecordChange::Replace(moved)]).await.unwrap();
    assert_eq!(store.record("user", "u1").await.unwrap().unwrap().org, ORG);
    assert_eq!(keys(store, RecordFilter { org: Some(OrgId(2)), ..of_kind("user") }).await, [""; 0]);
}

pub async fn a_removed_record_frees_its_id_and_key(store: &dyn Store) {
    created(store, record("user", "u1", "ann")).await;
    created(store, record("role", "u1", "ann")).await;
    let remove = || RecordChange::Remove { kind: "user".into(), id: "u1".into() };
    change(store, vec![remove()]).await.unwrap();
    change(store, vec![remove()]).await.unwrap();
    assert_eq!(store.record("user", "u1").await.unwrap(), None);
    assert_eq!(keys(store, of_kind("role")).await, ["ann"]);
    created(store, record("user", "u1", "ann")).await;
    assert_eq!(store.record("user", "u1").await.unwrap().unwrap().version, 1);
}

pub async fn each_part_of_a_change_sees_the_earlier_parts(store: &dyn Store) {
    created(store, record("link", "l1", "secret")).await;
    let parts = vec![
        RecordChange::Replace(Record { version: 1, ..record("link", "l1", "l1") }),
        RecordChange::Remove { kind: "link".into(), id: "l1".into() },
        RecordChange::Create(record("link", "l2", "secret")),
    ];
    change(store, parts).await.unwrap();
    assert_eq!(keys(store, of_kind("link")).await, ["secret"]);
    // Replaced twice in one change: the second replacement must expect the version that the first one made.
    let at = |version| RecordChange::Replace(Record { version, ..record("link", "l2", "secret") });
    assert_eq!(change(store, vec![at(1), at(1)]).await, Err(Refused::Conflict));
    assert_eq!(store.record("link", "l2").await.unwrap().unwrap().version, 1);
    change(store, vec![at(1), at(2)]).await.unwrap();
    assert_eq!(store.record("link", "l2").await.unwrap().unwrap().version, 3);
}

pub async fn a_refused_change_leaves_nothing_behind(store: &dyn Store) {
    created(store, record("user", "u1", "ann")).await;
    let (before, epoch) = (rows(store).await, store.epoch(ORG).await.unwrap());
    let stale = RecordChange::Replace(Record { version: 5, ..record("user", "u1", "ann") });
    let taken = RecordChange::Create(record("user", "u9", "ann"));
    for (last, why) in [(stale, Refused::Conflict), (taken, Refused::Taken)] {
        let records = vec![
            RecordChange::Create(record("user", "u2", "bob")),
            RecordChange::Replace(Record { version: 1, body: "new".into(), ..record("user", "u1", "anna") }),
            RecordChange::Remove { kind: "user".into(), id: "u1".into() },
            RecordChange::Create(record("user", "u1", "ann")),
            last,
        ];
        let audit = vec![entry(ORG, "ann", "user.create", "bob")];
        let refused = store.change(Change { records, audit, grants_of: Some(ORG), decided: None }).await.unwrap();
        assert_eq!(refused, Err(why));
        assert_eq!((rows(store).await, store.epoch(ORG).await.unwrap()), (before.clone(), epoch));
        let left = Record { version: 1, ..record("user", "u1", "ann") };
        assert_eq!(store.record("user", "u1").await.unwrap(), Some(left));
        assert!(store.audit(trail(ORG)).await.unwrap().is_empty());
    }
}

pub async fn a_change_of_rights_refuses_decisions_made_before_it(store: &dyn Store) {
    accepted(store, create(1)).await;
    store.change(Change { grants_of: Some(ORG), ..Change::default() }).await.unwrap().unwrap();
    assert_eq!(store.epoch(ORG).await.unwrap(), Some(2));
    assert_eq!(commit(store, next(1, 1)).await, Err(Refused::AuthChanged));
    store.change(Change::default()).await.unwrap().unwrap();
    accepted(store, Commit { auth: Auth { org: ORG, epoch: 2 }, ..next(1, 1) }).await;
    // For an organisation that does not exist nothing changes.
    store.change(Change { grants_of: Some(OrgId(77)), ..Change::default() }).await.unwrap().unwrap();
    assert_eq!(store.epoch(OrgId(77)).await.unwrap(), None);
}

pub async fn records_are_listed_by_key_page_prefix_and_organisation(store: &dyn Store) {
    for (n, key) in ["b/2", "a/1", "b/10", "b/1", "B/1", "b", "b%", "ü/1", "ü/2"].into_iter().enumerate() {
        let org = if key == "b/1" { OrgId(2) } else { ORG };
        created(store, Record { org, ..record("user", &format!("u{n}"), key) }).await;
    }
    created(store, record("role", "r", "b/0")).await;
    assert_eq!(keys(store, of_kind("user")).await, ["B/1", "a/1", "b", "b%", "b/1", "b/10", "b/2", "ü/1", "ü/2"]);
    let of = |prefix: &str| RecordFilter { prefix: prefix.into(), ..of_kind("user") };
    assert_eq!(keys(store, of("b/")).await, ["b/1", "b/10", "b/2"]);
    assert_eq!(keys(store, of("b%")).await, ["b%"]);
    assert_eq!(keys(store, of("ü/")).await, ["ü/1", "ü/2"]);
    assert_eq!(keys(store, of("c")).await, [""; 0]);
    assert_eq!(keys(store, RecordFilter { org: Some(ORG), ..of("b/") }).await, ["b/10", "b/2"]);
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = keys(store, RecordFilter { after: after.clone(), limit: 2, ..of("b") }).await;
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        pages.push(page.join(" "));
    }
    assert_eq!(pages, ["b b%", "b/1 b/10", "b/2"]);
    assert_eq!(keys(store, RecordFilter { limit: 0, ..of("") }).await, [""; 0]);
    // A page that starts before the prefix, or after all keys with it.
    assert_eq!(keys(store, RecordFilter { after: Some("a".into()), ..of("b/") }).await, ["b/1", "b/10", "b/2"]);
    assert_eq!(keys(store, RecordFilter { after: Some("b0".into()), ..of("b/") }).await, [""; 0]);
}

pub async fn due_records_are_returned_soonest_first(store: &dyn Store) {
    for (id, due) in [("c", Some(30)), ("a", Some(10)), ("n", None), ("b", Some(20)), ("z", Some(-5))] {
        created(store, Record { due: due.map(Time), ..record("schedule", id, id) }).await;
    }
    created(store, Record { due: Some(Time(1)), ..record("session", "s", "s") }).await;
    let due = |until: i64, limit: u32| async move {
        let due = store.due_records("schedule", Due::by(Time(until)), limit).await.unwrap();
        due.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(due(20, 10).await, ["z", "a", "b"]);
    assert_eq!(due(19, 10).await, ["z", "a"]);
    assert_eq!(due(i64::MAX, 3).await, ["z", "a", "b"]);
    let put_off = Record { version: 1, due: Some(Time(40)), ..record("schedule", "a", "a") };
    let never = Record { version: 1, due: None, ..record("schedule", "z", "z") };
    change(store, vec![RecordChange::Replace(put_off), RecordChange::Replace(never)]).await.unwrap();
    assert_eq!(due(i64::MAX, 10).await, ["b", "c", "a"]);
}

pub async fn only_one_of_many_concurrent_changes_of_a_record_wins(store: &dyn Store) {
    created(store, record("user", "u1", "ann")).await;
    let won = &AtomicU32::new(0);
    let one = |n: i64| async move {
        let audit = vec![entry(ORG, "ann", "user.change", &n.to_string())];
        let replaced = Record { version: 1, body: n.to_string(), ..record("user", "u1", "ann") };
        let records = vec![RecordChange::Replace(replaced)];
        if store.change(Change { records, audit, grants_of: Some(ORG), decided: None }).await.unwrap().is_ok() {
            won.fetch_add(1, Ordering::SeqCst);
        }
    };
    all((0..50).map(one).collect()).await;
    assert_eq!(won.load(Ordering::SeqCst), 1);
    let kept = store.record("user", "u1").await.unwrap().unwrap();
    assert_eq!((kept.version, targets(store, trail(ORG)).await), (2, vec![kept.body]));
    assert_eq!(store.epoch(ORG).await.unwrap(), Some(2));
}

pub async fn the_audit_trail_is_read_newest_first_by_page_and_filter(store: &dyn Store) {
    let rows = [
        entry(ORG, "ann", "run.start", "r1"),
        entry(OrgId(2), "ann", "run.start", "other"),
        entry(ORG, "bob", "run.start", "r2"),
        entry(ORG, "ann", "run.cancel", "r1"),
        entry(ORG, "ann", "run.start", "r3"),
    ];
    for row in rows {
        store.change(Change { audit: vec![row], ..Change::default() }).await.unwrap().unwrap();
    }
    let all = trail(ORG);
    assert_eq!(targets(store, all.clone()).await, ["r3", "r1", "r2", "r1"]);
    assert_eq!(targets(store, trail(OrgId(2))).await, ["other"]);
    assert_eq!(targets(store, AuditFilter { by: Some("ann".into()), ..all.clone() }).await, ["r3", "r1", "r1"]);
    let starts = AuditFilter { action: Some("run.start".into()), ..all.clone() };
    assert_eq!(targets(store, starts.clone()).await, ["r3", "r2", "r1"]);
    let both = AuditFilter { target: Some("r1".into()), by: Some("ann".into()), ..starts.clone() };
    assert_eq!(targets(store, both).await, ["r1"]);
    assert_eq!(targets(store, AuditFilter { target: Some("other".into()), ..all.clone() }).await, [""; 0]);
    let first = store.audit(AuditFilter { limit: 2, ..starts.clone() }).await.unwrap();
    let before = first.last().map(|row| row.id);
    assert_eq!(targets(store, AuditFilter { before, ..starts }).await, ["r1"]);
    assert_eq!(first[1].row, entry(ORG, "bob", "run.start", "r2"));
}

pub async fn each_organisation_has_its_own_audit_hash_chain(store: &dyn Store) {
    accepted(store, Commit { audit: vec![entry(ORG, "a", "x", "1"), entry(ORG, "a", "x", "2")], ..create(1) }).await;
    let mixed = vec![entry(OrgId(2), "b", "y", "1"), entry(ORG, "a", "x", "3"), entry(OrgId(2), "b", "y", "2")];
    store.change(Change { audit: mixed, ..Change::default() }).await.unwrap().unwrap();
    assert!(store.label(RunId(1), Vec::new(), vec![entry(ORG, "a", "x", "4")]).await.unwrap());
    accepted(store, finish(1, 1, Some(Time(10)))).await;
    assert!(store.erase(RunId(1), Time(8), vec![entry(ORG, "a", "x", "5")]).await.unwrap());
    while store.purge(Time(10), 100).await.unwrap() > 0 {}
    for (org, expected) in [(ORG, vec!["5", "4", "3", "2", "1"]), (OrgId(2), vec!["2", "1"])] {
        let mut rows = store.audit(trail(org)).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.row.target.as_str()).collect::<Vec<_>>(), expected);
        rows.reverse();
        assert!(rows.is_sorted_by(|one, two| one.id < two.id));
        // One chain per writer.
        let mut previous = std::collections::BTreeMap::new();
        for row in rows {
            let previous = previous.entry(row.writer).or_insert([0; 32]);
            assert_eq!(row.hash, audit_hash(previous, &row.row));
            *previous = row.hash;
        }
    }
}

pub async fn a_commit_is_in_the_audit_trail_only_if_it_was_applied(store: &dyn Store) {
    let audited = |target: &str, commit: Commit| Commit { audit: vec![entry(ORG, "ann", "run", target)], ..commit };
    accepted(store, audited("made", Commit { unique: vec![unique("a", "a")], ..create(1) })).await;
    let full = vec![GroupChange::Enter { key: "p".into(), limit: Some(0) }];
    let batch = vec![
        audited("conflict", next(1, 5)),
        audited("made twice", create(1)),
        audited("duplicate", Commit { unique: vec![unique("a", "a")], ..create(2) }),
        audited("full", Commit { groups: full, ..create(3) }),
        audited("rights", Commit { auth: Auth { org: ORG, epoch: 9 }, ..next(1, 1) }),
        audited("changed", next(1, 1)),
    ];
    let answers = store.commit(batch).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(targets(store, trail(ORG)).await, ["changed", "made"]);
    assert!(!store.label(RunId(9), Vec::new(), vec![entry(ORG, "ann", "label", "9")]).await.unwrap());
    assert!(!store.erase(RunId(1), Time(1), vec![entry(ORG, "ann", "erase", "1")]).await.unwrap());
    assert_eq!(targets(store, trail(ORG)).await, ["changed", "made"]);
}

pub async fn organisation_names_are_unique(store: &dyn Store) {
    assert_eq!(store.organisations().await.unwrap(), [(ORG, "default".to_string())]);
    let second = store.found("second", Time(1)).await.unwrap().unwrap();
    assert_eq!(store.found("second", Time(2)).await.unwrap(), None);
    assert_eq!(store.found("default", Time(2)).await.unwrap(), None);
    let third = store.found("third", Time(3)).await.unwrap().unwrap();
    let all = [(ORG, "default".to_string()), (second, "second".to_string()), (third, "third".to_string())];
    assert_eq!(store.organisations().await.unwrap(), all);
    assert_eq!((store.epoch(third).await.unwrap(), store.epoch(OrgId(third.0 + 1)).await.unwrap()), (Some(1), None));
    store.change(Change { grants_of: Some(third), ..Change::default() }).await.unwrap().unwrap();
    assert_eq!((store.epoch(third).await.unwrap(), store.epoch(second).await.unwrap()), (Some(2), Some(1)));
    let mut theirs = Commit { auth: Auth { org: third, epoch: 2 }, ..create(1) };
    theirs.create = theirs.create.map(|new| NewRun { org: third, ..new });
    accepted(store, theirs).await;
    assert_eq!(store.runs(RunFilter::all(third, 9)).await.unwrap().len(), 1);
}

pub async fn only_applied_commits_add_to_counters(store: &dyn Store) {
    let counting = |delta: i64, commit: Commit| Commit { counted: vec![("steps".into(), delta)], ..commit };
    assert_eq!(store.counted("steps").await.unwrap(), 0);
    accepted(store, counting(3, Commit { unique: vec![unique("a", "a")], ..create(1) })).await;
    let full = vec![GroupChange::Enter { key: "p".into(), limit: Some(0) }];
    let batch = vec![
        counting(100, next(1, 5)),
        counting(100, create(1)),
        counting(4, next(1, 1)),
        counting(100, Commit { unique: vec![unique("a", "a")], ..create(2) }),
        counting(100, Commit { groups: full, ..create(3) }),
        counting(100, Commit { auth: Auth { org: ORG, epoch: 9 }, ..create(4) }),
        counting(5, create(5)),
    ];
    let answers = store.commit(batch).await.unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2);
    assert_eq!(store.counted("steps").await.unwrap(), 12);
    let counted = vec![("steps".into(), 1), ("other".into(), 7), ("steps".into(), 2)];
    accepted(store, Commit { counted, ..create(6) }).await;
    assert_eq!((store.counted("steps").await.unwrap(), store.counted("other").await.unwrap()), (15, 7));
}

pub async fn concurrent_counting_loses_nothing(store: &dyn Store) {
    let one = |run: i64| async move {
        let counted = vec![("steps".to_string(), run), (format!("of {}", run % 3), 1)];
        // Every fourth commit fails, and commits that share its transaction must still be counted.
        let broken = run % 4 == 0;
        let values = vec![value(0, "0"), value(u32::from(!broken), "1")];
        let answer = store.commit(vec![Commit { counted, values, ..create(run) }]).await;
        assert_eq!(answer.is_err(), broken, "run {run}");
    };
    all((1..=100).map(one).collect()).await;
    let counted: Vec<i64> = (1..=100).filter(|run| run % 4 != 0).collect();
    assert_eq!(store.counted("steps").await.unwrap(), counted.iter().sum::<i64>());
    for rest in 0..3 {
        let expected = counted.iter().filter(|run| *run % 3 == rest).count() as i64;
        assert_eq!(store.counted(&format!("of {rest}")).await.unwrap(), expected);
    }
}

pub async fn unfinished_runs_are_counted_per_organisation(store: &dyn Store) {
    assert_eq!(store.open_runs(ORG).await.unwrap(), 0);
    for run in 1..=4 {
        accepted(store, create(run)).await;
    }
    let mut test = create(5);
    test.create = test.create.map(|new| NewRun { test: true, ..new });
    accepted(store, test).await;
    let other = store.found("other", Time(1)).await.unwrap().unwrap();
    let mut theirs = Commit { auth: Auth { org: other, epoch: 1 }, ..create(6) };
    theirs.create = theirs.create.map(|new| NewRun { org: other, ..new });
    accepted(store, theirs).await;
    assert_eq!((store.open_runs(ORG).await.unwrap(), store.open_runs(other).await.unwrap()), (4, 1));
    accepted(store, finish(1, 1, None)).await;
    accepted(store, finish(2, 1, Some(Time(10)))).await;
    assert_eq!(store.open_runs(ORG).await.unwrap(), 2);
    // Reopened.
    accepted(store, next(1, 2)).await;
    assert_eq!(store.open_runs(ORG).await.unwrap(), 3);
    while store.purge(Time(10), 100).await.unwrap() > 0 {}
    assert_eq!((store.open_runs(ORG).await.unwrap(), store.open_runs(OrgId(99)).await.unwrap()), (3, 0));
}
