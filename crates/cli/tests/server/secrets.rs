//! Secrets through the API and the command line: rights, hosts, other master keys.

use crate::canary::MASTER;
use crate::harness::Installation;
use crate::outside::Outside;
use serde_json::json;

const OTHER: &str = "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=";

fn place(keys: &str) -> Installation {
    Installation::new().variable("STEPWELL_MASTER_KEY", keys)
}

#[test]
fn a_value_goes_in_and_never_comes_out() {
    let place = place(MASTER);
    let server = place.serve();
    let api = &server.api;
    let made = api.call("PUT", "/api/v1/secrets/KEY", &json!({"value": "hunter22hunter22"})).is(200).data();
    assert_eq!((&made["version"], &made["masked"], &made["hosts"]), (&json!(1), &json!(true), &json!([])));
    let listed = api.get("/api/v1/secrets").is(200);
    assert_eq!(listed.data()[0]["name"], "KEY");
    assert!(!listed.text().contains("hunter22"));
    let short = api.call("PUT", "/api/v1/secrets/PIN", &json!({"value": "1234"})).is(200).data();
    assert_eq!(short["masked"], false);
    api.call("PUT", "/api/v1/secrets/1x", &json!({"value": "x"})).refused(422, "invalid-input");
    api.call("PUT", "/api/v1/secrets/NONE", &json!({})).refused(422, "invalid-input");
    let problem = api.call("PUT", "/api/v1/secrets/KEY", &json!({"value": ["hunter22"]})).refused(422, "invalid-input");
    assert!(!problem.to_string().contains("hunter22"), "{problem}");
    let ann = api.new_user("ann", &["workflow.define", "workflow.run", "secret:*"]);
    for (method, path) in
        [("GET", "secrets"), ("GET", "secrets/KEY"), ("DELETE", "secrets/KEY"), ("GET", "connections")]
    {
        ann.send(method, &format!("/api/v1/{path}"), &[], None).refused(403, "forbidden");
    }
    ann.post("/api/v1/master-key/rotate", &json!({})).refused(403, "forbidden");
    api.delete("/api/v1/secrets/KEY").is(204);
    api.get("/api/v1/secrets/KEY").refused(404, "not-found");
}

#[test]
fn the_store_s_secret_counts_more_than_the_environment_s_and_both_work() {
    let place =
        place(MASTER).variable("STEPWELL_SECRET_A", "of-the-environment").variable("STEPWELL_SECRET_B", "also-there");
    let server = place.serve();
    let outside = Outside::start();
    server.api.call("PUT", "/api/v1/secrets/A", &json!({"value": "of-the-store"})).is(200);
    let headers = json!({"x-a": "{{secrets.A}}", "x-b": "{{secrets.B}}"});
    server
        .api
        .define(&json!({"name": "it", "tasks": {"go": {"url": format!("{}/go", outside.url), "headers": headers}}}));
    assert_eq!(server.api.finished("it", &json!({}))["status"], "completed");
    let call = &outside.calls("/go")[0];
    assert_eq!((call.header("x-a"), call.header("x-b")), (Some("of-the-store"), Some("also-there")));
}

#[test]
fn a_bound_secret_is_sent_to_its_host_only() {
    let place = place(MASTER);
    let server = place.serve();
    let outside = Outside::start();
    let bound = json!({"value": "hunter22hunter22", "hosts": ["api.example.com"]});
    server.api.call("PUT", "/api/v1/secrets/KEY", &bound).is(200);
    let tasks = json!({
        "http": {"url": format!("{}/a", outside.url), "headers": {"authorization": "{{secrets.KEY}}"}},
        "tool": {"tool": "http_request", "args": {"url": format!("{}/b", outside.url), "body": "{{secrets.KEY}}"}},
        "other": {"tool": "echo", "args": {"message": "{{secrets.KEY}}"}},
    });
    server.api.define(&json!({"name": "it", "tasks": tasks}));
    let run = server.api.finished("it", &json!({}));
    for step in ["http", "tool", "other"] {
        assert_eq!(run["tasks"][step]["error"]["code"], "secret_bound", "{step}: {run:#}");
    }
    assert_eq!(outside.count(), 0);
    server.api.call("PUT", "/api/v1/secrets/KEY", &json!({"hosts": ["127.0.0.1"]})).is(200);
    let run = server.api.finished("it", &json!({}));
    assert_eq!(run["tasks"]["http"]["status"], "success", "{run:#}");
    assert_eq!(outside.calls("/a")[0].header("authorization"), Some("hunter22hunter22"));
}

