//! Policies that are tried on the calls of past runs.

use crate::harness::{Harness, hold};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{NewPolicy, PolicyTest};
use stepwell_engine::{Error, PolicyCounts, PolicyEffect, PolicyVerdict};

const HOUR: Millis = Millis::from_secs(3600);

fn when(condition: &str, effect: PolicyEffect) -> NewPolicy {
    NewPolicy { when: Some(condition.into()), effect, ..hold("tool:ok") }
}

async fn tried(harness: &Harness, candidates: &[(&str, NewPolicy)]) -> PolicyTest {
    let candidates = candidates.iter().map(|(name, policy)| (name.to_string(), policy.clone()));
    let candidates: BTreeMap<String, NewPolicy> = candidates.collect();
    harness.engine.policies(&harness.admin).test(Some(candidates), HOUR).await.unwrap()
}

fn counts(denied: u64, held: u64, allowed: u64) -> PolicyCounts {
    PolicyCounts { denied, held, allowed, ..PolicyCounts::default() }
}

async fn ran(harness: &Harness, workflow: &str, input: Value) -> String {
    let run = harness.start_as(&harness.admin, workflow, input).await;
    harness.ended(&run).await;
    run
}

#[tokio::test(start_paused = true)]
async fn a_test_says_what_policies_would_have_done_with_past_calls_and_changes_nothing() {
    let harness =
        Harness::with("w", json!({"pay": {"tool": "ok", "args": "{{input}}"}, "tell": {"tool": "safe"}})).await;
    for sum in [json!(1), json!(600), json!(901), json!("x")] {
        ran(&harness, "w", json!({"sum": sum})).await;
    }
    let (rows, called) = (harness.engine.policies(&harness.admin).list().await.unwrap(), harness.called().len());
    let candidates = [
        ("gate", when("args.sum > 500", PolicyEffect::RequireApproval)),
        ("never", when("args.sum > 900", PolicyEffect::Deny)),
        ("open", when("args.sum == 1", PolicyEffect::Allow)),
        ("other", when("workflow == 'other'", PolicyEffect::Deny)),
    ];
    let test = tried(&harness, &candidates).await;
    assert_eq!((test.runs, test.calls, test.erased, test.is_complete), (4, 8, 0, true));
    assert_eq!(test.counts, PolicyCounts { undecided: 1, ..counts(2, 1, 1) });
    let of = |name: &str| test.policies[name].counts;
    assert_eq!(of("gate"), PolicyCounts { undecided: 1, ..counts(0, 3, 0) });
    assert_eq!(of("never"), PolicyCounts { undecided: 1, ..counts(2, 0, 0) });
    assert_eq!((of("open"), of("other")), (counts(0, 0, 1), counts(0, 0, 0)));
    // The newest first.
    let samples: Vec<(PolicyVerdict, &str)> =
        test.policies["never"].samples.iter().map(|sample| (sample.verdict, &*sample.args)).collect();
    assert_eq!(samples, [(PolicyVerdict::Denied, r#"{"sum":"x"}"#), (PolicyVerdict::Denied, r#"{"sum":901}"#)]);
    assert_eq!(harness.engine.policies(&harness.admin).list().await.unwrap(), rows);
    assert_eq!(harness.called().len(), called);
}

#[tokio::test(start_paused = true)]
async fn a_test_knows_what_people_approved_and_leaves_out_what_is_older_or_erased() {
    let tasks = json!({"gate": {"approval": {"message": "pay?"}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": 7}, "retries": 0}});
    let harness = Harness::with("gated", tasks).await;
    let run = harness.start("gated").await;
    harness.approve(&harness.admin, &run, "gate").await;
    harness.ended(&run).await;
    let gate = [("gate", hold("tool:ok"))];
    assert_eq!(tried(&harness, &gate).await.counts, counts(0, 0, 1));
    harness.engine.runs(&harness.admin).erase(&run).await.unwrap();
    let test = tried(&harness, &gate).await;
    assert_eq!((test.runs, test.calls, test.erased), (1, 0, 1));
    harness.pass(3601).await;
    harness.define("plain", json!({"pay": {"tool": "ok", "args": {"n": 1}}})).await;
    ran(&harness, "plain", json!({})).await;
    let test = tried(&harness, &gate).await;
    assert_eq!((test.runs, test.calls, test.counts), (1, 1, counts(0, 1, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_test_without_candidates_tries_the_policies_that_are_set() {
    let harness = Harness::with("w", json!({"pay": {"url": "{{secrets.HOOK}}"}})).await;
    ran(&harness, "w", json!({})).await;
    harness.policy("web", NewPolicy { effect: PolicyEffect::Deny, ..hold("tool:http") }).await;
    let test = harness.engine.policies(&harness.admin).test(None, HOUR).await.unwrap();
    assert_eq!(test.policies.keys().collect::<Vec<_>>(), ["agents-unreviewed", "web"]);
    assert_eq!(test.policies["web"].counts, counts(1, 0, 0));
    assert!(!format!("{test:?}").contains("s3cret"), "{test:?}");
    let viewer = harness.user("eve", &[], &["workflow.read"]).await;
    let refused = harness.engine.policies(&viewer).test(None, HOUR).await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
    let wrong = BTreeMap::from([("p".to_string(), when("arg.sum", PolicyEffect::Deny))]);
    let refused = harness.engine.policies(&harness.admin).test(Some(wrong), HOUR).await;
    assert!(format!("{refused:?}").contains("policies.p.when"), "{refused:?}");
    let refused = harness.engine.policies(&harness.admin).test(None, Millis::from_secs(91 * 24 * 3600)).await;
    assert!(format!("{refused:?}").contains("since"), "{refused:?}");
}
