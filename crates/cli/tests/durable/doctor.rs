//! `stepwell doctor` finds rows that were changed from outside, and reports why runs are unfinished.

use crate::harness::Installation;
use crate::run::CHAIN;
use rustix::process::Signal;
use serde_json::json;

const SLEEPER: &str = "name: sleeper\ntasks: {nap: {sleep: 1h}, b: {needs: nap, tool: now}}\n";

/// A directory with one finished run.
fn finished() -> Installation {
    let place = Installation::new();
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0);
    place.sound();
    place
}

/// A directory with one run that sleeps.
fn sleeping() -> Installation {
    let place = Installation::new();
    let file = place.file("sleeper.yaml", SLEEPER);
    let mut running = place.start(&["run", &file]);
    running.until("nap sleeps");
    running.signal(Signal::INT);
    running.end().expect(130);
    place.sound();
    place
}

/// Changes something that is there, and expects `doctor` to say this of it.
#[track_caller]
fn check(place: &Installation, sql: &str, check: &str, message: &str) {
    assert_eq!(place.sql(sql), 1, "{sql}");
    let found = place.stepwell(&["doctor", "--json"]).expect(1).json();
    assert_eq!(found["sound"], false);
    let faults = found["report"]["faults"].as_array().unwrap();
    let told =
        |fault: &&serde_json::Value| fault["check"] == check && fault["message"].as_str().unwrap().contains(message);
    assert!(faults.iter().any(|fault| told(&fault)), "no {check} {message:?} in {:#}", found["report"]);
    place.stepwell(&["doctor"]).expect(1).says(message);
}

#[test]
fn the_first_log_row_that_was_tampered_with_is_named() {
    let sql = "UPDATE workflow_events SET facts = replace(facts, 'success', 'failed') WHERE version = 2";
    check(&finished(), sql, "chain", "log row 2 was tampered with");
    check(&finished(), "UPDATE workflow_events SET at = at + 1 WHERE version = 3", "chain", "log row 3");
    check(&finished(), "UPDATE workflow_events SET hash = zeroblob(32) WHERE version = 1", "chain", "log row 1");
    check(&finished(), "UPDATE workflow_runs SET hash = zeroblob(32)", "chain", "the last");
    check(&finished(), "UPDATE workflow_events SET facts = '{' WHERE version = 1", "readable", "log row 1");
}

#[test]
fn a_log_row_that_is_missing_is_named() {
    check(&finished(), "DELETE FROM workflow_events WHERE version = 2", "complete", "log row 2 is missing");
    check(&finished(), "DELETE FROM workflow_events WHERE version = 3", "complete", "ends with row 2");
}

#[test]
fn a_step_row_that_was_changed_is_named() {
    let sql = "UPDATE workflow_step_runs SET status = 'failed' WHERE step = 'a'";
    check(&finished(), sql, "rows", "attempt 1 of step a");
    let sql = "UPDATE workflow_step_runs SET state = replace(state, 'success', 'failed') WHERE step = 'b'";
    check(&finished(), sql, "rows", "step b: phase is \"success\" by the log");
    check(&finished(), "UPDATE workflow_step_runs SET state = '[' WHERE step = 'b'", "readable", "cannot be read");
    check(&finished(), "UPDATE workflow_runs SET status = 'failed'", "rows", "listed as failed");
    let sql = "UPDATE workflow_runs SET state = replace(state, 'completed', 'failed')";
    check(&finished(), sql, "rows", "the run: status is \"completed\" by the log");
}

#[test]
fn a_step_row_that_is_missing_is_named() {
    check(&finished(), "DELETE FROM workflow_step_runs WHERE step = 'a'", "rows", "step a");
}

#[test]
fn what_a_finished_run_has_left_is_named() {
    let sql = match stepwell_testing::on_postgres() {
        true => "INSERT INTO timers (run, key, shard, due) SELECT id, 'wake:1:a', 0, 5 FROM workflow_runs",
        false => "INSERT INTO timers (run, key, due) SELECT id, 'wake:1:a', 5 FROM workflow_runs",
    };
    check(&finished(), sql, "leftover", "has 1 timers left");
    let sql = "INSERT INTO work (run, step, attempt, org, kind, ready_at, node)
               SELECT id, 'a', 1, 1, 'tool', 5, 7 FROM workflow_runs";
    check(&finished(), sql, "leftover", "has work left");
}

