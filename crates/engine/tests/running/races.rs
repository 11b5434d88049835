//! Concurrent commands, on a store that answers from other threads.

use crate::harness::Harness;
use futures_util::future::join_all;
use serde_json::json;
use stepwell_engine::commands::{NewKey, Source};
use stepwell_engine::{Error, Limits, Subscription};
use stepwell_store::OrgId;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_was_just_used_can_be_revoked() {
    let harness = Harness::new().await;
    harness.engine.identity().bootstrap("sw_admin", "sw_agent").await.unwrap();
    for n in 0..100 {
        let new = NewKey { user: Some("admin".into()), name: n.to_string(), ..NewKey::default() };
        let (key, secret) = harness.engine.keys(&harness.admin).create(new).await.unwrap();
        // That it was used is written meanwhile.
        harness.engine.identity().authenticate(&secret).await.unwrap();
        let revoked = harness.engine.keys(&harness.admin).revoke(&key.id).await;
        assert!(revoked.is_ok(), "key {n}: {revoked:?}");
        let after = harness.engine.identity().authenticate(&secret).await;
        assert!(matches!(after, Err(Error::Unauthorised(_))), "key {n}: {after:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_not_remembered_by_those_who_showed_it_meanwhile() {
    let harness = Harness::new().await;
    harness.engine.identity().bootstrap("sw_admin", "sw_agent").await.unwrap();
    for n in 0..200 {
        let new = NewKey { user: Some("admin".into()), name: n.to_string(), ..NewKey::default() };
        let (key, secret) = harness.engine.keys(&harness.admin).create(new).await.unwrap();
        let shown = (0..8).map(|_| {
            let (engine, secret) = (harness.engine.clone(), secret.clone());
            tokio::spawn(async move { engine.identity().authenticate(&secret).await.is_ok() })
        });
        let shown: Vec<_> = shown.collect();
        while harness.engine.keys(&harness.admin).revoke(&key.id).await.is_err() {}
        join_all(shown).await;
        let after = harness.engine.identity().authenticate(&secret).await;
        assert!(matches!(after, Err(Error::Unauthorised(_))), "key {n}: {after:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_workflows_are_defined_at_once_than_the_plan_allows() {
    let harness = Harness::new().await;
    let limits = Some(Limits { workflows: Some(3), ..Limits::default() });
    harness
        .engine
        .organisations(&harness.admin)
        .change_plan(OrgId(1), Subscription { plan: None, limits })
        .await
        .unwrap();
    let text = |n: u32| json!({"name": format!("w{n}"), "tasks": {"a": {"tool": "add", "args": {}}}}).to_string();
    let define = |n: u32| {
        let (engine, caller, text) = (harness.engine.clone(), harness.admin.clone(), text(n));
        tokio::spawn(async move { engine.workflows(&caller).define(Source { text: &text, file: None }).await.is_ok() })
    };
    let defined = join_all((0..20).map(define).collect::<Vec<_>>()).await;
    assert_eq!(defined.into_iter().filter(|done| *done.as_ref().unwrap()).count(), 3);
    assert_eq!(harness.engine.workflows(&harness.admin).list().await.unwrap().len(), 3);
}
