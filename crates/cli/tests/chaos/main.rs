//! Three nodes on one PostgreSQL, clients, and faults at random: nodes and database are killed, paused, cut off and
//! restarted. Afterwards every acknowledged run has ended as its definition requires.
//!
//! `STEPWELL_CHAOS_SEED` says what goes wrong, `STEPWELL_CHAOS_SECONDS` for how long; `STEPWELL_CHAOS_OLDER` is a binary of
//! an earlier version for one of the nodes.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod chance;
mod client;
mod node;
mod outside;
mod verdict;
mod villain;
mod workflows;

use chance::Chance;
use client::Clients;
use node::{Node, PATIENCE};
use outside::Outside;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use stepwell_testing::Cluster;
use villain::{Deeds, Villain};

/// Default duration of the faults in seconds.
const USUAL: u64 = 25;

/// Violations that were seen.
#[derive(Default)]
pub struct Trouble(Mutex<Vec<String>>);

impl Trouble {
    pub fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

#[test]
fn whatever_happens_to_nodes_and_database_acknowledged_runs_come_to_their_right_end() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("STEPWELL_CHAOS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let seconds = number("STEPWELL_CHAOS_SECONDS").unwrap_or(USUAL);
    println!("STEPWELL_CHAOS_SEED={seed} STEPWELL_CHAOS_SECONDS={seconds}");
    let cluster = Cluster::start();
    let nodes: Vec<Node> = (0..3).map(|n| Node::new(format!("node-{n}"), &cluster)).collect();
    std::thread::scope(|scope| nodes.iter().for_each(|node| drop(scope.spawn(|| node.start()))));
    let (outside, trouble, deeds) = (Outside::start(), Trouble::default(), Deeds::default());
    let clients = Clients::new(&nodes, &trouble);
    for definition in workflows::definitions(&outside.url) {
        let answer = clients.ask(&nodes[0], "POST", "/api/v1/workflows", Some((&definition, "")));
        assert!(answer.as_ref().is_some_and(|(status, _)| *status == 201), "{definition}: {answer:?}");
    }
    let begun = Instant::now();
    let until = begun + Duration::from_secs(seconds);
    let villain =
        |part: u64| Villain { chance: Chance::new(seed, part), begun, until, deeds: &deeds, trouble: &trouble };
    let mut wrong = std::thread::scope(|scope| {
        scope.spawn(|| clients.call_back(Chance::new(seed, 1), &outside));
        scope.spawn(|| clients.watch_limit(Chance::new(seed, 2)));
        std::thread::scope(|scope| {
            for (node, n) in nodes.iter().zip(0..) {
                scope.spawn(move || villain(10 + n as u64).haunt(node, 2 * n));
            }
            scope.spawn(|| villain(3).haunt_database(&cluster));
            let clients = &clients;
            for part in 20..28 {
                scope.spawn(move || clients.start_runs(Chance::new(seed, part), until));
            }
        });
        println!("{:.1} s: the villains are gone after {} deeds", begun.elapsed().as_secs_f64(), deeds.count());
        let unsettled = settle(&clients);
        println!("{:.1} s: all is at rest", begun.elapsed().as_secs_f64());
        clients.is_over.store(true, Ordering::Relaxed);
        unsettled
    });
    if wrong.is_empty() {
        clients.ask_all_again(Chance::new(seed, 4));
        wrong.extend(verdict::judge(&clients, &outside));
        wrong.extend(nodes.iter().filter_map(|node| node.stop().err()));
        wrong.extend(examine(&cluster));
    }
    wrong.extend(trouble.0.lock().unwrap().drain(..));
    let (runs, requests) = (clients.started().len(), outside.since(0).len());
    println!("{runs} runs acknowledged, {requests} requests");
    if !wrong.is_empty() {
        let logs: String = nodes.iter().map(Node::last_words).collect();
        panic!("STEPWELL_CHAOS_SEED={seed}\n{}\n{logs}\n{}", deeds.told(), wrong.join("\n\n"));
    }
    assert!(runs as u64 > seconds, "hardly anything was started");
    let missing = deeds.missing();
    assert!(seconds < USUAL || missing.is_empty(), "these deeds are missing: {missing:?}\n{}", deeds.told());
}

/// Waits until everything has come to its end on nodes that are well; what has not.
fn settle(clients: &Clients<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let node = &clients.nodes[0];
    let get = |node: &Node, path: &str| clients.ask(node, "GET", path, None).filter(|(status, _)| *status == 200);
    for node in clients.nodes {
        wrong.extend(in_vain(&format!("{} ready", node.name), || {
            get(node, "/readyz").map_or(json!("no answer"), |_| json!([]))
        }));
    }
    let off = json!({"enabled": false});
    let off = || clients.ask(node, "PATCH", "/api/v1/workflows/tick", Some((&off, "")));
    wrong.extend(in_vain("a schedule that is switched off", || off().map_or(json!("no answer"), |_| json!([]))));
    let list = |path: &str| get(node, path).map_or(json!("no answer"), |(_, body)| body["data"].clone());
    let open = in_vain("the end of all runs", || list("/api/v1/runs?status=queued,running,paused"));
    if let Some(said) = open {
        let ids = serde_json::from_str::<Value>(&said.1).unwrap_or_default();
        let ids = ids.as_array().into_iter().flatten().filter_map(|run| run["id"].as_str());
        let views = ids.take(5).map(|id| {
            let events = list(&format!("/api/v1/runs/{id}/events"));
            format!("{:#}\n{events}", list(&format!("/api/v1/runs/{id}")))
        });
        wrong.push(Unsettled(said.0, views.collect::<Vec<_>>().join("\n")));
    }
    for asked in clients.nodes {
        let path = "/api/v1/nodes";
        let others = || {
            let nodes = get(asked, path).map_or(json!("no answer"), |(_, body)| body["data"].clone());
            let mut names: Vec<&str> =
                nodes.as_array().into_iter().flatten().filter_map(|node| node["name"].as_str()).collect();
            names.sort_unstable();
            let idle = nodes.as_array().is_some_and(|nodes| nodes.iter().all(|node| node["running"] == 0));
            let expected: Vec<&str> = clients.nodes.iter().map(|node| node.name.as_str()).collect();
            if names == expected && idle { json!([]) } else { json!({"nodes": names, "idle": idle}) }
        };
        wrong.extend(in_vain("those nodes that live, and no others", others));
    }
    wrong.into_iter().map(|Unsettled(what, last)| format!("waited in vain: {what}\n{last}")).collect()
}

/// What was awaited, and what was found instead.
struct Unsettled(String, String);

/// Polls until nothing is outstanding. Gives up when the same things have been outstanding for too long.
fn in_vain(what: &str, mut in_the_way: impl FnMut() -> Value) -> Option<Unsettled> {
    let (mut last, mut since) = (Value::Null, Instant::now());
    loop {
        let now = in_the_way();
        if now == json!([]) {
            return None;
        }
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            return Some(Unsettled(what.into(), last.to_string()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn examine(cluster: &Cluster) -> Option<String> {
    let done = node::stepwell().args(["doctor", "--database", cluster.url()]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (!done.status.success() || !said.contains("nothing is wrong")).then_some(said)
}
