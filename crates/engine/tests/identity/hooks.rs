//! Calls that start a workflow: tokens, signatures, repetitions.

use crate::harness::{Harness, chain, with};
use serde_json::{Value, json};
use stepwell_engine::{Error, Incoming};

/// `hello` under the secret of the harness.
const SIGNED: &str = "sha256=88aab3ede8d3adf94d26ab90d3bafd4a2083070c3bcce9c014ee04a443847c0b";

fn call(headers: &[(&str, &str)], raw: &str) -> Incoming {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Incoming { headers, raw: raw.into(), body: json!({"raw": raw}), ..Incoming::default() }
}

async fn hook(harness: &Harness, webhook: Value) -> String {
    harness.define(&harness.admin, with(chain("hook", "ok"), "trigger", json!([{"webhook": webhook}]))).await;
    harness.engine.workflows(&harness.admin).hooks("hook").await.unwrap().remove(0).token
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_same_event_start_one_run() {
    let harness = Harness::new().await;
    let token = hook(&harness, json!({"dedupe": {"header": "X-Id"}})).await;
    let first = harness.engine.inbound().receive(&token, call(&[("x-id", "7")], "a")).await.unwrap();
    let again = harness.engine.inbound().receive(&token, call(&[("x-id", "7")], "b")).await.unwrap();
    assert_eq!((&again.run, first.repeated, again.repeated), (&first.run, false, true));
    harness.engine.inbound().receive(&token, call(&[("x-id", "8")], "a")).await.unwrap();
    // A call that does not say which event it is starts one each time.
    harness.engine.inbound().receive(&token, call(&[], "a")).await.unwrap();
    harness.engine.inbound().receive(&token, call(&[], "a")).await.unwrap();
    assert_eq!(harness.runs().await.len(), 4);
    assert_eq!(harness.ended(&first.run).await.input, json!({"raw": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_signed_starts_nothing() {
    let harness = Harness::new().await;
    let token = hook(&harness, json!({"verify": {"secret": "HOOK", "header": "X-Sig", "prefix": "sha256="}})).await;
    harness.engine.inbound().receive(&token, call(&[("x-sig", SIGNED)], "hello")).await.unwrap();
    let empty = "sha256=";
    for bad in [
        call(&[("x-sig", SIGNED)], "hello!"),
        call(&[("x-sig", &SIGNED[..SIGNED.len() - 2])], "hello"),
        call(&[("x-sig", empty)], "hello"),
        call(&[("x-sig", "sha256=zz")], "hello"),
        call(&[], "hello"),
    ] {
        let answer = harness.engine.inbound().receive(&token, bad).await;
        assert!(matches!(answer, Err(Error::Unauthorised(_))), "{answer:?}");
    }
    assert_eq!(harness.runs().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_leads_to_its_workflow_until_it_is_replaced_or_the_workflow_is_gone() {
    let harness = Harness::new().await;
    let token = hook(&harness, json!(true)).await;
    let unknown = |answer: Result<_, Error>| assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
    unknown(harness.engine.inbound().receive("nothing", call(&[], "a")).await.map(drop));
    unknown(harness.engine.inbound().receive("", call(&[], "a")).await.map(drop));
    harness.engine.inbound().receive(&token, call(&[], "a")).await.unwrap();
    // A new version keeps the address.
    assert_eq!(hook(&harness, json!({"dedupe": {"header": "x-id"}})).await, token);
    let new = harness.engine.workflows(&harness.admin).rotate_hooks("hook").await.unwrap().remove(0).token;
    unknown(harness.engine.inbound().receive(&token, call(&[], "a")).await.map(drop));
    harness.engine.inbound().receive(&new, call(&[], "a")).await.unwrap();
    harness.engine.workflows(&harness.admin).enable("hook", false).await.unwrap();
    assert!(matches!(harness.engine.inbound().receive(&new, call(&[], "a")).await, Err(Error::Disabled(_))));
    harness.engine.workflows(&harness.admin).delete("hook").await.unwrap();
    unknown(harness.engine.inbound().receive(&new, call(&[], "a")).await.map(drop));
    assert_eq!(harness.runs().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_acts_as_the_author_within_their_rights_of_now() {
    let harness = Harness::new().await;
    let bob = harness.user("bob", &["workflow.define", "workflow.run", "tool:ok"]).await;
    harness.define(&bob, with(chain("hook", "ok"), "trigger", json!("webhook"))).await;
    let token = harness.engine.workflows(&bob).hooks("hook").await.unwrap().remove(0).token;
    let run = harness.engine.inbound().receive(&token, call(&[], "a")).await.unwrap().run;
    let view = harness.ended(&run).await;
    assert_eq!((view.status, view.created_by.as_str()), ("completed", "bob"));
    harness.grant("bob", &["workflow.define", "tool:ok"]).await;
    assert!(matches!(harness.engine.inbound().receive(&token, call(&[], "a")).await, Err(Error::Forbidden { .. })));
    harness.engine.users(&harness.admin).disable("bob").await.unwrap();
    assert!(matches!(harness.engine.inbound().receive(&token, call(&[], "a")).await, Err(Error::Refused(_))));
}
