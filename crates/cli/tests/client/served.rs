//! A server of the real binary on a directory of its own, and how commands find it.

use crate::harness::{Installation, Output, Running};
use rustix::process::Signal;

pub const CHAIN: &str = "name: chain
tasks:
  a: {tool: echo, args: {n: \"{{input.n ?? 1}}\"}}
  b: {needs: a, tool: echo, args: {m: \"{{tasks.a.body.n}}\"}}
output: {got: \"{{tasks.b.body.m}}\"}
";
pub const GATE: &str = "name: gate\ntasks:\n  ask: {approval: {message: Send it?}}\n  go: {needs: ask, tool: now}\n";
pub const FAILS: &str =
    "name: fails\ntasks:\n  a: {tool: now}\n  b: {needs: a, tool: fail, args: {message: no luck}}\n";

pub struct Served {
    pub place: Installation,
    server: Running,
}

impl Served {
    pub fn start() -> Served {
        Served::on(Installation::new(), "127.0.0.1:0")
    }

    pub fn on(place: Installation, address: &str) -> Served {
        let mut server = place.start(&["serve", "--listen", address]);
        server.until("Stepwell serves");
        Served { place, server }
    }

    /// With these definitions.
    pub fn with(definitions: &[&str]) -> Served {
        Served::start().having(definitions)
    }

    /// With these definitions too.
    pub fn having(self, definitions: &[&str]) -> Served {
        for (n, text) in definitions.iter().enumerate() {
            let file = self.place.file(&format!("{n}.yaml"), text);
            self.run(&["apply", "-f", &file]).expect(0).says("created");
        }
        self
    }

    pub fn url(&self) -> String {
        std::fs::read_to_string(self.place.data().join("server.url")).unwrap().trim().to_string()
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.place.stepwell(args)
    }

    /// Starts a run and gives its id.
    pub fn trigger(&self, args: &[&str]) -> String {
        self.run(&[&["trigger"], args].concat()).expect(0).out.trim().to_string()
    }

    /// As an operator would.
    pub fn stop(self) -> Installation {
        self.server.signal(Signal::TERM);
        self.server.end().expect(0);
        self.place
    }

    pub fn kill(self) -> Installation {
        self.server.kill();
        self.place
    }
}

#[test]
fn a_server_that_is_named_must_answer() {
    let place = Installation::new();
    // No one can listen there.
    let refused = place.stepwell(&["runs", "--url", "http://127.0.0.1:1"]).expect(1);
    refused.says("no server answers at http://127.0.0.1:1").says("stepwell serve");
    place.stepwell(&["runs", "--url", "127.0.0.1:1"]).expect(2).says("is not a server URL");
    assert!(!place.data().exists());
    place.stepwell(&["trigger", "x"]).expect(1).says("no server uses").says("stepwell serve");
}

#[test]
fn a_server_that_a_file_names_is_used_only_if_it_answers() {
    let served = Served::with(&[CHAIN]);
    let run = served.trigger(&["chain", "--wait", "--json"]);
    assert!(run.contains("\"completed\""));
    let place = served.kill();
    assert!(place.data().join("server.url").exists(), "a kill leaves the file");
    place.stepwell(&["runs"]).expect(0).says("chain (1)");
    let place = Served::on(place, "127.0.0.1:0").stop();
    assert!(!place.data().join("server.url").exists());
    place.stepwell(&["runs"]).expect(0).says("chain (1)");
}

#[test]
fn what_is_shown_does_not_depend_on_who_is_asked() {
    let served = Served::with(&[CHAIN, FAILS, GATE]);
    let done = served.trigger(&["chain", "--label", "team=a"]);
    served.run(&["watch", &done, "--quiet"]).expect(0);
    let failed = served.trigger(&["fails"]);
    served.run(&["watch", &failed, "--quiet"]).expect(1);
    let waits = served.trigger(&["gate"]);
    let mut watching = served.place.start(&["watch", &waits]);
    watching.until("ask asks for approval");
    watching.signal(Signal::INT);
    watching.end().expect(130).says("goes on");
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["runs"],
        vec!["runs", "--limit", "2"],
        vec!["runs", "--label", "team=a"],
        vec!["runs", "--status", "failed", "--workflow", "fails"],
        vec!["workflows"],
        vec!["user", "list"],
    ];
    for run in [&done, &failed, &waits] {
        commands.extend([vec!["show", run], vec!["events", run]]);
    }
    commands.push(vec!["events", &done, "--after", "1"]);
    let said = |place: &Installation| -> Vec<String> {
        let json = commands.iter().map(|args| [&args[..], &["--json"]].concat());
        json.chain(commands.iter().cloned()).map(|args| place.stepwell(&args).expect(0).out).collect()
    };
    let by_server = said(&served.place);
    assert!(by_server.iter().all(|text| !text.is_empty()));
    let place = served.stop();
    assert_eq!(said(&place), by_server);
}

#[test]
fn mistakes_have_the_same_exit_code_with_and_without_a_server() {
    let served = Served::with(&[CHAIN]);
    let run = served.trigger(&["chain"]);
    served.run(&["watch", &run]).expect(0).says("b success").says("run completed");
    let check = |place: &Installation| {
        place.stepwell(&["show", "run_none"]).expect(2).says("there is no run");
        place.stepwell(&["show", ".."]).expect(2);
        place.stepwell(&["runs", "--workflow", "none"]).expect(2).says("there is no workflow");
        place.stepwell(&["cancel", &run]).expect(1).says("already finished");
        place.stepwell(&["retry", &run]).expect(1).says("nothing in it to retry");
        place.stepwell(&["approve", &run, "a"]).expect(1);
        place.stepwell(&["enable", "none"]).expect(2).says("there is no workflow");
        place.stepwell(&["key", "revoke", "key_none"]).expect(2).says("there is no key");
        place.stepwell(&["user", "create", "admin"]).expect(2).says("already");
        place.stepwell(&["user", "create", "bo", "--grant", "fly"]).expect(2).says("is not a grant");
    };
    check(&served.place);
    check(&served.stop());
}

#[test]
fn commands_that_need_a_server_exit_with_1_if_there_is_none() {
    let place = Installation::new();
    let file = place.file("gate.yaml", GATE);
    place.stepwell(&["apply", "-f", &file]).expect(0);
    let link = ["approvals", "--link", "run_none", "ask"];
    for command in [&["trigger", "gate"][..], &["rerun", "run_none"], &["watch", "run_none"], &["login"], &link] {
        place.stepwell(command).expect(1).says("start one with `stepwell serve`");
    }
}
