//! Rows, bytes and time have bounds.

use crate::rig::{both, check, postgres, sqlite, to};
use serde_json::json;
use std::time::{Duration, Instant};
use stepwell_core::event::FailureKind;
use stepwell_core::time::Millis;

/// Counts to a number, on either database.
fn count_to(most: u64) -> String {
    format!("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {most}) SELECT x FROM n")
}

#[tokio::test]
async fn more_rows_than_asked_for_fail_and_as_many_do_not() {
    let (schema, directory, rigs) = both();
    let urls = [schema.url().to_string(), format!("sqlite:{}", directory.path().join("data.db").display())];
    for (rig, url) in rigs.iter().zip(urls) {
        assert_eq!(rig.query(&count_to(1_000), json!([])).await.unwrap().as_array().unwrap().len(), 1_000);
        let failure = rig.query(&count_to(1_001), json!([])).await.unwrap_err();
        check(&failure, "too_many_rows", "more than 1000 rows");
        let more = rig.step(json!({"sql": count_to(5_000), "max_rows": 5_000})).await.unwrap();
        assert_eq!(more[4_999], json!({"x": 5_000}));
        // It stops there: nobody waits for a billion rows.
        let failure = rig.step(json!({"sql": count_to(1_000_000_000), "max_rows": 10})).await.unwrap_err();
        check(&failure, "too_many_rows", "more than 10 rows");
        let mut few = to(url);
        (few.rows, few.version) = (Some(3), 2);
        rig.name("db", few);
        let failure = rig.step(json!({"sql": count_to(4), "max_rows": 100})).await.unwrap_err();
        check(&failure, "too_many_rows", "more than 3 rows");
        assert_eq!(rig.query(&count_to(3), json!([])).await.unwrap()[2], json!({"x": 3}));
    }
}

#[tokio::test]
async fn rows_that_are_too_much_to_keep_fail_and_the_next_step_goes_on() {
    let (_schema, rig) = postgres();
    let sql = "SELECT repeat('x', 1000000) AS x FROM generate_series(1, 500)";
    check(&rig.query(sql, json!([])).await.unwrap_err(), "too_large", "16777216 bytes");
    assert_eq!(rig.one("SELECT 1 AS x", json!([])).await, json!(1));
    let (_directory, rig) = sqlite("");
    let sql = format!("SELECT hex(zeroblob(500000)) AS x FROM ({})", count_to(500));
    check(&rig.query(&sql, json!([])).await.unwrap_err(), "too_large", "16777216 bytes");
    check(&rig.query("SELECT zeroblob(900000000) AS x", json!([])).await.unwrap_err(), "too_large", "bytes");
    assert_eq!(rig.one("SELECT 1 AS x", json!([])).await, json!(1));
}

#[tokio::test]
async fn a_statement_is_stopped_when_its_time_is_over() {
    let (schema, directory, rigs) = both();
    let urls = [schema.url().to_string(), format!("sqlite:{}", directory.path().join("data.db").display())];
    let endless = format!("SELECT count(*) FROM ({}) AS n", count_to(100_000_000_000));
    for (rig, url) in rigs.iter().zip(urls) {
        let mut short = to(url);
        (short.timeout, short.version) = (Some(Millis(200)), 2);
        rig.name("db", short);
        let begun = Instant::now();
        for write in [false, true] {
            let failure = rig.step(json!({"sql": endless, "write": write})).await.unwrap_err();
            check(&failure, "timeout", "nothing was changed");
            let kind = (failure.kind, failure.retryable, failure.may_have_happened);
            assert_eq!(kind, (FailureKind::Timeout, true, false));
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(rig.one("SELECT 1 AS x", json!([])).await, json!(1));
    }
}
