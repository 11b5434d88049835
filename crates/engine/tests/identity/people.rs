//! Users, roles, keys and sessions: nobody gives what they do not have, and keys open what they should.

use crate::rig::{ADMIN, AGENT, Rig, list};
use stepwell_core::time::{Millis, Time};
use stepwell_engine::commands::{KeyChange, NewKey, NewUser, UserChange};
use stepwell_engine::{Error, Right};
use stepwell_store::{OrgId, RecordFilter, Registry};

fn new(name: &str, grants: &[&str]) -> NewUser {
    NewUser { name: name.into(), roles: vec![], grants: list(grants) }
}

fn key(user: Option<&str>, grants: Option<&[&str]>) -> NewKey {
    NewKey { user: user.map(Into::into), name: "k".into(), grants: grants.map(list), ..NewKey::default() }
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_what_they_do_not_have() {
    let rig = Rig::new().await;
    let boss = rig.user("boss", &["admin"]).await;
    let engine = &rig.engine;
    let refused = |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    refused(engine.create_user(&boss, new("eve", &["operator"])).await.map(drop));
    let to = UserChange { grants: Some(list(&["operator"])), ..UserChange::default() };
    refused(engine.change_user(&boss, "boss", to).await.map(drop));
    refused(engine.put_role(&boss, "root", list(&["operator"])).await.map(drop));
    refused(engine.create_key(&boss, key(None, Some(&["operator"]))).await.map(drop));
    refused(engine.create_key(&boss, key(Some("admin"), None)).await.map(drop));
    // A role that somebody else filled is no way around it.
    engine.put_role(&rig.admin, "root", list(&["operator"])).await.unwrap();
    refused(engine.create_user(&boss, NewUser { roles: list(&["root"]), ..new("eve", &[]) }).await.map(drop));
    let ann = rig.user("ann", &["workflow.run", "tool:mail.*"]).await;
    for grants in [&["workflow.define"][..], &["tool:*"], &["admin"]] {
        refused(engine.create_key(&ann, key(None, Some(grants))).await.map(drop));
    }
    engine.create_key(&ann, key(None, Some(&["tool:mail.send"]))).await.unwrap();
    for answer in [
        engine.create_user(&ann, new("eve", &[])).await.map(drop),
        engine.create_key(&ann, key(Some("boss"), Some(&["workflow.run"]))).await.map(drop),
        engine.put_role(&ann, "r", vec![]).await.map(drop),
        engine.disable_user(&ann, "boss").await,
        engine.users(&ann).await.map(drop),
    ] {
        assert!(matches!(answer, Err(Error::Forbidden { right: Right::Admin, .. })), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_narrower_than_its_user_and_makes_no_wider_one() {
    let rig = Rig::new().await;
    rig.user("ann", &["admin"]).await;
    let (_, secret) = rig.key("ann", Some(&["workflow.read"])).await;
    let narrow = rig.engine.authenticate(&secret).await.unwrap();
    assert!(narrow.may(Right::Read) && !narrow.may(Right::Run) && !narrow.may(Right::Admin));
    for grants in [None, Some(&["workflow.read"][..])] {
        let answer = rig.engine.create_key(&narrow, key(None, grants)).await;
        assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    }
    assert!(matches!(rig.engine.sign_in_link(&narrow, None).await, Err(Error::Forbidden { .. })));
    // What the user loses the key loses.
    rig.user("bob", &["workflow.run"]).await;
    let (_, secret) = rig.key("bob", Some(&["workflow.run"])).await;
    rig.grant("bob", &["workflow.read"]).await;
    assert!(!rig.engine.authenticate(&secret).await.unwrap().may(Right::Run));
}

#[tokio::test(start_paused = true)]
async fn a_key_without_all_rights_of_its_user_signs_nobody_in_with_them() {
    let rig = Rig::new().await;
    // The administrator is an operator as well; this key is not.
    let (_, secret) = rig.key("admin", Some(&["admin"])).await;
    let narrow = rig.engine.authenticate(&secret).await.unwrap();
    assert!(narrow.may(Right::Admin) && !narrow.may(Right::Operate));
    if let Ok(link) = rig.engine.sign_in_link(&narrow, None).await {
        let (session, _) = rig.engine.sign_in(&link).await.unwrap();
        let caller = rig.engine.session(&session).await.unwrap();
        assert!(!caller.may(Right::Operate), "a link made with a narrow key opened everything its user may");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_makes_itself_no_way_to_answer_gates() {
    let rig = Rig::new().await;
    let new = NewKey { agent: true, ..key(Some("admin"), Some(&["admin"])) };
    let (_, secret) = rig.engine.create_key(&rig.admin, new).await.unwrap();
    let agent = rig.engine.authenticate(&secret).await.unwrap();
    assert!(agent.may(Right::Admin) && !agent.may(Right::Approve));
    for new in [
        key(Some("admin"), Some(&["admin"])),
        key(Some("admin"), Some(&["workflow.approve"])),
        NewKey { agent: true, ..key(Some("admin"), Some(&["workflow.approve"])) },
    ] {
        if let Ok((_, made)) = rig.engine.create_key(&agent, new.clone()).await {
            let made = rig.engine.authenticate(&made).await.unwrap();
            assert!(!made.may(Right::Approve), "an agent made a key that answers gates: {new:?}");
        }
    }
    if let Ok(link) = rig.engine.sign_in_link(&agent, None).await {
        let (session, _) = rig.engine.sign_in(&link).await.unwrap();
        assert!(!rig.engine.session(&session).await.unwrap().may(Right::Approve), "an agent signed in as a person");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_s_key_works_and_answers_no_gate() {
    let rig = Rig::new().await;
    let agent = rig.engine.authenticate(AGENT).await.unwrap();
    assert!(agent.may(Right::Define) && agent.may(Right::Run) && agent.may(Right::Read));
    assert!(!agent.may(Right::Approve) && !agent.may(Right::Admin) && !agent.may(Right::Operate));
}

#[tokio::test(start_paused = true)]
async fn keys_that_expired_were_revoked_or_are_paused_open_nothing() {
    let rig = Rig::new().await;
    let engine = &rig.engine;
    rig.user("ann", &["workflow.read"]).await;
    assert!(matches!(engine.authenticate("sw_nobody").await, Err(Error::Unauthorised(_))));
    let expires = Some(crate::rig::START + Millis::from_secs(60));
    let (_, secret) = engine.create_key(&rig.admin, NewKey { expires, ..key(Some("ann"), None) }).await.unwrap();
    engine.authenticate(&secret).await.unwrap();
    rig.pass(61).await;
    assert!(matches!(engine.authenticate(&secret).await, Err(Error::Unauthorised(_))));
    let past = engine.create_key(&rig.admin, NewKey { expires: Some(Time(1)), ..key(Some("ann"), None) }).await;
    assert!(matches!(past, Err(Error::Input { .. })), "{past:?}");
    let (id, secret) = rig.key("ann", None).await;
    engine.authenticate(&secret).await.unwrap();
    let pause = |paused| KeyChange { paused: Some(paused), ..KeyChange::default() };
    engine.change_key(&rig.admin, &id, pause(true)).await.unwrap();
    assert!(matches!(engine.authenticate(&secret).await, Err(Error::Refused(_))));
    engine.change_key(&rig.admin, &id, pause(false)).await.unwrap();
    engine.authenticate(&secret).await.unwrap();
    engine.revoke_key(&rig.admin, &id).await.unwrap();
    assert!(matches!(engine.authenticate(&secret).await, Err(Error::Unauthorised(_))));
    engine.change_key(&rig.admin, &id, pause(false)).await.unwrap();
    assert!(matches!(engine.authenticate(&secret).await, Err(Error::Unauthorised(_))), "for ever");
    let (_, secret) = rig.key("ann", None).await;
    engine.authenticate(&secret).await.unwrap();
    engine.disable_user(&rig.admin, "ann").await.unwrap();
    assert!(matches!(engine.authenticate(&secret).await, Err(Error::Unauthorised(_))));
}

#[tokio::test(start_paused = true)]
async fn the_last_administrator_stays_whoever_takes_their_rights_away() {
    let rig = Rig::new().await;
    let engine = &rig.engine;
    let lost = |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::NotNow(_))), "{answer:?}");
    lost(engine.disable_user(&rig.admin, "admin").await);
    let none = UserChange { grants: Some(vec![]), ..UserChange::default() };
    lost(engine.change_user(&rig.admin, "admin", none.clone()).await.map(drop));
    // Now by a role: it must not be emptied under the last who has it.
    engine.put_role(&rig.admin, "chief", list(&["admin", "operator"])).await.unwrap();
    let chief = UserChange { roles: Some(list(&["chief"])), ..none };
    engine.change_user(&rig.admin, "admin", chief).await.unwrap();
    lost(engine.remove_role(&rig.admin, "chief").await);
    lost(engine.put_role(&rig.admin, "chief", vec![]).await.map(drop));
    assert!(engine.authenticate(ADMIN).await.unwrap().may(Right::Admin));
}

#[tokio::test(start_paused = true)]
async fn no_record_has_a_key_or_a_session_in_it() {
    let rig = Rig::new().await;
    let (_, secret) = rig.key("admin", None).await;
    let link = rig.engine.sign_in_link(&rig.admin, None).await.unwrap();
    let (session, _) = rig.engine.sign_in(&link).await.unwrap();
    let unused = rig.engine.sign_in_link(&rig.admin, None).await.unwrap();
    for kind in ["user", "role", "key", "session", "link", "organisation"] {
        let all = RecordFilter { kind: kind.into(), org: None, prefix: String::new(), after: None, limit: 1_000 };
        for record in rig.store.records(all).await.unwrap() {
            for secret in [ADMIN, AGENT, &secret, &link, &session, &unused] {
                let hidden =
                    !record.body.contains(secret) && !record.key.contains(secret) && !record.id.contains(secret);
                assert!(hidden, "{record:?}");
            }
        }
    }
    for row in rig.trail(OrgId(1)).await {
        assert!(
            ![ADMIN, AGENT, &secret, &link, &session].iter().any(|secret| row.row.detail.contains(secret)),
            "{row:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_signs_in_once_and_a_session_ends() {
    let rig = Rig::new().await;
    let engine = &rig.engine;
    let link = engine.sign_in_link(&rig.admin, None).await.unwrap();
    let (session, _) = engine.sign_in(&link).await.unwrap();
    assert!(matches!(engine.sign_in(&link).await, Err(Error::Unauthorised(_))));
    assert!(matches!(engine.session(&link).await, Err(Error::Unauthorised(_))));
    assert!(matches!(engine.authenticate(&session).await, Err(Error::Unauthorised(_))));
    assert_eq!(&*engine.session(&session).await.unwrap().name, "admin");
    engine.sign_out(&session).await.unwrap();
    assert!(matches!(engine.session(&session).await, Err(Error::Unauthorised(_))));
    let link = engine.sign_in_link(&rig.admin, None).await.unwrap();
    rig.pass(24 * 3_600 + 1).await;
    assert!(matches!(engine.sign_in(&link).await, Err(Error::Unauthorised(_))));
}
