//! Whose channels are whose, and what is shown of them.

use crate::rig::{Rig, channel};
use stepwell_engine::Error;
use stepwell_engine::commands::{NewChannel, NewKey, NotificationPreferences};
use stepwell_engine::notify::{Medium, Topic};

#[tokio::test(start_paused = true)]
async fn people_have_channels_of_their_own_and_administrators_those_of_the_organisation() {
    let rig = Rig::new().await;
    let ann = rig.user("ann", &["workflow.read"], &[]).await;
    let nobody = rig.user("nobody", &[], &[]).await;
    let own = rig.own(&ann, "phone").await;
    let all = rig.of_organisation("all").await;
    let wider = NewChannel { organisation: true, ..channel("mine") };
    let forbidden = |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    forbidden(rig.engine.channels(&ann).create(wider).await.map(drop));
    forbidden(rig.engine.channels(&ann).remove(&all.id).await);
    forbidden(rig.engine.channels(&ann).test(&all.id).await.map(drop));
    let wishes =
        NotificationPreferences { channels: [(all.id.clone(), vec![])].into(), ..NotificationPreferences::default() };
    forbidden(rig.engine.channels(&ann).change_preferences(wishes).await.map(drop));
    forbidden(rig.engine.channels(&nobody).create(channel("x")).await.map(drop));
    forbidden(rig.engine.channels(&nobody).list().await.map(drop));
    // What is somebody's own is not there for others.
    let gone = rig.engine.channels(&rig.admin).remove(&own.id).await;
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    let names = |list: Vec<stepwell_engine::commands::With<stepwell_engine::notify::Channel>>| {
        list.into_iter().map(|channel| channel.is.name).collect::<Vec<_>>()
    };
    assert_eq!(names(rig.engine.channels(&ann).list().await.unwrap()).len(), 2);
    assert_eq!(names(rig.engine.channels(&rig.admin).list().await.unwrap()), ["all"]);
    assert_eq!(rig.engine.channels(&ann).test("phone").await.unwrap(), Ok(()));
    rig.engine.channels(&ann).remove("phone").await.unwrap();
    assert_eq!(names(rig.engine.channels(&ann).list().await.unwrap()), ["all"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_does_not_say_where_its_user_is_told() {
    let rig = Rig::new().await;
    rig.user("ann", &["workflow.read", "workflow.run"], &[]).await;
    let key = NewKey { user: Some("ann".into()), name: "agent".into(), agent: true, ..NewKey::default() };
    let (_, secret) = rig.engine.keys(&rig.admin).create(key).await.unwrap();
    let agent = rig.engine.identity().authenticate(&secret).await.unwrap();
    let made = rig.engine.channels(&agent).create(channel("mine")).await;
    assert!(matches!(made, Err(Error::Forbidden { .. })));
    // Not even one that may do everything: messages have links that approve in the name of whoever is told.
    let grants = Some(vec!["admin".to_string(), "workflow.read".to_string()]);
    for (agent, grants) in [(true, None), (true, grants.clone()), (false, grants)] {
        let key = NewKey { name: "wide".into(), agent, grants, ..NewKey::default() };
        let (_, secret) = rig.engine.keys(&rig.admin).create(key).await.unwrap();
        let caller = rig.engine.identity().authenticate(&secret).await.unwrap();
        let made = rig.engine.channels(&caller).create(channel("mine")).await;
        assert!(matches!(made, Err(Error::Refused(_))), "{:?}", made.map(drop));
        let wider = NewChannel { organisation: true, ..channel("all") };
        assert_eq!(rig.engine.channels(&caller).create(wider).await.is_ok(), !agent);
    }
}

#[tokio::test(start_paused = true)]
async fn one_organisation_neither_sees_nor_hears_another() {
    let rig = Rig::new().await;
    let operator = stepwell_engine::Caller::local("operator");
    let (_, key) = rig.engine.organisations(&operator).create("other", None).await.unwrap();
    let other = rig.engine.identity().authenticate(&key).await.unwrap();
    let theirs = NewChannel { organisation: true, ..channel("theirs") };
    let (theirs, _) = rig.engine.channels(&other).create(theirs).await.unwrap();
    rig.of_organisation("ours").await;
    rig.start(&rig.admin, "fails").await;
    rig.book.until(1).await;
    rig.quiet().await;
    assert_eq!((rig.book.through("ours").len(), rig.book.through("theirs").len()), (1, 0));
    assert!(rig.notifications(&other).await.is_empty());
    assert_eq!(rig.engine.channels(&rig.admin).list().await.unwrap().len(), 1);
    for answer in [
        rig.engine.channels(&rig.admin).remove(&theirs.id).await,
        rig.engine.channels(&rig.admin).test(&theirs.id).await.map(drop),
    ] {
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{answer:?}");
    }
    // A place in their list leads nowhere here.
    let (_, next) = rig.engine.channels(&rig.admin).notifications(None, 1).await.unwrap();
    let (found, _) = rig.engine.channels(&other).notifications(next, 10).await.unwrap();
    assert!(found.is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_that_do_not_fit_are_named() {
    let rig = Rig::new().await;
    let make = |new: NewChannel| async {
        match rig.engine.channels(&rig.admin).create(new).await {
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
    rig.own(&rig.admin, "it").await;
    assert!(matches!(rig.engine.channels(&rig.admin).create(channel("it")).await, Err(Error::Exists { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_does_not_want_to_see_in_a_browser_is_remembered() {
    let rig = Rig::new().await;
    let browser = Some(vec![Topic::RunFailed, Topic::RunFailed]);
    for _ in 0..2 {
        let wishes = NotificationPreferences { browser: browser.clone(), ..NotificationPreferences::default() };
        let now = rig.engine.channels(&rig.admin).change_preferences(wishes).await.unwrap();
        assert_eq!(now.browser, Some(vec![Topic::RunFailed]));
    }
}
