//! Cancelling a step cancels its statement in the database.

use crate::harness::{Harness, call, postgres, sqlite, until};
use serde_json::json;
use std::time::Duration;

async fn running(harness: &Harness, mark: &str) -> i64 {
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE $1 AND pid <> pg_backend_pid()";
    harness.one(sql, json!([format!("%{mark}%")])).await.as_i64().unwrap()
}

#[tokio::test]
async fn dropping_a_step_cancels_its_query_on_the_server() {
    let (schema, harness) = postgres();
    schema.execute("CREATE TABLE t (id int)");
    for (mark, fields) in [
        ("mark_read", json!({"sql": "SELECT pg_sleep(600) AS mark_read"})),
        ("mark_write", json!({"sql": "INSERT INTO t SELECT 1 AS mark_write FROM pg_sleep(600)", "write": true})),
    ] {
        let (one, fields) = (harness.clone(), fields.clone());
        let step = tokio::spawn(async move { one.step(fields).await });
        until("the query runs", || async { running(&harness, mark).await == 1 }).await;
        step.abort();
        until("the query is gone", || async { running(&harness, mark).await == 0 }).await;
    }
    assert_eq!(harness.one("SELECT count(*) FROM t", json!([])).await, json!(0));
}

#[tokio::test]
async fn dropping_a_step_interrupts_its_query_on_sqlite() {
    let (_directory, harness) = sqlite("CREATE TABLE t (id int);");
    let endless =
        "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0";
    let step = harness.run(call(json!({"connection": "db", "sql": endless, "write": true})));
    assert!(tokio::time::timeout(Duration::from_millis(300), step).await.is_err(), "it never ends on its own");
    // Its transaction is gone, or another writer would be blocked.
    harness.write("INSERT INTO t VALUES (1)", json!([])).await.unwrap();
    assert_eq!(harness.one("SELECT count(*) FROM t", json!([])).await, json!(1));
}
