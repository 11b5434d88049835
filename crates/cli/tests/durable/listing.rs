//! `runs`, `show` and `events` print what is stored and change nothing.

use crate::harness::Installation;
use crate::run::CHAIN;
use rustix::process::Signal;

const GATE: &str = "name: gate\ntasks:\n  ask: {approval: {message: Send it?}}\n  go: {needs: ask, tool: now}\n";

/// A directory with two finished runs, and one that waits at a gate.
fn place() -> Installation {
    let place = Installation::new();
    let chain = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &chain]).expect(0);
    place.stepwell(&["run", &chain, "--input", "n=2"]).expect(0);
    let gate = place.file("gate.yaml", GATE);
    let mut running = place.start(&["run", &gate]);
    running.until("ask asks for approval");
    running.signal(Signal::INT);
    running.end().expect(130);
    place
}

#[test]
fn runs_are_listed_newest_first_and_filtered() {
    let place = place();
    let statuses = |args: &[&str]| -> Vec<String> {
        let listed = place.stepwell(&[&["runs", "--json"], args].concat()).expect(0).lines();
        listed.iter().map(|run| run["status"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(statuses(&[]), ["paused", "completed", "completed"]);
    assert_eq!(statuses(&["--limit", "2"]), ["paused", "completed"]);
    assert_eq!(statuses(&["--status", "paused"]), ["paused"]);
    assert_eq!(statuses(&["--workflow", "chain"]), ["completed", "completed"]);
    place.stepwell(&["runs", "--status", "sleepy"]).expect(2).says("queued, running, paused");
    place.stepwell(&["runs", "--workflow", "none"]).expect(2).says("there is no workflow");
    place.stepwell(&["runs"]).expect(0).says("chain (1)").says("gate (1)");
}

#[test]
fn a_run_is_shown_with_its_steps_and_what_it_waits_for() {
    let place = place();
    let run = place.newest();
    let shown = place.stepwell(&["show", &run]).expect(0);
    shown.says("ask waits for an approval since").says("go (tool): pending");
    let whole = place.stepwell(&["show", &run, "--json"]).expect(0).json();
    assert_eq!((&whole["status"], &whole["waiting_for"][0]["for"]), (&"paused".into(), &"approval".into()));
    place.stepwell(&["show", "run_none"]).expect(2).says("there is no run");
    let events = place.stepwell(&["events", &run, "--json"]).expect(0).lines();
    assert_eq!(events[0]["type"], "created");
    let later = place.stepwell(&["events", &run, "--json", "--after", "1"]).expect(0).lines();
    assert!(later.iter().all(|event| event["version"].as_i64().unwrap() > 1));
    place.stepwell(&["events", &run]).expect(0).says("ask asks for approval");
}

#[test]
fn looking_changes_nothing() {
    let place = place();
    let run = place.newest();
    let before = place.rows();
    for args in [&["runs"][..], &["show", &run], &["events", &run], &["doctor"]] {
        place.stepwell(args).expect(0);
        assert!(place.rows() == before, "{args:?}");
    }
}

#[test]
fn a_run_is_cancelled_once() {
    let place = place();
    let run = place.newest();
    place.stepwell(&["cancel", &run, "--reason", "too late"]).expect(0).says("is cancelled");
    place.stepwell(&["cancel", &run]).expect(1).says("already finished");
    place.stepwell(&["cancel", "run_none"]).expect(2);
    place.stepwell(&["run", "--resume", &run]).expect(3).says("too late");
    place.sound();
}

#[test]
fn an_approval_from_another_process_moves_the_run_on_when_it_is_resumed() {
    let place = place();
    let run = place.newest();
    place.stepwell(&["approve", &run, "nobody"]).expect(2).says("there is no step");
    place.stepwell(&["approve", &run, "ask", "--comment", "fine"]).expect(0);
    place.stepwell(&["show", &run]).expect(0).says("\"comment\":\"fine\"").says("go (tool): running");
    place.sound();
    place.stepwell(&["run", "--resume", &run]).expect(0).says("go success");
    place.sound();
}

#[test]
fn a_short_bench_measures_a_workload_beside_its_baseline() {
    if stepwell_testing::embedded_only("there it runs pgbench for as long as the workload") {
        return;
    }
    let place = Installation::new();
    let bench = ["bench", "noop", "--runs", "20", "--rounds", "1", "--seconds", "0", "--json"];
    let told = place.stepwell(&bench).expect(0).out;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let noop = &told["workloads"][0];
    assert_eq!((noop["workload"].as_str(), noop["steps_per_run"].as_u64()), (Some("noop"), Some(10)), "{told:#}");
    for figure in ["steps_per_second", "bare_loop_steps_per_second", "ratio_to_bare_loop"] {
        assert!(noop[figure].as_f64().unwrap() > 0.0, "{figure}: {told:#}");
    }
}
