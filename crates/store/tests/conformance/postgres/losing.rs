//! Answers that are lost, nodes that are not heard of.

use super::held::{Held, begin};
use super::{PgStore, eventually};
use crate::sample::*;
use std::pin::pin;
use std::time::Duration;
use stepwell_store::*;
use stepwell_testing::{Cluster, Proxy, Schema};

/// Where the shared server listens.
fn server() -> std::net::SocketAddr {
    let url = Cluster::shared().url();
    let place = url.split_once('@').unwrap().1.split('/').next().unwrap();
    place.parse().expect("an address and a port")
}

/// A store whose network can be cut, another that goes on, and where both are.
async fn cuttable() -> (PgStore, Proxy, PgStore, Schema) {
    let schema = Cluster::shared().schema();
    let proxy = Proxy::to(server());
    let far = super::open(&proxy.url(schema.url())).await;
    let near = super::open(schema.url()).await;
    (far, proxy, near, schema)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_stands_and_its_retry_conflicts() {
    let (far, proxy, near, schema) = cuttable().await;
    accepted(&far, create(1)).await;
    let held = Held::writers(&schema).await;
    let second = || Commit {
        values: vec![value(0, "7")],
        work: Diff { put: vec![work("a", ORG, 1, Some(NODE))], ..Diff::default() },
        ..next(1, 1)
    };
    let mut answer = pin!(far.commit(vec![second()]));
    begin(answer.as_mut()).await;
    held.is_waited_for(1).await;
    // The statement has arrived; what the database says to it does not get through.
    proxy.silence();
    held.let_go().await;
    eventually("the commit to stand", async || {
        Some(near.load(RunId(1)).await.unwrap().unwrap().version).filter(|version| *version == Version(2))
    })
    .await;
    proxy.cut();
    assert!(matches!(answer.await, Err(Error::Unavailable(_))));
    proxy.heal();
    assert_eq!(commit(&far, second()).await, Err(Refused::Conflict));
    let loaded = far.load(RunId(1)).await.unwrap().unwrap();
    assert_eq!((loaded.version, loaded.values), (Version(2), vec![value(0, "7")]));
    // What was born claimed by it is what it holds, although it was never told so.
    assert_eq!(far.held(NODE).await.unwrap().len(), 1);
    accepted(&far, next(1, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_making_was_not_answered_is_found_by_its_key() {
    let (far, proxy, near, schema) = cuttable().await;
    let made = |run: i64| Commit { unique: vec![unique("trigger", "k")], ..create(run) };
    accepted(&far, create(9)).await;
    accepted(&far, create(8)).await;
    let held = Held::writers(&schema).await;
    let mut answer = pin!(far.commit(vec![made(1)]));
    begin(answer.as_mut()).await;
    held.is_waited_for(1).await;
    proxy.silence();
    held.let_go().await;
    eventually("the run", async || near.load(RunId(1)).await.unwrap()).await;
    proxy.cut();
    assert!(matches!(answer.await, Err(Error::Unavailable(_))));
    proxy.heal();
    // Whoever asks again has made up another run meanwhile.
    for (store, run) in [(&far, 2), (&near, 3)] {
        let answer = commit(store, made(run)).await;
        assert_eq!(answer, Err(Refused::Duplicate { run: RunId(1), digest: "d".into() }));
    }
    assert_eq!(near.load(RunId(2)).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_of_several_statements_that_is_cut_off_between_them_leaves_nothing() {
    let (far, proxy, near, schema) = cuttable().await;
    accepted(&far, create(1)).await;
    accepted(&far, create(2)).await;
    let held = Held::writers(&schema).await;
    let placed = || {
        let groups = vec![GroupChange::Enter { key: "p".into(), limit: Some(1) }];
        Commit { groups, unique: vec![unique("trigger", "k")], ..create(3) }
    };
    let mut answer = pin!(far.commit(vec![placed()]));
    begin(answer.as_mut()).await;
    held.is_waited_for(1).await;
    proxy.silence();
    held.let_go().await;
    proxy.cut();
    assert!(matches!(answer.await, Err(Error::Unavailable(_))));
    assert_eq!(near.load(RunId(3)).await.unwrap(), None);
    // The server finds out that nobody is there and takes the place back; whoever wants it waits for that.
    accepted(
        &near,
        Commit {
            run: RunId(4),
            create: Some(NewRun { public: "run_4".into(), ..create(4).create.unwrap() }),
            ..placed()
        },
    )
    .await;
    proxy.heal();
    assert!(matches!(commit(&far, placed()).await, Err(Refused::Duplicate { run: RunId(4), .. })));
    assert_eq!(near.holder("p").await.unwrap(), Some(RunId(4)));
    assert_eq!(near.runs(every_run()).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_not_heard_of_is_given_up_by_another_and_is_told_so() {
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
    assert!(loud.orphans(10).await.unwrap().is_empty());
    assert!(quiet.beat(NODE).await.unwrap());
    let orphans = eventually("somebody to be given up", async || {
        assert!(loud.beat(NodeId(8)).await.unwrap());
        loud.give_up_silent().await.unwrap();
        Some(loud.orphans(10).await.unwrap()).filter(|orphans| !orphans.is_empty())
    })
    .await;
    assert_eq!(orphans.iter().map(|work| work.key.path.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(!quiet.beat(NODE).await.unwrap(), "from now on it cannot say that it is alive");
    assert_eq!(loud.nodes().await.unwrap().iter().map(|row| row.node.id).collect::<Vec<_>>(), [NodeId(8)]);
    // What it decided before it found out is refused where somebody else has decided since.
    let mut taken = next(1, 1);
    taken.work.remove = vec![WorkKey { path: "a".into(), attempt: 1 }];
    accepted(&loud, taken.clone()).await;
    assert_eq!(commit(&quiet, taken).await, Err(Refused::Conflict));
}
