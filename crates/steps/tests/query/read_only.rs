//! A reading step cannot change anything.

use crate::harness::{both, call, check, postgres, sqlite, to};
use serde_json::json;

#[tokio::test]
async fn writes_from_a_reading_step_fail_on_postgresql() {
    let (schema, harness) = postgres();
    schema.execute(
        "CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE SEQUENCE s;
         CREATE FUNCTION sneaky() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t VALUES (2); RETURN 1; END $$;
         CREATE PROCEDURE committing() LANGUAGE plpgsql AS $$ BEGIN COMMIT; INSERT INTO t VALUES (3); COMMIT; END $$",
    );
    for sql in [
        "INSERT INTO t VALUES (2)",
        "WITH x AS (INSERT INTO t VALUES (2) RETURNING id) SELECT * FROM x",
        "WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x",
        "SELECT nextval('s')",
        "SELECT setval('s', 9)",
        "SELECT sneaky()",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (2)",
        "SELECT id FROM t FOR UPDATE",
        "CREATE TABLE u (x int)",
        "CREATE TABLE u AS SELECT 1 AS x",
        "SELECT 1 AS x INTO u",
        "TRUNCATE t",
        "GRANT ALL ON t TO public",
        "COMMENT ON TABLE t IS 'mine'",
        "DO $$ BEGIN INSERT INTO t VALUES (2); END $$",
    ] {
        let failure = harness.query(sql, json!([])).await.expect_err(sql);
        assert!(["read_only", "sql_25006"].contains(&&*failure.code), "{sql}: {failure:?}");
        assert!(!failure.may_have_happened && !failure.retryable, "{sql}");
    }
    for sql in [
        "SELECT 1; DROP TABLE t",
        "COMMIT; DROP TABLE t",
        "COMMIT",
        "/* so */ -- and so\n rollback",
        "ROLLBACK AND CHAIN",
        "BEGIN READ WRITE",
        "SET TRANSACTION READ WRITE",
        "SET default_transaction_read_only = off",
        "PREPARE x AS DELETE FROM t",
        "COPY t FROM STDIN",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "DISCARD ALL",
        "LISTEN x",
        "SELECT set_config('transaction_read_only', 'off', true), sneaky()",
        "SELECT set_config('transaction_read_only', 'off', false) FROM t WHERE sneaky() = 1",
        "CALL committing()",
        "DO $$ BEGIN COMMIT; INSERT INTO t VALUES (2); END $$",
        "DO $$ BEGIN SET TRANSACTION READ WRITE; INSERT INTO t VALUES (2); END $$",
    ] {
        assert!(harness.query(sql, json!([])).await.is_err(), "{sql}");
    }
    let seen = harness.query("SELECT array_agg(id) AS ids, (SELECT last_value FROM s) AS last FROM t", json!([])).await;
    assert_eq!(seen.unwrap(), json!([{"ids": [1], "last": 1}]));
}

