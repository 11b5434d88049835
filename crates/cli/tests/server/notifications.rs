//! Notifications through a real server to real receivers: their content and signature, and that a kill loses none.

use crate::harness::{Api, Installation, Server, eventually};
use crate::outside::{Call, Outside};
use crate::postbox::Postbox;
use crate::raw::Raw;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::collections::BTreeSet;
use stepwell_testing::postgres_only;

const PEOPLE: [&str; 3] = ["workflow.run", "workflow.read", "workflow.approve"];

#[track_caller]
fn channel(api: &Api, request: Value) -> Value {
    api.post("/api/v1/channels", &request).is(201).data()
}

/// A workflow that asks, and one that fails.
fn workflows(api: &Api) {
    api.define(&json!({"name": "asks", "tasks": {"ask": {"approval": {"message": "Deploy <it> & all?"}}}}));
    api.define(&json!({"name": "fails", "tasks": {"it": {"tool": "fail", "args": {"message": "as asked"}}}}));
}

/// As the specification says, without the code that signs.
fn is_genuine(call: &Call, secret: &str) -> bool {
    let key = BASE64.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let signed =
        format!("{}.{}.{}", call.header("webhook-id").unwrap(), call.header("webhook-timestamp").unwrap(), call.body);
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(signed.as_bytes());
    let expected = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
    call.header("webhook-signature").unwrap() == expected
}

/// The newest ones, once none is waiting.
fn settled(api: &Api) -> Vec<Value> {
    eventually("notifications that are done", || {
        let all = api.get("/api/v1/notifications?limit=1000").is(200).data();
        let all = all.as_array().unwrap().clone();
        all.iter().all(|one| one["status"] != "waiting").then_some(all)
    })
}

#[test]
fn every_medium_gets_the_message_in_its_own_form() {
    let (outside, postbox) = (Outside::start(), Postbox::start());
    let smtp = format!(
        "smtp: {{host: 127.0.0.1, port: {}, encryption: none, from: Wells <wells@example.com>}}\n",
        postbox.port
    );
    let place = Installation::new().config(&smtp);
    let server = place.serve();
    let api = &server.api;
    workflows(api);
    let url = &outside.url;
    let hook = channel(
        api,
        json!({"name": "hook", "medium": "webhook", "organisation": true,
        "url": format!("{url}/hook/s3cret-path")}),
    );
    channel(api, json!({"name": "chat", "medium": "slack", "organisation": true, "url": format!("{url}/chat/s3cret")}));
    channel(
        api,
        json!({"name": "push", "medium": "pushover", "organisation": true, "url": url,
        "user_key": "s3cret-user", "token": "s3cret-token"}),
    );
    channel(
        api,
        json!({"name": "ntfy", "medium": "ntfy", "organisation": true, "url": format!("{url}/n"),
        "topic": "s3cret-topic", "token": "s3cret-access"}),
    );
    channel(api, json!({"name": "mail", "medium": "email", "organisation": true, "to": "ann@example.com"}));
    let run = api.trigger("asks", &json!({}));

    let call = &outside.called("/hook/s3cret-path", 1)[0];
    assert!(is_genuine(call, hook["secret"].as_str().unwrap()));
    assert!(!is_genuine(call, "whsec_AAAA"));
    let told = call.json();
    assert_eq!((&told["type"], &told["data"]["run_id"]), (&json!("gate_opened"), &json!(run)));
    assert_eq!(told["data"]["message"], "Deploy <it> & all?");
    assert!(told["data"]["url"].as_str().unwrap().ends_with(&run), "{told:#}");

    let chat = outside.called("/chat/s3cret", 1)[0].json();
    let text = chat["text"].as_str().unwrap();
    assert!(text.starts_with("*asks: approval needed*\nDeploy &lt;it&gt; &amp; all?"), "{text}");

    let push = &outside.called("/1/messages.json", 1)[0].body;
    for part in ["token=s3cret-token", "user=s3cret-user", "title=asks", "message=Deploy", "url="] {
        assert!(push.contains(part), "{push}");
    }

    let ntfy = &outside.called("/n", 1)[0];
    assert_eq!(ntfy.header("authorization"), Some("Bearer s3cret-access"));
    assert_eq!(
        (&ntfy.json()["topic"], &ntfy.json()["title"]),
        (&json!("s3cret-topic"), &json!("asks: approval needed"))
    );

    let letter = &postbox.got(1)[0];
    assert!(letter.from.contains("<wells@example.com>") && letter.to[0].contains("<ann@example.com>"), "{letter:?}");
    assert!(letter.text.contains("Subject: asks: approval needed") && letter.text.contains(&run), "{}", letter.text);

    // What opens a channel comes back nowhere, not even with what went wrong.
    outside.answer("/hook/s3cret-path", 500, "{}");
    outside.answer("/chat/s3cret", 404, "{}");
    for name in ["hook", "chat"] {
        let tried = api.send("POST", &format!("/api/v1/channels/{name}/test"), &[], None).is(200).data();
        assert_eq!(tried["arrived"], false);
        assert!(tried["error"].as_str().is_some_and(|why| !why.contains("s3cret")), "{tried:#}");
    }
    assert_eq!(api.send("POST", "/api/v1/channels/mail/test", &[], None).is(200).data(), json!({"arrived": true}));
    settled(api);
    for path in ["/api/v1/channels", "/api/v1/notifications", "/api/v1/audit", "/api/v1/preferences"] {
        let shown = api.get(path).is(200).text();
        assert!(!shown.contains("s3cret") && !shown.contains("whsec_"), "{path}: {shown}");
    }
    let log = server.stop();
    assert!(!log.contains("s3cret"), "{log}");
    place.sound();
}

