//! Owners of channels, and what is shown of a channel.

use crate::harness::{Harness, channel};
use serde_json::json;
use std::time::Duration;
use stepwell_engine::Error;
use stepwell_engine::commands::{NewChannel, NewKey, NotificationPreferences};
use stepwell_engine::notify::{Medium, Topic};

#[tokio::test(start_paused = true)]
async fn people_have_channels_of_their_own_and_administrators_those_of_the_organisation() {
    let harness = Harness::new().await;
    let ann = harness.user("ann", &["workflow.read"], &[]).await;
    let no_rights = harness.user("nobody", &[], &[]).await;
    let own = harness.own(&ann, "phone").await;
    let all = harness.of_organisation("all").await;
    let wider = NewChannel { organisation: true, ..channel("mine") };
    let forbidden = |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    forbidden(harness.engine.channels(&ann).create(wider).await.map(drop));
    forbidden(harness.engine.channels(&ann).remove(&all.id).await);
    forbidden(harness.engine.channels(&ann).test(&all.id).await.map(drop));
    let wishes =
        NotificationPreferences { channels: [(all.id.clone(), vec![])].into(), ..NotificationPreferences::default() };
    forbidden(harness.engine.channels(&ann).change_preferences(wishes).await.map(drop));
    forbidden(harness.engine.channels(&no_rights).create(channel("x")).await.map(drop));
    forbidden(harness.engine.channels(&no_rights).list().await.map(drop));
    // What is somebody's own is not there for others.
    let gone = harness.engine.channels(&harness.admin).remove(&own.id).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    let names = |list: Vec<stepwell_engine::commands::With<stepwell_engine::notify::Channel>>| {
        list.into_iter().map(|channel| channel.is.name).collect::<Vec<_>>()
    };
    assert_eq!(names(harness.engine.channels(&ann).list().await.unwrap()).len(), 2);
    assert_eq!(names(harness.engine.channels(&harness.admin).list().await.unwrap()), ["all"]);
    assert_eq!(harness.engine.channels(&ann).test("phone").await.unwrap(), Ok(()));
    harness.engine.channels(&ann).remove("phone").await.unwrap();
    assert_eq!(names(harness.engine.channels(&ann).list().await.unwrap()), ["all"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_does_not_say_where_its_user_is_told() {
    let harness = Harness::new().await;
    harness.user("ann", &["workflow.read", "workflow.run"], &[]).await;
    let key = NewKey { user: Some("ann".into()), name: "agent".into(), agent: true, ..NewKey::default() };
    let (_, secret) = harness.engine.keys(&harness.admin).create(key).await.unwrap();
    let agent = harness.engine.identity().authenticate(&secret).await.unwrap();
    let made = harness.engine.channels(&agent).create(channel("mine")).await;
    assert!(matches!(made, Err(Error::Forbidden { .. })));
    // Not even one that may do everything: messages have links that approve in the name of the recipient.
    let grants = Some(vec!["admin".to_string(), "workflow.read".to_string()]);
    for (agent, grants) in [(true, None), (true, grants.clone()), (false, grants)] {
        let key = NewKey { name: "wide".into(), agent, grants, ..NewKey::default() };
        let (_, secret) = harness.engine.keys(&harness.admin).create(key).await.unwrap();
        let caller = harness.engine.identity().authenticate(&secret).await.unwrap();
        let made = harness.engine.channels(&caller).create(channel("mine")).await;
        assert!(matches!(made, Err(Error::Refused(_))), "{:?}", made.map(drop));
        let wider = NewChannel { organisation: true, ..channel("all") };
        assert_eq!(harness.engine.channels(&caller).create(wider).await.is_ok(), !agent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_whose_approver_has_a_channel_gives_no_warning_and_its_message_says_what_silence_means() {
    let harness = Harness::new().await;
    let ann = harness.user("ann", &["workflow.read", "workflow.run"], &[]).await;
    let gate = json!({"message": "go?", "approvers": ["ann"], "timeout": "1h", "on_timeout": "approve"});
    harness.define(json!({"name": "asks", "tasks": {"ask": {"approval": gate}}})).await;
    let warnings = async |run: &str| harness.engine.gates(&harness.admin).get(run, "ask").await.unwrap().warnings;
    let run = harness.start(&harness.admin, "asks").await;
    assert_eq!(warnings(&run).await, ["no notification channel reaches ann"]);
    harness.own(&ann, "phone").await;
    assert!(warnings(&run).await.is_empty());
    harness.start(&harness.admin, "asks").await;
    harness.recorder.until(1).await;
    let lines = harness.recorder.sent.borrow()[0].parcel.message.lines();
    assert!(lines.contains("Without an answer by ") && lines.contains(" it counts as approved."), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn one_organisation_neither_sees_nor_hears_another() {
    let harness = Harness::new().await;
    let operator = stepwell_engine::Caller::local("operator");
    let (_, key) = harness.engine.organisations(&operator).create("other", None).await.unwrap();
    let other = harness.engine.identity().authenticate(&key).await.unwrap();
    let theirs = NewChannel { organisation: true, ..channel("theirs") };
    let (theirs, _) = harness.engine.channels(&other).create(theirs).await.unwrap();
    harness.of_organisation("ours").await;
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(1).await;
    harness.quiet().await;
    assert_eq!((harness.recorder.through("ours").len(), harness.recorder.through("theirs").len()), (1, 0));
    assert!(harness.notifications(&other).await.is_empty());
    assert_eq!(harness.engine.channels(&harness.admin).list().await.unwrap().len(), 1);
    for answer in [
        harness.engine.channels(&harness.admin).remove(&theirs.id).await,
        harness.engine.channels(&harness.admin).test(&theirs.id).await.map(drop),
    ] {
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
    }
    // A place in their list leads nowhere here.
    let (_, next) = harness.engine.channels(&harness.admin).notifications(None, 1).await.unwrap();
    let (found, _) = harness.engine.channels(&other).notifications(next, 10).await.unwrap();
    assert!(found.is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_that_do_not_fit_are_named() {
    let harness = Harness::new().await;
    let make = |new: NewChannel| async {
        match harness.engine.channels(&harness.admin).create(new).await {
            Err(Error::Input { path, .. }) => path,
            other => panic!("{:?}", other.map(drop)),
        }
    };
    let of = |medium| NewChannel { name: "it".into(), medium: Some(medium), ..NewChannel::default() };
    assert_eq!(make(of(Medium::Webhook)).await, "url");
    assert_eq!(make(of(Medium::Pushover)).await, "user_key");
    assert_eq!(make(of(Medium::Ntfy)).await, "topic");
    assert_eq!(make(of(Medium::Email)).await, "to");
    assert_eq!(make(NewChannel { topic: Some("x".into()), ..channel("it") }).await, "topic");
    assert_eq!(make(NewChannel { url: Some("a\nb".into()), ..channel("it") }).await, "url");
    assert_eq!(make(NewChannel { name: String::new(), ..channel("it") }).await, "name");
    harness.own(&harness.admin, "it").await;
    assert!(matches!(harness.engine.channels(&harness.admin).create(channel("it")).await, Err(Error::Exists { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_does_not_want_to_see_in_a_browser_is_remembered() {
    let harness = Harness::new().await;
    let browser = Some(vec![Topic::RunFailed, Topic::RunFailed]);
    for _ in 0..2 {
        let wishes = NotificationPreferences { browser: browser.clone(), ..NotificationPreferences::default() };
        let now = harness.engine.channels(&harness.admin).change_preferences(wishes).await.unwrap();
        assert_eq!(now.browser, Some(vec![Topic::RunFailed]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_survives_the_rotation_of_the_master_key() {
    let harness = Harness::new().await;
    harness.of_organisation("all").await;
    harness.engine.shutdown(Duration::ZERO).await;
    let (old, new) = ("07".repeat(32), "08".repeat(32));
    let both = harness.with_keys(&format!("{new},{old}")).await;
    both.secrets(&harness.admin).rotate().await.unwrap();
    both.shutdown(Duration::ZERO).await;
    // The old key is not needed any more.
    let next = harness.with_keys(&new).await;
    assert_eq!(next.channels(&harness.admin).test("all").await.unwrap(), Ok(()));
    assert_eq!(harness.recorder.times("all").len(), 1);
}
