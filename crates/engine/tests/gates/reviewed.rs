//! What agents write: it runs, and its calls with side effects wait until a person accepts the version.

use crate::harness::{Harness, hold, list, refusal, status};
use serde_json::{Value, json};
use stepwell_core::time::Millis;
use stepwell_engine::commands::{
    AuditQuery, Defined, Defining, NewKey, NewPolicy, NewQuery, Retry, ReviewView, Reviewing, Source, Trigger,
};
use stepwell_engine::{AGENTS_UNREVIEWED, Caller, Error, ReviewState};
use stepwell_store::{Change, RecordChange, Registry};
use stepwell_testing::AGENT;

/// A workflow whose one step has a side effect.
fn paying(name: &str) -> Value {
    json!({"name": name, "tasks": {"pay": {"tool": "ok", "args": {"sum": 1}}}})
}

fn with(mut document: Value, field: &str, value: Value) -> Value {
    document[field] = value;
    document
}

async fn agent(harness: &Harness) -> Caller {
    harness.with_key(AGENT).await.with_client("some-client 1.0")
}

async fn define(harness: &Harness, by: &Caller, document: &Value) -> Defined {
    let (text, reason) = (document.to_string(), Some("because".into()));
    let defining = Defining { reason, ..Defining::default() };
    let workflows = harness.engine.workflows(by);
    workflows.define_as(Source { text: &text, file: None }, defining).await.unwrap()
}

async fn review(harness: &Harness, name: &str) -> ReviewView {
    harness.engine.reviews(&harness.admin).get(name).await.unwrap()
}

fn answer(view: &ReviewView) -> Reviewing {
    Reviewing { digest: view.digest.clone(), ..Reviewing::default() }
}

async fn accept(harness: &Harness, name: &str) {
    let view = review(harness, name).await;
    harness.engine.reviews(&harness.admin).accept(&view.id, answer(&view)).await.unwrap();
}

/// Waits until the step is held by the policy.
async fn held(harness: &Harness, run: &str, step: &str) {
    let asked = harness.asked(run, step).await;
    assert_eq!(asked.asks["policy"], AGENTS_UNREVIEWED, "{:?}", asked.asks);
}