#[test]
fn a_node_with_another_master_key_says_so_at_its_start_and_rotation_lets_the_old_one_go() {
    let place = place(MASTER);
    place.stepwell_with(&["secret", "set", "KEY"], &[], "hunter22hunter22\n");
    let with = |keys: &str, args: &[&str]| place.stepwell_with(args, &[("STEPWELL_MASTER_KEY", keys)], "");
    let refused = with(OTHER, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.contains("this node's master key is not the one secrets were sealed with"), "{refused}");
    let doctor = with(OTHER, &["doctor"]);
    assert!(doctor.contains("the secret KEY cannot be opened"), "{doctor}");
    let both = format!("{OTHER},{MASTER}");
    assert!(with(&both, &["secret", "rotate"]).contains("1 resealed"));
    assert!(with(&both, &["secret", "rotate"]).contains("0 resealed"));
    assert!(with(OTHER, &["doctor"]).contains("nothing is wrong"));
    assert!(with(MASTER, &["doctor"]).contains("the secret KEY cannot be opened"));
    assert!(with("hunter22", &["secret", "list"]).contains("STEPWELL_MASTER_KEY: the master key is not 32 bytes"));
    let listed = with(OTHER, &["secret", "list"]);
    assert!(listed.contains("KEY  version 1  any host") && !listed.contains("hunter22"), "{listed}");
}

#[test]
fn the_embedded_store_makes_its_master_key_when_it_is_needed() {
    if stepwell_testing::embedded_only("nodes that share a database are given their key") {
        return;
    }
    let place = Installation::new();
    let file = place.data().join("master.key");
    place.stepwell(&["runs"]);
    place.stepwell_with(&["secret", "set", "KEY"], &[], "hunter22hunter22");
    assert!(file.exists());
    place.stepwell_with(&["connection", "set", "shop", "--write"], &[], "postgres://u:{{secrets.KEY}}@db/shop\n");
    assert!(place.stepwell(&["connection", "list"]).contains("shop  postgres shop on db  writes"));
    place.sound();
    std::fs::rename(&file, place.data().join("elsewhere")).unwrap();
    let said = place.stepwell_with(&["secret", "set", "OTHER"], &[], "another-secret");
    assert!(said.contains("and there is none here") && !file.exists(), "{said}");
}

#[test]
fn a_key_of_this_server_is_no_secret() {
    let place = place(MASTER);
    let server = place.serve();
    let api = &server.api;
    let key = api.new_key(json!({"name": "ci"}));
    for value in [key.clone(), format!("Bearer {key}"), format!(" {key}\n"), place.agent_key()] {
        let refused = api.call("PUT", "/api/v1/secrets/KEY", &json!({"value": value})).refused(422, "invalid-input");
        assert!(
            refused.to_string().contains("a key of this server") && !refused.to_string().contains(&key),
            "{refused}"
        );
    }
    let other = format!("sw_{}", "x".repeat(40));
    api.call("PUT", "/api/v1/secrets/KEY", &json!({"value": other})).is(200);
}

#[test]
fn requests_are_signed_only_with_the_right_to_the_secret_and_for_its_hosts() {
    let place = place(MASTER);
    let server = place.serve();
    let outside = Outside::start();
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let put = |body: serde_json::Value| server.api.call("PUT", "/api/v1/secrets/WEBHOOK_SIGNING_SECRET", &body).is(200);
    put(json!({"value": secret}));
    server.api.define(&json!({"name": "it", "tasks": {"go": {"url": format!("{}/{{{{input.n}}}}", outside.url)}}}));
    let signed = |api: &crate::harness::Api, n: &str| {
        assert_eq!(api.finished("it", &json!({"n": n}))["status"], "completed");
        outside.calls(&format!("/{n}"))[0].header("webhook-signature").is_some()
    };
    let without = server.api.new_user("ann", &["workflow.run", "workflow.read", "tool:*"]);
    let with = server.api.new_user("bob", &["workflow.run", "workflow.read", "tool:*", "secret:WEBHOOK_*"]);
    assert!(signed(&server.api, "admin"));
    assert!(signed(&with, "with"));
    assert!(!signed(&without, "without"));
    put(json!({"hosts": ["api.example.com"]}));
    assert!(!signed(&server.api, "elsewhere"));
    put(json!({"hosts": ["127.0.0.1"]}));
    assert!(signed(&server.api, "here"));
}

