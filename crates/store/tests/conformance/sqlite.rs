//! What only the embedded store has: a file that is refused when it should be, and a lock.

use crate::sample::*;
use stepwell_store::sqlite::SqliteStore;
use stepwell_store::*;
use tempfile::TempDir;

/// An empty store, and the directory that goes with it.
pub fn fresh() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().unwrap();
    (SqliteStore::open(directory.path()).unwrap(), directory)
}

fn refusal(directory: &TempDir) -> String {
    match SqliteStore::open(directory.path()) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_reopening() {
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
    assert!(refusal(&directory).contains("another process has this directory open"));
    drop(store);
    SqliteStore::open(directory.path()).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("stepwell.db");
    std::fs::write(&file, b"this is my diary, please do not touch it. ".repeat(200)).unwrap();
    let before = std::fs::read(&file).unwrap();
    assert!(refusal(&directory).contains("cannot be used"), "{}", refusal(&directory));
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = TempDir::new().unwrap();
    let other = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    other.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    drop(other);
    assert!(refusal(&directory).contains("some other program"));
}

#[test]
fn a_store_from_the_future_is_refused_and_left_alone() {
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
async fn a_person_with_a_sql_shell_can_read_it() {
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
