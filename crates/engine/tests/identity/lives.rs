//! What expires: sessions, idempotency keys, finished runs, and their space on disk.

use crate::harness::{Harness, START, chain, config, with};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::commands::Trigger;
use stepwell_engine::{Engine, Error, TokioClock};
use stepwell_store::Store;
use stepwell_store::sqlite::SqliteStore;
use stepwell_testing::{EngineHarness, PATIENCE, Tools};

const MINUTE: u64 = 60_000;
const MONTH: u64 = 30 * Millis::DAY.0;

#[tokio::test(start_paused = true)]
async fn a_session_ends_after_thirty_days() {
    let harness = Harness::new().await;
    let link = harness.engine.users(&harness.admin).sign_in_link(None).await.unwrap();
    let (session, _) = harness.engine.identity().sign_in(&link).await.unwrap();
    let before = harness.later(Millis(MONTH - MINUTE)).await;
    assert_eq!(&*before.identity().session(&session).await.unwrap().name, "admin");
    let after = harness.later(Millis(MONTH + MINUTE)).await;
    assert!(matches!(after.identity().session(&session).await, Err(Error::Unauthorised(_))));
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_ends_after_thirty_days() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, with(chain("w", "ok"), "retention", json!("90d"))).await;
    let start = async |engine: &Engine| {
        let trigger = Trigger { key: Some("order-1"), ..Trigger::new("w", json!({})) };
        engine.runs(&harness.admin).trigger(trigger).await.unwrap().run
    };
    let first = start(&harness.engine).await;
    harness.ended(&first).await;
    assert_eq!(start(&harness.later(Millis(MONTH - MINUTE)).await).await, first);
    assert_ne!(start(&harness.later(Millis(MONTH + MINUTE)).await).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_finished_run_is_purged_after_its_retention_and_not_before() {
    let harness = Harness::new().await;
    harness.define(&harness.admin, with(chain("w", "ok"), "retention", json!("1h"))).await;
    let run = harness.start(&harness.admin, "w").await;
    harness.ended(&run).await;
    harness.pass(3_500).await;
    assert!(harness.store.find_run(&run).await.unwrap().is_some());
    harness.pass(300).await;
    assert_eq!(harness.store.find_run(&run).await.unwrap(), None);
}

#[tokio::test]
async fn the_file_shrinks_after_its_runs_were_purged() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
    let tools = Tools::default();
    let now = config(&tools, TokioClock::starting_at(START));
    let harness = EngineHarness::bootstrapped(store.clone(), now).await;
    harness.define_as(&harness.admin, &with(chain("w", "ok"), "retention", json!("1h"))).await;
    for _ in 0..10 {
        let run = harness.start_as(&harness.admin, "w", json!({"text": "x".repeat(100_000)})).await;
        harness.ended(&run).await;
    }
    harness.engine.shutdown(Duration::from_secs(1)).await;
    let full = store.stats(false).await.unwrap().bytes;
    assert!(full > 1_000_000, "{full}");
    let later = config(&tools, TokioClock::starting_at(START + Millis::DAY));
    let _later = harness.another(store.clone(), later).await;
    let shrunk = async {
        while store.stats(false).await.unwrap().bytes > full / 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, shrunk).await.expect("the file does not shrink");
}
