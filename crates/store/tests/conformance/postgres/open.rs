//! Opening a database: settings, foreign tables, schema versions and the clock.

use super::PgStore;
use crate::sample::*;
use stepwell_store::*;
use stepwell_testing::{Cluster, Schema, execute};

async fn refused(options: &PostgresOptions) -> String {
    match PgStore::open(options).await {
        Err(Error::Unusable(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the store was opened"),
    }
}

/// Options of a connection with a changed setting.
fn set(schema: &Schema, setting: &str) -> PostgresOptions {
    PostgresOptions::new(format!("{}%20-c{setting}", schema.url()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_unsafe_settings_is_refused_unless_accepted() {
    let schema = Cluster::shared().schema();
    let careless = set(&schema, "synchronous_commit%3Doff");
    let why = refused(&careless).await;
    assert!(why.contains("synchronous_commit = off") && why.contains("unsafe_settings"), "{why}");
    let wanted = PostgresOptions { unsafe_settings: true, ..careless };
    accepted(&PgStore::open(&wanted).await.unwrap(), create(1)).await;
    // A server-wide setting.
    let cluster = Cluster::start();
    for setting in ["full_page_writes", "fsync"] {
        execute(cluster.url(), &format!("ALTER SYSTEM SET {setting} = off")).unwrap();
        cluster.stop();
        cluster.start_again();
        let why = refused(&PostgresOptions::new(cluster.url())).await;
        assert!(why.contains(&format!("{setting} = off")), "{why}");
        execute(cluster.url(), &format!("ALTER SYSTEM RESET {setting}")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_another_program_are_not_touched() {
    for table in ["workflow_runs", "mail"] {
        let schema = Cluster::shared().schema();
        schema.execute(&format!("CREATE TABLE {table} (subject TEXT); INSERT INTO {table} VALUES ('hello')"));
        refused(&PostgresOptions::new(schema.url())).await;
        // Fails if there is another table or another row.
        schema.execute(&format!(
            "DO $$ BEGIN
               ASSERT (SELECT count(*) FROM pg_tables WHERE schemaname = current_schema) = 1, 'tables were created';
               ASSERT (SELECT array_agg(subject) FROM {table}) = ARRAY['hello'], 'rows were changed';
             END $$"
        ));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_schema_is_refused_and_left_unchanged_unless_it_is_compatible() {
    let (store, schema) = super::fresh().await;
    accepted(&store, create(1)).await;
    drop(store);
    schema.execute("UPDATE stepwell_schema SET version = 99, usable_by = 99");
    let why = refused(&PostgresOptions::new(schema.url())).await;
    assert!(why.contains("99") && why.contains("newer"), "{why}");
    schema.execute(
        "DO $$ BEGIN ASSERT (SELECT version + usable_by FROM stepwell_schema) = 198, 'it was changed'; END $$;
         UPDATE stepwell_schema SET usable_by = 1",
    );
    let older = super::open(schema.url()).await;
    accepted(&older, next(1, 1)).await;
    schema.execute("DO $$ BEGIN ASSERT (SELECT version FROM stepwell_schema) = 99, 'it was changed'; END $$");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_nodes_that_do_not_name_their_organisation_are_in_its_feed() {
    let (store, schema) = super::fresh().await;
    for commit in [create(1), next(1, 1), next(1, 2)] {
        accepted(&store, commit).await;
    }
    let all = store.feed(&Progress::default(), 10).await.unwrap();
    schema.execute("UPDATE workflow_events SET org = NULL WHERE version = 2");
    assert_eq!(store.feed_of(ORG, &Progress::default(), 10).await.unwrap(), all);
    assert!(store.feed_of(OrgId(99), &Progress::default(), 10).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_store_of_the_first_schema_gets_its_organisations() {
    let (store, schema) = super::fresh().await;
    accepted(&store, create(1)).await;
    drop(store);
    schema.execute(
        "ALTER TABLE workflow_events DROP COLUMN org; ALTER TABLE workflow_runs DROP COLUMN root;
         ALTER TABLE nodes DROP COLUMN tallies; DROP TABLE tallies; UPDATE stepwell_schema SET version = 1",
    );
    let store = super::open(schema.url()).await;
    assert_eq!(store.feed_of(ORG, &Progress::default(), 10).await.unwrap().len(), 1);
    schema.execute("DO $$ BEGIN ASSERT (SELECT org FROM workflow_events) = 1, 'it was not migrated'; END $$");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_processes_can_create_the_schema_concurrently() {
    let schema = Cluster::shared().schema();
    let options = PostgresOptions::new(schema.url());
    let (a, b, c, d) = tokio::join!(
        PgStore::open(&options),
        PgStore::open(&options),
        PgStore::open(&options),
        PgStore::open(&options)
    );
    for (store, run) in [a, b, c, d].into_iter().zip(1..) {
        accepted(&store.unwrap(), create(run)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_created_by_three_nodes_at_once_leave_no_error_in_the_database_log() {
    let cluster = Cluster::start();
    for _ in 0..5 {
        let schema = cluster.schema();
        let options = PostgresOptions::new(schema.url());
        let (a, b, c) = tokio::join!(PgStore::open(&options), PgStore::open(&options), PgStore::open(&options));
        for (store, run) in [a, b, c].into_iter().zip(1..) {
            accepted(&store.unwrap(), create(run)).await;
        }
    }
    let log = cluster.log();
    assert!(!log.contains("ERROR"), "{log}");
}

/// A store whose database has a fake clock: names in the schema take precedence over built-in functions.
async fn with_clock(schema: &Schema, clock: &str) -> PgStore {
    set_clock(schema, clock);
    super::open(&format!("{}%2Cpg_catalog", schema.url())).await
}

fn set_clock(schema: &Schema, clock: &str) {
    schema.execute(&format!(
        "CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ {clock} $$"
    ));
}

#[track_caller]
fn is_ahead(store: &PgStore, expected: i64) {
    let ahead = store.ahead();
    assert!((ahead - expected).abs() < 1_000, "ahead by {ahead} ms, expected {expected} ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_follows_the_database_clock() {
    let schema = Cluster::shared().schema();
    is_ahead(&super::open(schema.url()).await, 0);
    let store = with_clock(&schema, "SELECT pg_catalog.clock_timestamp() + interval '5 seconds'").await;
    is_ahead(&store, 5_000);
    join(&store, NODE).await;
    set_clock(&schema, "SELECT pg_catalog.clock_timestamp() - interval '30 seconds'");
    assert!(store.beat(NODE).await.unwrap());
    is_ahead(&store, -30_000);
}

/// As in a process that was suspended during the query, or on a slow network: otherwise timers would fire early.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_answer_does_not_set_the_clock() {
    let schema = Cluster::shared().schema();
    let store = with_clock(&schema, "SELECT pg_catalog.clock_timestamp()").await;
    join(&store, NODE).await;
    set_clock(&schema, "SELECT pg_catalog.pg_sleep(4); SELECT pg_catalog.clock_timestamp()");
    assert!(store.beat(NODE).await.unwrap());
    is_ahead(&store, 0);
}
