//! Keys, users and grants, through a server and on the directory.

use crate::harness::{Installation, Output};
use crate::served::{CHAIN, Served};

fn with_key(place: &Installation, key: &str, args: &[&str]) -> Output {
    place.stepwell(&[args, &["--api-key", key]].concat())
}

/// The id of the key with this name.
fn id(place: &Installation, name: &str) -> String {
    let all = place.stepwell(&["key", "list", "--json"]).expect(0).lines();
    all.iter().find(|key| key["name"] == name).unwrap()["id"].as_str().unwrap().to_string()
}

#[test]
fn a_key_is_printed_alone_and_works_until_it_is_paused_or_revoked() {
    let served = Served::with(&[CHAIN]);
    let place = &served.place;
    let made = place.stepwell(&["key", "create", "mine", "--expires", "90d"]).expect(0).says("not shown again");
    let key = made.out.trim();
    assert!(key.starts_with("sw_") && made.out.lines().count() == 1 && !made.err.contains(key));
    with_key(place, key, &["workflows"]).expect(0).says("chain (1)");
    let id = id(place, "mine");
    place.stepwell(&["key", "pause", &id]).expect(0).says("is paused");
    with_key(place, key, &["workflows"]).expect(1).says("is paused");
    place.stepwell(&["key", "resume", &id]).expect(0).says("is resumed");
    with_key(place, key, &["workflows"]).expect(0);
    place.stepwell(&["key", "revoke", &id]).expect(0).says("is revoked");
    with_key(place, key, &["workflows"]).expect(2);
    let listed = place.stepwell(&["key", "list"]).expect(0).says("revoked 20").out;
    assert!(!listed.contains(key), "{listed}");
    let by_variable = place.command(&["workflows"]).env("STEPWELL_KEY", "sw_wrong").output().unwrap();
    assert_eq!(by_variable.status.code(), Some(2));
    place
        .stepwell(&["key", "create", "late", "--expires", "2020-01-01T00:00:00Z"])
        .expect(2)
        .says("must be in the future");
    place.stepwell(&["key", "create", "odd", "--expires", "soon"]).expect(2).says("neither an instant nor a duration");
}

#[test]
fn a_narrow_key_may_do_only_what_it_was_left() {
    let served = Served::with(&[CHAIN]);
    let place = &served.place;
    let key = place.stepwell(&["key", "create", "looker", "--agent", "--grant", "workflow.read"]).expect(0).out;
    with_key(place, key.trim(), &["workflows"]).expect(0);
    with_key(place, key.trim(), &["trigger", "chain"]).expect(1).says("workflow.run is missing");
    place.stepwell(&["key", "list"]).expect(0).says("looker (admin, agent)").says("only workflow.read");
}

#[test]
fn users_are_given_rights_and_lose_them() {
    let served = Served::with(&[CHAIN]);
    let place = &served.place;
    place.stepwell(&["user", "create", "bo", "--grant", "workflow.read"]).expect(0).says("the user bo");
    let key = place.stepwell(&["key", "create", "hers", "--user", "bo"]).expect(0).out.trim().to_string();
    with_key(place, &key, &["trigger", "chain"]).expect(1);
    place.stepwell(&["grant", "add", "bo", "workflow.run", "tool:*"]).expect(0);
    with_key(place, &key, &["trigger", "chain"]).expect(0);
    assert_eq!(place.stepwell(&["grant", "list", "bo"]).expect(0).out, "workflow.read\nworkflow.run\ntool:*\n");
    place.stepwell(&["grant", "remove", "bo", "workflow.run"]).expect(0);
    with_key(place, &key, &["trigger", "chain"]).expect(1);
    place.stepwell(&["grant", "remove", "bo", "workflow.run"]).expect(2).says("was not given");
    place.stepwell(&["grant", "add", "bo", "--role", "admin"]).expect(0).says("role admin");
    with_key(place, &key, &["user", "list"]).expect(0).says("bo  roles admin  grants workflow.read");
    place.stepwell(&["grant", "add", "bo"]).expect(2).says("name at least one GRANT");
    place.stepwell(&["user", "disable", "bo"]).expect(0).says("bo is disabled");
    with_key(place, &key, &["workflows"]).expect(2);
    place.stepwell(&["user", "list"]).expect(0).says("disabled");
}

#[test]
fn who_lost_all_keys_makes_one_on_the_directory() {
    let place = Served::with(&[CHAIN]).stop();
    std::fs::remove_file(place.data().join("admin.key")).unwrap();
    let key = place.stepwell(&["key", "create", "found"]).expect(0).says("of admin").out;
    place.stepwell(&["user", "create", "cy", "--role", "admin"]).expect(0);
    place.stepwell(&["grant", "add", "cy", "workflow.read"]).expect(0).says("role admin");
    let agent = id(&place, "found");
    place.stepwell(&["key", "pause", &agent]).expect(0);
    place.stepwell(&["key", "resume", &agent]).expect(0);
    let served = Served::on(place, "127.0.0.1:0");
    served.run(&["workflows"]).expect(2).says("--api-key or STEPWELL_KEY");
    with_key(&served.place, key.trim(), &["user", "list"]).expect(0).says("cy  roles admin");
    served.stop().sound();
}

#[test]
fn no_user_is_created_before_the_first_start_of_a_server() {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    if !stepwell_testing::on_postgres() {
        place.stepwell(&["key", "create", "x"]).expect(2).says("there is no data directory");
    }
    place.stepwell(&["run", &file, "--quiet"]).expect(0);
    place.stepwell(&["key", "create", "x"]).expect(2).says("no users yet");
    place.stepwell(&["user", "create", "x"]).expect(2).says("no users yet");
    // Its first user and keys are made all the same.
    let served = Served::on(place, "127.0.0.1:0");
    served.run(&["user", "list"]).expect(0).says("admin");
}

#[test]
fn a_link_signs_a_browser_in() {
    let served = Served::start();
    let link = served.run(&["login"]).expect(0).out;
    assert!(link.starts_with(&format!("{}/sign-in/", served.url())), "{link}");
    assert_eq!(link.lines().count(), 1);
    served.stop().stepwell(&["login"]).expect(1).says("stepwell serve");
}