#[test]
fn a_policy_on_http_also_holds_for_fetch_in_code() {
    let place = Installation::new();
    let server = place.serve();
    let outside = Outside::start();
    let code = "return (await fetch(ctx.input.url)).status";
    let tasks = json!({"go": {"javascript": code, "retries": 0}});
    server.api.define(&json!({"name": "it", "allow_hosts": ["127.0.0.1"], "tasks": tasks}));
    let input = json!({"url": format!("{}/x", outside.url)});
    let policy = |calls: &str, effect: &str| {
        server.api.call("PUT", "/api/v1/policies/p", &json!({"calls": calls, "effect": effect})).is(200);
        server.api.finished("it", &input)
    };
    for (calls, effect) in [("tool:http*", "deny"), ("tool:fetch", "deny"), ("tool:http", "require_approval")] {
        let run = policy(calls, effect);
        assert_eq!(run["status"], "failed", "{calls}: {run:#}");
        assert!(run["tasks"]["go"]["error"]["message"].to_string().contains("the policy p"), "{run:#}");
    }
    let denied = |when: &str| {
        let policy = json!({"calls": "tool:fetch", "effect": "deny", "when": when});
        server.api.call("PUT", "/api/v1/policies/p", &policy).is(200);
        server.api.finished("it", &input)["status"] == "failed"
    };
    assert!(denied("args.method == 'GET' && ends_with(args.url, '/x') && host == '127.0.0.1'"));
    assert!(denied("args.body.sum > 5"));
    assert_eq!(outside.count(), 0);
    assert!(!denied("args.method == 'POST'"));
    assert_eq!(policy("tool:mail*", "deny")["status"], "completed");
}

#[test]
fn a_step_cannot_call_the_server_it_runs_on_unless_that_is_allowed() {
    let check = |place: Installation, expected: &str| {
        let server = place.serve();
        let code = "return (await fetch(ctx.input.url)).status";
        let tasks = json!({
            "http": {"url": "{{input.url}}", "method": "GET", "retries": 0},
            "code": {"javascript": code, "retries": 0},
        });
        server.api.define(&json!({"name": "it", "allow_hosts": ["127.0.0.1"], "tasks": tasks}));
        let run = server.api.finished("it", &json!({"url": format!("http://{}/metrics", server.address())}));
        assert_eq!(run["status"], expected, "{run:#}");
        run
    };
    let run = check(Installation::new(), "failed");
    assert_eq!(run["tasks"]["http"]["error"]["code"], "egress_refused", "{run:#}");
    assert!(run["tasks"]["code"]["error"]["message"].to_string().contains("this server itself"), "{run:#}");
    check(Installation::new().config("own_address: true\n"), "completed");
}

#[test]
fn secrets_and_connections_are_deleted_by_name() {
    let place = place(MASTER);
    place.stepwell_with(&["secret", "set", "KEY"], &[], "hunter22hunter22\n");
    place.stepwell_with(&["connection", "set", "shop"], &[], "postgres://db.example.com/shop\n");
    assert!(place.stepwell(&["secret", "list"]).contains("KEY  version 1"));
    for (command, name) in [("secret", "KEY"), ("connection", "shop")] {
        assert!(place.stepwell(&[command, "list"]).contains(name));
    }
    assert!(place.stepwell(&["secret", "delete", "KEY"]).contains("is deleted"));
    assert!(place.stepwell(&["connection", "delete", "shop"]).contains("is deleted"));
    for (command, name) in [("secret", "KEY"), ("connection", "shop")] {
        assert!(!place.stepwell(&[command, "list"]).contains(name));
    }
    assert!(place.stepwell(&["secret", "delete", "KEY"]).contains("there is no secret"));
    assert!(place.stepwell(&["connection", "delete", "shop"]).contains("there is no connection"));
}
