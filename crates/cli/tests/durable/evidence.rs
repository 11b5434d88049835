//! `doctor` names rows that were changed from outside, with and without a master key. What Stepwell itself does
//! raises no alarm.

use crate::harness::Installation;
use crate::run::CHAIN;
use rustix::process::Signal;
use stepwell_testing::{embedded_only, on_postgres};

const OLD: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NEW: &str = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";

/// Users, two workflows with a finished run each, and their audit rows, under these master keys.
fn filled(keys: Option<&str>) -> Installation {
    let place = Installation::new();
    place.master_key(keys);
    served(&place);
    for name in ["chain", "other"] {
        let file = place.file("chain.yaml", &CHAIN.replacen("chain", name, 1));
        place.stepwell(&["run", &file]).expect(0);
    }
    place.sound();
    place
}

/// Starts a server and stops it again. The first one creates users.
fn served(place: &Installation) {
    let mut server = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    server.until("Stepwell serves");
    server.signal(Signal::INT);
    server.end().expect(0);
}

/// Changes rows with these statements, and expects `doctor` to say this, with and without a master key.
#[track_caller]
fn check(statements: &[&str], check: &str, message: &str) {
    for keys in [None, Some(OLD)] {
        let place = filled(keys);
        let changed: u64 = statements.iter().map(|sql| place.sql(sql)).sum();
        assert!(changed > 0, "{statements:?}");
        named(&place, check, message);
        // It is still there after Stepwell wrote something.
        place.stepwell(&["run", &place.file("more.yaml", &CHAIN.replacen("chain", "more", 1))]).expect(0);
        named(&place, check, message);
    }
}

#[track_caller]
fn named(place: &Installation, check: &str, message: &str) {
    let found = place.stepwell(&["doctor", "--json"]).expect(1).json();
    let faults = found["report"]["faults"].as_array().unwrap();
    let told =
        |fault: &&serde_json::Value| fault["check"] == check && fault["message"].as_str().unwrap().contains(message);
    assert!(faults.iter().any(|fault| told(&fault)), "no {check} {message:?} in {:#}", found["report"]);
}

/// The tables with rows of a run.
const OF_RUN: [&str; 3] = ["workflow_step_runs", "step_values", "workflow_events"];
const FIRST_RUN: &str = "(SELECT min(id) FROM workflow_runs)";

#[test]
fn a_deleted_audit_table_is_named() {
    check(&["DELETE FROM audit"], "evidence", "were deleted from outside");
}

#[test]
fn a_cut_tail_of_the_audit_trail_is_named() {
    let sql = "DELETE FROM audit WHERE id > (SELECT min(id) FROM audit)";
    check(&[sql], "evidence", "rows of the audit trail of writer");
}

#[test]
fn one_deleted_audit_row_is_named() {
    let sql = "DELETE FROM audit WHERE action = 'workflow.define' AND target = 'chain'";
    check(&[sql], "evidence", "rows of the audit trail of writer");
}

#[test]
fn a_changed_audit_row_is_named() {
    let sql = "UPDATE audit SET by = 'eve' WHERE action = 'workflow.define' AND target = 'chain'";
    check(&[sql], "audit", "was tampered with");
}

#[test]
fn deleted_payloads_are_named() {
    check(&["DELETE FROM step_values"], "payloads", "payload 0 is missing");
}

#[test]
fn changed_payloads_are_named() {
    // Still the same value: a space is enough.
    check(&["UPDATE step_values SET payload = payload || ' '"], "payloads", "payload 0 was tampered with");
}

#[test]
fn payloads_that_were_deleted_as_if_they_had_been_erased_are_named() {
    let sql = "UPDATE workflow_runs SET erased_at = 5";
    check(&["DELETE FROM step_values", sql], "evidence", "runs are not those that were written");
}

