//! What only the store on PostgreSQL has: several processes on one database.

mod held;
mod losing;
mod opening;
mod pooled;
mod sharing;

use std::time::{Duration, Instant};
use stepwell_store::PostgresOptions;
use stepwell_store::postgres::PgStore;
use stepwell_testing::{Cluster, Schema};

/// Most things take milliseconds; a loaded machine gets its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// An empty store, and the schema that goes with it.
pub async fn fresh() -> (PgStore, Schema) {
    let schema = Cluster::shared().schema();
    (open(schema.url()).await, schema)
}

/// The same, with positions in the order of all commits.
pub async fn with_one_writer() -> (PgStore, Schema) {
    let schema = Cluster::shared().schema();
    // Nobody is given up, however long it takes.
    let lease = Duration::from_secs(3_600);
    let options = PostgresOptions { writers: 1, lease, ..PostgresOptions::new(schema.url()) };
    (PgStore::open(&options).await.unwrap(), schema)
}

async fn open(url: &str) -> PgStore {
    PgStore::open(&PostgresOptions::new(url)).await.unwrap()
}

/// Two stores on one schema, as two processes have them.
async fn two() -> (PgStore, PgStore, Schema) {
    let schema = Cluster::shared().schema();
    let (one, other) = tokio::join!(open(schema.url()), open(schema.url()));
    (one, other, schema)
}

/// Asks until there is an answer.
async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
