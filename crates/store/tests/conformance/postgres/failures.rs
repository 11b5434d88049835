//! Lost answers and silent nodes.

use super::blocking::{Blocker, begin};
use super::{PgStore, eventually};
use crate::sample::*;
use std::pin::pin;
use std::time::Duration;
use stepwell_store::*;
use stepwell_testing::{Cluster, Proxy, Schema};

/// Where the shared server listens.
pub fn server() -> std::net::SocketAddr {
    let url = Cluster::shared().url();
    let address = url.split_once('@').unwrap().1.split('/').next().unwrap();
    address.parse().expect("an address and a port")
}

/// A store whose network can be cut, its proxy, a second store on the same schema, and the schema.
async fn cuttable() -> (PgStore, Proxy, PgStore, Schema) {
    let schema = Cluster::shared().schema();
    let proxy = Proxy::to(server());
    let far = super::open(&proxy.url(schema.url())).await;
    let near = super::open(schema.url()).await;
    (far, proxy, near, schema)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_applied_and_its_retry_conflicts() {
    let (far, proxy, near, schema) = cuttable().await;
    accepted(&far, create(1)).await;
    let blocker = Blocker::writers(&schema).await;
    let second = || Commit {
        values: vec![value(0, "7")],
        work: Diff { put: vec![work("a", ORG, 1, Some(NODE))], ..Diff::default() },
        ..next(1, 1)
    };
    let mut answer = pin!(far.commit(vec![second()]));
    begin(answer.as_mut()).await;
    blocker.wait_until_blocking(1).await;
    // The statement has arrived; the database's answer does not get through.
    proxy.silence();
    blocker.release().await;
    eventually("the commit to be applied", async || {
        Some(near.load(RunId(1)).await.unwrap().unwrap().version).filter(|version| *version == Version(2))
    })
    .await;
    proxy.cut();
    assert!(matches!(answer.await, Err(Error::Unavailable(_))));
    proxy.heal();
    assert_eq!(commit(&far, second()).await, Err(Refused::Conflict));
    let loaded = far.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.values), (Version(2), vec![value(0, "7")]));
    // The node holds the attempt it claimed at commit, although it never got the answer.
    assert_eq!(far.held(NODE).await.unwrap().len(), 1);
    accepted(&far, next(1, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_created_run_whose_answer_was_lost_is_found_by_its_key() {
    let (far, proxy, near, schema) = cuttable().await;
    let made = |run: i64| Commit { unique: vec![unique("trigger", "k")], ..create(run) };
    accepted(&far, create(9)).await;
    accepted(&far, create(8)).await;
    let blocker = Blocker::writers(&schema).await;
    let mut answer = pin!(far.commit(vec![made(1)]));
    begin(answer.as_mut()).await;
    blocker.wait_until_blocking(1).await;
    proxy.silence();
    blocker.release().await;
    eventually("the run", async || near.load(RunId(1)).await.unwrap()).await;
    proxy.cut();
    assert!(matches!(answer.await, Err(Error::Unavailable(_))));
    proxy.heal();
    // A retry comes with a new run id. The cut of another connection may be noticed only when it is used.
    for (store, run) in [(&far, 2), (&near, 3)] {
        let answer = eventually("an answer", async || store.commit(vec![made(run)]).await.ok()).await.remove(0);
        assert_eq!(answer, Err(Refused::Duplicate { run: RunId(1), digest: "d".into() }));
    }
    assert_eq!(near.load(RunId(2)).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_interrupted_between_its_statements_leaves_nothing() {
    let (far, proxy, near, schema) = cuttable().await;
    accepted(&far, create(1)).await;
    accepted(&far, create(2)).await;
    let blocker = Blocker::writers(&schema).await;
    let grouped = || {
        let groups = vec![GroupChange::Enter { key: "p".into(), limit: Some(1) }];
        Commit { groups, unique: vec![unique("trigger", "k")], ..create(3) }
    };
    let mut answer = pin!(far.commit(vec![grouped()]));
    begin(answer.as_mut()).await;
    blocker.wait_until_blocking(1).await;
    proxy.silence();
    blocker.release().await;
    proxy.cut();
    assert!(matches!(answer.await, Err(Error::Unavailable(_))));
    assert_eq!(near.load(RunId(3)).await.unwrap(), None);
    // The server detects the lost client and rolls back; the next commit waits for that.
    accepted(
        &near,
        Commit {
            run: RunId(4),
            create: Some(NewRun { public: "run_4".into(), ..create(4).create.unwrap() }),
            ..grouped()
        },
    )
    .await;
    proxy.heal();
    assert!(matches!(commit(&far, grouped()).await, Err(Refused::Duplicate { run: RunId(4), .. })));
    assert_eq!(near.holder("p").await.unwrap(), Some(RunId(4)));
    assert_eq!(near.runs(every_run()).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_node_loses_its_lease_and_finds_out() {
    let schema = Cluster::shared().schema();
    let lease = Duration::from_secs(1);
    let options = PostgresOptions { lease, ..PostgresOptions::new(schema.url()) };
    let (quiet, loud) = (PgStore::open(&options).await.unwrap(), PgStore::open(&options).await.unwrap());
    join(&quiet, NODE).await;
    join(&loud, NodeId(8)).await;
    let mut born = create(1);
    born.work.put = vec![work("a", ORG, 1, Some(NODE)), work("b", ORG, 1, Some(NodeId(8)))];
    accepted(&quiet, born).await;
    loud.give_up_silent().await.unwrap();
    assert!(loud.orphans(None, 10).await.unwrap().is_empty());
    assert!(quiet.beat(NODE).await.unwrap());
    let orphans = eventually("a lease to expire", async || {
        assert!(loud.beat(NodeId(8)).await.unwrap());
        loud.give_up_silent().await.unwrap();
        Some(loud.orphans(None, 10).await.unwrap()).filter(|orphans| !orphans.is_empty())
    })
    .await;
    assert_eq!(orphans.iter().map(|work| work.key.path.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(!quiet.beat(NODE).await.unwrap(), "its heartbeats are no longer accepted");
    assert_eq!(loud.nodes().await.unwrap().iter().map(|row| row.node.id).collect::<Vec<_>>(), [NodeId(8)]);
    // Its earlier decision is refused if another node has committed since.
    let mut taken = next(1, 1);
    taken.work.remove = vec![WorkKey { path: "a".into(), attempt: 1 }];
    accepted(&loud, taken.clone()).await;
    assert_eq!(commit(&quiet, taken).await, Err(Refused::Conflict));
}
