//! Notification channels: adding, testing and removing them, without showing their credentials.

use crate::harness::Installation;
use crate::served::Served;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_channel_is_made_tried_and_removed() {
    let place = Installation::new();
    // Nodes that share a database are given their key.
    place.master_key(Some(&"5a".repeat(32)));
    let served = Served::on(place, "127.0.0.1:0");
    let place = &served.place;
    let url = stepwell_testing::listen(|_| ("200 OK", "{}".into()));
    let hook = format!("{url}/s3cret");
    let made =
        place.stepwell(&["channel", "add", "webhook", "hook", "--service", &hook]).expect(0).says("not shown again");
    assert!(made.out.trim().starts_with("whsec_") && made.out.lines().count() == 1, "{}", made.out);
    place.stepwell(&["channel", "test", "hook"]).expect(0).says("message delivered");
    let add = ["channel", "add", "slack", "team", "--organisation", "--event", "run_failed"];
    let mut child = place.command(&add).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"http://127.0.0.1:9/s3cret\n").unwrap();
    assert!(child.wait().unwrap().success());
    let listed = place.stepwell(&["channel", "list"]).expect(0).says("webhook to").says("run_failed").out;
    assert!(!listed.contains("s3cret") && !listed.contains("whsec_"), "{listed}");
    let tried = place.stepwell(&["channel", "test", "team"]).expect(1).says("message not delivered");
    assert!(!tried.err.contains("s3cret"), "{}", tried.err);
    place.stepwell(&["channel", "remove", "hook"]).expect(0).says("is removed");
    place.stepwell(&["channel", "remove", "hook"]).expect(2).says("there is no channel");
    place.stepwell(&["channel", "add", "email", "mail", "--to", "ann@example.com"]).expect(2).says("smtp");
    place.stepwell(&["channel", "add", "webhook", "bad", "--service", "nonsense"]).expect(2).says("not a URL");
}
