//! A server is killed while its runs are watched; the watchers resume.

use crate::served::Served;
use serde_json::Value;

const SLEEPER: &str = "name: sleeper
tasks:
  a: {tool: echo, args: {n: 1}}
  nap: {needs: a, sleep: 3s}
  b: {needs: nap, tool: echo, args: {n: 2}}
output: done
";

/// What identifies an event, however it was received.
fn essence(line: &Value) -> (i64, String, Value) {
    (line["version"].as_i64().unwrap(), line["type"].to_string(), line["step"].clone())
}

/// The server is killed and started again at this address; what was seen is the log, each event once.
fn survives(address: impl FnOnce(&Served) -> String) {
    let served = Served::with(&[SLEEPER]);
    let run = served.trigger(&["sleeper"]);
    let mut lines = served.place.start(&["watch", &run, "--json"]);
    let mut words = served.place.start(&["watch", &run]);
    lines.until("\"nap\"");
    words.until("nap sleeps");
    let address = address(&served);
    let place = served.kill();
    words.until("connection lost");
    let served = Served::on(place, &address);
    words.until("reconnected");
    let words = words.end().expect(0);
    assert_eq!(words.json(), "done");
    let seen = lines.end().expect(0).lines();
    let (result, seen) = seen.split_last().unwrap();
    assert_eq!((&result["type"], &result["status"]), (&"result".into(), &"completed".into()));
    let log = served.run(&["events", &run, "--json"]).expect(0).lines();
    assert_eq!(seen.iter().map(essence).collect::<Vec<_>>(), log.iter().map(essence).collect::<Vec<_>>());
    let notes = ["connection lost", "reconnected"];
    let told = words.err.lines().filter(|line| !notes.iter().any(|note| line.contains(note)));
    assert_eq!(told.count(), log.len(), "{}", words.err);
    served.stop().sound();
}

#[test]
fn watching_goes_on_after_a_kill_and_a_restart_on_the_same_port() {
    survives(|served| served.url().trim_start_matches("http://").to_string());
}

#[test]
fn watching_finds_a_server_that_comes_back_elsewhere() {
    survives(|_| "127.0.0.1:0".to_string());
}