#[tokio::test(start_paused = true)]
async fn whatever_an_agent_tries_its_calls_end_held() {
    let harness = Harness::new().await;
    let agent = agent(&harness).await;
    let start = async |name: &str| harness.start_as(&agent, name, json!({})).await;

    // Its own workflow.
    define(&harness, &agent, &paying("own")).await;
    let own = start("own").await;
    held(&harness, &own, "pay").await;

    // A test run, of the same text.
    let text = paying("tested").to_string();
    let runs = harness.engine.runs(&agent);
    let tested = runs.test(Source { text: &text, file: None }, json!({})).await.unwrap();
    held(&harness, &tested.run, "pay").await;

    // A new version of what a person wrote: the current one stays.
    define(&harness, &harness.admin, &json!({"name": "calm", "tasks": {"nap": {"sleep": 0}}})).await;
    let defined = define(&harness, &agent, &paying("calm")).await;
    assert_eq!((defined.compiled.row.version, defined.changed), (1, true));
    assert_eq!(defined.review.unwrap().is.state(), ReviewState::Proposed);
    assert_eq!(harness.ended(&start("calm").await).await.status, "completed");
    let gone = harness.engine.workflows(&agent).delete("calm").await;
    assert_eq!(refusal(&gone), "refused");

    // A child: a person's workflow called by an unreviewed one, which a person starts.
    define(&harness, &harness.admin, &paying("trusted")).await;
    define(&harness, &agent, &json!({"name": "parent", "tasks": {"sub": {"workflow": "trusted"}}})).await;
    harness.start("parent").await;
    let child = loop {
        harness.pass(1).await;
        let open = harness.engine.gates(&harness.admin).list(None, 100).await.unwrap().0;
        if let Some(child) = open.into_iter().find(|open| open.workflow == "trusted") {
            break child.run;
        }
    };
    held(&harness, &child, "pay").await;

    // A method or a statement that is only known in the run.
    let query = NewQuery { connection: "crm".into(), sql: "delete from t".into(), write: true, ..NewQuery::default() };
    harness.engine.queries(&harness.admin).put("wipe", query).await.unwrap();
    let hidden = json!({"name": "hidden", "tasks": {
        "post": {"tool": "http_request", "args": {"url": "http://a.example.com", "method": "{{input.method ?? 'POST'}}"}},
        "wipe": {"query": {"saved": "wipe"}},
    }});
    define(&harness, &agent, &hidden).await;
    let run = start("hidden").await;
    for step in ["post", "wipe"] {
        held(&harness, &run, step).await;
    }

    // A request of code, which cannot wait for a person.
    let code = json!({"name": "code", "tasks": {
        "get": {"tool": "reach", "args": {"url": "http://a.example.com"}},
        "post": {"tool": "reach", "args": {"url": "http://a.example.com", "write": true}},
    }});
    define(&harness, &agent, &code).await;
    let view = harness.ended(&start("code").await).await;
    assert_eq!(status(&view, "get").0, "success");
    assert_eq!(status(&view, "post"), ("failed", Some("approval_required".into())));

    // A retry, also onto a version that it wrote later, and a rerun.
    harness.answer(&harness.admin, &own, "pay", false).await.unwrap();
    harness.ended(&own).await;
    harness.engine.runs(&agent).retry(&own, Retry::SameVersion).await.unwrap();
    held(&harness, &own, "pay").await;
    harness.answer(&harness.admin, &own, "pay", false).await.unwrap();
    harness.ended(&own).await;
    let newer = json!({"name": "own", "tasks": {"pay": {"tool": "ok", "args": {"sum": 2}}}});
    assert_eq!(define(&harness, &agent, &newer).await.compiled.row.version, 2);
    harness.engine.runs(&agent).retry(&own, Retry::Newest).await.unwrap();
    held(&harness, &own, "pay").await;
    let again = harness.engine.runs(&agent).rerun(&own, None).await.unwrap().run;
    held(&harness, &again, "pay").await;

    // A schedule, and a tool that others are offered.
    let offered = with(paying("offered"), "expose_as_tool", json!(true));
    define(&harness, &agent, &with(offered, "trigger", json!([{"cron": "* * * * *"}]))).await;
    harness.pass(200).await;
    // One that it adds with a call fires no more than one that it wrote.
    harness.engine.workflows(&agent).add_schedule("offered", &json!({"cron": "* * * * *"})).await.unwrap();
    harness.pass(200).await;
    let schedules = harness.engine.workflows(&harness.admin).schedule("offered").await.unwrap();
    let idle = schedules.iter().all(|schedule| schedule.next.is_empty() && schedule.last_run.is_none());
    assert!(schedules.len() == 2 && idle, "{schedules:?}");
    assert!(harness.engine.workflows(&agent).exposed().await.unwrap().is_empty());
    // Nothing but the code of one step has run.
    let mut called = harness.called();
    called.sort();
    assert_eq!(called, ["get", "post"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_every_grant_answers_no_review_and_no_call_of_its_own() {
    let harness = Harness::new().await;
    let grants = Some(list(&["admin", "workflow.approve", "workflow.define"]));
    let agent = harness.key(NewKey { name: "wide".into(), agent: true, grants, ..NewKey::default() }).await;
    let gated = json!({"name": "w", "tasks": {"ask": {"approval": {"message": "fine?"}},
        "pay": {"needs": ["ask"], "tool": "ok", "args": {}}}});
    define(&harness, &agent, &gated).await;
    let run = harness.start_as(&agent, "w", json!({})).await;
    assert_eq!(refusal(&harness.answer(&agent, &run, "ask", true).await), "refused");
    harness.approve(&harness.admin, &run, "ask").await;
    // The gate showed the call whole to a person, so it is not asked about again.
    assert_eq!(harness.ended(&run).await.status, "completed");
    let view = review(&harness, "w").await;
    let reviews = harness.engine.reviews(&agent);
    assert_eq!(reviews.get("w").await.unwrap().state, ReviewState::Unreviewed);
    for answered in [reviews.accept("w", answer(&view)).await, reviews.refuse("w", answer(&view)).await] {
        assert!(matches!(answered, Err(Error::Refused(_))), "{answered:?}");
    }
    let relaxed = NewPolicy { except: list(&["tool:*"]), ..hold("unreviewed:*") };
    let put = harness.engine.policies(&agent).put(AGENTS_UNREVIEWED, relaxed).await;
    assert!(matches!(put, Err(Error::Refused(_))), "{put:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_is_free_once_a_person_accepts_what_was_shown() {
    let harness = Harness::new().await;
    let agent = agent(&harness).await;
    let offered = with(paying("w"), "expose_as_tool", json!(true));
    define(&harness, &agent, &with(offered, "trigger", json!([{"cron": "* * * * *"}]))).await;
    let view = review(&harness, "w").await;
    let told = (view.review.key.as_deref(), view.review.client.as_deref(), view.review.reason.as_deref());
    assert_eq!(told, (Some("agent"), Some("some-client 1.0"), Some("because")));
    assert_eq!((view.new.tools.contains("ok"), &*view.simulation.status), (true, "completed"));
    assert_eq!(view.steps.added, ["pay"]);

    // What the policies say is a part of it.
    harness.policy("money", hold("tool:ok")).await;
    let old = harness.engine.reviews(&harness.admin).accept("w", answer(&view)).await;
    assert!(matches!(old, Err(Error::Refused(_))), "{old:?}");
    assert_eq!(review(&harness, "w").await.policies, ["pay: the policy money requires approval"]);
    harness.engine.policies(&harness.admin).remove("money").await.unwrap();

    // For one run only.
    let (one, other) = (harness.start("w").await, harness.start("w").await);
    held(&harness, &one, "pay").await;
    let for_one = Reviewing { run: Some(one.clone()), ..answer(&view) };
    harness.engine.reviews(&harness.admin).accept("w", for_one).await.unwrap();
    harness.answer(&harness.admin, &one, "pay", false).await.unwrap();
    harness.ended(&one).await;
    harness.engine.runs(&harness.admin).retry(&one, Retry::SameVersion).await.unwrap();
    assert_eq!(harness.ended(&one).await.status, "completed");
    held(&harness, &other, "pay").await;

    accept(&harness, "w").await;
    assert_eq!(harness.ended(&harness.start("w").await).await.status, "completed");
    assert_eq!(harness.engine.workflows(&agent).exposed().await.unwrap().len(), 1);
    harness.pass(70).await;
    let schedules = harness.engine.workflows(&harness.admin).schedule("w").await.unwrap();
    assert!(schedules[0].last_run.is_some(), "{schedules:?}");
    assert!(harness.engine.reviews(&harness.admin).list(false).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_proposal_becomes_the_version_that_was_shown_or_is_refused_with_a_comment() {
    let harness = Harness::new().await;
    let agent = agent(&harness).await;
    define(&harness, &harness.admin, &json!({"name": "w", "tasks": {"nap": {"sleep": 0}}})).await;
    let first = define(&harness, &agent, &paying("w")).await.review.unwrap().id;
    // The same text is the same proposal, and another one takes its place.
    assert_eq!(define(&harness, &agent, &paying("w")).await.review.unwrap().id, first);
    let view = review(&harness, "w").await;
    let comment = Some("not that much".to_string());
    let refused = Reviewing { comment: comment.clone(), ..answer(&view) };
    harness.engine.reviews(&harness.admin).refuse("w", refused).await.unwrap();
    let seen = harness.engine.reviews(&agent).get(&first).await.unwrap();
    assert_eq!((seen.state, seen.review.answer.unwrap().comment), (ReviewState::Refused, comment));

    let less = json!({"name": "w", "tasks": {"pay": {"tool": "ok", "args": {"sum": 0}}}});
    define(&harness, &agent, &less).await;
    let view = review(&harness, "w").await;
    assert_eq!(
        (view.base, view.steps.removed.clone(), view.steps.added.clone()),
        (Some(1), list(&["nap"]), list(&["pay"]))
    );
    // A person changes the workflow meanwhile: that is another difference.
    define(&harness, &harness.admin, &json!({"name": "w", "tasks": {"nap": {"sleep": 1}}})).await;
    let old = harness.engine.reviews(&harness.admin).accept("w", answer(&view)).await;
    assert!(matches!(old, Err(Error::Refused(_))), "{old:?}");
    accept(&harness, "w").await;
    let current = harness.engine.workflows(&harness.admin).get("w").await.unwrap();
    assert_eq!((current.row.version, &current.row.source), (3, &less.to_string()));
    // With the agent's rights, and free.
    assert_eq!(current.row.author, agent.actor().to_string());
    assert_eq!(harness.ended(&harness.start("w").await).await.status, "completed");
    let actions =
        harness.engine.audit(&harness.admin).list(AuditQuery { limit: 100, ..AuditQuery::default() }).await.unwrap();
    let proposed = actions.iter().find(|row| row.row.action == "workflow.propose").unwrap();
    assert!(proposed.row.detail.contains("some-client 1.0"), "{proposed:?}");
    assert!(actions.iter().any(|row| row.row.action == "review.accept"));
}

#[tokio::test(start_paused = true)]
async fn an_administrator_relaxes_it_by_tool_host_or_workflow() {
    let harness = Harness::new().await;
    let agent = agent(&harness).await;
    let post = |url: &str| json!({"url": url, "method": "POST"});
    let calls = json!({"name": "w", "tasks": {"pay": {"tool": "ok", "args": {}},
        "home": post("http://in.example.com/"), "away": post("http://out.example.com/"),
        "hidden": post("{{secrets.HOOK}}"), "read": {"tool": "read_it", "args": {}}}});
    define(&harness, &agent, &calls).await;
    let relaxed = |except: &[&str]| NewPolicy {
        except: list(except),
        timeout: Some(Millis::from_secs(10)),
        ..hold("unreviewed:*")
    };
    for (except, free) in [
        (vec![], vec!["read"]),
        (vec!["tool:ok"], vec!["pay", "read"]),
        (vec!["host:in.example.com", "host:*.in.example.com"], vec!["home", "read"]),
        (vec!["unreviewed:w"], vec!["away", "hidden", "home", "pay", "read"]),
    ] {
        harness.policy(AGENTS_UNREVIEWED, relaxed(&except)).await;
        let before = harness.called().len();
        let started = harness.engine.runs(&agent).trigger(Trigger::new("w", json!({}))).await.unwrap();
        harness.pass(30).await;
        let mut called = harness.called().split_off(before);
        called.sort();
        assert_eq!(called, free, "{except:?}: {:?}", harness.view(&started.run).await);
    }
    let policies = harness.engine.policies(&harness.admin);
    policies.remove(AGENTS_UNREVIEWED).await.unwrap();
    assert!(policies.get(AGENTS_UNREVIEWED).await.unwrap().except.is_empty());
    assert_eq!(policies.list().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_from_before_there_were_reviews_is_reviewed_too() {
    let harness = Harness::new().await;
    let agent = agent(&harness).await;
    let stored = define(&harness, &agent, &paying("w")).await.review.unwrap();
    let gone = RecordChange::Remove { kind: "review".into(), id: stored.id };
    let change = Change { records: vec![gone], grants_of: Some(agent.org), ..Change::default() };
    harness.store.change(change).await.unwrap().unwrap();
    let harness = harness.restarted().await;
    held(&harness, &harness.start("w").await, "pay").await;
    assert_eq!(harness.engine.reviews(&harness.admin).list(false).await.unwrap().len(), 1);
    accept(&harness, "w").await;
    assert_eq!(harness.ended(&harness.start("w").await).await.status, "completed");
    assert!(harness.engine.reviews(&harness.admin).list(false).await.unwrap().is_empty());
}
