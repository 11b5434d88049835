//! Clients of any node that answers: they start runs and repeat a request until it is acknowledged, call the
//! webhooks of waiting runs, and check that limits hold.

use crate::Trouble;
use crate::chance::Chance;
use crate::node::{KEY, Node, PATIENCE};
use crate::outside::Outside;
use crate::workflows::{self, LIMIT, STARTED};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub struct Started {
    pub workflow: &'static str,
    pub input: Value,
    pub run: String,
}

pub struct Clients<'a> {
    pub nodes: &'a [Node],
    pub trouble: &'a Trouble,
    http: reqwest::blocking::Client,
    next: AtomicUsize,
    /// By idempotency key.
    started: Mutex<BTreeMap<String, Started>>,
    pub is_over: AtomicBool,
}

impl<'a> Clients<'a> {
    pub fn new(nodes: &'a [Node], trouble: &'a Trouble) -> Clients<'a> {
        stepwell_store::tls::install();
        // A node that stands still must not keep a client for ever.
        let http = reqwest::blocking::Client::builder().timeout(Duration::from_secs(3)).no_proxy().build().unwrap();
        let (next, started, is_over) = (AtomicUsize::new(0), Mutex::default(), AtomicBool::new(false));
        Clients { nodes, trouble, http, next, started, is_over }
    }

    pub fn started(&self) -> BTreeMap<String, Started> {
        self.started.lock().unwrap().clone()
    }

    /// Nothing if there was no answer, or only that it cannot be given now.
    pub fn ask(&self, node: &Node, method: &str, path: &str, body: Option<(&Value, &str)>) -> Option<(u16, Value)> {
        let mut request = self.http.request(method.parse().unwrap(), format!("{}{path}", node.url()?)).bearer_auth(KEY);
        if let Some((body, key)) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
            if !key.is_empty() {
                request = request.header("idempotency-key", key);
            }
        }
        let answer = request.send().ok()?;
        let status = answer.status().as_u16();
        let body: Value = serde_json::from_slice(&answer.bytes().ok()?).unwrap_or_default();
        if status >= 500 && status != 503 {
            self.trouble.note(format!("{method} {path} at {}: {status} {body}", node.name));
        }
        (status < 500).then_some((status, body))
    }

    fn anyone(&self, chance: &mut Chance) -> &'a Node {
        &self.nodes[chance.below(self.nodes.len())]
    }

    /// Starts runs until the time is over. What was begun is seen through.
    pub fn start_runs(&self, mut chance: Chance, until: Instant) {
        while Instant::now() < until {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let workflow = STARTED[chance.below(STARTED.len())];
            let input = workflows::input(workflow, n, 500 + chance.below(2_500) as u64);
            self.start(&mut chance, &format!("key-{n}"), workflow, input);
            if chance.below(5) == 0 {
                self.ask_again(&mut chance);
            }
            std::thread::sleep(chance.between(50, 250));
        }
    }

    fn start(&self, chance: &mut Chance, key: &str, workflow: &'static str, input: Value) {
        let path = format!("/api/v1/workflows/{workflow}/trigger");
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let Some((status, answer)) = self.ask(self.anyone(chance), "POST", &path, Some((&input, key))) else {
                std::thread::sleep(chance.between(10, 100));
                continue;
            };
            let Some(run) = answer["data"]["run_id"].as_str().filter(|_| [200, 201].contains(&status)) else {
                return self.trouble.note(format!("{key} of {workflow} was answered {status} {answer}"));
            };
            let started = Started { workflow, input, run: run.to_string() };
            let before = self.started.lock().unwrap().insert(key.to_string(), started.clone());
            if let Some(before) = before.filter(|before| before.run != run) {
                self.trouble.note(format!("{key} made two runs: {before:?} and {started:?}"));
            }
            return;
        }
        self.trouble.note(format!("no server took {key} of {workflow} within {PATIENCE:?}"));
    }

    /// As a client does whose response was lost.
    fn ask_again(&self, chance: &mut Chance) {
        let started = self.started();
        if !started.is_empty() {
            let (key, one) = started.into_iter().nth(chance.below(self.started.lock().unwrap().len())).unwrap();
            self.start(chance, &key, one.workflow, one.input);
        }
    }

    /// Asks for everything once more: the answers are the runs that are known.
    pub fn ask_all_again(&self, mut chance: Chance) {
        for (key, one) in self.started() {
            self.start(&mut chance, &key, one.workflow, one.input);
        }
    }

    /// Calls where runs said that they wait for it, until all is over.
    pub fn call_back(&self, mut chance: Chance, outside: &Outside) {
        let (mut known, mut open) = (0, VecDeque::new());
        while !self.is_over.load(Ordering::Relaxed) {
            let new = outside.since(known);
            known += new.len();
            open.extend(new.into_iter().filter(|request| request.body["to"].is_string()));
            let Some(request) = open.pop_front() else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            // The node that the address names may be gone; all are the same server to the outside.
            let to = request.body["to"].as_str().unwrap();
            let path = &to[to.find("/wh/").expect("an address of a wait")..];
            let body = json!({"n": request.body["n"]});
            match self.ask(self.anyone(&mut chance), "POST", path, Some((&body, ""))) {
                None => open.push_back(request),
                Some((200, _)) => {}
                Some((409, answer)) if answer["code"] == "repeated" => {}
                Some((status, answer)) => self.trouble.note(format!("the call to {to} was answered {status} {answer}")),
            }
        }
    }

    /// Polls all nodes for how many runs of the workflow with a limit are in progress.
    pub fn watch_limit(&self, mut chance: Chance) {
        let path = "/api/v1/runs?workflow=narrow&status=running,paused";
        let mut looked = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            if let Some((200, list)) = self.ask(self.anyone(&mut chance), "GET", path, None) {
                looked += 1;
                let running = list["data"].as_array().unwrap();
                if running.len() > LIMIT {
                    self.trouble.note(format!("{} runs go on where {LIMIT} may: {list:#}", running.len()));
                }
            }
            std::thread::sleep(chance.between(30, 120));
        }
        println!("looked {looked} times at the limit of concurrent runs");
    }
}
