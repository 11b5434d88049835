//! What must hold at the end, for every run and across all runs.

use crate::client::Clients;
use crate::node::Node;
use crate::outside::{Outside, REFUSALS, Request};
use crate::workflows::{self, LIMIT};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// To which nodes know the database's time.
const PRECISION: Duration = Duration::from_millis(100);

/// A run as the API shows it in the end, and its log.
struct Ended {
    view: Value,
    events: Vec<Value>,
    child: bool,
}

impl Ended {
    fn workflow(&self) -> &str {
        self.view["workflow"].as_str().unwrap()
    }

    fn facts<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }
}

pub struct Verdict<'a> {
    clients: &'a Clients<'a>,
    node: &'a Node,
    requests: BTreeMap<String, Vec<Request>>,
    runs: BTreeMap<String, Ended>,
    wrong: Vec<String>,
}

/// Everything that is not as it must be.
pub fn judge(clients: &Clients<'_>, outside: &Outside) -> Vec<String> {
    let node = &clients.nodes[0];
    let mut verdict = Verdict { clients, node, requests: outside.by_key(), runs: BTreeMap::new(), wrong: Vec::new() };
    verdict.read();
    for id in verdict.runs.keys().cloned().collect::<Vec<_>>() {
        let faults = verdict.faults(&id);
        if !faults.is_empty() {
            let run = &verdict.runs[&id];
            let log = run.events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n  ");
            let sent = verdict.requests.iter().filter(|(key, _)| key.starts_with(&id));
            let sent =
                sent.map(|(key, requests)| format!("{key} {} times", requests.len())).collect::<Vec<_>>().join(", ");
            let of = run.workflow().to_string();
            verdict.wrong.push(format!("{id} of {of}: {}\n  {log}\n  sent: {sent}", faults.join("; ")));
        }
    }
    verdict.tell();
    verdict.acknowledged();
    verdict.children();
    verdict.ticks();
    verdict.limit();
    verdict.strangers();
    verdict.wrong
}

