//! What only the store on PostgreSQL has: several processes on one database.

use std::time::Duration;
use stepwell_store::PostgresOptions;
use stepwell_store::postgres::PgStore;
use stepwell_testing::{Cluster, Schema};

/// An empty store, and the schema that goes with it.
pub async fn fresh() -> (PgStore, Schema) {
    let schema = Cluster::shared().schema();
    (PgStore::open(&PostgresOptions::new(schema.url())).await.unwrap(), schema)
}

/// The same, with positions in the order of all commits.
pub async fn with_one_writer() -> (PgStore, Schema) {
    let schema = Cluster::shared().schema();
    // Nobody is given up, however long it takes.
    let lease = Duration::from_secs(3_600);
    let options = PostgresOptions { writers: 1, lease, ..PostgresOptions::new(schema.url()) };
    (PgStore::open(&options).await.unwrap(), schema)
}
