//! The `tool` kind and the built-in tools.

use crate::server::Server;
use crate::{call, failure, local, soon, success, tool};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_core::time::Time;

async fn check(name: &str, args: Value, expected: Value) {
    assert_eq!(*success(tool(name, args).await).body, expected, "{name}");
}

async fn check_fails(name: &str, args: Value, code: &str, message: &str) {
    let (failure, _) = failure(tool(name, args).await);
    assert_eq!((&*failure.code, failure.retryable, failure.may_have_happened), (code, false, false), "{name}");
    assert!(failure.message.contains(message), "{name}: {}", failure.message);
}

#[tokio::test]
async fn echo_returns_its_arguments() {
    for args in [json!({}), json!({"a": [1, {"b": null}]}), json!([1]), json!("x"), Value::Null] {
        check("echo", args.clone(), args).await;
    }
}

#[tokio::test]
async fn exclusively_held_arguments_are_not_copied() {
    let kinds = stepwell_steps::kinds(local());
    let input = json!({"tool": "echo", "args": {"text": "x".repeat(1_000)}});
    let text = |value: &Value| value["text"].as_str().unwrap().as_ptr();
    let before = text(&input["args"]);
    let reply = success(kinds.get("tool").unwrap().run(call(input)).await);
    assert_eq!(text(&reply.body), before);
    // A shared input stays unchanged.
    let mut shared = call(json!({"tool": "echo", "args": {"text": "x"}}));
    let kept = Arc::clone(&shared.input);
    shared.attempt = 2;
    success(kinds.get("tool").unwrap().run(shared).await);
    assert_eq!(*kept, json!({"tool": "echo", "args": {"text": "x"}}));
}

#[tokio::test]
async fn a_step_without_arguments_passes_an_empty_object() {
    let outcome = crate::run(local(), "tool", json!({"tool": "echo"})).await;
    assert_eq!(*success(outcome).body, json!({}));
}

#[tokio::test]
async fn an_unknown_tool_is_reported_with_the_nearest_name() {
    check_fails("ecko", json!({}), "unknown_tool", "there is no tool `ecko`; did you mean `echo`?").await;
    check_fails("pushover-send", json!({}), "unknown_tool", "did you mean `pushover_send`?").await;
    check_fails("teleport", json!({}), "unknown_tool", "known: base64_decode, base64_encode, echo,").await;
    let (nameless, _) = failure(crate::run(local(), "tool", json!({"tool": 7})).await);
    assert_eq!(&*nameless.code, "unknown_tool");
}

#[tokio::test]
async fn invalid_arguments_are_reported_before_the_call() {
    check_fails("log", json!({}), "bad_arguments", "`log` was not called: `args.message` is missing").await;
    check_fails("log", json!({"message": "x", "level": "loud"}), "bad_arguments", "`args.level` must be one of").await;
    check_fails("now", json!({"zone": "UTC"}), "bad_arguments", "it takes no arguments").await;
    check_fails("random", json!({"min": "1", "max": 2}), "bad_arguments", "`args.min` must be a whole number").await;
    check_fails("random", json!({"min": 3, "max": 2}), "bad_arguments", "`args.min` is greater than `args.max`").await;
    check_fails("http_request", json!({"ulr": "x"}), "bad_arguments", "`args.url` is missing").await;
}

#[tokio::test]
async fn log_returns_its_message() {
    check("log", json!({"message": "hello"}), json!("hello")).await;
    check("log", json!({"message": "hello", "level": "warn"}), json!("hello")).await;
}

#[tokio::test]
async fn now_returns_the_same_time_in_both_forms() {
    let reply = success(tool("now", json!({})).await);
    let millis = reply.body["unix_ms"].as_i64().unwrap();
    assert_eq!(Time::parse(reply.body["time"].as_str().unwrap()), Some(Time(millis)));
}

#[tokio::test]
async fn fail_fails_as_requested() {
    check_fails("fail", json!({}), "failed", "failed as requested").await;
    check_fails("fail", json!({"message": "no luck", "code": "drill"}), "drill", "no luck").await;
    let (failure, _) = failure(tool("fail", json!({"retryable": true})).await);
    assert!(failure.retryable);
}

