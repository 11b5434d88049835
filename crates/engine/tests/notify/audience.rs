//! Recipients: each is notified once.

use crate::harness::{Harness, channel};
use serde_json::json;
use std::time::Duration;
use stepwell_engine::commands::{NewChannel, NotificationPreferences, UserChange};
use stepwell_engine::notify::Topic;
use stepwell_store::{Change, OrgId, Record, RecordChange, Registry, Store};

const PEOPLE: [&str; 3] = ["workflow.run", "workflow.read", "workflow.approve"];

#[tokio::test(start_paused = true)]
async fn a_gate_notifies_those_it_names_and_its_answer_the_starter() {
    let harness = Harness::new().await;
    let (ann, ben) = (harness.user("ann", &PEOPLE, &[]).await, harness.user("ben", &PEOPLE, &[]).await);
    let eve = harness.user("eve", &PEOPLE, &[]).await;
    for (who, name) in [(&ann, "ann"), (&ben, "ben"), (&eve, "eve")] {
        harness.own(who, name).await;
    }
    harness.of_organisation("all").await;
    let gate = json!({"message": "well?", "approvers": ["ann"], "timeout": "1h"});
    harness.define(json!({"name": "named", "tasks": {"ask": {"approval": gate}}})).await;
    let run = harness.start(&ben, "named").await;
    harness.recorder.until(2).await;
    let sent = harness.recorder.sent.borrow()[0].clone();
    let message = sent.parcel.message;
    assert_eq!((message.text.as_str(), message.workflow.as_str()), ("well?", "named"));
    assert_eq!((message.run.as_str(), message.answerers), (run.as_str(), vec!["ann".to_string()]));
    assert!(message.until.is_some());
    // The organisation's channel leads to the run, her own to a page that speaks for her; either may be first.
    let mut links: Vec<String> =
        harness.recorder.sent.borrow().iter().filter_map(|sent| sent.parcel.link.clone()).collect();
    links.sort();
    assert!(links[0].contains("/approve/") && links[1].ends_with(&format!("/runs/{run}")), "{links:?}");
    harness.answer(&ann, &run, false).await;
    harness.recorder.until(4).await;
    harness.quiet().await;
    assert_eq!(harness.recorder.through("ann"), ["gate_opened ask"]);
    assert_eq!(harness.recorder.through("ben"), ["gate_answered ask"]);
    assert_eq!(harness.recorder.through("all"), ["gate_opened ask", "gate_answered ask"]);
    assert_eq!(harness.recorder.through("eve"), [""; 0]);
    let denied = harness.recorder.sent.borrow().last().unwrap().parcel.message.text.clone();
    assert_eq!(denied, "denied by ann");
}

#[tokio::test(start_paused = true)]
async fn a_gate_without_an_answer_escalates_and_expires() {
    let harness = Harness::new().await;
    let (ann, ben) = (harness.user("ann", &PEOPLE, &[]).await, harness.user("ben", &PEOPLE, &[]).await);
    let eve = harness.user("eve", &PEOPLE, &[]).await;
    for (who, name) in [(&ann, "ann"), (&ben, "ben"), (&eve, "eve")] {
        harness.own(who, name).await;
    }
    let gate = json!({"message": "well?", "approvers": ["ann"], "escalate_to": ["ben"], "timeout": "1h"});
    harness.define(json!({"name": "named", "tasks": {"ask": {"approval": gate}}})).await;
    let run = harness.start(&eve, "named").await;
    harness.engine.runs(&eve).wait(&run).await.unwrap();
    harness.quiet().await;
    assert_eq!(harness.recorder.through("ann"), ["gate_opened ask"]);
    assert_eq!(harness.recorder.through("ben"), ["gate_escalated ask"]);
    assert_eq!(harness.recorder.through("eve"), ["gate_expired ask"]);
    let escalated = harness.recorder.sent.borrow()[1].parcel.message.answerers.clone();
    assert_eq!(escalated, ["ann", "ben"]);
}

