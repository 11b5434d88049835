//! `pushover_send` against a fake service.

use crate::server::Server;
use crate::{failure, local, run, success};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::event::Outcome;
use stepwell_steps::Config;

const SENT: &str = r#"{"status": 1, "request": "647d2300"}"#;

async fn send(server: &Server, config: Config, args: Value) -> Outcome {
    // A trailing slash does no harm.
    let config = Config { pushover_url: format!("{}/", server.url), ..config };
    run(config, "tool", json!({"tool": "pushover_send", "args": args})).await
}

fn configured() -> Config {
    Config { pushover_user: Some("u-server".into()), pushover_token: Some("t-server".into()), ..local() }
}

fn form(server: &Server) -> BTreeMap<String, String> {
    let seen = server.only();
    assert_eq!((seen.method.as_str(), seen.uri.path()), ("POST", "/1/messages.json"));
    assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
    url::form_urlencoded::parse(&seen.body).into_owned().collect()
}

fn check(form: BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let expected: BTreeMap<String, String> = expected.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    assert_eq!(form, expected);
}

#[tokio::test]
async fn a_message_is_sent_as_a_form_with_the_server_s_credentials() {
    let server = Server::responding(200, &[("content-type", "application/json")], SENT).await;
    let args = json!({"message": "Deploy & done: 100 %", "title": "é", "priority": -1, "html": true, "sound": null});
    let reply = success(send(&server, configured(), args).await);
    assert_eq!(*reply.body, json!({"status": 1, "request": "647d2300"}));
    let expected = [
        ("token", "t-server"),
        ("user", "u-server"),
        ("message", "Deploy & done: 100 %"),
        ("title", "é"),
        ("priority", "-1"),
        ("html", "1"),
    ];
    check(form(&server), &expected);
}

#[tokio::test]
async fn credentials_in_the_arguments_take_precedence() {
    let server = Server::responding(200, &[], SENT).await;
    success(send(&server, configured(), json!({"message": "x", "user": "u-mine", "token": "t-mine"})).await);
    check(form(&server), &[("token", "t-mine"), ("user", "u-mine"), ("message", "x")]);
}

#[tokio::test]
async fn without_credentials_nothing_is_sent_and_the_message_explains_how_to_set_them() {
    let server = Server::responding(200, &[], SENT).await;
    let (failure, _) = failure(send(&server, local(), json!({"message": "x", "user": "u"})).await);
    assert_eq!((&*failure.code, failure.retryable), ("no_credentials", false));
    assert!(failure.message.contains("set `args.token`") && failure.message.contains("PUSHOVER_TOKEN"));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_emergency_has_default_repetition() {
    let server = Server::responding(200, &[], SENT).await;
    success(send(&server, configured(), json!({"message": "x", "priority": 2, "retry": 30})).await);
    let expected = [
        ("token", "t-server"),
        ("user", "u-server"),
        ("message", "x"),
        ("priority", "2"),
        ("retry", "30"),
        ("expire", "3600"),
    ];
    check(form(&server), &expected);
}

#[tokio::test]
async fn the_service_s_error_is_in_the_message_and_the_token_is_not() {
    let answer = r#"{"status": 0, "errors": ["user identifier is invalid"]}"#;
    let server = Server::responding(400, &[("content-type", "application/json")], answer).await;
    let (failure, reply) = failure(send(&server, configured(), json!({"message": "x"})).await);
    assert_eq!((&*failure.code, failure.retryable), ("http_400", false));
    assert!(failure.message.ends_with("400 Bad Request: user identifier is invalid"), "{}", failure.message);
    assert!(!failure.message.contains("t-server") && reply.is_some());
}

#[tokio::test]
async fn the_server_s_credentials_are_lent_to_other_organisations_only_if_they_are_shared() {
    let server = Server::responding(200, &[], SENT).await;
    let send = async |shared: bool, args: Value| {
        let config = Config { pushover_url: server.url.clone(), pushover_shared: shared, ..configured() };
        let mut call = crate::call(json!({"tool": "pushover_send", "args": args}));
        call.caller.org = stepwell_store::OrgId(2);
        let kinds = stepwell_steps::kinds(config);
        crate::soon(kinds.get("tool").unwrap().run(call)).await
    };
    for args in [json!({"message": "x"}), json!({"message": "x", "user": "u-mine"})] {
        let (failure, _) = failure(send(false, args).await);
        assert_eq!(&*failure.code, "no_credentials");
        assert!(failure.message.contains("not shared with this organisation"), "{}", failure.message);
    }
    assert!(server.seen().is_empty());
    success(send(true, json!({"message": "x"})).await);
    check(form(&server), &[("token", "t-server"), ("user", "u-server"), ("message", "x")]);
}
