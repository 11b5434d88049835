//! Users, roles, keys and sessions: users give only rights that they have, and keys allow what they should.

use crate::harness::{ADMIN, AGENT, Harness, list};
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
async fn a_user_cannot_give_rights_they_do_not_have() {
    let harness = Harness::new().await;
    let boss = harness.user("boss", &["admin"]).await;
    let engine = &harness.engine;
    let refused = |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::Refused(_))), "{answer:?}");
    refused(engine.users(&boss).create(new("eve", &["operator"])).await.map(drop));
    let to = UserChange { grants: Some(list(&["operator"])), ..UserChange::default() };
    refused(engine.users(&boss).change("boss", to).await.map(drop));
    refused(engine.roles(&boss).put("root", list(&["operator"])).await.map(drop));
    refused(engine.keys(&boss).create(key(None, Some(&["operator"]))).await.map(drop));
    refused(engine.keys(&boss).create(key(Some("admin"), None)).await.map(drop));
    // A role that somebody else filled is no way around it.
    engine.roles(&harness.admin).put("root", list(&["operator"])).await.unwrap();
    refused(engine.users(&boss).create(NewUser { roles: list(&["root"]), ..new("eve", &[]) }).await.map(drop));
    let ann = harness.user("ann", &["workflow.run", "tool:mail.*"]).await;
    for grants in [&["workflow.define"][..], &["tool:*"], &["admin"]] {
        refused(engine.keys(&ann).create(key(None, Some(grants))).await.map(drop));
    }
    engine.keys(&ann).create(key(None, Some(&["tool:mail.send"]))).await.unwrap();
    for answer in [
        engine.users(&ann).create(new("eve", &[])).await.map(drop),
        engine.keys(&ann).create(key(Some("boss"), Some(&["workflow.run"]))).await.map(drop),
        engine.roles(&ann).put("r", vec![]).await.map(drop),
        engine.users(&ann).disable("boss").await,
        engine.users(&ann).list().await.map(drop),
    ] {
        assert!(matches!(answer, Err(Error::Forbidden { right: "admin", .. })), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_narrower_than_its_user_and_makes_no_wider_one() {
    let harness = Harness::new().await;
    harness.user("ann", &["admin"]).await;
    let (_, secret) = harness.key("ann", Some(&["workflow.read"])).await;
    let narrow = harness.engine.identity().authenticate(&secret).await.unwrap();
    assert!(narrow.may(Right::Read) && !narrow.may(Right::Run) && !narrow.may(Right::Admin));
    for grants in [None, Some(&["workflow.read"][..])] {
        let answer = harness.engine.keys(&narrow).create(key(None, grants)).await;
        assert!(matches!(answer, Err(Error::Forbidden { .. })), "{answer:?}");
    }
    assert!(matches!(harness.engine.users(&narrow).sign_in_link(None).await, Err(Error::Forbidden { .. })));
    // What the user loses the key loses.
    harness.user("bob", &["workflow.run"]).await;
    let (_, secret) = harness.key("bob", Some(&["workflow.run"])).await;
    harness.grant("bob", &["workflow.read"]).await;
    assert!(!harness.engine.identity().authenticate(&secret).await.unwrap().may(Right::Run));
}

#[tokio::test(start_paused = true)]
async fn a_key_without_all_rights_of_its_user_creates_no_sign_in_link() {
    let harness = Harness::new().await;
    // The administrator is an operator as well; this key is not.
    let (_, secret) = harness.key("admin", Some(&["admin"])).await;
    let narrow = harness.engine.identity().authenticate(&secret).await.unwrap();
    assert!(narrow.may(Right::Admin) && !narrow.may(Right::Operate));
    for user in [None, Some("admin")] {
        let link = harness.engine.users(&narrow).sign_in_link(user).await;
        assert!(matches!(link, Err(Error::Refused(_))), "{user:?}: {link:?}");
    }
    // A key with all rights of its user makes one that opens all of them.
    let (_, secret) = harness.key("admin", None).await;
    let whole = harness.engine.identity().authenticate(&secret).await.unwrap();
    let link = harness.engine.users(&whole).sign_in_link(None).await.unwrap();
    let (session, _) = harness.engine.identity().sign_in(&link).await.unwrap();
    assert!(harness.engine.identity().session(&session).await.unwrap().may(Right::Operate));
}

#[tokio::test(start_paused = true)]
async fn an_agent_makes_itself_no_way_to_answer_gates() {
    let harness = Harness::new().await;
    let new = NewKey { agent: true, ..key(Some("admin"), Some(&["admin"])) };
    let (_, secret) = harness.engine.keys(&harness.admin).create(new).await.unwrap();
    let agent = harness.engine.identity().authenticate(&secret).await.unwrap();
    assert!(!agent.may(Right::Admin) && !agent.may(Right::Approve));
    for new in [
        key(Some("admin"), Some(&["admin"])),
        key(Some("admin"), Some(&["workflow.approve"])),
        NewKey { agent: true, ..key(Some("admin"), Some(&["workflow.approve"])) },
    ] {
        let made = harness.engine.keys(&agent).create(new.clone()).await;
        assert!(matches!(made, Err(Error::Refused(_))), "{new:?}: {made:?}");
    }
    let link = harness.engine.users(&agent).sign_in_link(None).await;
    assert!(matches!(link, Err(Error::Refused(_))), "{link:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_s_key_works_and_answers_no_gate() {
    let harness = Harness::new().await;
    let agent = harness.engine.identity().authenticate(AGENT).await.unwrap();
    assert!(agent.may(Right::Define) && agent.may(Right::Run) && agent.may(Right::Read));
    assert!(!agent.may(Right::Approve) && !agent.may(Right::Admin) && !agent.may(Right::Operate));
}

#[tokio::test(start_paused = true)]
async fn keys_that_expired_were_revoked_or_are_paused_open_nothing() {
    let harness = Harness::new().await;
    let engine = &harness.engine;
    harness.user("ann", &["workflow.read"]).await;
    assert!(matches!(engine.identity().authenticate("sw_nobody").await, Err(Error::Unauthorised(_))));
    let expires = Some(crate::harness::START + Millis::from_secs(60));
    let (_, secret) = engine.keys(&harness.admin).create(NewKey { expires, ..key(Some("ann"), None) }).await.unwrap();
    engine.identity().authenticate(&secret).await.unwrap();
    harness.pass(61).await;
    assert!(matches!(engine.identity().authenticate(&secret).await, Err(Error::Unauthorised(_))));
    let past = engine.keys(&harness.admin).create(NewKey { expires: Some(Time(1)), ..key(Some("ann"), None) }).await;
    assert!(matches!(past, Err(Error::Input { .. })), "{past:?}");
    let (id, secret) = harness.key("ann", None).await;
    engine.identity().authenticate(&secret).await.unwrap();
    let pause = |paused| KeyChange { paused: Some(paused), ..KeyChange::default() };
    engine.keys(&harness.admin).change(&id, pause(true)).await.unwrap();
    assert!(matches!(engine.identity().authenticate(&secret).await, Err(Error::Refused(_))));
    engine.keys(&harness.admin).change(&id, pause(false)).await.unwrap();
    engine.identity().authenticate(&secret).await.unwrap();
    engine.keys(&harness.admin).revoke(&id).await.unwrap();
    assert!(matches!(engine.identity().authenticate(&secret).await, Err(Error::Unauthorised(_))));
    engine.keys(&harness.admin).change(&id, pause(false)).await.unwrap();
    assert!(matches!(engine.identity().authenticate(&secret).await, Err(Error::Unauthorised(_))), "for ever");
    let (_, secret) = harness.key("ann", None).await;
    engine.identity().authenticate(&secret).await.unwrap();
    engine.users(&harness.admin).disable("ann").await.unwrap();
    assert!(matches!(engine.identity().authenticate(&secret).await, Err(Error::Unauthorised(_))));
}

#[tokio::test(start_paused = true)]
async fn the_last_administrator_keeps_the_right_however_it_is_taken_away() {
    let harness = Harness::new().await;
    let engine = &harness.engine;
    let lost = |answer: Result<(), Error>| assert!(matches!(answer, Err(Error::NotNow(_))), "{answer:?}");
    lost(engine.users(&harness.admin).disable("admin").await);
    let none = UserChange { grants: Some(vec![]), ..UserChange::default() };
    lost(engine.users(&harness.admin).change("admin", none.clone()).await.map(drop));
    // Now by a role: its grants must not be removed while the last administrator depends on it.
    engine.roles(&harness.admin).put("chief", list(&["admin", "operator"])).await.unwrap();
    let chief = UserChange { roles: Some(list(&["chief"])), ..none };
    engine.users(&harness.admin).change("admin", chief).await.unwrap();
    lost(engine.roles(&harness.admin).remove("chief").await);
    lost(engine.roles(&harness.admin).put("chief", vec![]).await.map(drop));
    assert!(engine.identity().authenticate(ADMIN).await.unwrap().may(Right::Admin));
}

#[tokio::test(start_paused = true)]
async fn no_record_has_a_key_or_a_session_in_it() {
    let harness = Harness::new().await;
    let (_, secret) = harness.key("admin", None).await;
    let link = harness.engine.users(&harness.admin).sign_in_link(None).await.unwrap();
    let (session, _) = harness.engine.identity().sign_in(&link).await.unwrap();
    let unused = harness.engine.users(&harness.admin).sign_in_link(None).await.unwrap();
    for kind in ["user", "role", "key", "session", "link", "organisation"] {
        let all = RecordFilter { kind: kind.into(), org: None, prefix: String::new(), after: None, limit: 1_000 };
        for record in harness.store.records(all).await.unwrap() {
            for secret in [ADMIN, AGENT, &secret, &link, &session, &unused] {
                let hidden =
                    !record.body.contains(secret) && !record.key.contains(secret) && !record.id.contains(secret);
                assert!(hidden, "{record:?}");
            }
        }
    }
    for row in harness.trail(OrgId(1)).await {
        assert!(
            ![ADMIN, AGENT, &secret, &link, &session].iter().any(|secret| row.row.detail.contains(secret)),
            "{row:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_signs_in_once_and_a_session_ends() {
    let harness = Harness::new().await;
    let engine = &harness.engine;
    let link = engine.users(&harness.admin).sign_in_link(None).await.unwrap();
    let (session, _) = engine.identity().sign_in(&link).await.unwrap();
    assert!(matches!(engine.identity().sign_in(&link).await, Err(Error::Unauthorised(_))));
    assert!(matches!(engine.identity().session(&link).await, Err(Error::Unauthorised(_))));
    assert!(matches!(engine.identity().authenticate(&session).await, Err(Error::Unauthorised(_))));
    assert_eq!(&*engine.identity().session(&session).await.unwrap().name, "admin");
    engine.identity().sign_out(&session).await.unwrap();
    assert!(matches!(engine.identity().session(&session).await, Err(Error::Unauthorised(_))));
    let link = engine.users(&harness.admin).sign_in_link(None).await.unwrap();
    let later = harness.later(Millis(Millis::DAY.0 + 1_000)).await;
    assert!(matches!(later.identity().sign_in(&link).await, Err(Error::Unauthorised(_))));
}

#[tokio::test(start_paused = true)]
async fn the_built_in_roles_are_as_documented_and_cannot_be_changed() {
    let harness = Harness::new().await;
    let text = include_str!("../../../../docs/identity.md");
    // The second cell holds the grants; what else is in it is for readers of the source.
    let documented = |role: &str| -> Vec<String> {
        let head = format!("| `{role}` | `");
        let rows = text.split("## Roles").nth(1).unwrap().lines();
        let row =
            rows.filter_map(|line| line.strip_prefix(&head)).next().unwrap_or_else(|| panic!("no row for {role}"));
        row.split(" <!--")
            .next()
            .unwrap()
            .split(['`', ',', ' ', '|'])
            .filter(|w| !w.is_empty())
            .map(Into::into)
            .collect()
    };
    for role in ["admin", "editor", "runner", "approver", "viewer"] {
        let known = harness.engine.roles(&harness.admin).list().await.unwrap();
        let found = known.into_iter().find(|known| known.name == role).unwrap_or_else(|| panic!("no role {role}"));
        assert_eq!(found.grants, documented(role), "{role}");
        for answer in [
            harness.engine.roles(&harness.admin).put(role, list(&["workflow.read"])).await.map(drop),
            harness.engine.roles(&harness.admin).remove(role).await,
        ] {
            assert!(answer.is_err(), "{role} was changed");
        }
    }
}
