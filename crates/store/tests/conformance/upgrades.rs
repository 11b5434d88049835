//! Stores of an earlier schema with runs under way: everything is still there after the upgrade, the runs go on, and
//! the tallies hold from then on.

use crate::evidence::holds;
use crate::registry::entry;
use crate::sample::*;
use crate::sqlite::fresh;
use stepwell_core::time::Time;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::*;
use stepwell_testing::Schema;

/// Two runs under way with a claimed and a ready attempt, a timer, a gate, mail, a notice, a value and a place in a
/// group; a finished run; a record and audit rows.
async fn fill(store: &dyn Store) {
    let mut first = create(1);
    first.work.put = vec![work("claimed", ORG, 1, Some(NODE)), work("ready", ORG, 2, None)];
    first.timers.put = vec![timer("expire:0:", 9_000)];
    (first.values, first.outbox) = (vec![value(1, "{\"value\":7}")], vec![notice("notify:a", 3)]);
    (first.steps, first.audit) = (vec![step("claimed", 1, "running")], vec![entry(ORG, "ann", "run.start", "run_1")]);
    accepted(store, first).await;
    let second = Commit { unique: vec![unique("trigger", "key")], mail: vec![mail(1, "child")], ..create(2) };
    accepted(store, second).await;
    for commit in [create(3), finish(3, 1, Some(Time(5_000)))] {
        accepted(store, commit).await;
    }
    let (kind, key, body) = ("kind".into(), "a key".into(), "{}".into());
    let record = Record { kind, id: "a".into(), org: ORG, key, due: None, body, version: 0 };
    let audit = vec![entry(ORG, "ann", "x", "a")];
    let change = Change { records: vec![RecordChange::Create(record)], audit, ..Change::default() };
    store.change(change).await.unwrap().unwrap();
}

/// Everything that [`fill`] wrote is there, and more can be written.
async fn goes_on(store: &dyn Store) {
    let paths = |found: Vec<Claimed>| found.into_iter().map(|work| work.key.path).collect::<Vec<_>>();
    assert_eq!(paths(store.orphans(None, 10).await.unwrap()), ["claimed"]);
    assert_eq!(paths(store.claim(claim(NodeId(8), 10)).await.unwrap()), ["ready"]);
    assert_eq!(keys_due(store).await, ["expire:0:"]);
    assert_eq!(
        (mail_keys(store, 1).await, notice_keys(store, 9, 9).await),
        (vec!["child".into()], vec!["notify:a".into()])
    );
    assert_eq!(store.keyed("trigger", "key", Time(0)).await.unwrap(), Some(RunId(2)));
    let loaded = store.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.row.status.as_str(), loaded.values.len()), (Version(1), "running", 1));
    assert_eq!(store.feed_of(ORG, &Progress::default(), 10).await.unwrap().len(), 4);
    assert_eq!(
        store
            .audit(AuditFilter { org: ORG, by: None, action: None, target: None, before: None, limit: 9 })
            .await
            .unwrap()
            .len(),
        2
    );
    let mut second = next(1, 1);
    (second.work.remove, second.timers.remove) =
        (vec![WorkKey { path: "claimed".into(), attempt: 1 }], vec!["expire:0:".into()]);
    accepted(store, second).await;
    accepted(store, finish(2, 1, Some(Time(5_000)))).await;
    accepted(store, create(4)).await;
}

/// The tallies count what was there before them and what was written since.
async fn is_tallied(store: &dyn Store) {
    let counted = |evidence: &Evidence| evidence.classes.iter().map(|class| class.found).collect::<Vec<_>>();
    let evidence = holds(store).await;
    assert_eq!(
        (evidence.classes[0].found, evidence.trails.iter().map(|trail| trail.found).sum::<i64>()),
        (4, 2),
        "{evidence:?}"
    );
    let before = counted(&evidence);
    while store.purge(Time(6_000), 100).await.unwrap() > 0 {}
    accepted(store, finish(1, 2, None)).await;
    let after = counted(&holds(store).await);
    assert_eq!((after[0], &after[1..]), (before[0] - 2, &before[1..]), "two runs were purged");
}

/// Takes a file back to the schema before the last migrations.
fn downgrade(path: &std::path::Path) {
    let old = rusqlite::Connection::open(path).unwrap();
    old.execute_batch(
        "DROP TABLE tallies;
         DROP INDEX workflow_events_of_org; ALTER TABLE workflow_events DROP COLUMN org;
         DROP INDEX workflow_runs_open_in_tree; ALTER TABLE workflow_runs DROP COLUMN root;
         PRAGMA user_version = 3",
    )
    .unwrap();
    let columns = |db: &rusqlite::Connection| {
        let sql = "SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c ORDER BY 1";
        let mut all = db.prepare(sql).unwrap();
        all.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let first = rusqlite::Connection::open_in_memory().unwrap();
    for migration in [
        include_str!("../../src/sqlite/migrations/0001_start.sql"),
        include_str!("../../src/sqlite/migrations/0002_server.sql"),
        include_str!("../../src/sqlite/migrations/0003_writers.sql"),
    ] {
        first.execute_batch(migration).unwrap();
    }
    assert_eq!(columns(&old), columns(&first));
}

#[tokio::test]
async fn a_store_from_before_the_tallies_is_upgraded_with_its_runs_under_way() {
    let (store, directory) = fresh();
    fill(&store).await;
    drop(store);
    downgrade(&directory.path().join("stepwell.db"));
    let store = SqliteStore::open(directory.path()).unwrap();
    holds(&store).await;
    goes_on(&store).await;
    is_tallied(&store).await;
}

fn downgrade_database(schema: &Schema) {
    schema.execute(
        "ALTER TABLE workflow_events DROP COLUMN org; ALTER TABLE workflow_runs DROP COLUMN root;
         ALTER TABLE nodes DROP COLUMN tallies; DROP TABLE tallies;
         UPDATE stepwell_schema SET version = 1, usable_by = 1",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_from_before_the_tallies_is_upgraded_beside_an_older_node() {
    let (store, schema) = crate::postgres::fresh().await;
    fill(&store).await;
    join(&store, NodeId(9)).await;
    drop(store);
    downgrade_database(&schema);
    let store = crate::postgres::open(schema.url()).await;
    // The older node would write without tallies.
    store.keep_evidence().await.unwrap();
    assert!(!store.evidence(Vec::new()).await.unwrap().kept);
    goes_on(&store).await;
    store.leave(NodeId(9)).await.unwrap();
    store.keep_evidence().await.unwrap();
    is_tallied(&store).await;
}
