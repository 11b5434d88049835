//! Behaviour specific to PostgreSQL: several processes on one database.

mod blocking;
mod concurrency;
mod failures;
mod hosts;
mod open;
mod pooler;
mod tls;

use std::time::{Duration, Instant};
use stepwell_store::PostgresOptions;
use stepwell_store::postgres::PgStore;
use stepwell_testing::{Cluster, Schema};

/// Most operations take milliseconds, but the machine may be loaded.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty store and its schema.
pub async fn fresh() -> (PgStore, Schema) {
    let schema = Cluster::shared().schema();
    (open(schema.url()).await, schema)
}

/// Like [`fresh`], with one writer, so that positions are in the order of all commits.
pub async fn with_one_writer() -> (PgStore, Schema) {
    let schema = Cluster::shared().schema();
    // No lease expires, however long the test takes.
    let lease = Duration::from_secs(3_600);
    let options = PostgresOptions { writers: 1, lease, ..PostgresOptions::new(schema.url()) };
    (PgStore::open(&options).await.unwrap(), schema)
}

pub async fn open(url: &str) -> PgStore {
    PgStore::open(&PostgresOptions::new(url)).await.unwrap()
}

/// Two stores on one schema, as in two processes.
async fn two() -> (PgStore, PgStore, Schema) {
    let schema = Cluster::shared().schema();
    let (one, other) = tokio::join!(open(schema.url()), open(schema.url()));
    (one, other, schema)
}

/// Polls until there is a result.
async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out waiting for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
