//! Checks that every column of both schemas is copied, and that the log keeps its order.

use super::*;
use crate::sqlite::SqliteStore;
use std::collections::BTreeSet;
use stepwell_testing::Cluster;

/// The copied columns, as `table.column`.
fn copied() -> BTreeSet<String> {
    let of =
        |table: &Table| table.columns.iter().map(|(column, _)| format!("{}.{column}", table.name)).collect::<Vec<_>>();
    TABLES.iter().flat_map(of).collect()
}

/// Checks that all columns in `there` are copied except those in `local`.
#[track_caller]
fn check(there: BTreeSet<String>, local: &[&str]) {
    let copied = copied();
    let local: BTreeSet<String> = local.iter().map(|column| column.to_string()).collect();
    assert_eq!(there.difference(&copied).cloned().collect::<BTreeSet<_>>(), local);
    assert!(copied.is_subset(&there), "{:?}", copied.difference(&there));
}

#[test]
fn every_column_of_the_embedded_store_is_copied_except_its_high_water_mark() {
    let directory = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(directory.path()).unwrap());
    let db = rusqlite::Connection::open(directory.path().join("stepwell.db")).unwrap();
    let sql = "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
               WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let mut select = db.prepare(sql).unwrap();
    let there = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    check(there, &["purged.id", "purged.position"]);
}

#[tokio::test]
async fn every_column_of_a_database_is_copied_except_what_only_several_processes_need() {
    let schema = Cluster::shared().schema();
    let options = crate::PostgresOptions::new(schema.url());
    drop(crate::postgres::PgStore::open(&options).await.unwrap());
    let (client, connection) = tokio_postgres::connect(schema.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let sql = "SELECT c.table_name || '.' || c.column_name FROM information_schema.columns c
               JOIN information_schema.tables t USING (table_schema, table_name)
               WHERE table_schema = current_schema() AND t.table_type = 'BASE TABLE'";
    let there = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let nodes =
        ["nodes.id", "nodes.name", "nodes.version", "nodes.slots", "nodes.joined_at", "nodes.seen_at", "nodes.tallies"];
    let writers = ["writers.id", "writers.holder", "writers.seen_at", "writers.position", "turns.id"];
    let schema = ["stepwell_schema.id", "stepwell_schema.version", "stepwell_schema.usable_by"];
    // Derived from other columns.
    let derived = ["timers.shard", "workflow_runs.position", "workflow_events.writer", "counters.writer"];
    check(there, &[&nodes[..], &writers, &schema, &derived].concat());
}

#[test]
fn positions_of_several_writers_are_merged_and_those_of_one_writer_stay() {
    let check = |positions: &[i64], expected: &[i64]| {
        let mut last = 0;
        let numbered = positions.iter().map(|position| {
            let mut row = vec![Cell::Int(*position), Cell::Null];
            last = number(&mut row, last);
            assert_eq!(row, [Cell::Int(last), Cell::Null]);
            last
        });
        assert_eq!(numbered.collect::<Vec<_>>(), expected);
    };
    check(&[1, 2, 5, 9], &[1, 2, 5, 9]);
    check(&[1, 1, 1, 2, 7, 7, 9], &[1, 2, 3, 4, 7, 8, 9]);
    check(&[], &[]);
}
