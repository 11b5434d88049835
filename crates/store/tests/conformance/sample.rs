//! Small commits that cases are built from.

use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

pub const ORG: OrgId = OrgId(1);
pub const NODE: NodeId = NodeId(7);

/// The first commit of a run.
pub fn create(run: i64) -> Commit {
    let create = NewRun {
        public: format!("run_{run}"),
        org: ORG,
        created: Time(run),
        by: "ann".into(),
        acts_as: "ann".into(),
        labels: Vec::new(),
        test: false,
        secret: [3; 16],
        parent: None,
        group: None,
        most_open: None,
        most_descendants: None,
    };
    Commit { create: Some(create), ..next(run, 0) }
}

/// A later commit, based on version `expect`.
pub fn next(run: i64, expect: i64) -> Commit {
    let log = log(expect);
    let at = log.at;
    Commit {
        run: RunId(run),
        expect: Version(expect),
        create: None,
        auth: Auth { org: ORG, epoch: 1 },
        head: Some(head(at)),
        state: "{}".into(),
        log,
        previous: self::log(expect - 1).hash,
        steps: Vec::new(),
        values: Vec::new(),
        work: Diff::default(),
        timers: Diff::default(),
        mail: Vec::new(),
        read: Vec::new(),
        outbox: Vec::new(),
        unique: Vec::new(),
        sent: Vec::new(),
        groups: Vec::new(),
        gates: Diff::default(),
        counted: Vec::new(),
        audit: Vec::new(),
    }
}

/// The log row of a commit that is based on version `expect`.
fn log(expect: i64) -> LogRow {
    let facts = format!("[{{\"type\":\"sample\",\"n\":{expect}}}]");
    let at = Time(1_000 + expect);
    LogRow { at, hash: hash(&[0; 32], at, &facts, ""), facts, payloads: String::new() }
}

pub fn head(started: Time) -> Head {
    Head { status: "running".into(), definition: 1, started: Some(started), finished: None, purge: None }
}

pub fn claim(node: NodeId, limit: u32) -> Claim {
    Claim::new(node, limit)
}

pub fn step(path: &str, attempt: u32, status: &str) -> StepRow {
    StepRow {
        path: path.into(),
        attempt,
        status: status.into(),
        since: Time(5),
        ended: None,
        input: Some(ValueId(0)),
        output: None,
        state: format!("{{\"status\":\"{status}\"}}"),
    }
}

pub fn work(path: &str, org: OrgId, ready: i64, node: Option<NodeId>) -> Work {
    let key = WorkKey { path: path.into(), attempt: 1 };
    Work { key, org, kind: "tool".into(), ready: Time(ready), node }
}

pub fn value(id: u32, payload: &str) -> ValueRow {
    ValueRow { id: ValueId(id), payload: payload.into() }
}

/// Makes one commit and returns its result.
pub async fn commit(store: &dyn Store, commit: Commit) -> Result<Position, Refused> {
    store.commit(vec![commit]).await.unwrap().remove(0)
}

pub async fn accepted(store: &dyn Store, one: Commit) {
    commit(store, one).await.unwrap();
}

/// Awaits all futures concurrently.
pub async fn all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(move |context| {
        for slot in &mut futures {
            if let Some(future) = slot
                && future.as_mut().poll(context).is_ready()
            {
                *slot = None;
            }
        }
        if futures.iter().all(Option::is_none) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// A later commit that finishes the run; it may be purged from `purge` on.
pub fn finish(run: i64, expect: i64, purge: Option<Time>) -> Commit {
    let finished = Some(Time(2_000));
    let head = Head { status: "completed".into(), finished, purge, ..head(Time(1)) };
    Commit { head: Some(head), ..next(run, expect) }
}

pub fn unique(scope: &str, key: &str) -> UniqueKey {
    UniqueKey { scope: scope.into(), key: key.into(), digest: "d".into(), expires: None }
}

pub fn notice(key: &str, due: i64) -> Notice {
    Notice { key: key.into(), body: format!("body of {key}"), due: Time(due) }
}

pub fn timer(key: &str, due: i64) -> TimerRow {
    TimerRow { key: key.into(), due: Time(due) }
}

pub fn mail(to: i64, key: &str) -> Mail {
    Mail { to: RunId(to), key: key.into(), body: "{}".into() }
}

/// Every run of the organisation.
pub fn every_run() -> RunFilter {
    RunFilter::all(ORG, 100)
}

/// The number of rows in each table.
pub async fn rows(store: &dyn Store) -> Vec<(String, u64)> {
    store.stats(true).await.unwrap().rows
}

pub async fn keys_due(store: &dyn Store) -> Vec<String> {
    store.due(Time(i64::MAX), Share::ALL, 100).await.unwrap().into_iter().map(|timer| timer.key).collect()
}

pub async fn mail_keys(store: &dyn Store, run: i64) -> Vec<String> {
    store.mail(RunId(run)).await.unwrap().into_iter().map(|mail| mail.key).collect()
}

pub async fn notice_keys(store: &dyn Store, until: i64, limit: u32) -> Vec<String> {
    store.outbox(Time(until), 0, limit).await.unwrap().into_iter().map(|notice| notice.key).collect()
}

/// Registers a node.
pub async fn join(store: &dyn Store, id: NodeId) {
    let node = NewNode { id, name: format!("node {}", id.0), version: "1".into(), slots: 4, joined: Time(1) };
    store.join(node).await.unwrap();
}
