//! Cases about searching runs (labels, filters, gates), erasing payloads, and the life cycle of workflows.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

fn labelled(run: i64, labels: &[&str]) -> Commit {
    let mut commit = create(run);
    commit.create = commit.create.map(|new| NewRun { labels: strings(labels), ..new });
    commit
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| text.to_string()).collect()
}

async fn ids(store: &dyn Store, filter: RunFilter) -> Vec<i64> {
    store.runs(filter).await.unwrap().into_iter().map(|run| run.id.0).collect()
}

async fn with(store: &dyn Store, labels: &[&str]) -> Vec<i64> {
    ids(store, RunFilter { labels: strings(labels), ..every_run() }).await
}

pub async fn runs_are_found_by_all_of_their_labels(store: &dyn Store) {
    accepted(store, labelled(1, &["env=prod", "team=a"])).await;
    accepted(store, labelled(2, &["env=prod", "team=b"])).await;
    accepted(store, labelled(3, &["env=test"])).await;
    accepted(store, create(4)).await;
    assert_eq!(with(store, &["env=prod"]).await, [2, 1]);
    assert_eq!(with(store, &["team=a", "env=prod"]).await, [1]);
    assert_eq!(with(store, &["env=prod", "env=test"]).await, [0; 0]);
    assert_eq!(with(store, &["env"]).await, [0; 0]);
    assert_eq!(with(store, &["env=pro"]).await, [0; 0]);
    assert_eq!(store.run(RunId(1)).await.unwrap().unwrap().labels, ["env=prod", "team=a"]);
    assert_eq!(store.load(RunId(4)).await.unwrap().unwrap().row.labels, [""; 0]);
    let page = RunFilter { labels: strings(&["env=prod"]), before: Some(RunId(2)), limit: 1, ..every_run() };
    assert_eq!(ids(store, page).await, [1]);
}

pub async fn new_labels_replace_the_old_ones(store: &dyn Store) {
    accepted(store, labelled(1, &["a=1", "b=2"])).await;
    assert!(store.label(RunId(1), strings(&["b=2", "c=3"]), Vec::new()).await.unwrap());
    assert_eq!((with(store, &["a=1"]).await, with(store, &["c=3", "b=2"]).await), (vec![], vec![1]));
    assert_eq!(store.run(RunId(1)).await.unwrap().unwrap().labels, ["b=2", "c=3"]);
    // Labels are not part of the run's state.
    accepted(store, next(1, 1)).await;
    assert_eq!(store.run(RunId(1)).await.unwrap().unwrap().labels, ["b=2", "c=3"]);
    assert!(store.label(RunId(1), Vec::new(), Vec::new()).await.unwrap());
    assert_eq!((with(store, &["b=2"]).await, with(store, &[]).await), (vec![], vec![1]));
    assert!(!store.label(RunId(2), strings(&["a=1"]), Vec::new()).await.unwrap());
    accepted(store, create(2)).await;
    assert_eq!(with(store, &["a=1"]).await, [0; 0]);
}

pub async fn labels_are_removed_with_their_run(store: &dyn Store) {
    accepted(store, labelled(1, &["a=1", "b=2", "c=3"])).await;
    accepted(store, finish(1, 1, Some(Time(10)))).await;
    while store.purge(Time(10), 2).await.unwrap() > 0 {}
    // If an id is ever reused, the new run must not have the old labels.
    accepted(store, create(1)).await;
    assert_eq!((with(store, &["a=1"]).await, with(store, &["c=3"]).await), (vec![], vec![]));
}

pub async fn a_refused_run_leaves_no_labels(store: &dyn Store) {
    accepted(store, Commit { unique: vec![unique("t", "k")], ..create(1) }).await;
    let refused = Commit { unique: vec![unique("t", "k")], ..labelled(2, &["a=1"]) };
    assert!(commit(store, refused).await.is_err());
    assert!(commit(store, labelled(1, &["a=1"])).await.is_err());
    accepted(store, create(2)).await;
    assert_eq!(with(store, &["a=1"]).await, [0; 0]);
}

