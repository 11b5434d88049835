//! Connection pools: few connections for many steps, and no broken ones.

use crate::harness::{Harness, call, check, postgres, to, until};
use serde_json::json;
use stepwell_store::OrgId;
use stepwell_testing::Cluster;

/// A URL that identifies its connections to the server.
fn marked(url: &str, name: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}application_name={name}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_shares_a_few_connections() {
    let (schema, observer) = postgres();
    let harness = Harness::on(marked(schema.url(), "burst"));
    let mut all = tokio::task::JoinSet::new();
    for n in 0..100 {
        let harness = harness.clone();
        all.spawn(async move { harness.one("SELECT $1::int AS x FROM pg_sleep(0.01)", json!([n])).await });
    }
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'burst'";
    let mut most = 0;
    let mut sum = 0;
    while let Some(done) = all.join_next().await {
        sum += done.unwrap().as_i64().unwrap();
        most = most.max(observer.one(sql, json!([])).await.as_i64().unwrap());
    }
    assert_eq!(sum, 99 * 100 / 2);
    assert!((1..=8).contains(&most), "{most} connections");
}

#[tokio::test]
async fn a_connection_is_reused_by_its_own_organisation_and_version_only() {
    let (schema, harness) = postgres();
    let who = json!({"connection": "db", "sql": "SELECT pg_backend_pid() AS pid"});
    let pid = async || harness.run(call(who.clone())).await.unwrap()[0]["pid"].clone();
    // A connection is returned just after the result, so there may be several at first.
    let seen = std::cell::RefCell::new(std::collections::HashSet::new());
    let again = || async {
        let pid = pid().await.to_string();
        !seen.borrow_mut().insert(pid)
    };
    until("a connection is reused", again).await;
    let mut newer = to(schema.url());
    newer.identity = [2; 32];
    harness.name("db", newer);
    let newer = pid().await.to_string();
    assert!(seen.borrow_mut().insert(newer), "a connection of an older version was used again");
    let other = || {
        let mut other = call(who.clone());
        other.caller.org = OrgId(2);
        harness.run(other)
    };
    check(&other().await.unwrap_err(), "unknown_connection", "\"db\"");
    // The same in every respect, but of another organisation.
    let mut same = to(schema.url());
    same.identity = [2; 32];
    harness.name_for(OrgId(2), "db", same);
    for _ in 0..10 {
        let pid = other().await.unwrap()[0]["pid"].to_string();
        assert!(!seen.borrow().contains(&pid), "a connection of another organisation was used");
    }
}

#[tokio::test]
async fn steps_recover_from_a_restart_and_from_a_terminated_connection() {
    let cluster = Cluster::start();
    let harness = Harness::on(cluster.url());
    assert_eq!(harness.one("SELECT 1 AS x", json!([])).await, json!(1));
    cluster.restart_immediate();
    assert_eq!(harness.one("SELECT 2 AS x", json!([])).await, json!(2));
    stepwell_testing::execute(
        cluster.url(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stepwell'",
    )
    .unwrap();
    assert_eq!(harness.one("SELECT 3 AS x", json!([])).await, json!(3));
    cluster.stop();
    let failure = harness.query("SELECT 4 AS x", json!([])).await.unwrap_err();
    check(&failure, "connect_failed", "no connection to \"db\"");
    assert!(failure.retryable && !failure.may_have_happened);
    cluster.start_again();
    assert_eq!(harness.one("SELECT 5 AS x", json!([])).await, json!(5));
}
