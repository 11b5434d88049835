//! Secrets that are bound to hosts, and the secret that signs requests.

use crate::server::{Server, response};
use crate::{call, failure, local, soon, success};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::Outcome;
use stepwell_engine::{Bound, UsedSecrets, sign_webhook};
use stepwell_steps::kinds;

async fn send(kind: &str, input: Value, host: &str, left_behind: bool) -> Outcome {
    let bound = Bound { secret: "KEY".into(), hosts: Arc::new([host.to_string()]), left_behind };
    let mut call = call(input);
    call.secrets = UsedSecrets { bound: Arc::new([bound]), ..UsedSecrets::default() };
    let kinds = kinds(local());
    soon(kinds.get(kind).unwrap().run(call)).await
}

#[tokio::test]
async fn a_bound_secret_is_not_sent_to_another_host() {
    let server = Server::responding(200, &[], "").await;
    let input = json!({"url": server.url});
    let calls = [("http", input.clone()), ("tool", json!({"tool": "http_request", "args": input}))];
    for (n, (kind, input)) in calls.into_iter().enumerate() {
        let (failure, _) = failure(send(kind, input.clone(), "api.example.com", true).await);
        assert_eq!(&*failure.code, "secret_bound");
        assert!(failure.message.contains("the secret KEY may be sent only to api.example.com"), "{}", failure.message);
        assert_eq!(server.seen().len(), n);
        success(send(kind, input, "127.0.0.1", true).await);
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_redirect_to_another_host_does_not_carry_a_bound_secret() {
    let target = Server::responding(200, &[], "there").await;
    let location = target.url.clone();
    let server = Server::answering(move |_| response(307, &[("location", location.as_str())], "")).await;
    let host = server.url.trim_start_matches("http://").to_string();
    let (failure, _) =
        failure(send("http", json!({"url": server.url, "headers": {"x-key": "s3cret"}}), &host, false).await);
    assert_eq!(&*failure.code, "secret_bound");
    assert!(target.seen().is_empty(), "the header would have been sent");
    // Redirects drop this header anyway, so the redirect is followed.
    let headers = json!({"authorization": "Bearer s3cret"});
    success(send("http", json!({"url": server.url, "headers": headers}), &host, true).await);
    assert_eq!(target.only().header("authorization"), None);
}

#[tokio::test]
async fn a_request_is_signed_with_the_organisation_s_secret_unless_it_has_a_signature() {
    let server = Server::responding(200, &[], "").await;
    let secret = "whsec_c3RlcHdlbGwtc2lnbnMtd2hhdC1pdC1zZW5kcw==";
    let signed = async |headers: Value, signing: Option<&str>| {
        let mut call = call(json!({"url": server.url, "headers": headers, "body": {"n": 1}}));
        call.secrets = UsedSecrets { signing: signing.map(Into::into), ..UsedSecrets::default() };
        let kinds = kinds(local());
        success(soon(kinds.get("http").unwrap().run(call)).await);
        server.seen().pop().unwrap()
    };
    let seen = signed(json!({}), Some(secret)).await;
    let (id, time) = (seen.header("webhook-id").unwrap(), seen.header("webhook-timestamp").unwrap());
    assert_eq!(seen.header("idempotency-key"), Some(id));
    assert!(time.parse::<i64>().unwrap().abs_diff(jiff::Timestamp::now().as_second()) < 60);
    let expected = sign_webhook(secret, id, time, &seen.body).unwrap();
    assert_eq!(seen.header("webhook-signature"), Some(&*expected));
    assert_eq!(signed(json!({"webhook-signature": "v1,own"}), Some(secret)).await.header("webhook-timestamp"), None);
    assert_eq!(signed(json!({}), None).await.header("webhook-signature"), None);
}