pub async fn runs_are_found_by_substring(store: &dyn Store) {
    for (run, by, labels) in
        [(1, "ann", &["env=prod"][..]), (2, "bob", &["env=test"]), (13, "joann", &[]), (4, "x%y_z", &["q=100%"])]
    {
        let mut commit = labelled(run, labels);
        commit.create = commit.create.map(|new| NewRun { by: by.into(), ..new });
        accepted(store, commit).await;
    }
    let of = |text: &str| RunFilter { text: Some(text.into()), ..every_run() };
    assert_eq!(ids(store, of("ann")).await, [13, 1]);
    assert_eq!(ids(store, of("n_1")).await, [13, 1]);
    assert_eq!(ids(store, of("v=te")).await, [2]);
    assert_eq!(ids(store, of("%")).await, [4]);
    assert_eq!(ids(store, of("x_y")).await, [0; 0]);
    assert_eq!(ids(store, of("ANN")).await, [0; 0]);
    assert_eq!(ids(store, of("")).await, [13, 4, 2, 1]);
    assert_eq!(ids(store, of("' OR 1=1 --")).await, [0; 0]);
}

pub async fn runs_are_filtered_by_any_of_several_statuses_by_creator_and_by_time(store: &dyn Store) {
    for (run, status) in (1..).zip(["queued", "running", "paused", "completed", "failed", "cancelled"]) {
        let ended = ["completed", "failed", "cancelled"].contains(&status).then_some(Time(50));
        let head = Head { status: status.into(), finished: ended, ..head(Time(1)) };
        let mut commit = Commit { head: Some(head), ..create(run) };
        let by = if run % 2 == 0 { "even" } else { "odd" };
        commit.create = commit.create.map(|new| NewRun { by: by.into(), ..new });
        accepted(store, commit).await;
    }
    let status = |list: &[&str]| RunFilter { status: strings(list), ..every_run() };
    assert_eq!(ids(store, status(&["queued", "running", "paused"])).await, [3, 2, 1]);
    assert_eq!(ids(store, status(&["paused", "failed"])).await, [5, 3]);
    assert_eq!(ids(store, status(&["completed"])).await, [4]);
    assert_eq!(ids(store, status(&["nothing"])).await, [0; 0]);
    assert_eq!(ids(store, status(&[])).await, [6, 5, 4, 3, 2, 1]);
    let by = |name: &str| RunFilter { by: Some(name.into()), ..every_run() };
    assert_eq!(ids(store, by("even")).await, [6, 4, 2]);
    assert_eq!(ids(store, by("eve")).await, [0; 0]);
    let span = RunFilter { since: Some(Time(2)), until: Some(Time(5)), ..every_run() };
    assert_eq!(ids(store, span.clone()).await, [4, 3, 2], "its end does not belong to a span");
    let all = RunFilter { status: strings(&["running", "completed"]), by: Some("even".into()), limit: 1, ..span };
    assert_eq!(ids(store, all.clone()).await, [4]);
    assert_eq!(ids(store, RunFilter { before: Some(RunId(4)), ..all }).await, [2]);
}

fn gate(path: &str, since: i64) -> Gate {
    Gate { path: path.into(), since: Time(since) }
}

async fn gates(store: &dyn Store, after: Option<(i64, &str)>, limit: u32) -> Vec<String> {
    let after = after.map(|(run, path)| (RunId(run), path.to_string()));
    let open = store.gates(ORG, after, limit).await.unwrap();
    open.into_iter().map(|gate| format!("{} {} {}", gate.public, gate.path, gate.since.0)).collect()
}

pub async fn open_gates_are_listed_until_they_are_answered(store: &dyn Store) {
    let put = |gates: Vec<Gate>| Diff { put: gates, remove: Vec::new() };
    accepted(store, Commit { gates: put(vec![gate("b", 2), gate("a", 1)]), ..create(2) }).await;
    accepted(store, Commit { gates: put(vec![gate("c", 9)]), ..create(1) }).await;
    assert_eq!(gates(store, None, 10).await, ["run_1 c 9", "run_2 a 1", "run_2 b 2"]);
    assert_eq!(gates(store, None, 2).await, ["run_1 c 9", "run_2 a 1"]);
    assert_eq!(gates(store, Some((2, "a")), 2).await, ["run_2 b 2"]);
    assert_eq!(gates(store, Some((1, "d")), 1).await, ["run_2 a 1"]);
    assert_eq!(gates(store, Some((2, "b")), 5).await, [""; 0]);
    assert!(store.gates(OrgId(2), None, 10).await.unwrap().is_empty());
    // Removed and added in one commit: the gate is open.
    let again = Diff { put: vec![gate("a", 5)], remove: strings(&["a", "b", "never was"]) };
    accepted(store, Commit { gates: again, ..next(2, 1) }).await;
    assert_eq!(gates(store, None, 10).await, ["run_1 c 9", "run_2 a 5"]);
    assert!(commit(store, Commit { gates: put(vec![gate("x", 1)]), ..next(2, 1) }).await.is_err());
    // A gate of another run with the same path stays.
    accepted(store, Commit { gates: Diff { put: vec![], remove: strings(&["c", "a"]) }, ..next(2, 2) }).await;
    assert_eq!(gates(store, None, 10).await, ["run_1 c 9"]);
    accepted(store, finish(1, 1, Some(Time(10)))).await;
    while store.purge(Time(10), 1).await.unwrap() > 0 {}
    assert_eq!(gates(store, None, 10).await, [""; 0]);
}