#[tokio::test(start_paused = true)]
async fn notify_counts_before_approvers_and_roles_stand_for_their_users() {
    let harness = Harness::new().await;
    let ann = harness.user("ann", &[], &["approver"]).await;
    let ben = harness.user("ben", &[], &["approver"]).await;
    let eve = harness.user("eve", &PEOPLE, &[]).await;
    let gone = harness.user("gone", &[], &["approver"]).await;
    for (who, name) in [(&ann, "ann"), (&ben, "ben"), (&eve, "eve"), (&gone, "gone")] {
        harness.own(who, name).await;
    }
    let disabled = UserChange { disabled: Some(true), ..UserChange::default() };
    harness.engine.users(&harness.admin).change("gone", disabled).await.unwrap();
    let gate = json!({"message": "?", "approvers": ["eve"], "notify": ["approver"]});
    harness.define(json!({"name": "told", "tasks": {"ask": {"approval": gate}}})).await;
    harness.start(&eve, "told").await;
    harness.recorder.until(2).await;
    harness.quiet().await;
    let all = ["ann", "ben", "eve", "gone"].map(|name| harness.recorder.through(name).len());
    assert_eq!(all, [1, 1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_tells_its_starter_and_neither_a_child_nor_a_test_does() {
    let harness = Harness::new().await;
    let ann = harness.user("ann", &["workflow.run", "workflow.read", "workflow.define", "tool:*"], &[]).await;
    harness.own(&ann, "ann").await;
    harness.define(json!({"name": "above", "tasks": {"below": {"workflow": "fails"}}})).await;
    let run = harness.start(&ann, "above").await;
    harness.engine.runs(&ann).wait(&run).await.unwrap();
    let test = json!({"name": "try", "tasks": {"it": {"tool": "fail"}}}).to_string();
    let source = stepwell_engine::commands::Source { text: &test, file: None };
    let tried = harness.engine.runs(&ann).test(source, json!({})).await.unwrap().run;
    harness.engine.runs(&ann).wait(&tried).await.unwrap();
    harness.recorder.until(1).await;
    harness.quiet().await;
    let told: Vec<String> = harness.recorder.sent.borrow().iter().map(|sent| sent.parcel.message.run.clone()).collect();
    assert_eq!(told, [run]);
}

#[tokio::test(start_paused = true)]
async fn a_retried_run_that_fails_again_says_so_again() {
    let harness = Harness::new().await;
    harness.of_organisation("all").await;
    let run = harness.start(&harness.admin, "fails").await;
    harness.engine.runs(&harness.admin).wait(&run).await.unwrap();
    harness.recorder.until(1).await;
    harness.engine.runs(&harness.admin).retry(&run, stepwell_engine::commands::Retry::SameVersion).await.unwrap();
    harness.recorder.until(2).await;
    harness.quiet().await;
    assert_eq!(harness.recorder.through("all"), ["run_failed -"; 2]);
    let ids: Vec<String> = harness.recorder.sent.borrow().iter().map(|sent| sent.parcel.id.clone()).collect();
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn a_channel_gets_only_what_was_chosen_for_it() {
    let harness = Harness::new().await;
    let events = Some(vec![Topic::RunFailed]);
    let new = NewChannel { organisation: true, events, ..channel("failures") };
    harness.engine.channels(&harness.admin).create(new).await.unwrap();
    let mine = harness.own(&harness.admin, "mine").await;
    let wishes =
        NotificationPreferences { channels: [(mine.id.clone(), vec![])].into(), ..NotificationPreferences::default() };
    let now = harness.engine.channels(&harness.admin).change_preferences(wishes).await.unwrap();
    assert_eq!(now.channels[&mine.id], []);
    assert_eq!(now.browser, Some(Topic::ALL.to_vec()));
    harness.start(&harness.admin, "asks").await;
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(1).await;
    harness.quiet().await;
    assert_eq!(harness.recorder.through("failures"), ["run_failed -"]);
    assert_eq!(harness.recorder.through("mine"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_channels_nothing_is_written() {
    let harness = Harness::new().await;
    harness.start(&harness.admin, "asks").await;
    let run = harness.start(&harness.admin, "fails").await;
    harness.engine.runs(&harness.admin).wait(&run).await.unwrap();
    let notices = harness.store.outbox(stepwell_core::time::Time(i64::MAX), 0, 10).await.unwrap();
    assert!(notices.is_empty());
    // And what happened before there was a channel is not told later.
    harness.of_organisation("late").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(harness.notifications(&harness.admin).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_quarantined_run_tells_its_starter_and_goes_on_when_it_is_released() {
    let harness = Harness::new().await;
    harness.define(json!({"name": "holds", "tasks": {"it": {"tool": "hold"}}})).await;
    let ann = harness.user("ann", &["workflow.run", "workflow.read", "tool:*"], &[]).await;
    harness.own(&ann, "ann").await;
    let run = harness.start(&ann, "holds").await;
    while harness.view(&run).await.tasks[0].status != "running" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let node = harness.engine.nodes(&harness.admin).await.unwrap()[0].node.id;
    harness.engine.kill();
    harness.store.give_up(node);
    // As if it had been driven at the crash before, too.
    let id = harness.store.find_run(&run).await.unwrap().unwrap().0.to_string();
    let body = json!({"deaths": 1, "node": node.0}).to_string();
    let (kind, key) = ("suspect".into(), id.clone());
    let suspect = RecordChange::Create(Record { kind, id, org: OrgId(1), key, due: None, body, version: 0 });
    harness.store.change(Change { records: vec![suspect], ..Change::default() }).await.unwrap().unwrap();
    let next = harness.another().await;
    harness.recorder.until(1).await;
    assert_eq!(harness.recorder.through("ann"), ["run_quarantined -"]);
    assert!(harness.recorder.sent.borrow()[0].parcel.message.text.contains("quarantined"));
    let view = next.runs(&harness.admin).get(&run).await.unwrap();
    assert_eq!(view.tasks[0].attempt, 1, "nothing drives it: {view:?}");
    next.runs(&harness.admin).release(&run).await.unwrap();
    while next.runs(&harness.admin).get(&run).await.unwrap().tasks[0].attempt != 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
