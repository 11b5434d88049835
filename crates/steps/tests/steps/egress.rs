//! The egress rules on real connections.

use crate::server::{Server, dead};
use crate::{failure, http, local, run, success};
use serde_json::json;
use std::process::Command;
use stepwell_core::event::Failure;
use stepwell_steps::Config;

fn check_refused(failure: &Failure, expected: &str) {
    assert_eq!((&*failure.code, failure.retryable, failure.may_have_happened), ("egress_refused", false, false));
    assert!(failure.message.contains(expected), "{}", failure.message);
    assert!(!failure.message.contains("s3cret"), "{}", failure.message);
}

#[tokio::test]
async fn private_addresses_are_refused_unless_allowed() {
    let server = Server::responding(200, &[], "").await;
    let port = server.url.rsplit(':').next().unwrap();
    // A name is refused by its addresses, an address in any notation.
    for host in
        ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::ffff:127.0.0.1]", "[::1]"]
    {
        let url = format!("http://{host}:{port}/?key=s3cret");
        let (failure, _) =
            failure(run(Config { egress: Default::default(), ..local() }, "http", json!({"url": url})).await);
        check_refused(&failure, "is not a public address");
    }
    assert!(server.seen().is_empty());
    for host in ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"] {
        success(http(json!({"url": format!("http://{host}:{port}/")})).await);
    }
}

#[tokio::test]
async fn metadata_and_link_local_addresses_are_refused_even_if_private_ones_are_allowed() {
    for host in
        ["169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200"]
    {
        let (failure, _) = failure(http(json!({"url": format!("http://{host}/latest?key=s3cret")})).await);
        check_refused(&failure, "link-local or cloud metadata");
    }
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_address_is_refused() {
    for to in [
        "http://169.254.169.254/latest?key=s3cret",
        "http://2852039166/",
        "http://0xa9.0xfe.0xa9.0xfe/",
        "//169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "http://user:s3cret@[fe80::1]/",
    ] {
        let server = Server::answering(move |_| crate::server::response(307, &[("location", to)], "")).await;
        let (failure, _) = failure(http(json!({"url": server.url})).await);
        check_refused(&failure, "link-local or cloud metadata");
        server.only();
    }
}

#[tokio::test]
async fn tools_are_bound_by_the_same_rules() {
    let (url, _kept) = dead();
    let input = json!({"tool": "http_request", "args": {"url": url}});
    let (failure, _) = failure(run(Config { egress: Default::default(), ..local() }, "tool", input).await);
    check_refused(&failure, "is not a public address");
}

/// Runs this test again with dead proxies in the environment.
#[tokio::test]
async fn proxies_in_the_environment_are_not_used() {
    const INSIDE: &str = "STEPWELL_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_none() {
        let (proxy, _kept) = dead();
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "egress::proxies_in_the_environment_are_not_used"]).env(INSIDE, "1");
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            again.env(name, &proxy);
        }
        let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let server = Server::responding(200, &[], "").await;
    success(http(json!({"url": server.url})).await);
    server.only();
}

#[tokio::test]
async fn the_server_itself_cannot_be_called_by_address_by_name_or_through_a_redirect() {
    let server = Server::responding(200, &[], "").await;
    let own: std::net::SocketAddr = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let config = || {
        let config = local();
        config.own_address.set(own);
        config
    };
    for host in ["127.0.0.1", "localhost", "2130706433", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/?key=s3cret", own.port());
        let (refused, _) = failure(run(config(), "http", json!({"url": url})).await);
        check_refused(&refused, "is this server itself");
        let location = url.clone();
        let elsewhere = Server::answering(move |_| crate::server::response(307, &[("location", &location)], "")).await;
        let (refused, _) = failure(run(config(), "http", json!({"url": elsewhere.url})).await);
        check_refused(&refused, "is this server itself");
        let args = json!({"tool": "http_request", "args": {"url": url}});
        let (refused, _) = failure(run(config(), "tool", args).await);
        check_refused(&refused, "is this server itself");
    }
    assert!(server.seen().is_empty());
    // Other ports of the same machine are not the server.
    let other = Server::responding(200, &[], "").await;
    success(run(config(), "http", json!({"url": other.url.replace("127.0.0.1", "localhost")})).await);
}