pub async fn only_a_finished_run_s_payloads_are_erased_and_its_log_stays(store: &dyn Store) {
    let values = vec![value(0, "{\"value\":\"secret\"}"), value(1, "{\"value\":7}")];
    let mut first = Commit { values: values.clone(), ..create(1) };
    first.log.payloads = payloads(&values);
    first.log.hash = hash(&[0; 32], first.log.at, &first.log.facts, &first.log.payloads);
    accepted(store, first).await;
    accepted(store, Commit { values: vec![value(0, "{\"value\":\"kept\"}")], ..create(2) }).await;
    assert!(!store.erase(RunId(1), Time(60), Vec::new()).await.unwrap());
    assert!(!store.erase(RunId(9), Time(60), Vec::new()).await.unwrap());
    assert_eq!(store.values(RunId(1), &[ValueId(0), ValueId(1)]).await.unwrap(), values);
    accepted(store, finish(1, 1, None)).await;
    let before = store.load(RunId(1)).await.unwrap().unwrap();
    let log = store.tail(RunId(1), Version(0), 10).await.unwrap();
    assert!(store.erase(RunId(1), Time(60), Vec::new()).await.unwrap());
    let after = store.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!(after.row, RunRow { erased: Some(Time(60)), ..before.row.clone() });
    assert_eq!((after.version, after.hash, &after.state), (before.version, before.hash, &before.state));
    let mut left: Vec<ValueRow> = after.values;
    left.sort_by_key(|value| value.id);
    assert_eq!(left, [value(0, ERASED), value(1, ERASED)]);
    assert_eq!(store.tail(RunId(1), Version(0), 10).await.unwrap(), log);
    // The log still has the digest of the erased payload.
    let row = &log[0].row;
    assert!(row.payloads.contains(&digest("{\"value\":\"secret\"}")));
    assert_eq!(row.hash, hash(&[0; 32], row.at, &row.facts, &row.payloads));
    assert_eq!(store.values(RunId(2), &[ValueId(0)]).await.unwrap(), [value(0, "{\"value\":\"kept\"}")]);
    assert_eq!(store.run(RunId(2)).await.unwrap().unwrap().erased, None);
}

fn version(workflow: &str, name: &str, source: &str) -> NewDefinition {
    NewDefinition {
        workflow: workflow.into(),
        org: ORG,
        name: name.into(),
        source: source.into(),
        by: "ann".into(),
        author: "ann#key_1".into(),
        at: Time(1),
        test: false,
        after: None,
    }
}

async fn defined(store: &dyn Store, new: NewDefinition) -> DefinitionRow {
    store.define(new, Change::default()).await.unwrap().unwrap()
}

async fn undefined(store: &dyn Store, org: OrgId, workflow: &str) -> bool {
    store.undefine(org, workflow, Time(5), Change::default()).await.unwrap()
}

