//! Several hosts in one URL, of which one accepts connections and no longer answers.

use super::{PgStore, eventually};
use crate::sample::*;
use std::time::Duration;
use stepwell_store::*;
use stepwell_testing::{Cluster, Proxy, Schema};

/// A store whose URL has two hosts that lead to the same database, each through a network that can be silenced.
async fn with_two_hosts() -> (PgStore, [Proxy; 2], Schema) {
    let schema = Cluster::shared().schema();
    let server = super::failures::server();
    let proxies = [Proxy::to(server), Proxy::to(server)];
    let hosts = format!("{},{}", proxies[0].address(), proxies[1].address());
    let url = schema.url().replacen(&server.to_string(), &hosts, 1);
    let options = PostgresOptions { lease: Duration::from_secs(4), ..PostgresOptions::new(url) };
    (PgStore::open(&options).await.unwrap(), proxies, schema)
}

/// A heartbeat with the deadline that a node gives it.
async fn beats(store: &PgStore) -> bool {
    let beat = tokio::time::timeout(Duration::from_secs(2), store.beat(NODE)).await;
    matches!(beat, Ok(Ok(true)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_accepts_and_does_not_answer_is_passed_over() {
    let (store, [first, _second], _schema) = with_two_hosts().await;
    join(&store, NODE).await;
    accepted(&store, create(1)).await;
    assert!(beats(&store).await);
    // Connections stay open, and new ones are accepted.
    first.silence();
    eventually("a heartbeat through the other host", async || beats(&store).await.then_some(())).await;
    // Connections to the silent host are closed: nothing waits on one until its answer is overdue.
    let version = async || Some(store.load(RunId(1)).await.ok()??.version);
    assert_eq!(eventually("an answer", version).await, Version(1));
    eventually("a commit", async || store.commit(vec![create(2)]).await.ok()).await;
    accepted(&store, next(1, 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_on_a_silent_host_fails_when_the_heartbeat_moves_to_another() {
    let (store, [first, _second], _schema) = with_two_hosts().await;
    join(&store, NODE).await;
    accepted(&store, create(1)).await;
    assert!(beats(&store).await);
    first.silence();
    let waiting = tokio::time::Instant::now();
    let answer = async {
        let answer = store.commit(vec![next(1, 1)]).await;
        (answer, waiting.elapsed())
    };
    let moved = eventually("a heartbeat through the other host", async || beats(&store).await.then_some(()));
    let ((answer, _), ()) = tokio::join!(answer, moved);
    // Unknown: the statement may have arrived. The writer connects to the host that answers.
    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    eventually("a commit", async || store.commit(vec![create(2)]).await.ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_opens_although_the_first_host_does_not_answer() {
    let schema = Cluster::shared().schema();
    let server = super::failures::server();
    let silent = Proxy::to(server);
    silent.silence();
    let url = schema.url().replacen(&server.to_string(), &format!("{},{server}", silent.address()), 1);
    accepted(&super::open(&url).await, create(1)).await;
}
