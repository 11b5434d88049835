//! Runs that cannot be read.

use crate::harness::{Harness, chain};
use serde_json::json;
use stepwell_core::run::Waiting;
use stepwell_core::time::Time;
use stepwell_store::{Auth, Commit, Diff, LogRow, Store, hash};

/// Replaces the state of a run with text that is none.
async fn damage(harness: &Harness, public: &str) {
    let id = harness.store.find_run(public).await.unwrap().unwrap();
    let stored = harness.store.load(id).await.unwrap().unwrap();
    let (at, epoch) = (Time(stored.row.created.0 + 1), harness.store.epoch(stored.row.org).await.unwrap().unwrap());
    let hash = hash(&stored.hash, at, "[]", "");
    let damaged = Commit {
        run: id,
        expect: stored.version,
        previous: stored.hash,
        create: None,
        auth: Auth { org: stored.row.org, epoch },
        head: None,
        state: "nothing that can be read".into(),
        log: LogRow { at, facts: "[]".into(), payloads: String::new(), hash },
        steps: Vec::new(),
        values: Vec::new(),
        work: Diff::default(),
        timers: Diff::default(),
        mail: Vec::new(),
        read: Vec::new(),
        outbox: Vec::new(),
        sent: Vec::new(),
        unique: Vec::new(),
        groups: Vec::new(),
        gates: Diff::default(),
        counted: Vec::new(),
        audit: Vec::new(),
    };
    assert!(harness.store.commit(vec![damaged]).await.unwrap()[0].is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_read_can_be_cancelled_and_is_purged() {
    let harness = Harness::new().await;
    let nap = json!({"name": "nap", "retention": "1h", "concurrency": {"limit": 1}, "tasks": {"a": {"sleep": "10s"}}});
    harness.define(&harness.admin, nap).await;
    let parent = json!({"name": "parent", "tasks": {"call": {"workflow": "nap"}}});
    harness.define(&harness.admin, parent).await;
    let parent = harness.start(&harness.admin, "parent").await;
    while harness.runs().await.len() < 2 {
        harness.pass(1).await;
    }
    let run = harness.runs().await[1].public.clone();
    // It waits for the first to end.
    let next = harness.start(&harness.admin, "nap").await;
    damage(&harness, &run).await;
    harness.pass(60).await;
    let view = harness.view(&run).await;
    let (waits, message) = (view.waiting_for[0].what, view.waiting_for[0].message.as_deref().unwrap_or_default());
    assert_eq!((view.status, view.workflow.as_str(), waits), ("running", "nap", Waiting::Unreadable), "{view:?}");
    assert!(message.contains("cannot be read"), "{message}");
    assert_eq!(harness.view(&next).await.status, "queued");
    harness.engine.runs(&harness.admin).cancel(&run, Some("it is broken")).await.unwrap();
    let row = harness.runs().await.into_iter().find(|row| row.public == run).unwrap();
    assert_eq!(row.status, "cancelled");
    let view = harness.view(&run).await;
    assert!(view.waiting_for.is_empty() && view.error.unwrap()["code"] == "unreadable");
    // Its parent hears of it, and the next run begins.
    assert_eq!(harness.ended(&parent).await.status, "failed");
    assert_eq!(harness.ended(&next).await.status, "completed");
    assert!(harness.engine.runs(&harness.admin).cancel(&run, None).await.is_err(), "it has ended");
    let trail = harness.trail(row.org).await;
    assert_eq!(trail.iter().filter(|row| row.row.action == "run.cancel" && row.row.target == run).count(), 1);
    // Its timer is gone once it has fired, and after its retention the run with all others.
    harness.pass(900).await;
    let soon = Time(row.created.0 + 3_600_000);
    assert!(harness.store.due(soon, stepwell_store::Share::ALL, 10).await.unwrap().is_empty());
    harness.pass(3 * 3_600).await;
    assert_eq!(harness.store.find_run(&run).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_read_does_not_disturb_others() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, json!({"name": "nap", "tasks": {"a": {"sleep": "10s"}}})).await;
    harness.define(&harness.admin, chain("ok", "ok")).await;
    let broken = harness.start(&harness.admin, "nap").await;
    damage(&harness, &broken).await;
    harness.pass(3_600).await;
    for workflow in ["ok", "nap"] {
        let run = harness.start(&harness.admin, workflow).await;
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
}