pub async fn a_workflow_is_found_by_name_and_by_id_until_it_is_deleted(store: &dyn Store) {
    let first = defined(store, version("wf_1", "hello", "1")).await;
    let second = defined(store, version("wf_x", "hello", "2")).await;
    assert_eq!(second.author, "ann#key_1");
    for name in ["hello", "wf_1"] {
        assert_eq!(store.find_definition(ORG, name).await.unwrap(), Some(second.clone()));
        assert_eq!(store.find_definition(OrgId(2), name).await.unwrap(), None);
    }
    assert_eq!(store.find_definition(ORG, "wf_x").await.unwrap(), None);
    assert!(!undefined(store, OrgId(2), "wf_1").await);
    assert!(!undefined(store, ORG, "hello").await, "by its id only");
    assert!(undefined(store, ORG, "wf_1").await);
    assert!(!undefined(store, ORG, "wf_1").await);
    for name in ["hello", "wf_1"] {
        assert_eq!(store.find_definition(ORG, name).await.unwrap(), None);
    }
    assert!(store.definitions(ORG).await.unwrap().is_empty());
    assert_eq!(store.versions(ORG, "wf_1").await.unwrap(), [second.clone(), first.clone()]);
    assert_eq!(store.definition(first.id).await.unwrap(), Some(first.clone()));
    // The name is free: a new definition is another workflow, even if its source is the same.
    let other = defined(store, version("wf_2", "hello", "2")).await;
    assert_eq!((other.version, other.workflow.as_str()), (1, "wf_2"));
    assert_eq!(store.find_definition(ORG, "hello").await.unwrap(), Some(other.clone()));
    assert_eq!(store.versions(ORG, "wf_1").await.unwrap(), [second, first]);
    assert_eq!(store.versions(ORG, "wf_2").await.unwrap(), [other]);
    assert!(store.versions(OrgId(2), "wf_2").await.unwrap().is_empty());
}

pub async fn a_deleted_workflow_is_found_and_restored_while_its_name_is_free(store: &dyn Store) {
    let first = defined(store, version("wf_1", "hello", "1")).await;
    let second = defined(store, NewDefinition { at: Time(4), ..version("wf_1", "hello", "2") }).await;
    defined(store, NewDefinition { test: true, ..version("wf_t", "draft", "1") }).await;
    let restore = async |org: OrgId, id: &str| store.redefine(org, id, Change::default()).await.unwrap();
    assert!(store.deleted(ORG, None).await.unwrap().is_empty());
    assert_eq!(restore(ORG, "wf_1").await, Err(Refused::Conflict), "it is not deleted");
    assert_eq!(restore(ORG, "wf_t").await, Err(Refused::Conflict), "test definitions are never listed");
    assert!(undefined(store, ORG, "wf_1").await);
    for named in [None, Some("hello"), Some("wf_1")] {
        assert_eq!(store.deleted(ORG, named).await.unwrap(), [(second.clone(), Time(5))]);
        assert!(store.deleted(OrgId(2), named).await.unwrap().is_empty());
    }
    assert!(store.deleted(ORG, Some("draft")).await.unwrap().is_empty());
    // Another workflow takes the name, and is deleted later.
    defined(store, version("wf_2", "hello", "1")).await;
    assert_eq!(restore(ORG, "wf_1").await, Err(Refused::Taken));
    assert!(store.undefine(ORG, "wf_2", Time(6), Change::default()).await.unwrap());
    let both = store.deleted(ORG, Some("hello")).await.unwrap();
    assert_eq!(both.iter().map(|(row, _)| &*row.workflow).collect::<Vec<_>>(), ["wf_2", "wf_1"]);
    assert_eq!(restore(OrgId(2), "wf_1").await, Err(Refused::Conflict));
    assert_eq!(restore(ORG, "wf_1").await, Ok(()));
    assert_eq!(store.find_definition(ORG, "hello").await.unwrap(), Some(second.clone()));
    assert_eq!(store.versions(ORG, "wf_1").await.unwrap(), [second, first.clone()]);
    assert_eq!(store.deleted(ORG, None).await.unwrap().len(), 1);
    assert_eq!(store.first_defined(ORG, "wf_1").await.unwrap(), Some(first.at));
    assert_eq!(store.first_defined(OrgId(2), "wf_1").await.unwrap(), None);
}

pub async fn runs_of_a_deleted_workflow_are_still_listed(store: &dyn Store) {
    let first = defined(store, version("wf_1", "hello", "1")).await;
    accepted(store, Commit { head: Some(Head { definition: first.id, ..head(Time(1)) }), ..create(1) }).await;
    assert!(undefined(store, ORG, "wf_1").await);
    let second = defined(store, version("wf_2", "hello", "1")).await;
    accepted(store, Commit { head: Some(Head { definition: second.id, ..head(Time(1)) }), ..create(2) }).await;
    let of = |workflow: &str| RunFilter { workflow: Some(workflow.into()), ..every_run() };
    assert_eq!((ids(store, of("wf_1")).await, ids(store, of("wf_2")).await), (vec![1], vec![2]));
}

