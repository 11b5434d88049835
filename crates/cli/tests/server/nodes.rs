//! Servers as nodes: the list of nodes, the first keys when several start at once, keys from outside, and a lost
//! database.

use crate::harness::{Installation, eventually};
use crate::outside::Outside;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use stepwell_testing::{Cluster, postgres_only};

const KEY: &str = "0123456789abcdef0123456789abcdef0123";

#[test]
fn a_server_is_a_node() {
    let place = Installation::new();
    let server = place.serve();
    let nodes = server.api.get("/api/v1/nodes").is(200).data();
    let [node] = nodes.as_array().unwrap().as_slice() else { panic!("one node is expected: {nodes:#}") };
    assert!(node["id"].as_str().unwrap().starts_with("node_"), "{node:#}");
    assert!(node["joined_at"].is_string() && node["quiet_ms"].is_u64(), "{node:#}");
    assert_eq!(node["running"], 0);
    server.api.new_user("ann", &[]).get("/api/v1/nodes").refused(403, "forbidden");
}

#[test]
fn a_key_from_outside_is_an_administrators_and_no_files_are_made() {
    let place = Installation::new().variable("STEPWELL_ADMIN_KEY", KEY);
    let server = place.serve();
    let me = server.api.get("/api/v1/me").is(200).data();
    assert_eq!(me["user"], "admin", "{me:#}");
    server.api.get("/api/v1/organisations").is(200);
    server.api.new_user("ann", &[]);
    let listed = server.api.get("/api/v1/keys").is(200).data();
    let admin = listed.as_array().unwrap().iter().find(|key| key["user"] == "admin").unwrap();
    assert!(!listed.to_string().contains(&KEY[..8]), "too much of it is shown: {listed:#}");
    assert!(!place.data().join("admin.key").exists() && !place.data().join("agent.key").exists());
    // A second start finds it there; and once revoked it stays so.
    assert!(!server.stop().contains(KEY));
    let server = place.serve();
    assert_eq!(server.api.get("/api/v1/keys").is(200).data().as_array().unwrap().len(), 2);
    let other = server.api.but(&server.api.new_key(json!({"name": "other"})));
    other.delete(&format!("/api/v1/keys/{}", admin["id"].as_str().unwrap())).is(204);
    server.stop();
    place.serve().api.get("/api/v1/me").refused(401, "unauthorised");
    let bytes = place.bytes();
    assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()));
}

#[test]
fn a_key_from_outside_opens_what_has_users_already() {
    let place = Installation::new();
    place.serve().stop();
    let place = place.variable("STEPWELL_ADMIN_KEY", KEY);
    let server = place.serve();
    assert_eq!(server.api.get("/api/v1/me").is(200).data()["user"], "admin");
}

#[test]
fn of_several_nodes_that_start_at_once_one_makes_the_first_keys() {
    if postgres_only("a directory has one process") {
        return;
    }
    let shared = Installation::new();
    let places: Vec<Installation> =
        (0..3).map(|_| Installation::new().variable("STEPWELL_DATABASE", shared.database().unwrap())).collect();
    let servers: Vec<_> = std::thread::scope(|scope| {
        let starting: Vec<_> = places.iter().map(|place| scope.spawn(|| place.serve())).collect();
        starting.into_iter().map(|server| server.join().unwrap()).collect()
    });
    let with_keys: Vec<usize> = (0..3).filter(|n| servers[*n].api.key.is_some()).collect();
    assert_eq!(with_keys.len(), 1, "one has keys");
    let has_files = |place: &Installation| {
        let has = |name: &str| Path::new(&place.data()).join(name).exists();
        (has("admin.key"), has("agent.key"))
    };
    for (n, place) in places.iter().enumerate() {
        let first = n == with_keys[0];
        assert_eq!(has_files(place), (first, first), "node {n}");
    }
    // They are good on every node.
    let key = servers[with_keys[0]].api.key.clone().unwrap();
    for server in &servers {
        let api = server.with_key(&key);
        eventually("three nodes", || {
            (api.get("/api/v1/nodes").is(200).data().as_array().unwrap().len() == 3).then_some(())
        });
    }
}

#[test]
fn a_server_whose_database_is_gone_is_not_ready_and_says_why() {
    if postgres_only("a file does not go away") {
        return;
    }
    let cluster = Cluster::start();
    let place = Installation::new().variable("STEPWELL_DATABASE", cluster.url());
    let server = place.serve();
    server.without_key().get("/readyz").is(200);
    cluster.stop();
    let gone = server.without_key().get("/readyz").refused(503, "not-ready");
    assert!(gone["detail"].as_str().unwrap().len() > 10, "{gone:#}");
    server.without_key().get("/healthz").is(200);
    cluster.start_again();
    eventually("a server that is ready again", || (server.without_key().get("/readyz").status == 200).then_some(()));
}

#[test]
fn calls_on_two_nodes_keep_the_pace_of_one_policy() {
    if postgres_only("a directory has one process") {
        return;
    }
    let outside = Outside::start();
    let place = Installation::new();
    let one = place.serve();
    let second = Installation::new().variable("STEPWELL_DATABASE", place.database().unwrap());
    let two = second.serve();
    let other = two.with_key(one.api.key.as_deref().unwrap());
    let policy = json!({"calls": "host:127.0.0.1", "effect": "allow", "rate": {"calls": 4, "per": "2s"}});
    one.api.call("PUT", "/api/v1/policies/slow", &policy).is(200);
    one.api.define(&json!({"name": "paced", "tasks": {"it": {"url": format!("{}/it", outside.url)}}}));
    eventually("two nodes", || {
        (other.get("/api/v1/nodes").is(200).data().as_array().unwrap().len() == 2).then_some(())
    });
    let began = Instant::now();
    for n in 0..24 {
        let api = if n % 2 == 0 { &one.api } else { &other };
        api.trigger("paced", &json!({}));
    }
    outside.called("/it", 24);
    // Four at once and then two in a second would be ten seconds; a node that does not know of the other yet is quicker.
    assert!(began.elapsed() >= Duration::from_secs(6), "{:?}", began.elapsed());
}