#[test]
fn a_run_that_was_deleted_with_all_its_rows_is_named() {
    let mut statements = OF_RUN.map(|table| format!("DELETE FROM {table} WHERE run = {FIRST_RUN}")).to_vec();
    statements.push(format!("DELETE FROM workflow_runs WHERE id = {FIRST_RUN}"));
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    check(&statements, "evidence", " runs were deleted from outside");
}

#[test]
fn a_changed_author_of_a_run_is_named() {
    let sql = |column: &str| format!("UPDATE workflow_runs SET {column} = 'eve' WHERE id = {FIRST_RUN}");
    check(&[&sql("created_by")], "chain", "what never changes about the run");
    check(&[&sql("acts_as")], "chain", "what never changes about the run");
}

#[test]
fn a_run_that_claims_another_definition_is_named() {
    let sql = format!("UPDATE workflow_runs SET definition = 2 WHERE id = {FIRST_RUN}");
    check(&[&sql], "chain", "with which definition");
}

#[test]
fn a_run_that_was_set_back_to_an_earlier_state_is_named() {
    // The log, the hash and the version agree with each other, as they did at that time.
    let statements = [
        &format!("DELETE FROM workflow_events WHERE version = 3 AND run = {FIRST_RUN}"),
        &format!(
            "UPDATE workflow_runs SET version = 2, hash = (SELECT e.hash FROM workflow_events e WHERE e.version = 2
               AND e.run = workflow_runs.id) WHERE id = {FIRST_RUN}"
        ),
    ];
    check(&statements.map(String::as_str), "evidence", "runs are not those that were written");
}

#[test]
fn a_deleted_definition_is_named() {
    check(
        &["DELETE FROM workflow_definitions WHERE name = 'chain'"],
        "evidence",
        " definitions were deleted from outside",
    );
    check(&["DELETE FROM workflow_definitions WHERE name = 'chain'"], "readable", "does not exist");
}

#[test]
fn a_changed_definition_is_named() {
    for change in ["author = 'eve'", "created_by = 'eve'", "source = source || ' '", "deleted_at = 5"] {
        let sql = format!("UPDATE workflow_definitions SET {change} WHERE name = 'chain'");
        check(&[&sql], "evidence", "definitions are not those that were written");
    }
}

#[test]
fn changed_rights_and_added_users_are_named() {
    let roles = "UPDATE records SET body = replace(body, 'admin', 'owner') WHERE kind = 'user'";
    check(&[roles], "evidence", "records (users, roles, keys");
    let added = "INSERT INTO records (kind, id, org, key, due, body, version)
                 SELECT kind, 'user_eve', org, '1/eve', due, body, version FROM records WHERE kind = 'user'";
    check(&[added], "evidence", "1 records (users");
}

#[test]
fn a_tally_that_was_changed_or_deleted_is_named() {
    check(&["UPDATE tallies SET body = zeroblob(32) WHERE number > 1"], "evidence", "");
    check(&["DELETE FROM tallies"], "evidence", "from outside");
}

#[test]
fn a_plain_chain_that_was_recomputed_is_named_if_there_is_a_key() {
    let place = filled(Some(OLD));
    let sql = format!("UPDATE workflow_events SET facts = replace(facts, 'ann', 'eve') WHERE run = {FIRST_RUN}");
    assert!(place.sql(&sql) > 0);
    rehash(&place);
    named(&place, "chain", "log row 1 was tampered with");
    named(&place, "evidence", "runs are not those that were written");
}

