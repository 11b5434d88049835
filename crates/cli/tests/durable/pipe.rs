//! `stepwell pipe`: lines in, runs on disk, lines out.

use crate::harness::{Installation, Server};
use crate::run::CHAIN;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn named<'a>(lines: &'a [Value], what: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line.get(what).is_some()).collect()
}

#[test]
fn every_line_starts_a_run_and_its_end_is_told() {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    let input: String =
        (0..200).map(|n| json!({"input": {"n": n}, "key": format!("k{n}")}).to_string() + "\n").collect();
    let lines = place.fed(&["pipe", &file, "--concurrency", "8"], &input).expect(0).lines();
    let (started, ended) = (named(&lines, "started"), named(&lines, "ended"));
    assert_eq!((started.len(), ended.len(), lines.len()), (200, 200, 400));
    assert!(started.iter().all(|line| line["repeated"] == false));
    for line in ended {
        let n: u64 = line["key"].as_str().unwrap()[1..].parse().unwrap();
        assert_eq!((&line["status"], &line["output"]), (&json!("completed"), &json!({"got": n})));
        assert_eq!(line["line"], n + 1, "an answer names its input line");
    }
    // The same once more: nothing runs again, and the ends are told again.
    let again =
        place.fed(&["pipe"], &input.replace("{\"input\"", "{\"workflow\":\"chain\",\"input\"")).expect(0).lines();
    assert!(named(&again, "started").iter().all(|line| line["repeated"] == true));
    let runs = |lines: &[Value]| -> BTreeSet<String> {
        named(lines, "ended").iter().map(|line| line["ended"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(runs(&again), runs(&lines));
    place.sound();
}

#[test]
fn what_is_wrong_with_a_line_is_told_and_the_others_go_on() {
    let place = Installation::new();
    let fails = place.file("fails.yaml", "name: fails\ntasks: {a: {tool: fail}}\n");
    let chain = place.file("chain.yaml", CHAIN);
    let input = "nonsense\n\n{\"workflow\": \"chain\"}\n{\"key\": \"k\"}\n{\"workflow\": \"none\", \"key\": \"x\"}\n\
                 {\"workflow\": \"fails\", \"key\": \"f\"}\n{\"workflow\": \"chain\", \"inputs\": 1}\n";
    let lines = place.fed(&["pipe", &fails, &chain], input).expect(1).lines();
    let errors: Vec<&Value> = lines.iter().filter(|line| line["error"].is_string()).collect();
    let numbers: BTreeSet<u64> = errors.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, BTreeSet::from([1, 4, 5, 7]));
    let unknown = errors.iter().find(|line| line["key"] == "x").unwrap();
    assert!(unknown["error"].as_str().unwrap().contains("there is no workflow"));
    let failed = lines.iter().find(|line| line["key"] == "f" && line["ended"].is_string()).unwrap();
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("failed")));
}

#[test]
fn what_a_killed_process_left_is_taken_up_and_its_end_is_told() {
    let (place, server) = (Installation::new(), Server::start());
    let file = place.file("caller.yaml", &format!("name: caller\ntasks: {{call: {{url: \"{}\"}}}}\n", server.url));
    server.hold();
    let mut running = place.start(&["pipe", &file]);
    running.write("{\"key\": \"a\"}\n{\"key\": \"b\"}\n");
    let mut started = BTreeSet::new();
    for _ in 0..2 {
        let line: Value = serde_json::from_str(&running.until("started")).unwrap();
        started.insert(line["started"].as_str().unwrap().to_string());
    }
    server.await_requests(2);
    running.kill();
    server.release();
    // One is requested again, the other is not.
    let lines = place.fed(&["pipe", &file], "{\"key\": \"a\"}\n").expect(0).lines();
    let ended: BTreeSet<String> =
        named(&lines, "ended").iter().map(|line| line["ended"].as_str().unwrap().to_string()).collect();
    assert_eq!(ended, started);
    assert_eq!(named(&lines, "started")[0]["repeated"], true);
    place.sound();
}
