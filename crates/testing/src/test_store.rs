//! Where a test's data is: a temporary directory, and on PostgreSQL also a schema.

use crate::{Cluster, Schema};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::{Error, Location, PostgresOptions, Store};

/// Tests that kill a node do not want to wait long for others to take over.
const LEASE: Duration = Duration::from_secs(1);

/// Whether suites run on PostgreSQL.
pub fn on_postgres() -> bool {
    match std::env::var("STEPWELL_TEST_STORE").as_deref() {
        Ok("postgres") => true,
        Ok("sqlite" | "") | Err(_) => false,
        Ok(other) => panic!("STEPWELL_TEST_STORE={other}: sqlite and postgres are known"),
    }
}

/// True if a test has nothing to test here, because it is about the embedded store's own files. Says so.
pub fn embedded_only(why: &str) -> bool {
    if on_postgres() {
        eprintln!("left out on PostgreSQL: {why}");
    }
    on_postgres()
}

/// True if a test has nothing to test here, because it is about a database that processes share.
pub fn postgres_only(why: &str) -> bool {
    if !on_postgres() {
        eprintln!("left out on the embedded store: {why}");
    }
    !on_postgres()
}

pub struct TestStore {
    directory: tempfile::TempDir,
    schema: Option<Schema>,
}

impl Default for TestStore {
    fn default() -> TestStore {
        let schema = on_postgres().then(|| Cluster::shared().schema());
        TestStore { directory: tempfile::tempdir().unwrap(), schema }
    }
}

impl TestStore {
    /// On the store that suites run on.
    pub fn new() -> TestStore {
        TestStore::default()
    }

    /// Empty, and not shared with other tests.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Not made yet. The embedded store is in there.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    pub fn location(&self) -> Location {
        match &self.schema {
            Some(schema) => Location::Postgres(PostgresOptions { lease: LEASE, ..PostgresOptions::new(schema.url()) }),
            None => Location::Directory(self.data()),
        }
    }

    /// Opens it, also again. The embedded store must have been closed before.
    pub async fn open(&self) -> Result<Arc<dyn Store>, Error> {
        self.location().open().await
    }

    /// What tells a process where the store is.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let Some(schema) = &self.schema else { return Vec::new() };
        let lease = format!("{}ms", LEASE.as_millis());
        // Nodes have no directory in common, in which one could be made.
        let master = "5a".repeat(32);
        vec![
            ("STEPWELL_DATABASE", schema.url().to_string()),
            ("STEPWELL_NODE_LEASE", lease),
            ("STEPWELL_MASTER_KEY", master),
        ]
    }
}