pub async fn test_definitions_are_not_listed_as_versions(store: &dyn Store) {
    defined(store, NewDefinition { test: true, ..version("wf_t", "hello", "1") }).await;
    assert!(store.versions(ORG, "wf_t").await.unwrap().is_empty());
    assert_eq!(store.find_definition(ORG, "wf_t").await.unwrap(), None);
    assert!(!undefined(store, ORG, "wf_t").await);
}

pub async fn a_version_and_its_change_are_written_together_or_not_at_all(store: &dyn Store) {
    let record = |id: &str| {
        let (kind, id, key, body) = ("schedule".to_string(), id.to_string(), id.to_string(), "{}".to_string());
        Record { kind, id, org: ORG, key, due: None, body, version: 0 }
    };
    let with = |records: Vec<RecordChange>| {
        let (by, action, target, detail) = ("ann".into(), "workflow.define".into(), "hello".into(), "{}".into());
        let audit = vec![NewAudit { org: ORG, at: Time(1), by, action, target, detail }];
        Change { records, audit, grants_of: Some(ORG), decided: None }
    };
    let create = |id: &str| with(vec![RecordChange::Create(record(id))]);
    let first = store.define(version("wf_1", "hello", "1"), create("s1")).await.unwrap().unwrap();
    assert!(store.record("schedule", "s1").await.unwrap().is_some());
    let (before, epoch) = (rows(store).await, store.epoch(ORG).await.unwrap());
    assert_eq!(epoch, Some(2));
    let unchanged = async |why: &str| {
        assert_eq!((rows(store).await, store.epoch(ORG).await.unwrap()), (before.clone(), epoch), "{why}");
        assert_eq!(store.find_definition(ORG, "hello").await.unwrap(), Some(first.clone()), "{why}");
    };
    let refused = store.define(version("wf_1", "hello", "2"), create("s1")).await.unwrap();
    assert_eq!(refused, Err(Refused::Taken));
    unchanged("refused").await;
    assert_eq!(store.define(version("wf_1", "hello", "1"), create("s2")).await.unwrap(), Ok(first.clone()));
    unchanged("an identical definition").await;
    assert!(store.define(version("wf_1", "other", "1"), create("s2")).await.is_err());
    unchanged("its id and version belong to another workflow").await;
    let stale = with(vec![RecordChange::Replace(Record { version: 7, ..record("s1") })]);
    assert!(!store.undefine(ORG, "wf_1", Time(5), stale).await.unwrap());
    unchanged("the deletion was refused").await;
    assert!(!store.undefine(ORG, "wf_9", Time(5), create("s2")).await.unwrap());
    unchanged("the workflow does not exist").await;
    let gone = with(vec![RecordChange::Remove { kind: "schedule".into(), id: "s1".into() }]);
    assert!(store.undefine(ORG, "wf_1", Time(5), gone).await.unwrap());
    assert_eq!(store.record("schedule", "s1").await.unwrap(), None);
    assert_eq!(store.epoch(ORG).await.unwrap(), Some(3));
}

pub async fn progress_is_the_position_of_the_newest_commit(store: &dyn Store) {
    assert!(Progress::default().covers(&store.progress().await.unwrap()));
    let first = commit(store, create(1)).await.unwrap();
    let after_first = store.progress().await.unwrap();
    assert!(after_first.has(first) && Progress::from_iter([first]).covers(&after_first), "{after_first:?}");
    let last = commit(store, finish(1, 1, Some(Time(10)))).await.unwrap();
    assert!(commit(store, next(1, 1)).await.is_err());
    let after_last = store.progress().await.unwrap();
    assert!(after_last.has(last) && !after_first.has(last), "{after_last:?}");
    let fed = store.feed(&after_first, 10).await.unwrap();
    assert_eq!(fed.iter().map(|fed| (fed.log.position, fed.public.as_str())).collect::<Vec<_>>(), [(last, "run_1")]);
    while store.purge(Time(10), 100).await.unwrap() > 0 {}
    // A reader that follows from here misses nothing and reads nothing twice.
    let progress = store.progress().await.unwrap();
    assert!(progress.has(last), "{progress:?} after {last:?}");
    assert!(!progress.has(commit(store, create(2)).await.unwrap()));
    assert_eq!(store.feed(&progress, 10).await.unwrap().len(), 1);
}