#[tokio::test]
async fn a_step_leaves_no_session_state_on_its_connection() {
    let (_schema, harness) = postgres();
    for fields in [
        json!({"sql": "SELECT set_config('search_path', 'nowhere', false), pg_advisory_lock(7)::text"}),
        json!({"sql": "SELECT set_config('default_transaction_read_only', 'off', false)"}),
        json!({"sql": "SELECT set_config('role', 'pg_monitor', false)", "write": true}),
        json!({"sql": "SELECT set_config('search_path', 'nowhere', false)", "write": true}),
        json!({"sql": "CREATE TEMP TABLE left_over (x int)", "write": true}),
    ] {
        harness.step(fields).await.unwrap();
    }
    for write in [false, true] {
        let look = "SELECT current_setting('search_path') AS path, current_user::text AS who,
            (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
            to_regclass('left_over')::text AS temp";
        let body = harness.step(json!({"sql": look, "write": write})).await.unwrap();
        let row = &body[0];
        assert!(row["path"].as_str().unwrap().starts_with('t'), "{row}");
        assert_eq!((&row["who"], &row["locks"], &row["temp"]), (&json!("postgres"), &json!(0), &json!(null)));
    }
}

#[tokio::test]
async fn writes_from_a_reading_step_fail_on_sqlite() {
    let (directory, harness) = sqlite("CREATE TABLE t (id int); CREATE INDEX i ON t (id); INSERT INTO t VALUES (1);");
    let other = directory.path().join("other.db");
    let other = other.display();
    for sql in [
        "INSERT INTO t VALUES (2)",
        "WITH x AS (SELECT 2) INSERT INTO t SELECT * FROM x RETURNING id",
        "CREATE TABLE u (x)",
        "CREATE TEMP TABLE u (x)",
        "DROP TABLE t",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
        "PRAGMA query_only = off",
        "PRAGMA writable_schema = on",
        "PRAGMA journal_mode = wal",
        "SELECT * FROM pragma_user_version",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "BEGIN IMMEDIATE",
        "\u{feff}BEGIN IMMEDIATE",
        "SAVEPOINT x",
        "SELECT 1; DROP TABLE t",
        "UPDATE sqlite_schema SET sql = ''",
        "EXPLAIN",
        &format!("ATTACH '{other}' AS other"),
        &format!("\u{feff}ATTACH '{other}' AS other"),
        &format!("VACUUM INTO '{other}'"),
    ] {
        let failed = harness.query(sql, json!([])).await;
        // A transaction that was begun is rolled back.
        assert!(failed.is_err() || sql.contains("BEGIN"), "{sql}: {failed:?}");
    }
    for sql in [
        &format!("ATTACH '{other}' AS other"),
        &format!("VACUUM INTO '{other}'"),
        "PRAGMA writable_schema = on",
        "UPDATE sqlite_schema SET sql = ''",
        "SELECT load_extension('x')",
        "\u{feff}COMMIT",
    ] {
        assert!(harness.write(sql, json!([])).await.is_err(), "{sql}");
    }
    assert!(!directory.path().join("other.db").exists());
    assert_eq!(harness.query("SELECT id FROM t", json!([])).await.unwrap(), json!([{"id": 1}]));
    assert_eq!(harness.write("INSERT INTO t VALUES (2)", json!([])).await.unwrap()["row_count"], 1);
}

#[tokio::test]
async fn writing_needs_a_connection_that_allows_it_and_a_step_that_requests_it() {
    let (schema, directory, harnesses) = both();
    let urls = [schema.url().to_string(), format!("sqlite:{}", directory.path().join("data.db").display())];
    for (harness, url) in harnesses.iter().zip(urls) {
        let mut reading = to(url);
        reading.write = false;
        harness.name("reading", reading);
        let insert = json!({"connection": "reading", "sql": "INSERT INTO t VALUES (3, 'three')", "write": true});
        let failure = harness.run(call(insert.clone())).await.unwrap_err();
        check(&failure, "read_only", "the connection \"reading\" does not allow writing");
        let failure = harness.query("INSERT INTO t VALUES (3, 'three')", json!([])).await.unwrap_err();
        check(&failure, "read_only", "`write: true`");
        assert_eq!(harness.one("SELECT count(*) FROM t", json!([])).await, json!(2));
    }
}

#[tokio::test]
async fn a_failed_write_leaves_nothing_behind() {
    let (_schema, _directory, harnesses) = both();
    for harness in harnesses {
        let failure = harness.write("INSERT INTO t VALUES (3, 'three'), (1, 'again')", json!([])).await.unwrap_err();
        assert!(["constraint", "sql_23505"].contains(&&*failure.code), "{failure:?}");
        assert!(!failure.may_have_happened && !failure.retryable);
        // The rows cannot be returned, so the change is rolled back.
        let failure = harness
            .step(json!({"sql": "UPDATE t SET name = 'x' RETURNING id", "write": true, "max_rows": 1}))
            .await
            .unwrap_err();
        check(&failure, "too_many_rows", "more than 1 rows");
        let all = harness.query("SELECT name FROM t ORDER BY id", json!([])).await.unwrap();
        assert_eq!(all, json!([{"name": "one"}, {"name": "two"}]));
    }
}
