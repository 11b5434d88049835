//! A client of `stepwell pipe` that starts runs, records acknowledgements, and kills the process at a random
//! moment. It repeats what was not acknowledged, under the same key.

use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use stepwell_testing::TestStore;

/// Runs asked for per life of the process.
const PER_LIFE: u64 = 40;

pub struct Load<'a> {
    place: &'a TestStore,
    definitions: Vec<PathBuf>,
    chance: u64,
    next: u64,
    /// Keys asked for and not acknowledged.
    open: Vec<(String, &'static str)>,
    acknowledged: BTreeMap<String, String>,
}

impl Load<'_> {
    pub fn new<'a>(place: &'a TestStore, server: &Server, seed: u64) -> Load<'a> {
        let definitions = definitions(&server.url).into_iter().map(|definition| {
            let file = place.directory().join(format!("{}.json", definition["name"].as_str().unwrap()));
            std::fs::write(&file, definition.to_string()).unwrap();
            file
        });
        let definitions = definitions.collect();
        Load { place, definitions, chance: seed, next: 0, open: Vec::new(), acknowledged: BTreeMap::new() }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 27)) % n
    }

    fn spawn(&self) -> Child {
        let mut pipe = stepwell(self.place, "pipe");
        pipe.args(&self.definitions);
        pipe.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// One process: starts runs, records acknowledgements, and is killed a random time after the first one.
    pub fn run_and_kill(&mut self) {
        let mut child = self.spawn();
        for _ in 0..PER_LIFE {
            let workflow = ["chain", "diamond", "careful", "items", "parent"][self.below(5) as usize];
            self.open.push((format!("{workflow}-{}", self.next), workflow));
            self.next += 1;
        }
        let mut input = child.stdin.take().unwrap();
        let orders: String = self.open.iter().map(|(key, workflow)| order(key, workflow)).collect();
        // It may be killed before it has read everything.
        let writer = std::thread::spawn(move || {
            let _ = input.write_all(orders.as_bytes());
            input
        });
        let lines = read_lines(&mut child);
        let lifetime = Duration::from_millis(20 + self.below(400));
        let mut deadline = Instant::now() + Duration::from_secs(60);
        let mut first = true;
        while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.note(&line);
            if std::mem::take(&mut first) {
                deadline = Instant::now() + lifetime;
            }
        }
        // SIGKILL: nothing is said, nothing is written any more.
        child.kill().unwrap();
        child.wait().unwrap();
        // Its output before it was killed counts.
        lines.iter().for_each(|line| self.note(&line));
        drop(writer.join());
    }

    /// A last life that is left alone until all is done. Returns the runs by key.
    pub fn finish(mut self) -> BTreeMap<String, String> {
        let mut child = self.spawn();
        let mut input = child.stdin.take().unwrap();
        let orders: String = self.open.iter().map(|(key, workflow)| order(key, workflow)).collect();
        let writer = std::thread::spawn(move || input.write_all(orders.as_bytes()).unwrap());
        let lines = read_lines(&mut child);
        lines.iter().for_each(|line| self.note(&line));
        writer.join().unwrap();
        child.wait().unwrap();
        assert_eq!(self.open, [], "not everything was acknowledged in the end");
        self.acknowledged
    }

    fn note(&mut self, line: &Value) {
        let (Some(run), Some(key)) = (line["started"].as_str(), line["key"].as_str()) else { return };
        let before = self.acknowledged.insert(key.to_string(), run.to_string());
        assert!(before.is_none_or(|before| before == run), "the key {key} made two runs");
        self.open.retain(|(open, _)| open != key);
    }
}

/// A command on the place.
pub fn stepwell(place: &TestStore, name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.arg(name).arg("--data").arg(place.data()).envs(place.environment());
    // What the steps call is on this machine. No step is what kills the server here, however often it was running.
    let config = place.directory().join("stepwell.yaml");
    std::fs::write(&config, "quarantine_after: 255\n").unwrap();
    command.env("STEPWELL_PRIVATE_ADDRESSES", "true").env("STEPWELL_CONFIG", config);
    command
}

fn order(key: &str, workflow: &str) -> String {
    format!("{}\n", json!({"workflow": workflow, "key": key, "input": {"items": [1, 2, 3]}}))
}

/// The calls that a run of this key must have made.
pub fn calls(key: &str) -> &'static [&'static str] {
    match key.split('-').next() {
        Some("chain") => &["a", "b", "c"],
        Some("diamond") => &["top", "left", "right", "join"],
        Some("items") => &["each[0].one", "each[1].one", "each[2].one", "join"],
        Some("parent") => &["done"],
        // May have failed, and must not have been repeated.
        _ => &[],
    }
}

fn read_lines(child: &mut Child) -> mpsc::Receiver<Value> {
    let output = child.stdout.take().unwrap();
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            // The last line may be cut off.
            let Ok(line) = serde_json::from_str(&line) else { return };
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn definitions(url: &str) -> Vec<Value> {
    let call = |step: &str| json!({"url": url, "body": {"run": "{{run.id}}", "step": step}});
    let after = |step: &str, needs: &[&str]| {
        let mut task = call(step);
        task["needs"] = json!(needs);
        task
    };
    let mut once = after("once", &["before"]);
    once["at_most_once"] = json!(true);
    vec![
        json!({"name": "chain", "tasks": {
            "a": call("a"), "nap": {"needs": ["a"], "sleep": "30ms"},
            "b": after("b", &["nap"]), "c": after("c", &["b"])}}),
        json!({"name": "diamond", "tasks": {
            "top": call("top"), "left": after("left", &["top"]), "right": after("right", &["top"]),
            "join": after("join", &["left", "right"])}}),
        json!({"name": "careful", "tasks": {
            "before": {"tool": "echo", "args": {}}, "once": once}}),
        json!({"name": "items", "tasks": {
            "each": {"for_each": "{{input.items}}", "tasks": {"one": call("one")}},
            "join": after("join", &["each"])}}),
        json!({"name": "child", "tasks": {"work": {"tool": "echo", "args": {}}}}),
        json!({"name": "parent", "tasks": {
            "build": {"workflow": "child", "input": {}}, "done": after("done", &["build"])}}),
    ]
}