#[test]
fn each_turn_of_a_gate_is_told_once_to_those_it_concerns() {
    let outside = Outside::start();
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let (ann, ben) = (api.new_user("ann", &PEOPLE), api.new_user("ben", &PEOPLE));
    for (who, name) in [(&ann, "ann"), (&ben, "ben")] {
        channel(who, json!({"name": "mine", "medium": "webhook", "url": format!("{}/{name}", outside.url)}));
    }
    let gate = json!({"message": "well?", "approvers": ["ann"], "timeout": "1h", "escalate_to": ["ben"],
        "escalate_after": "100ms"});
    api.define(&json!({"name": "named", "tasks": {"ask": {"approval": gate}}}));
    let run = ben.trigger("named", &json!({}));
    let told = |path: &str, many| {
        let calls = outside.called(path, many);
        calls.iter().map(|call| call.json()["type"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(told("/ann", 1), ["gate_opened"]);
    assert_eq!(told("/ben", 1), ["gate_escalated"]);
    ben.post(&format!("/api/v1/runs/{run}/steps/ask/deny"), &json!({"comment": "no"})).is(200);
    assert_eq!(told("/ben", 2)[1], "gate_answered");
    assert_eq!(outside.calls("/ben")[1].json()["data"]["message"], "denied by ben: no");
    let all = settled(api);
    assert_eq!((all.len(), outside.count()), (3, 3), "{all:#?}");
    // Each sees their own; the administrator all.
    assert_eq!(settled(&ann).len(), 1);
    assert_eq!(settled(&ben).len(), 2);
    api.define(&json!({"name": "short", "tasks": {"ask": {"approval": {"message": "?", "timeout": "50ms"}}}}));
    api.end(&ben.trigger("short", &json!({})));
    assert_eq!(told("/ben", 3)[2], "gate_expired");
    settled(api);
    assert_eq!(outside.count(), 4);
}

#[test]
fn a_receiver_that_was_down_gets_it_when_it_is_back() {
    let (outside, postbox) = (Outside::start(), Postbox::start());
    let smtp =
        format!("smtp: {{host: 127.0.0.1, port: {}, encryption: none, from: wells@example.com}}\n", postbox.port);
    let place = Installation::new().config(&smtp);
    let server = place.serve();
    let api = &server.api;
    workflows(api);
    channel(
        api,
        json!({"name": "hook", "medium": "webhook", "organisation": true, "url": format!("{}/hook", outside.url)}),
    );
    channel(api, json!({"name": "mail", "medium": "email", "organisation": true, "to": "ann@example.com"}));
    outside.answer("/hook", 503, "{}");
    postbox.refuse_next("450 come back later");
    api.trigger("fails", &json!({}));
    outside.called("/hook", 1);
    outside.answer("/hook", 200, "{}");
    let calls = outside.called("/hook", 2);
    assert_eq!(calls[0].header("webhook-id"), calls[1].header("webhook-id"));
    assert!(postbox.got(1)[0].text.contains("fails: run failed"));
    let all = settled(api);
    assert!(all.len() == 2 && all.iter().all(|one| one["status"] == "sent" && one["attempts"] == 2), "{all:#?}");
    // One that will never work is given up at once.
    postbox.refuse_next("550 nobody here");
    api.trigger("fails", &json!({}));
    outside.called("/hook", 3);
    let failed = settled(api).into_iter().find(|one| one["status"] == "failed").unwrap();
    assert!(failed["error"].as_str().unwrap().contains("nobody here"), "{failed:#}");
}

#[test]
fn a_kill_between_what_happened_and_its_message_loses_nothing() {
    let outside = Outside::start();
    let place = Installation::new();
    let mut server = place.serve();
    workflows(&server.api);
    let hook =
        json!({"name": "hook", "medium": "webhook", "organisation": true, "url": format!("{}/hook", outside.url)});
    channel(&server.api, hook);
    let mut runs = BTreeSet::new();
    for _ in 0..3 {
        for _ in 0..5 {
            runs.insert(server.api.finished("fails", &json!({}))["id"].as_str().unwrap().to_string());
        }
        server.kill();
        server = place.serve();
    }
    let told = || outside.calls("/hook").iter().map(|call| call.json()["data"]["run_id"].clone()).collect::<Vec<_>>();
    eventually("a message for every run", || {
        let told: BTreeSet<String> = told().iter().map(|run| run.as_str().unwrap().to_string()).collect();
        (told == runs).then_some(())
    });
    let all = settled(&server.api);
    assert_eq!(all.len(), runs.len(), "one delivery for each: {all:#?}");
    let ids: BTreeSet<String> =
        outside.calls("/hook").iter().map(|call| call.header("webhook-id").unwrap().to_string()).collect();
    assert_eq!(ids.len(), runs.len(), "what came twice can be told by its id");
    server.stop();
    place.sound();
}

#[test]
fn of_two_servers_on_a_database_one_sends() {
    if postgres_only("a directory has one process") {
        return;
    }
    let outside = Outside::start();
    let place = Installation::new();
    let one = place.serve();
    workflows(&one.api);
    let hook =
        json!({"name": "hook", "medium": "webhook", "organisation": true, "url": format!("{}/hook", outside.url)});
    channel(&one.api, hook);
    let two = place.serve();
    let second = two.with_key(one.api.key.as_deref().unwrap());
    for n in 0..16 {
        let api = if n % 2 == 0 { &one.api } else { &second };
        api.finished("fails", &json!({}));
    }
    outside.called("/hook", 16);
    let all = settled(&second);
    assert!(all.iter().all(|one| one["status"] == "sent" && one["attempts"] == 1), "{all:#?}");
    assert_eq!((all.len(), outside.calls("/hook").len()), (16, 16));
}

#[test]
fn a_channel_goes_where_the_server_may_and_nowhere_else() {
    let place = Installation::new().config("private_addresses: false\n");
    let server = place.serve();
    let api = &server.api;
    let try_url =
        |url: &str| api.post("/api/v1/channels", &json!({"name": "x", "medium": "webhook", "url": url})).is(422).json();
    for url in
        ["http://127.0.0.1:1/x", "http://169.254.169.254/latest", "ftp://example.com", "nonsense", "http://2130706433/"]
    {
        let problem = try_url(url);
        assert!(problem.to_string().contains("url"), "{problem:#}");
    }
    let mail = json!({"name": "x", "medium": "email", "to": "ann@example.com"});
    assert!(api.post("/api/v1/channels", &mail).is(422).text().contains("smtp"));
    // A name that leads inside is refused when it is called.
    channel(api, json!({"name": "inside", "medium": "webhook", "url": "http://localhost:1/x"}));
    let tried = api.send("POST", "/api/v1/channels/inside/test", &[], None).is(200).data();
    assert!(tried["error"].as_str().unwrap().contains("not a public address"), "{tried:#}");
}

/// A stream of events or a socket, as somebody.
fn connected(server: &Server, api: &Api, socket: bool) -> Raw {
    let mut raw = Raw::open(server.address());
    let key = api.key.as_deref().unwrap();
    let path = if socket { "/api/v1/ws" } else { "/api/v1/events" };
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let more = if socket { upgrade } else { "" };
    raw.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{more}\r\n")).unwrap();
    let expected = if socket { "HTTP/1.1 101" } else { "HTTP/1.1 200" };
    assert!(raw.head().starts_with(expected));
    raw
}

#[test]
fn those_who_are_connected_are_told_what_concerns_them() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    let (ann, ben) = (api.new_user("ann", &PEOPLE), api.new_user("ben", &PEOPLE));
    let gate = json!({"message": "is it so?", "approvers": ["ann"]});
    api.define(&json!({"name": "named", "tasks": {"ask": {"approval": gate}}}));
    api.define(&json!({"name": "last", "tasks": {"ask": {"approval": {"message": "the last one"}}}}));
    ben.call("PATCH", "/api/v1/preferences", &json!({"browser": ["gate_opened"]})).is(200);
    for socket in [false, true] {
        let (mut of_ann, mut of_ben) = (connected(&server, &ann, socket), connected(&server, &ben, socket));
        let run = ben.trigger("named", &json!({}));
        let told = of_ann.until("is it so?");
        assert!(told.contains("notification") && told.contains("gate_opened") && told.contains(&run), "{told}");
        ann.post(&format!("/api/v1/runs/{run}/steps/ask/approve"), &json!({})).is(200);
        // A gate that names no one asks everyone who may answer.
        ben.trigger("last", &json!({}));
        of_ann.until("the last one");
        let told = of_ben.until("the last one");
        assert!(!told.contains("is it so?"), "it was not ben who was asked: {told}");
        assert!(!told.contains("gate_answered"), "ben did not want to see that: {told}");
    }
}

#[test]
fn the_server_s_pushover_token_goes_to_the_service_only() {
    let outside = Outside::start();
    let place = Installation::new().variable("PUSHOVER_TOKEN", "t-server");
    let server = place.serve();
    let theirs = server.api.new_organisation("other");
    let mut request =
        json!({"name": "p", "medium": "pushover", "organisation": true, "user_key": "u", "url": outside.url});
    let refused = theirs.post("/api/v1/channels", &request).refused(422, "invalid-input");
    assert!(refused.to_string().contains("needs a `token` of its own"), "{refused}");
    request["token"] = json!("t-mine");
    channel(&theirs, request);
    workflows(&theirs);
    theirs.finished("fails", &json!({}));
    let told = eventually("a message", || outside.calls("/1/messages.json").into_iter().next());
    let body = told.body;
    assert!(body.contains("t-mine") && !body.contains("t-server"), "{body}");
}

#[test]
fn a_channel_follows_the_policies_on_hosts() {
    let outside = Outside::start();
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    workflows(api);
    channel(
        api,
        json!({"name": "hook", "medium": "slack", "organisation": true, "url": format!("{}/hook", outside.url)}),
    );
    let when = "args.method == 'POST' && caller.user == null && workflow == null && !caller.agent";
    let deny = json!({"calls": "host:127.0.0.1", "effect": "deny", "when": when});
    api.call("PUT", "/api/v1/policies/p", &deny).is(200);
    api.finished("fails", &json!({}));
    let told = eventually("a delivery that ended", || {
        let all = api.get("/api/v1/notifications").is(200).data();
        all.as_array().unwrap().iter().find(|one| one["status"] != "waiting").cloned()
    });
    assert_eq!(told["status"], "failed", "{told:#}");
    assert!(told["error"].to_string().contains("the policy p"), "{told:#}");
    assert_eq!(outside.count(), 0);
}
