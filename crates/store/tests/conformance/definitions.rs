//! Cases about workflow definitions and lists of runs.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_store::*;

fn define(workflow: &str, name: &str, source: &str) -> NewDefinition {
    NewDefinition {
        workflow: workflow.into(),
        org: ORG,
        name: name.into(),
        source: source.into(),
        by: "ann".into(),
        author: "ann".into(),
        at: Time(1),
        test: false,
        after: None,
    }
}

/// Stores a version without any other change.
async fn defined(store: &dyn Store, new: NewDefinition) -> DefinitionRow {
    store.define(new, Change::default()).await.unwrap().unwrap()
}

fn ids(runs: Vec<RunRow>) -> Vec<i64> {
    runs.into_iter().map(|run| run.id.0).collect()
}

/// The first commit of a run of this definition.
fn create_of(run: i64, definition: i64, test: bool) -> Commit {
    let mut commit = create(run);
    commit.head = Some(Head { definition, ..head(Time(1)) });
    if let Some(new) = &mut commit.create {
        new.test = test;
    }
    commit
}

pub async fn a_changed_definition_is_a_new_version_and_an_equal_one_is_not(store: &dyn Store) {
    let first = defined(store, define("wf_1", "hello", "{}")).await;
    assert_eq!((first.version, first.workflow.as_str()), (1, "wf_1"));
    assert_eq!(defined(store, define("wf_2", "hello", "{}")).await, first);
    let second = defined(store, define("wf_3", "hello", "{\"a\":1}")).await;
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
            commit.head = Some(Head { status: "completed".into(), ..head(Time(1)) });
        }
        accepted(store, commit).await;
    }
    let all = RunFilter { limit: 2, ..every_run() };
    assert_eq!(ids(store.runs(all.clone()).await.unwrap()), [5, 4]);
    assert_eq!(ids(store.runs(RunFilter { before: Some(RunId(4)), ..all.clone() }).await.unwrap()), [3, 2]);
    let done = RunFilter { status: vec!["completed".into()], limit: 9, ..all.clone() };
    assert_eq!(ids(store.runs(done).await.unwrap()), [4, 2]);
    assert_eq!(ids(store.runs(RunFilter { since: Some(Time(4)), limit: 9, ..all.clone() }).await.unwrap()), [5, 4]);
    assert!(store.runs(RunFilter { org: OrgId(2), ..all.clone() }).await.unwrap().is_empty());
    assert!(store.runs(RunFilter { tests: true, ..all }).await.unwrap().is_empty());
}

pub async fn definitions_are_listed_by_name_in_their_newest_version(store: &dyn Store) {
    for (id, name, source) in [("wf_1", "b", "1"), ("wf_2", "a", "1"), ("wf_3", "b", "2"), ("wf_4", "c", "1")] {
        defined(store, define(id, name, source)).await;
    }
    defined(store, NewDefinition { org: OrgId(2), ..define("wf_5", "b", "1") }).await;
    let listed = |org: OrgId| async move {
        let list = store.definitions(org).await.unwrap();
        list.into_iter().map(|row| format!("{} {} v{}", row.name, row.workflow, row.version)).collect::<Vec<_>>()
    };
    assert_eq!(listed(ORG).await, ["a wf_2 v1", "b wf_1 v2", "c wf_4 v1"]);
    assert_eq!(listed(OrgId(2)).await, ["b wf_5 v1"]);
}

pub async fn runs_of_all_versions_of_a_workflow_are_listed_together(store: &dyn Store) {
    let first = defined(store, define("wf_1", "a", "1")).await;
    let second = defined(store, define("wf_2", "a", "2")).await;
    let other = defined(store, define("wf_3", "b", "1")).await;
    for (run, definition) in [(1, first.id), (2, other.id), (3, second.id), (4, 999)] {
        accepted(store, create_of(run, definition, false)).await;
    }
    let of = |workflow: &str| RunFilter { workflow: Some(workflow.into()), ..every_run() };
    assert_eq!(ids(store.runs(of("wf_1")).await.unwrap()), [3, 1]);
    assert_eq!(ids(store.runs(of("wf_3")).await.unwrap()), [2]);
    assert_eq!(ids(store.runs(of("wf_2")).await.unwrap()), [0; 0]);
}

pub async fn a_test_definition_is_never_found_by_name_or_listed(store: &dyn Store) {
    let test = |id: &str, source: &str| NewDefinition { test: true, ..define(id, "hello", source) };
    let alone = defined(store, test("wf_t1", "{}")).await;
    assert_eq!((alone.version, alone.workflow.as_str()), (1, "wf_t1"));
    assert_eq!(store.find_definition(ORG, "hello").await.unwrap(), None);
    assert!(store.definitions(ORG).await.unwrap().is_empty());
    // Equal to a test definition and to a real one: each is stored separately.
    let real = defined(store, define("wf_1", "hello", "{}")).await;
    assert_eq!((real.version, real.workflow.as_str()), (1, "wf_1"));
    let beside = defined(store, test("wf_t2", "{}")).await;
    assert_eq!((beside.version, beside.workflow.as_str()), (1, "wf_t2"));
    assert_eq!(store.find_definition(ORG, "hello").await.unwrap(), Some(real.clone()));
    assert_eq!(store.definitions(ORG).await.unwrap(), [real]);
    assert_eq!(store.definition(alone.id).await.unwrap(), Some(alone));
    assert_eq!(store.definition(beside.id).await.unwrap(), Some(beside));
}

pub async fn a_test_definition_is_removed_with_its_run_and_its_id_is_not_reused(store: &dyn Store) {
    let real = defined(store, define("wf_1", "hello", "{}")).await;
    let test = defined(store, NewDefinition { test: true, ..define("wf_t", "hello", "{}") }).await;
    accepted(store, create_of(1, real.id, false)).await;
    accepted(store, create_of(2, test.id, true)).await;
    assert_eq!(ids(store.runs(every_run()).await.unwrap()), [1]);
    assert_eq!(ids(store.runs(RunFilter { tests: true, ..every_run() }).await.unwrap()), [2]);
    for (run, definition) in [(1, real.id), (2, test.id)] {
        let mut done = finish(run, 1, Some(Time(10)));
        done.head = done.head.map(|head| Head { definition, ..head });
        accepted(store, done).await;
    }
    while store.purge(Time(10), 2).await.unwrap() > 0 {}
    assert_eq!(store.definition(test.id).await.unwrap(), None);
    assert_eq!(store.definition(real.id).await.unwrap(), Some(real));
    // A caller that caches a definition by id must not get another one under the same id.
    let later = defined(store, define("wf_2", "later", "{}")).await;
    assert!(later.id > test.id, "{} after {}", later.id, test.id);
}