/// Gives every log row the hash that it would have without a key.
fn rehash(place: &Installation) {
    if on_postgres() {
        // Any hash but the keyed one will do.
        place.sql("UPDATE workflow_events SET hash = sha256(facts::bytea)");
        place.sql(
            "UPDATE workflow_runs r SET hash = e.hash FROM workflow_events e WHERE (e.run, e.version) = (r.id, 3)",
        );
        return;
    }
    let db = rusqlite::Connection::open(place.data().join("stepwell.db")).unwrap();
    let mut rows = db.prepare("SELECT position, run, at, facts, payloads, version FROM workflow_events").unwrap();
    let rows = rows.query_map([], |row| {
        let (position, run): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (facts, payloads): (String, String) = (row.get(3)?, row.get(4)?);
        Ok((position, run, stepwell_core::time::Time(row.get(2)?), facts, payloads, row.get::<_, i64>(5)?))
    });
    let mut previous = [0; 32];
    for (position, run, at, facts, payloads, version) in rows.unwrap().map(Result::unwrap).collect::<Vec<_>>() {
        previous = if version == 1 { [0; 32] } else { previous };
        previous = stepwell_store::hash(&previous, at, &facts, &payloads);
        db.execute("UPDATE workflow_events SET hash = ?1 WHERE position = ?2", (previous, position)).unwrap();
        db.execute("UPDATE workflow_runs SET hash = ?1 WHERE id = ?2", (previous, run)).unwrap();
    }
}

#[test]
fn what_stepwell_itself_does_raises_no_alarm() {
    for keys in [None, Some(OLD)] {
        let place = filled(keys);
        place.stepwell(&["disable", "chain"]).expect(0);
        place.sound();
        place.sql("UPDATE workflow_runs SET purge_at = 5");
        place.stepwell(&["doctor", "--purge"]).expect(0).says("2 finished runs removed");
        place.sound();
        // Killed while it runs.
        let file = place.file("nap.yaml", "name: nap\ntasks: {nap: {sleep: 1h}}\n");
        let mut running = place.start(&["run", &file]);
        running.until("nap sleeps");
        running.kill();
        place.sound();
    }
}

#[test]
fn a_master_key_that_comes_later_keys_what_is_written_from_then_on() {
    let place = filled(None);
    place.stepwell(&["doctor"]).expect(0).says("without a key");
    place.master_key(Some(OLD));
    place.stepwell(&["doctor"]).expect(0).says("without a key");
    served(&place);
    place.stepwell(&["doctor"]).expect(0).says("keyed since").says("nothing is wrong");
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0);
    place.sound();
}

#[test]
fn without_its_master_key_a_store_can_be_read_but_not_written() {
    let place = filled(Some(OLD));
    place.master_key(None);
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(2).says("master key");
    place.stepwell(&["runs"]).expect(0);
    let found = place.stepwell(&["doctor", "--json"]).expect(1).json();
    let faults = found["report"]["faults"].as_array().unwrap();
    assert!(faults.iter().all(|fault| fault["check"] == "evidence"), "{faults:#?}");
    place.stepwell(&["doctor"]).expect(1).says("needs the master key");
    place.master_key(Some(OLD));
    place.sound();
}

#[test]
fn a_new_master_key_seals_the_chain_key_again_and_everything_still_holds() {
    let place = filled(Some(OLD));
    place.master_key(Some(&format!("{NEW},{OLD}")));
    place.sound();
    place.stepwell(&["secret", "rotate"]).expect(0);
    place.master_key(Some(NEW));
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0);
    place.sound();
}

#[test]
fn evidence_moves_with_a_backup() {
    if embedded_only("pg_dump is the backup of a database") {
        return;
    }
    let place = filled(Some(OLD));
    let copy = place.file("copy.db", "");
    std::fs::remove_file(&copy).unwrap();
    place.stepwell(&["backup", &copy]).expect(0);
    std::fs::remove_dir_all(place.data()).unwrap();
    place.stepwell(&["restore", &copy]).expect(0);
    place.sound();
    assert_eq!(place.sql("DELETE FROM audit WHERE target = 'chain'"), 1);
    named(&place, "evidence", "rows of the audit trail");
}

/// The present anchor, in a file.
fn anchored(place: &Installation) -> String {
    let line = place.stepwell(&["audit", "anchor"]).expect(0).out;
    place.file("anchors", &line)
}

