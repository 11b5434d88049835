//! Conditions of policies, and policies that are only logged.

use crate::harness::{Harness, PERSON, hold, list, status};
use serde_json::{Value, json};
use stepwell_engine::commands::{NewKey, NewPolicy, Source, Trigger};
use stepwell_engine::{Error, PolicyEffect, PolicyMode, PolicyVerdict, UnknownOutcome};

fn when(condition: &str, policy: NewPolicy) -> NewPolicy {
    NewPolicy { when: Some(condition.into()), ..policy }
}

fn deny(calls: &str) -> NewPolicy {
    NewPolicy { effect: PolicyEffect::Deny, ..hold(calls) }
}

fn logged(policy: NewPolicy) -> NewPolicy {
    NewPolicy { mode: PolicyMode::Log, ..policy }
}

/// A workflow with one call of `ok`, whose arguments are the input.
async fn paying() -> Harness {
    Harness::with("w", json!({"pay": {"tool": "ok", "args": "{{input}}", "retries": 0}})).await
}

async fn ran(harness: &Harness, workflow: &str, input: Value) -> (&'static str, Option<String>) {
    let run = harness.start_as(&harness.admin, workflow, input).await;
    status(&harness.ended(&run).await, "pay")
}

#[tokio::test(start_paused = true)]
async fn a_condition_on_arguments_decides_which_calls_are_held() {
    let harness = paying().await;
    harness.policy("large", when("args.sum > 500", hold("tool:ok"))).await;
    assert_eq!(ran(&harness, "w", json!({"sum": 500})).await, ("success", None));
    for sum in [json!(501), json!("1"), json!(null)] {
        let run = harness.start_as(&harness.admin, "w", json!({"sum": sum})).await;
        let asked = harness.asked(&run, "pay").await;
        let message = asked.asks["message"].as_str().unwrap();
        assert_eq!(message.contains("its condition counts as met"), !sum.is_number(), "{message}");
        harness.approve(&harness.admin, &run, "pay").await;
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
    assert_eq!(harness.called().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn deny_goes_over_approval_also_with_conditions_and_fails_closed() {
    let harness = paying().await;
    harness.policy("open", when("args.sum <= 500", NewPolicy { effect: PolicyEffect::Allow, ..hold("tool:ok") })).await;
    harness.policy("gate", when("args.sum > 500", hold("tool:ok"))).await;
    harness.policy("never", when("args.sum > 900", deny("tool:ok"))).await;
    assert_eq!(ran(&harness, "w", json!({"sum": 7})).await, ("success", None));
    assert_eq!(ran(&harness, "w", json!({"sum": 901})).await.1.as_deref(), Some("denied_by_policy"));
    let run = harness.start_as(&harness.admin, "w", json!({"sum": "s3cret"})).await;
    let view = harness.ended(&run).await;
    assert_eq!(status(&view, "pay").1.as_deref(), Some("denied_by_policy"));
    let shown = format!("{:?}", view.tasks[0].error);
    assert!(shown.contains("its condition counts as met"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_condition_knows_the_caller_the_workflow_and_whether_it_was_reviewed() {
    let harness = paying().await;
    harness.user("ann", &[], PERSON).await;
    let new = |name: &str, agent| NewKey { user: Some("ann".into()), name: name.into(), agent, ..NewKey::default() };
    let (agent, person) = (harness.key(new("robot", true)).await, harness.key(new("laptop", false)).await);
    for (condition, by_agent, by_key, by_admin) in [
        ("caller.agent", true, false, false),
        ("caller.key == 'laptop'", false, true, false),
        ("caller.user == 'ann'", true, true, false),
        ("caller.key != 'laptop' && caller.key != 'robot'", false, false, true),
        ("workflow == 'w' && tool == 'ok' && host == null", true, true, true),
        ("!reviewed", false, false, false),
        ("time.now < '2020'", false, false, false),
    ] {
        harness.policy("p", when(condition, deny("tool:*"))).await;
        for (caller, expected) in [(&agent, by_agent), (&person, by_key), (&harness.admin, by_admin)] {
            let run = harness.engine.runs(caller).trigger(Trigger::new("w", json!({}))).await.unwrap().run;
            let refused = status(&harness.ended(&run).await, "pay").1.is_some();
            assert_eq!(refused, expected, "{condition} {caller:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_holds_for_requests_queries_redirects_and_test_runs() {
    let harness = Harness::new().await;
    let call = |call: Value| json!({"pay": call});
    harness.define("http", call(json!({"url": "{{input.url}}", "retries": 0}))).await;
    harness.define("query", call(json!({"query": {"connection": "crm", "sql": "select 1"}, "retries": 0}))).await;
    let reach =
        json!({"tool": "reach", "args": {"url": "http://api.example.com/", "write": "{{input.write}}"}, "retries": 0});
    harness.define("reach", call(reach)).await;
    let denied = ("failed", Some("denied_by_policy".to_string()));
    let condition = "args.method == 'POST' && starts_with(args.url, 'https://api.example.com/admin')";
    harness.policy("p", when(condition, deny("host:*.example.com"))).await;
    assert_eq!(ran(&harness, "http", json!({"url": " HTTPS://API.example.com/a/../admin/x"})).await, denied);
    assert_eq!(ran(&harness, "http", json!({"url": "https://api.example.com/open"})).await, ("success", None));
    harness.policy("p", when("args.method != 'GET'", deny("host:api.example.com"))).await;
    assert_eq!(ran(&harness, "reach", json!({"write": true})).await, denied);
    assert_eq!(ran(&harness, "reach", json!({"write": false})).await, ("success", None));
    harness.policy("p", when("args.sql == 'select 1'", deny("connection:crm"))).await;
    let run = harness.start("query").await;
    assert_eq!(status(&harness.ended(&run).await, "pay"), denied);
    harness.policy("p", when("args.sum > 5", deny("tool:ok"))).await;
    let text = json!({"name": "t", "tasks": {"pay": {"tool": "ok", "args": {"sum": 6}}}}).to_string();
    let tested = harness.engine.runs(&harness.admin).test(Source { text: &text, file: None }, json!({})).await.unwrap();
    assert_eq!(status(&harness.ended(&tested.run).await, "pay"), denied);
}

#[tokio::test(start_paused = true)]
async fn a_condition_sees_secrets_and_says_nothing_of_them() {
    let harness = Harness::with("w", json!({"pay": {"url": "{{secrets.HOOK}}", "retries": 0}})).await;
    let show = async |condition: &str| {
        harness.policy("p", when(condition, deny("tool:http"))).await;
        let view = harness.ended(&harness.start("w").await).await;
        let (code, shown) = (status(&view, "pay").1, format!("{view:?}"));
        assert!(!shown.contains("s3cret") && !shown.contains("ternal.example"), "{shown}");
        code
    };
    assert_eq!(show("contains(args.url, 's3cret')").await.as_deref(), Some("denied_by_policy"));
    assert_eq!(show("args.url > 5").await.as_deref(), Some("denied_by_policy"));
    assert_eq!(show("contains(args.url, 'other')").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_makes_no_sense_is_refused_when_it_is_set() {
    let harness = Harness::new().await;
    for (condition, hint) in [
        ("arg.sum > 5", "did you mean `args`?"),
        ("caller.agnt", "did you mean `caller.agent`?"),
        ("args.sum >", "expected"),
        ("secrets.KEY == 'a'", "there is no `secrets` in a condition"),
        ("len('a', 'b')", "len"),
    ] {
        let refused = harness.engine.policies(&harness.admin).put("p", when(condition, deny("tool:*"))).await;
        let Err(Error::Input { .. } | Error::Inputs(_)) = &refused else { panic!("{condition}: {refused:?}") };
        assert!(format!("{refused:?}").contains(hint), "{condition}: {refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_logged_policy_stops_nothing_and_counts_what_it_would_have_stopped() {
    let harness = Harness::new().await;
    let tasks = json!({"pay": {"tool": "ok", "args": "{{input}}"}, "tell": {"url": "{{secrets.HOOK}}"}});
    harness.define("w", tasks).await;
    harness.policy("never", when("args.sum > 5", logged(deny("tool:ok")))).await;
    harness.policy("ask", logged(hold("tool:http"))).await;
    harness.policy("once", NewPolicy { at_most_once: Some(UnknownOutcome::Fail), ..logged(hold("tool:lost")) }).await;
    for sum in [json!(1), json!(6), json!("x")] {
        let run = harness.start_as(&harness.admin, "w", json!({"sum": sum})).await;
        assert_eq!(harness.ended(&run).await.status, "completed");
    }
    harness.define("lost", json!({"pay": {"tool": "lost", "args": {}}})).await;
    assert_eq!(ran(&harness, "lost", json!({})).await, ("success", None));
    let log = harness.engine.policies(&harness.admin).log("never").await.unwrap();
    assert_eq!((log.counts.denied, log.counts.undecided, log.counts.allowed), (2, 1, 0));
    let newest = &log.samples[0];
    assert_eq!((newest.verdict, &*newest.args, &*newest.call), (PolicyVerdict::Denied, r#"{"sum":"x"}"#, "tool ok"));
    assert_eq!((newest.step.as_deref(), newest.user.as_deref()), (Some("pay"), Some(&*harness.admin.name)));
    assert!(newest.undecided.is_some() && log.samples[1].undecided.is_none());
    let log = harness.engine.policies(&harness.admin).log("ask").await.unwrap();
    assert_eq!((log.counts.held, log.samples.len()), (3, 3));
    assert!(!format!("{log:?}").contains("s3cret"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn the_log_of_a_policy_is_bounded_kept_and_starts_anew_when_it_is_set() {
    let harness = paying().await;
    harness.policy("never", logged(deny("tool:ok"))).await;
    for n in 0..25 {
        ran(&harness, "w", json!({"n": n, "long": "x".repeat(5_000)})).await;
    }
    harness.pass(2).await;
    let harness = harness.restarted().await;
    let log = harness.engine.policies(&harness.admin).log("never").await.unwrap();
    assert_eq!((log.counts.denied, log.samples.len()), (25, 20));
    assert!(log.samples.iter().all(|sample| sample.args.len() < 1_010), "{:?}", log.samples[0]);
    harness.policy("never", logged(deny("tool:o*"))).await;
    assert_eq!(harness.engine.policies(&harness.admin).log("never").await.unwrap().counts.denied, 0);
    ran(&harness, "w", json!({})).await;
    harness.engine.policies(&harness.admin).remove("never").await.unwrap();
    harness.policy("never", logged(deny("tool:o*"))).await;
    assert_eq!(harness.engine.policies(&harness.admin).log("never").await.unwrap().counts.denied, 0);
    let viewer = harness.user("eve", &[], &["workflow.run"]).await;
    assert!(harness.engine.policies(&viewer).log("never").await.is_err());
    assert_eq!(harness.called().len(), 26);
    assert_eq!(list(&["pay"]), harness.called()[25..]);
}