#[tokio::test]
async fn uuids_are_well_formed_and_differ() {
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let reply = success(tool("uuid", json!({})).await);
        let uuid = reply.body.as_str().unwrap().to_owned();
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid.as_bytes()[14] == b'4' && b"89ab".contains(&uuid.as_bytes()[19]), "{uuid}");
        assert!(seen.insert(uuid));
    }
}

#[tokio::test]
async fn random_numbers_stay_within_their_bounds() {
    check("random", json!({"min": 5, "max": 5}), json!(5)).await;
    for _ in 0..50 {
        let drawn = success(tool("random", json!({"min": -2, "max": 1})).await).body.as_i64().unwrap();
        assert!((-2..=1).contains(&drawn));
    }
    assert!(success(tool("random", json!({"min": i64::MIN, "max": i64::MAX})).await).body.is_i64());
}

#[tokio::test]
async fn texts_are_parsed_encoded_and_hashed() {
    check("json_parse", json!({"text": " {\"a\": [1]} "}), json!({"a": [1]})).await;
    check_fails("json_parse", json!({"text": "{"}), "bad_json", "line 1 column 1").await;
    check_fails("json_parse", json!({"text": "[".repeat(101) + &"]".repeat(101)}), "bad_json", "deeper than 100").await;
    check("base64_encode", json!({"text": "héllo"}), json!("aMOpbGxv")).await;
    check("base64_decode", json!({"text": "aMOpbGxv\n"}), json!("héllo")).await;
    check("base64_decode", json!({"text": "YQ"}), json!("a")).await;
    check_fails("base64_decode", json!({"text": "?"}), "bad_base64", "not base64").await;
    check_fails("base64_decode", json!({"text": "/w=="}), "bad_base64", "not UTF-8").await;
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    check("hash_sha256", json!({"text": "abc"}), json!(digest)).await;
}

#[tokio::test]
async fn http_request_returns_the_response_as_one_object() {
    let server = Server::responding(200, &[("x-a", "1")], "[1]").await;
    let reply = success(tool("http_request", json!({"url": server.url, "method": "GET"})).await);
    assert_eq!((&reply.body["status_code"], &reply.body["body"]), (&json!(200), &json!([1])));
    assert_eq!(reply.body["headers"]["x-a"], json!("1"));
    assert_eq!(server.only().header("idempotency-key"), Some("run_1/each[3].charge"));

    let server = Server::responding(503, &[("retry-after", "3")], "busy").await;
    let (failure, reply) = failure(tool("http_request", json!({"url": server.url})).await);
    assert_eq!((&*failure.code, failure.retryable), ("http_503", true));
    let reply = reply.unwrap();
    // Retry rules match on the status of the reply itself.
    assert_eq!((reply.status_code, &reply.body["body"]), (Some(503), &json!("busy")));
}

#[tokio::test]
async fn a_truncated_body_leaves_the_rest_of_the_object_readable() {
    let server = Server::answering(|_| crate::server::response(200, &[], "a".repeat(300_000))).await;
    let reply = success(tool("http_request", json!({"url": server.url})).await);
    assert_eq!((reply.truncated, &reply.body["truncated"]), (false, &json!(true)));
    assert_eq!(reply.body["status_code"], json!(200));
}

#[tokio::test]
async fn every_spec_uses_only_keywords_that_are_checked() {
    let tools = stepwell_steps::tools(&local());
    let names: Vec<&str> = tools.specs().map(|spec| spec.name.as_str()).collect();
    let expected =
        "base64_decode base64_encode echo fail hash_sha256 http_request json_parse log now pushover_send random uuid";
    assert_eq!(names.join(" "), expected);
    let known = ["type", "enum", "minimum", "maximum", "description"];
    for spec in tools.specs() {
        assert!(spec.description.ends_with('.'), "{}", spec.name);
        assert_eq!(spec.input_schema["type"], "object", "{}", spec.name);
        for (name, rule) in spec.input_schema["properties"].as_object().into_iter().flatten() {
            assert!(
                rule.as_object().unwrap().keys().all(|word| known.contains(&word.as_str())),
                "{}.{name}",
                spec.name
            );
        }
        assert!(tools.get(&spec.name).is_some());
    }
    let reply = success(soon(tools.call("echo", Arc::new(json!([1])), &call(Value::Null))).await);
    assert_eq!(*reply.body, json!([1]));
}
