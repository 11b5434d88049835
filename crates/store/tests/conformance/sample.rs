//! Small commits to build cases from.

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
        definition: 1,
        created: Time(run),
        by: "ann".into(),
        test: false,
    };
    Commit { create: Some(create), ..next(run, 0) }
}

/// A later commit, made on version `expect`.
pub fn next(run: i64, expect: i64) -> Commit {
    let facts = format!("[{{\"type\":\"sample\",\"n\":{expect}}}]");
    let at = Time(1_000 + expect);
    Commit {
        run: RunId(run),
        expect: Version(expect),
        create: None,
        auth: Auth { org: ORG, epoch: 1 },
        head: Head { status: "running".into(), started: Some(at), finished: None, purge: None, state: "{}".into() },
        log: LogRow { at, hash: hash(&[0; 32], at, &facts), facts },
        steps: Vec::new(),
        values: Vec::new(),
        work: Diff::default(),
        timers: Diff::default(),
        mail: Vec::new(),
        read: Vec::new(),
        outbox: Vec::new(),
        unique: Vec::new(),
        counters: Vec::new(),
    }
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

/// Commits one and says what became of it.
pub async fn commit(store: &dyn Store, commit: Commit) -> Result<Position, Refused> {
    store.commit(vec![commit]).await.unwrap().remove(0)
}

pub async fn accepted(store: &dyn Store, one: Commit) {
    commit(store, one).await.unwrap();
}