#[test]
fn a_run_that_nothing_will_move_on_is_stuck() {
    check(&sleeping(), "DELETE FROM timers WHERE key LIKE 'wake%'", "stuck", "nap has no timer");
    let place = Installation::new();
    let file = place.file("gate.yaml", "name: gate\ntasks: {ask: {approval: true}, go: {needs: ask, tool: now}}\n");
    let mut running = place.start(&["run", &file]);
    running.until("asks for approval");
    running.signal(Signal::INT);
    running.end().expect(130);
    let run = place.newest();
    place.stepwell(&["approve", &run, "ask"]).expect(0);
    place.sound();
    check(&place, "DELETE FROM work", "stuck", "go is to run, and there is no work for it");
}

#[test]
fn why_runs_are_not_finished_is_summed_up() {
    let place = sleeping();
    place.stepwell(&["doctor"]).expect(0).says("1 for sleep").says("nap sleeps since");
    let found = place.stepwell(&["doctor", "--json"]).expect(0).json();
    assert_eq!((&found["report"]["runs"], &found["report"]["unfinished"]), (&json!(1), &json!(1)));
    assert_eq!(found["report"]["waiting"][0]["oldest"][0]["step"], "nap");
    assert!(found["size"]["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_that_went_on_under_a_newer_version_is_sound() {
    let place = Installation::new();
    let text = "name: grows\ntasks:\n  a: {tool: now}\n  old: {needs: a, tool: echo}\n\
                \x20 b: {needs: [a, old], tool: fail}\n  c: {needs: b, tool: now}\n";
    let file = place.file("grows.yaml", text);
    place.stepwell(&["run", &file]).expect(1);
    let run = place.newest();
    // A step is gone, one is repaired, one is new.
    let text = "name: grows\ntasks:\n  a: {tool: now}\n  b: {needs: a, tool: echo}\n  c: {needs: b, tool: now}\n\
                \x20 d: {needs: c, sleep: 1h}\n";
    let file = place.file("grows.yaml", text);
    let mut running = place.start(&["run", &file]);
    running.until("d sleeps");
    running.signal(Signal::INT);
    running.end().expect(130);
    let mut running = place.start(&["retry", &run, "--newest"]);
    running.until("d sleeps");
    running.signal(Signal::INT);
    running.end().expect(130).says("stands: a").says("runs again: old, b");
    place.sound();
    place.stepwell(&["cancel", &run]).expect(0);
    place.sound();
}

#[test]
fn a_purge_is_foretold_and_done_when_asked_for() {
    let place = finished();
    place.stepwell(&["doctor"]).expect(0).says("0 finished runs would be removed now");
    place.sql("UPDATE workflow_runs SET purge_at = 5, finished_at = 5");
    place.stepwell(&["doctor"]).expect(0).says("1 finished runs would be removed now");
    place.stepwell(&["doctor", "--purge"]).expect(0).says("1 finished runs removed");
    place.stepwell(&["doctor"]).expect(0).says("0 finished runs would be removed now");
    assert_eq!(place.stepwell(&["runs"]).expect(0).out, "");
}

#[test]
fn a_damaged_file_is_found_out() {
    if stepwell_testing::embedded_only("there is no file to damage") {
        return;
    }
    let place = finished();
    // Everything goes into the file itself, and then something in the middle of it is overwritten.
    let db = rusqlite::Connection::open(place.data().join("stepwell.db")).unwrap();
    db.pragma_update(None, "journal_mode", "DELETE").unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'step_values'";
    let page: u32 = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    let path = place.data().join("stepwell.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(page as usize - 1) * 4_096..][..64].fill(0xee);
    std::fs::write(&path, bytes).unwrap();
    place.stepwell(&["doctor"]).expect(1).says("[integrity]");
}
