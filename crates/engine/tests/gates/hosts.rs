//! Policies on hosts: which host they match, and their effect on requests in the middle of a call.

use crate::harness::{Harness, hold, status};
use serde_json::{Value, json};
use stepwell_core::time::Millis;
use stepwell_engine::commands::NewPolicy;
use stepwell_engine::{Error, PolicyEffect, Rate};

fn deny(calls: &str) -> NewPolicy {
    NewPolicy { effect: PolicyEffect::Deny, ..hold(calls) }
}

fn reach(url: &str) -> Value {
    json!({"tool": "reach", "args": {"url": url}, "retries": 0})
}

#[tokio::test(start_paused = true)]
async fn a_policy_sees_the_host_that_is_called_however_it_is_written() {
    let harness = Harness::new().await;
    harness.define("given", json!({"call": {"url": "{{input.url}}"}})).await;
    harness.define("tool", json!({"call": {"tool": "http_request", "args": {"url": "{{input.url}}"}}})).await;
    harness.define("secret", json!({"call": {"url": "{{secrets.HOOK}}"}})).await;
    harness.define("split", json!({"call": {"url": "https://in{{secrets.REST}}"}})).await;
    harness.policy("inside", deny("host: INTERNAL.example.com.")).await;
    for url in ["https://internal.example.com./x", "\u{a0}https://Internal.example.com:8443/"] {
        for workflow in ["given", "tool", "secret", "split"] {
            let run = harness.start_as(&harness.admin, workflow, json!({"url": url})).await;
            let view = harness.ended(&run).await;
            assert_eq!(status(&view, "call"), ("failed", Some("denied_by_policy".into())), "{workflow} {url:?}");
        }
    }
    assert_eq!(harness.called(), Vec::<String>::new());
    let run =
        harness.start_as(&harness.admin, "given", json!({"url": "https://example.com/internal.example.com"})).await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_host_is_a_secret_is_held_without_telling_it() {
    let harness = Harness::with("w", json!({"call": {"url": "{{secrets.HOOK}}"}})).await;
    harness.policy("inside", hold("host:*.example.com")).await;
    let run = harness.start("w").await;
    let asked = harness.asked(&run, "call").await;
    assert!(!asked.asks.to_string().contains("ternal.example.com"), "{}", asked.asks);
    harness.approve(&harness.admin, &run, "call").await;
    assert_eq!((harness.ended(&run).await.status, harness.called().len()), ("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn requests_in_the_middle_of_a_call_are_held_to_policies() {
    let tasks = json!({
        "denied": reach("http://a.bank.example./"),
        "asks": reach("http://ask.example/"),
        "first": reach("http://slow.example/1"),
        "second": {"needs": ["first"], "tool": "reach", "args": {"url": "http://slow.example/2"}, "retries": 0},
        "free": reach("http://other.example/"),
    });
    let harness = Harness::with("w", tasks).await;
    harness.policy("bank", deny("host:*.bank.example")).await;
    harness.policy("ask", hold("host:ask.example")).await;
    let rate = Some(Rate { calls: 1, per: Millis::from_secs(60) });
    harness.policy("slow", NewPolicy { effect: PolicyEffect::Allow, rate, ..hold("host:slow.example") }).await;
    let view = harness.ended(&harness.start("w").await).await;
    for (step, code) in [
        ("denied", Some("denied_by_policy")),
        ("asks", Some("approval_required")),
        ("first", None),
        ("second", Some("rate_limited")),
        ("free", None),
    ] {
        assert_eq!(status(&view, step).1.as_deref(), code, "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pattern_that_could_fit_no_host_is_refused() {
    let harness = Harness::new().await;
    for calls in ["host:api.example.com:8443", "host:https://api.example.com", "host:a b"] {
        let refused = harness.engine.policies(&harness.admin).put("p", deny(calls)).await;
        assert!(matches!(&refused, Err(Error::Input { .. } | Error::Inputs(_))), "{calls}: {refused:?}");
    }
    harness.policy("p", deny("host:B\u{fc}cher.example")).await;
    assert_eq!(harness.engine.policies(&harness.admin).get("p").await.unwrap().calls, "host:xn--bcher-kva.example");
}
