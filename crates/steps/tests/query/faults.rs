//! Failures: their messages, and whether the change may have happened.

use crate::harness::{Harness, call, check, postgres, to, until};
use serde_json::json;
use stepwell_core::event::FailureKind;
use stepwell_steps::Egress;
use stepwell_testing::{Cluster, Proxy};

#[tokio::test]
async fn wrong_names_urls_and_passwords_are_reported_without_the_url() {
    let cluster = Cluster::shared();
    let place = cluster.url().split('@').nth(1).unwrap();
    let harness = Harness::on(cluster.url());
    let failure = harness.run(call(json!({"connection": "nowhere", "sql": "SELECT 1"}))).await.unwrap_err();
    check(&failure, "unknown_connection", "there is no connection \"nowhere\"");
    for (url, code, part) in [
        ("mysql://root:s3cret@localhost/x".to_string(), "bad_connection", "known: postgres://"),
        ("s3cret".into(), "bad_connection", "known: postgres://"),
        ("postgres://user:s3cret@host:notaport/x".into(), "bad_connection", "is not like postgres://"),
        ("postgres:///s3cret".into(), "bad_connection", "has no host"),
        (format!("postgres://stranger:s3cret@{place}"), "bad_connection", "role \"stranger\" does not exist"),
        (format!("postgres://postgres:s3cret@{}/nodb", cluster.address()), "bad_connection", "\"nodb\" does not exist"),
        ("postgres://postgres:s3cret@127.0.0.1:1/x".into(), "connect_failed", "refused"),
        ("postgres://postgres:s3cret@no-such-host.invalid/x".into(), "connect_failed", "no connection to \"db\""),
        ("sqlite:/no/such/file".into(), "bad_connection", "No such file"),
        ("sqlite:/etc/passwd".into(), "bad_connection", "not a database"),
    ] {
        let failure = Harness::on(url.clone()).query("SELECT 1 AS x FROM sqlite_schema", json!([])).await.unwrap_err();
        check(&failure, code, part);
        assert!(!failure.message.contains("s3cret"), "{}", failure.message);
        assert_eq!((failure.retryable, failure.may_have_happened), (code == "connect_failed", false), "{url}");
    }
}

#[tokio::test]
async fn an_invalid_statement_is_reported_with_the_database_s_message() {
    let (_schema, harness) = postgres();
    check(&harness.query("SELEC 1", json!([])).await.unwrap_err(), "sql_42601", "syntax error at or near \"SELEC\"");
    check(
        &harness.query("SELECT * FROM nothing", json!([])).await.unwrap_err(),
        "sql_42P01",
        "\"nothing\" does not exist",
    );
    check(&harness.query("SELECT 1/0 AS x", json!([])).await.unwrap_err(), "sql_22012", "division by zero");
    check(&harness.query("SELECT 1; SELECT 2", json!([])).await.unwrap_err(), "bad_query", "more than one statement");
    check(&harness.step(json!({"sql": " "})).await.unwrap_err(), "bad_query", "`sql` is missing");
    assert_eq!(harness.one("SELECT 1 AS x; -- and no more", json!([])).await, json!(1));
}

#[tokio::test]
async fn forbidden_addresses_are_not_dialled() {
    let cluster = Cluster::shared();
    let port = cluster.address().port();
    for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "%2Ftmp"] {
        let harness = Harness::with(Egress::default());
        harness.name("db", to(format!("postgres://postgres@{host}:{port}/postgres")));
        let failure = harness.query("SELECT 1 AS x", json!([])).await.unwrap_err();
        check(&failure, "egress_refused", "`private_addresses`");
        assert!(!failure.retryable);
    }
    for url in ["postgres://x@169.254.169.254/x", "postgres://x@public.example/x?hostaddr=169.254.169.254"] {
        let failure = Harness::on(url).query("SELECT 1 AS x", json!([])).await.unwrap_err();
        check(&failure, "egress_refused", "link-local or cloud metadata");
    }
    let harness = Harness::on(format!("postgres://postgres@localhost:{port}/postgres"));
    assert_eq!(harness.one("SELECT 1 AS x", json!([])).await, json!(1));
}

#[tokio::test]
async fn a_deadlock_is_retryable() {
    let (schema, harness) = postgres();
    schema.execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)");
    // Each updates one row and then waits for the other's.
    let sql = "DO $$ BEGIN UPDATE t SET n = n + 1 WHERE id = %; PERFORM pg_sleep(0.3);
               UPDATE t SET n = n + 1 WHERE id = 3 - %; END $$";
    let one = harness.write(&sql.replace('%', "1").clone(), json!([])).await;
    one.unwrap();
    let [first, second] = [sql.replace('%', "1"), sql.replace('%', "2")];
    let (a, b) = tokio::join!(harness.write(&first, json!([])), harness.write(&second, json!([])));
    let failure = a.and(b).unwrap_err();
    check(&failure, "sql_40P01", "deadlock");
    assert!(failure.retryable && !failure.may_have_happened);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_reports_whether_the_change_may_have_been_made() {
    let cluster = Cluster::shared();
    let schema = cluster.schema();
    schema.execute(
        "CREATE TABLE t (id int);
         CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
         CREATE TABLE late (id int);
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION slowly()",
    );
    let observer = Harness::on(schema.url());
    let active = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'broken' AND state = 'active'
                  AND query LIKE $1 AND wait_event = 'PgSleep'";
    for (sql, seen, may_have_happened) in [
        ("INSERT INTO t SELECT 1 FROM pg_sleep(600)", "INSERT%", false),
        ("INSERT INTO late VALUES (1)", "COMMIT%", true),
    ] {
        let proxy = Proxy::to(cluster.address());
        let harness = Harness::on(format!("{}&application_name=broken", proxy.url(schema.url())));
        let step = tokio::spawn(async move { harness.write(sql, json!([])).await });
        until(seen, || async { observer.one(active, json!([seen])).await == json!(1) }).await;
        proxy.cut();
        let failure = step.await.unwrap().unwrap_err();
        check(&failure, "connection_lost", "");
        let reported = (failure.kind, failure.retryable, failure.may_have_happened);
        assert_eq!(reported, (FailureKind::Network, true, may_have_happened), "{sql}");
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'broken'";
        stepwell_testing::execute(schema.url(), end).unwrap();
    }
}