#[test]
fn a_cut_tail_does_not_pass_through_an_anchor() {
    for keys in [None, Some(OLD)] {
        let place = filled(keys);
        let anchors = anchored(&place);
        let more = place.file("more.yaml", &CHAIN.replacen("chain", "more", 1));
        place.stepwell(&["run", &more]).expect(0);
        place.stepwell(&["doctor", "--anchor", &anchors]).expect(0).says("nothing is wrong");
        assert!(place.sql("DELETE FROM audit WHERE target IN ('chain', 'other', 'more')") > 0);
        place.stepwell(&["doctor", "--anchor", &anchors]).expect(1).says("does not contain the anchored row");
        let changed = std::fs::read_to_string(&anchors).unwrap().replacen("\"rows\":", "\"rows\":1", 1);
        let anchors = place.file("changed", &changed);
        place.stepwell(&["doctor", "--anchor", &anchors]).expect(1).says("its signature does not hold");
    }
}

#[test]
fn a_store_that_was_put_back_to_an_earlier_state_is_found_out_by_an_anchor() {
    if embedded_only("a database has no file to put back") {
        return;
    }
    let place = filled(Some(OLD));
    let copy = place.file("copy.db", "");
    std::fs::remove_file(&copy).unwrap();
    place.stepwell(&["backup", &copy]).expect(0);
    let file = place.file("chain.yaml", CHAIN);
    place.stepwell(&["run", &file]).expect(0);
    let anchors = anchored(&place);
    std::fs::remove_dir_all(place.data()).unwrap();
    place.stepwell(&["restore", &copy]).expect(0);
    place.sound();
    place.stepwell(&["doctor", "--anchor", &anchors]).expect(1).says("was put back to a state from before the anchor");
}

#[test]
fn a_server_notes_anchors_in_a_file() {
    let place = Installation::new();
    place.master_key(Some(OLD));
    let anchors = place.file("anchors", "");
    let config = place.file("server.yaml", &format!("anchor: {{every: 10ms, file: {anchors}, log: true}}\n"));
    let mut server = place.start(&["serve", "--listen", "127.0.0.1:0", "--config", &config]);
    server.until("anchor of the audit trail");
    server.until("anchor of the audit trail");
    server.signal(Signal::INT);
    server.end().expect(0);
    place.stepwell(&["doctor", "--anchor", &anchors]).expect(0).says("nothing is wrong");
    assert!(std::fs::read_to_string(&anchors).unwrap().lines().count() > 1);
    assert!(place.sql("DELETE FROM audit") > 0);
    place.stepwell(&["doctor", "--anchor", &anchors]).expect(1).says("does not contain the anchored row");
}

#[test]
fn an_export_of_the_audit_trail_can_be_verified() {
    for keys in [None, Some(OLD)] {
        let place = filled(keys);
        let text = place.stepwell(&["audit", "export"]).expect(0).out;
        let file = place.file("audit.ndjson", &text);
        place.stepwell(&["audit", "verify", &file]).expect(0).says("nothing is wrong");
        let since =
            place.stepwell(&["audit", "export", "--since", "2100-01-01T00:00:00Z"]).expect(0).says("0 rows").out;
        let later = place.file("later.ndjson", &since);
        place.stepwell(&["audit", "verify", &later]).expect(0).says("0 rows, nothing is wrong");
        let lines: Vec<&str> = text.lines().collect();
        let without = |n: usize| [&lines[..n], &lines[n + 1..]].concat().join("\n");
        for wrong in [without(2), without(lines.len() - 1), text.replacen("workflow.define", "workflow.delete", 1)] {
            let wrong = place.file("wrong.ndjson", &wrong);
            place.stepwell(&["audit", "verify", &wrong]).expect(1).says("fault");
        }
        place.stepwell(&["audit", "export", &file]).expect(2).says("audit.ndjson");
    }
}
