//! Behaviour specific to the embedded store: the checks of its file, and its lock.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::*;
use tempfile::TempDir;

/// An empty store and its directory.
pub fn fresh() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().unwrap();
    (SqliteStore::open(directory.path()).unwrap(), directory)
}

fn refusal(directory: &TempDir) -> String {
    match SqliteStore::open(directory.path()) {
        Ok(_) => panic!("the store was opened"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn acknowledged_commits_survive_reopening() {
    let (store, directory) = fresh();
    accepted(&store, create(1)).await;
    accepted(&store, next(1, 1)).await;
    drop(store);
    let store = SqliteStore::open(directory.path()).unwrap();
    assert_eq!(store.load(RunId(1)).await.unwrap().unwrap().version, Version(2));
}

#[tokio::test]
async fn a_directory_is_open_in_one_process_at_a_time() {
    let (store, directory) = fresh();
    let holder = format!("(process {}) has this directory open", std::process::id());
    assert!(refusal(&directory).contains(&holder), "{}", refusal(&directory));
    drop(store);
    SqliteStore::open(directory.path()).unwrap();
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_left_unchanged() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("stepwell.db");
    std::fs::write(&file, b"this is my diary, please do not touch it. ".repeat(200)).unwrap();
    let before = std::fs::read(&file).unwrap();
    assert!(refusal(&directory).contains("not a readable database"), "{}", refusal(&directory));
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = TempDir::new().unwrap();
    let other = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    other.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    drop(other);
    assert!(refusal(&directory).contains("belongs to another program"));
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_left_unchanged() {
    let (store, directory) = fresh();
    drop(store);
    let later = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    later.pragma_update(None, "user_version", 999).unwrap();
    drop(later);
    assert!(refusal(&directory).contains("use a newer stepwell"));
    let kept = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    let version: i64 = kept.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 999);
}

#[tokio::test]
async fn the_views_are_readable_with_an_sql_shell() {
    let (store, directory) = fresh();
    let mut commit = create(1);
    commit.values = vec![value(0, "{\"value\":{\"x\":1}}")];
    commit.steps = vec![step("charge", 1, "running")];
    accepted(&store, commit).await;
    let shell = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    let row = |sql: &str| shell.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(row("SELECT status FROM runs WHERE run = 'run_1'"), "running");
    assert_eq!(row("SELECT input FROM steps WHERE step = 'charge'"), "{\"value\":{\"x\":1}}");
    assert_eq!(row("SELECT type FROM events WHERE run = 'run_1'"), "sample");
}

#[tokio::test]
async fn positions_are_not_reused_after_reopening() {
    let (store, directory) = fresh();
    let mut last = Position::new(0, 0);
    for run in 1..=4 {
        accepted(&store, create(run)).await;
        last = commit(&store, finish(run, 1, Some(Time(10 * run)))).await.unwrap();
    }
    // The newest run goes first, so that a later purge finds only lower positions, and finally none.
    store.expire(RunId(4), Time(0)).await.unwrap();
    for before in [0, 10, 100] {
        while store.purge(Time(before), 2).await.unwrap() > 0 {}
    }
    assert!(store.feed(&Progress::default(), 10).await.unwrap().is_empty());
    drop(store);
    let store = SqliteStore::open(directory.path()).unwrap();
    let position = commit(&store, create(5)).await.unwrap();
    assert!(position > last, "{position:?} after {last:?}");
}

#[tokio::test]
async fn reopening_orphans_all_held_work() {
    let (store, directory) = fresh();
    join(&store, NODE).await;
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 1, Some(NODE))];
    accepted(&store, first).await;
    assert!(store.orphans(None, 10).await.unwrap().is_empty());
    drop(store);
    let store = SqliteStore::open(directory.path()).unwrap();
    assert_eq!(store.orphans(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_failing_job_does_not_affect_the_rest_of_its_transaction() {
    let (store, directory) = fresh();
    // While another connection writes, the writer waits, and jobs sent meanwhile share one transaction.
    let other = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let is_broken = |run: i64| run % 7 == 3;
    let store = &store;
    let send = |run: i64| async move {
        let values = vec![value(0, "0"), value(i64::from(!is_broken(run)) as u32, "1")];
        let unique = vec![unique("trigger", &run.to_string())];
        let answer = store.commit(vec![Commit { values, unique, ..create(run) }]).await;
        assert_eq!(answer.is_err(), is_broken(run), "run {run}: {answer:?}");
    };
    let release = async { other.execute_batch("ROLLBACK").unwrap() };
    tokio::join!(all((0..40).map(send).collect()), release);
    for run in 0..40 {
        assert_eq!(store.load(RunId(run)).await.unwrap().is_some(), !is_broken(run), "run {run}");
        let owner = store.keyed("trigger", &run.to_string(), Time(0)).await.unwrap();
        assert_eq!(owner.is_some(), !is_broken(run), "run {run}");
    }
    let kept = store.feed(&Progress::default(), 100).await.unwrap();
    assert!(kept.is_sorted_by(|one, two| one.log.position < two.log.position));
    assert_eq!(kept.len(), (0..40).filter(|&run| !is_broken(run)).count());
}

#[tokio::test]
async fn a_store_of_the_first_schema_is_migrated_with_its_data() {
    let directory = TempDir::new().unwrap();
    let old = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    old.execute_batch(include_str!("../../src/sqlite/migrations/0001_start.sql")).unwrap();
    old.execute_batch(
        r#"INSERT INTO workflow_definitions (workflow, org, name, version, source, created_by, created_at, test)
           VALUES ('wf_1', 1, 'hello', 1, '{}', 'ann', 1, 0);
           INSERT INTO workflow_runs (id, public_id, org, definition, status, version, created_by, test, secret, depth,
             created_at, hash, state)
           VALUES (1, 'run_1', 1, 1, 'paused', 1, 'ann', 0, zeroblob(16), 0, 1, zeroblob(32), '{}');
           INSERT INTO workflow_events (position, run, version, at, facts, hash) VALUES (1, 1, 1, 1, '[]', zeroblob(32));
           INSERT INTO workflow_step_runs (run, step, attempt, status, since, state)
           VALUES (1, 'ask', 1, 'waiting', 7, '{"phase":"gate"}'), (1, 'call', 1, 'waiting', 7, '{"phase":"webhook"}');
           PRAGMA user_version = 1; PRAGMA application_id = 1400137072;"#,
    )
    .unwrap();
    drop(old);
    let store = SqliteStore::open(directory.path()).unwrap();
    let run = store.load(RunId(1)).await.unwrap().unwrap();
    // Any user who could open the directory may have started it.
    assert_eq!((run.row.acts_as.as_str(), run.row.labels.len(), run.row.erased), ("*", 0, None));
    assert_eq!(store.find_definition(ORG, "hello").await.unwrap().unwrap().author, "*");
    assert_eq!(store.tail(RunId(1), Version(0), 10).await.unwrap()[0].row.payloads, "");
    assert_eq!(store.feed_of(ORG, &Progress::default(), 10).await.unwrap().len(), 1);
    let gates = store.gates(ORG, None, 10).await.unwrap();
    assert_eq!(gates.iter().map(|gate| gate.path.as_str()).collect::<Vec<_>>(), ["ask"]);
    assert!(store.integrity().await.unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn the_files_are_readable_by_their_owner_only_whatever_the_mode_of_the_directory() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(directory.path(), 0o755);
    // Twice: the second time with files that an earlier version left readable.
    for _ in 0..2 {
        let store = SqliteStore::open(directory.path()).unwrap();
        let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path()).collect();
        let data = files.iter().filter(|file| file.to_string_lossy().contains("stepwell.db"));
        for file in data.clone() {
            assert_eq!(mode(file), 0o600, "{}", file.display());
        }
        assert!(data.clone().count() > 0);
        drop(store);
        files.iter().filter(|file| file.exists()).for_each(|file| set(file, 0o644));
    }
}
