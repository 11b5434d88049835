//! Limits on rows, bytes and time.

use crate::harness::{both, check, postgres, sqlite, to};
use serde_json::json;
use std::time::{Duration, Instant};
use stepwell_core::event::FailureKind;
use stepwell_core::time::Millis;

/// A statement that counts to a number, on either database.
fn count_to(most: u64) -> String {
    format!("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {most}) SELECT x FROM n")
}

#[tokio::test]
async fn more_rows_than_allowed_fail() {
    let (schema, directory, harnesses) = both();
    let urls = [schema.url().to_string(), format!("sqlite:{}", directory.path().join("data.db").display())];
    for (harness, url) in harnesses.iter().zip(urls) {
        assert_eq!(harness.query(&count_to(1_000), json!([])).await.unwrap().as_array().unwrap().len(), 1_000);
        let failure = harness.query(&count_to(1_001), json!([])).await.unwrap_err();
        check(&failure, "too_many_rows", "more than 1000 rows");
        let more = harness.step(json!({"sql": count_to(5_000), "max_rows": 5_000})).await.unwrap();
        assert_eq!(more[4_999], json!({"x": 5_000}));
        // It stops at the limit.
        let failure = harness.step(json!({"sql": count_to(1_000_000_000), "max_rows": 10})).await.unwrap_err();
        check(&failure, "too_many_rows", "more than 10 rows");
        let mut few = to(url);
        (few.rows, few.identity) = (Some(3), [2; 32]);
        harness.name("db", few);
        let failure = harness.step(json!({"sql": count_to(4), "max_rows": 100})).await.unwrap_err();
        check(&failure, "too_many_rows", "more than 3 rows");
        assert_eq!(harness.query(&count_to(3), json!([])).await.unwrap()[2], json!({"x": 3}));
    }
}

#[tokio::test]
async fn oversized_results_fail_and_the_next_step_works() {
    let (_schema, harness) = postgres();
    let sql = "SELECT repeat('x', 1000000) AS x FROM generate_series(1, 500)";
    check(&harness.query(sql, json!([])).await.unwrap_err(), "too_large", "16777216 bytes");
    assert_eq!(harness.one("SELECT 1 AS x", json!([])).await, json!(1));
    let (_directory, harness) = sqlite("");
    let sql = format!("SELECT hex(zeroblob(500000)) AS x FROM ({})", count_to(500));
    check(&harness.query(&sql, json!([])).await.unwrap_err(), "too_large", "16777216 bytes");
    check(&harness.query("SELECT zeroblob(900000000) AS x", json!([])).await.unwrap_err(), "too_large", "bytes");
    assert_eq!(harness.one("SELECT 1 AS x", json!([])).await, json!(1));
}

#[tokio::test]
async fn a_statement_is_stopped_at_its_timeout() {
    let (schema, directory, harnesses) = both();
    let urls = [schema.url().to_string(), format!("sqlite:{}", directory.path().join("data.db").display())];
    let endless = format!("SELECT count(*) FROM ({}) AS n", count_to(100_000_000_000));
    for (harness, url) in harnesses.iter().zip(urls) {
        let mut short = to(url);
        (short.timeout, short.identity) = (Some(Millis(200)), [2; 32]);
        harness.name("db", short);
        let begun = Instant::now();
        for write in [false, true] {
            let failure = harness.step(json!({"sql": endless, "write": write})).await.unwrap_err();
            check(&failure, "timeout", "nothing was changed");
            let kind = (failure.kind, failure.retryable, failure.may_have_happened);
            assert_eq!(kind, (FailureKind::Timeout, true, false));
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(harness.one("SELECT 1 AS x", json!([])).await, json!(1));
    }
}