impl Verdict<'_> {
    fn get(&self, path: &str) -> Value {
        let answer = (0..20).find_map(|_| self.clients.ask(self.node, "GET", path, None));
        let (status, body) = answer.unwrap_or_else(|| panic!("{path}: no answer"));
        assert_eq!(status, 200, "{path}: {body:#}");
        body
    }

    /// All pages of a list.
    fn list(&self, path: &str) -> Vec<Value> {
        let (mut all, mut more) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}{more}"));
            all.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next"].as_str() else { return all };
            let joint = if path.contains('?') { '&' } else { '?' };
            more = format!("{joint}cursor={next}");
        }
    }

    fn read(&mut self) {
        for summary in self.list("/api/v1/runs?limit=1000") {
            let id = summary["id"].as_str().unwrap().to_string();
            let view = self.get(&format!("/api/v1/runs/{id}"))["data"].clone();
            let events = self.list(&format!("/api/v1/runs/{id}/events"));
            self.runs.insert(id, Ended { view, events, child: summary["child"] == true });
        }
    }

    fn sent(&self, run: &str, path: &str) -> &[Request] {
        self.requests.get(&format!("{run}:{path}")).map_or(&[], Vec::as_slice)
    }

    fn faults(&self, id: &str) -> Vec<String> {
        let run = &self.runs[id];
        let (workflow, status) = (run.workflow(), run.view["status"].as_str().unwrap());
        let mut wrong = Vec::new();
        let ends: Vec<&Value> = run.facts("ended").collect();
        if ends.len() != 1 || ends[0]["status"] != status {
            wrong.push(format!("it is {status} and ended as {ends:?}"));
        }
        let mut finished: BTreeMap<&str, usize> = BTreeMap::new();
        run.facts("finished").for_each(|fact| *finished.entry(fact["step"].as_str().unwrap()).or_default() += 1);
        for (path, times) in finished.iter().filter(|(_, times)| **times != 1) {
            wrong.push(format!("{path} finished {times} times"));
        }
        // No attempt is sent twice, and one that may be sent once has one attempt.
        for path in workflows::calls(workflow) {
            let (sent, attempt) = (self.sent(id, path).len(), run.view["tasks"][path]["attempt"].as_u64().unwrap_or(0));
            if sent as u64 > attempt {
                wrong.push(format!("{path} was sent {sent} times in {attempt} attempts"));
            }
        }
        let once = self.sent(id, "once").len();
        if once > 1 {
            wrong.push(format!("`once` was sent {once} times"));
        }
        if workflow == "careful" && status == "failed" {
            let code = &run.view["tasks"]["once"]["error"]["code"];
            if code != "outcome_unknown" || !self.sent(id, "after").is_empty() {
                wrong.push(format!("it failed for {code}, or went on after that"));
            }
            return wrong;
        }
        if status != "completed" {
            wrong.push(format!("it is {status}: {}", run.view["error"]));
            return wrong;
        }
        for path in workflows::calls(workflow).iter().chain(workflows::others(workflow)) {
            let step = &run.view["tasks"][path];
            if step["status"] != "success" || finished.get(path) != Some(&1) {
                wrong.push(format!("{path} is {} after {:?} ends", step["status"], finished.get(path)));
            }
        }
        for path in workflows::calls(workflow) {
            let enough = if *path == "try" { REFUSALS + 1 } else { 1 };
            let (sent, output) = (self.sent(id, path).len(), &run.view["tasks"][path]["output"]);
            if sent < enough || output["ok"] != true {
                wrong.push(format!("{path} succeeded with {output} and was sent {sent} times"));
            }
        }
        wrong.extend(self.cut_short(id));
        let expected = json!({"n": run.view["input"]["n"]});
        if workflow != "tick" && run.view["output"] != expected {
            wrong.push(format!("its output is {}", run.view["output"]));
        }
        wrong
    }

    /// What there was to judge.
    fn tell(&self) {
        let of = |workflow: &str, status: &str| {
            self.runs.values().filter(|run| run.workflow() == workflow && run.view["status"] == status).count()
        };
        let again = self.runs.values().flat_map(|run| run.facts("again"));
        let lost = again.filter(|fact| fact["reason"] == "worker_lost").count();
        println!(
            "{} runs judged, {} of them ticks; {lost} attempts were taken over, {} outcomes are unknown",
            self.runs.len(),
            of("tick", "completed"),
            of("careful", "failed")
        );
    }

    /// No sleep ends before its time, whichever nodes began and ended it.
    fn cut_short(&self, id: &str) -> Option<String> {
        let run = &self.runs[id];
        let (before, after, nap) = match run.workflow() {
            "nap" => ("a", "b", run.view["input"]["nap"].as_str()?.trim_end_matches("ms").parse().ok()?),
            "fan" => ("top", "join", 500),
            _ => return None,
        };
        let from = self.sent(id, before).iter().filter_map(|request| request.ended).min()?;
        let slept = self.sent(id, after).iter().map(|request| request.begun).min()?.saturating_duration_since(from);
        let short = slept + PRECISION < Duration::from_millis(nap);
        short.then(|| format!("{after} came {slept:?} after {before} and not {nap} ms"))
    }

    /// What was acknowledged is there, once, and nothing else.
    fn acknowledged(&mut self) {
        let started = self.clients.started();
        let mut known = BTreeSet::new();
        for (key, one) in &started {
            known.insert(one.run.clone());
            match self.runs.get(&one.run) {
                None => self.wrong.push(format!("{key}: the acknowledged {one:?} is gone")),
                Some(run) if run.workflow() != one.workflow || run.view["input"] != one.input => {
                    self.wrong.push(format!("{key}: {one:?} is {:#}", run.view));
                }
                Some(_) => {}
            }
        }
        if known.len() != started.len() {
            self.wrong.push("two keys have the same run".into());
        }
        let roots = self.runs.iter().filter(|(_, run)| !run.child && run.workflow() != "tick");
        let unknown: Vec<&String> = roots.map(|(id, _)| id).filter(|id| !known.contains(*id)).collect();
        if !unknown.is_empty() {
            self.wrong.push(format!("a key made more than one run: no client was told of {unknown:?}"));
        }
    }

    /// Each parent has one child.
    fn children(&mut self) {
        let numbers = |workflow: &str| {
            let mut all: Vec<u64> = Vec::new();
            let of = self.runs.values().filter(|run| run.workflow() == workflow);
            all.extend(of.map(|run| run.view["input"]["n"].as_u64().unwrap()));
            all.sort_unstable();
            all
        };
        let (parents, children) = (numbers("parent"), numbers("child"));
        if parents != children {
            self.wrong.push(format!("parents {parents:?} have children {children:?}"));
        }
    }

    /// Each second from the first to the last has one run.
    fn ticks(&mut self) {
        let ticks = self.runs.values().filter(|run| run.workflow() == "tick");
        let mut ticks: Vec<String> = ticks.map(|run| run.view["output"]["at"].as_str().unwrap_or("?").into()).collect();
        ticks.sort();
        let second = |tick: &String| -> i64 {
            let clock: Vec<i64> = tick[11..19].split(':').map(|part| part.parse().unwrap()).collect();
            clock[0] * 3600 + clock[1] * 60 + clock[2]
        };
        let follows = |pair: &[String]| (second(&pair[1]) - second(&pair[0])).rem_euclid(86_400) == 1;
        let wrong: Vec<&[String]> = ticks.windows(2).filter(|pair| !follows(pair)).collect();
        if !wrong.is_empty() {
            self.wrong.push(format!("times that were left out, or started two runs, between: {wrong:?}"));
        }
    }

    /// A request whose only attempt succeeded was answered while its run had its place. One of an attempt that was taken
    /// over may come at any time, as one of a node does that stood still.
    fn limit(&mut self) {
        let mut moments = Vec::new();
        for (id, run) in self.runs.iter().filter(|(_, run)| run.workflow() == "narrow") {
            for path in workflows::calls("narrow").iter().filter(|path| run.view["tasks"][path]["attempt"] == 1) {
                for request in self.sent(id, path) {
                    moments.push((request.begun, 1_i32));
                    moments.extend(request.ended.map(|ended| (ended, -1)));
                }
            }
        }
        moments.sort();
        let (mut now, mut most) = (0, 0);
        for (_, change) in moments {
            now += change;
            most = most.max(now);
        }
        if most > LIMIT as i32 {
            self.wrong.push(format!("{most} requests at a time of runs of which {LIMIT} may go on"));
        }
    }

    /// Nothing is sent for a run that is not there.
    fn strangers(&mut self) {
        let known = |key: &String| key.split_once(':').is_some_and(|(run, _)| self.runs.contains_key(run));
        let strangers: Vec<&String> = self.requests.keys().filter(|key| !known(key)).collect();
        if !strangers.is_empty() {
            self.wrong.push(format!("requests of runs that are not there: {strangers:?}"));
        }
    }
}
