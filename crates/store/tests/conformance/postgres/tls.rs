//! TLS to the database: what is trusted, and that nothing falls back to a connection in the clear.

use super::PgStore;
use crate::sample::*;
use std::path::PathBuf;
use stepwell_store::*;
use stepwell_testing::{Authority, Cluster, execute};

const OURS: &str = "stepwell test authority";

/// The cluster under this host name and with these parameters.
fn url(cluster: &Cluster, host: &str, parameters: &str) -> String {
    format!("postgres://postgres@{host}:{}/postgres{parameters}", cluster.address().port())
}

async fn refused(url: String, ca_file: Option<PathBuf>) -> String {
    match PgStore::open(&PostgresOptions { ca_file, ..PostgresOptions::new(url) }).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("the store was opened"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_database_with_a_valid_certificate_of_its_host_is_opened() {
    let (ours, other) = (Authority::new(OURS), Authority::new("another authority"));
    let cluster = Cluster::start_with_tls(&ours.issue("localhost"));
    let trusted = || Some(ours.path().to_path_buf());
    for mode in ["require", "verify-full"] {
        let url = url(&cluster, "localhost", &format!("?sslmode={mode}"));
        let store = PgStore::open(&PostgresOptions { ca_file: trusted(), ..PostgresOptions::new(url) }).await.unwrap();
        // Fails by a division if a connection of the store is in the clear.
        let clear = "SELECT 1 / (CASE WHEN bool_and(ssl) THEN 1 ELSE 0 END) FROM pg_stat_ssl JOIN pg_stat_activity \
                     USING (pid) WHERE application_name LIKE 'stepwell%'";
        execute(cluster.url(), clear).unwrap();
        if mode == "require" {
            accepted(&store, create(1)).await;
        }
    }
    // The default mode and `require` alike: an untrusted certificate never leads to a connection without TLS.
    for parameters in ["", "?sslmode=prefer", "?sslmode=require"] {
        let why = refused(url(&cluster, "localhost", parameters), Some(other.path().to_path_buf())).await;
        assert!(why.contains("UnknownIssuer") || why.contains("BadSignature"), "{why}");
        let why = refused(url(&cluster, "localhost", parameters), None).await;
        assert!(why.contains("certificate"), "{why}");
        let why = refused(url(&cluster, "127.0.0.1", parameters), trusted()).await;
        assert!(why.contains("not valid for name"), "{why}");
    }
    cluster.present(&ours.issue_expired("localhost"));
    for parameters in ["", "?sslmode=require"] {
        let why = refused(url(&cluster, "localhost", parameters), trusted()).await;
        assert!(why.contains("expired"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_that_is_required_is_not_given_up_for_a_server_without_it() {
    let cluster = Cluster::start();
    for mode in ["require", "verify-full"] {
        let why = refused(url(&cluster, "localhost", &format!("?sslmode={mode}")), None).await;
        assert!(why.contains("does not support TLS"), "{why}");
    }
    let why = refused(url(&cluster, "localhost", "?sslrootcert=/etc/ca.pem"), None).await;
    assert!(why.contains("`database.ca_file`"), "{why}");
    let empty = tempfile::NamedTempFile::new().unwrap();
    let why = refused(url(&cluster, "localhost", ""), Some(empty.path().to_path_buf())).await;
    assert!(why.contains("there is no certificate in this file"), "{why}");
}
