//! Commits that wait for a row locked by the test, so that the test can act meanwhile.

use super::{PgStore, eventually};
use crate::sample::*;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use stepwell_store::*;
use stepwell_testing::{Cluster, Schema};
use tokio_postgres::{Client, NoTls};

/// An open transaction that holds locks.
pub struct Blocker {
    client: Client,
}

impl Blocker {
    pub async fn begin(schema: &Schema) -> Blocker {
        let (client, connection) = tokio_postgres::connect(schema.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        Blocker { client }
    }

    pub async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Blocks every writer from now on.
    pub async fn writers(schema: &Schema) -> Blocker {
        let blocker = Blocker::begin(schema).await;
        blocker.run("SELECT 1 FROM writers FOR UPDATE").await;
        blocker
    }

    /// Waits until this many statements are blocked by this transaction.
    pub async fn wait_until_blocking(&self, by: i64) {
        let me = self.number("SELECT pg_backend_pid()::bigint").await;
        let (watch, connection) = tokio_postgres::connect(Cluster::shared().url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE {me} = ANY(pg_blocking_pids(pid))");
        eventually("a blocked statement", async || {
            let waiting: i64 = watch.query_one(&sql, &[]).await.unwrap().get(0);
            (waiting >= by).then_some(())
        })
        .await;
    }

    pub async fn release(self) {
        self.run("COMMIT").await;
    }
}

/// Polls a future once, so that it starts.
pub async fn begin<F: Future>(future: std::pin::Pin<&mut F>) {
    let mut future = future;
    poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending(), "the future should be pending");
        Poll::Ready(())
    })
    .await;
}

/// Returns the results of commits that share one statement: they queue up behind a commit that is blocked.
async fn in_one_batch(store: &PgStore, schema: &Schema, batch: Vec<Commit>) -> Vec<Result<Position, Refused>> {
    // A writer takes its row with its first commit.
    accepted(store, create(999)).await;
    let blocker = Blocker::writers(schema).await;
    let mut first = pin!(commit(store, create(1_000)));
    begin(first.as_mut()).await;
    blocker.wait_until_blocking(1).await;
    let outcomes = RefCell::new(vec![None; batch.len()]);
    let send = async |(n, one): (usize, Commit)| {
        let outcome = commit(store, one).await;
        outcomes.borrow_mut()[n] = Some(outcome);
    };
    let mut rest = pin!(all(batch.into_iter().enumerate().map(&send).collect()));
    begin(rest.as_mut()).await;
    blocker.release().await;
    let (first, ()) = tokio::join!(first, rest);
    first.unwrap();
    outcomes.take().into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_commit_of_a_batch_is_applied_or_refused_on_its_own() {
    let (store, schema) = super::with_one_writer().await;
    for run in 1..=4 {
        accepted(&store, create(run)).await;
    }
    let stale = Commit { auth: Auth { org: ORG, epoch: 0 }, ..next(3, 1) };
    let answers = in_one_batch(&store, &schema, vec![next(1, 0), next(2, 1), stale, next(4, 1), create(5)]).await;
    let refused: Vec<Option<&Refused>> = answers.iter().map(|answer| answer.as_ref().err()).collect();
    assert_eq!(refused, [Some(&Refused::Conflict), None, Some(&Refused::AuthChanged), None, None]);
    for (run, version) in [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1)] {
        assert_eq!(store.load(RunId(run)).await.unwrap().unwrap().version, Version(version), "run {run}");
        assert_eq!(store.tail(RunId(run), Version(0), 10).await.unwrap().len() as i64, version, "run {run}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_commit_of_a_batch_gets_a_contested_key_or_slot() {
    let (store, schema) = super::with_one_writer().await;
    let keyed = |run: i64| Commit { unique: vec![unique("trigger", "k")], ..create(run) };
    let grouped = |run: i64| {
        let groups = vec![GroupChange::Enter { key: "p".into(), limit: Some(1) }];
        Commit { groups, ..create(run) }
    };
    let limited = |run: i64| {
        let mut commit = create(run);
        commit.create.as_mut().unwrap().most_open = Some(5);
        commit
    };
    let batch = vec![keyed(1), grouped(2), keyed(3), grouped(4), limited(5), limited(6)];
    let answers = in_one_batch(&store, &schema, batch).await;
    // With the runs from before the batch, four runs are open, then five.
    let kinds: Vec<&str> = answers
        .iter()
        .map(|answer| match answer {
            Ok(_) => "ok",
            Err(Refused::Duplicate { run: RunId(1), .. }) => "duplicate",
            Err(Refused::Full) => "full",
            Err(Refused::TooManyOpen) => "too many",
            Err(other) => panic!("{other}"),
        })
        .collect();
    assert_eq!(kinds, ["ok", "ok", "duplicate", "full", "ok", "too many"]);
    for (run, there) in [(1, true), (2, true), (3, false), (4, false), (5, true), (6, false)] {
        assert_eq!(store.load(RunId(run)).await.unwrap().is_some(), there, "run {run}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_lost_its_row_commits_only_under_another_row() {
    let (store, schema) = super::with_one_writer().await;
    let group = GroupChange::Enter { key: "p".into(), limit: Some(9) };
    let row = NewAudit {
        at: stepwell_core::time::Time(1),
        org: ORG,
        by: "ann".into(),
        action: "a".into(),
        target: "t".into(),
        detail: "{}".into(),
    };
    let sorts = [create(1), Commit { groups: vec![group], ..create(2) }, Commit { audit: vec![row], ..create(3) }];
    let mut used = Vec::new();
    accepted(&store, create(10)).await;
    for one in sorts {
        let blocker = Blocker::begin(&schema).await;
        let old = blocker.number("SELECT max(id)::bigint FROM writers WHERE holder IS NOT NULL").await;
        blocker
            .run(&format!("UPDATE writers SET holder = 42, seen_at = now() + interval '1 day' WHERE id = {old}"))
            .await;
        let before = blocker.number(&format!("SELECT position FROM writers WHERE id = {old}")).await;
        let run = one.run;
        let mut answer = pin!(commit(&store, one));
        begin(answer.as_mut()).await;
        blocker.wait_until_blocking(1).await;
        blocker.release().await;
        let position = answer.await.unwrap();
        assert_ne!(i64::from(position.writer), old);
        let reader = Blocker::begin(&schema).await;
        assert_eq!(reader.number(&format!("SELECT position FROM writers WHERE id = {old}")).await, before);
        let written = store.tail(run, Version(0), 10).await.unwrap();
        assert_eq!(written.iter().map(|log| log.position).collect::<Vec<_>>(), [position]);
        used.push(position.writer);
    }
    used.dedup();
    assert_eq!(used.len(), 3, "a different row each time");
    assert!(store.integrity().await.unwrap().is_empty());
}
