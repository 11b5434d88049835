//! Refused migrations change nothing.

use crate::harness::{Installation, eventually, migrate, refused, stepwell, text};
use serde_json::json;

/// A place with a run in it.
fn with_a_run(place: Installation, name: &str) -> Installation {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.json");
    std::fs::write(&file, json!({"name": name, "tasks": {"rest": {"sleep": 0}}}).to_string()).unwrap();
    let done = place.command("run").arg(&file).arg("--quiet").output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    place
}

fn runs(place: &Installation) -> String {
    let done = place.command("runs").arg("--json").output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout)
}

#[test]
fn a_target_that_is_not_empty_is_refused_and_stays_as_it_is() {
    let source = with_a_run(Installation::directory(), "source");
    for target in [with_a_run(Installation::directory(), "target"), with_a_run(Installation::database(), "target")] {
        let before = runs(&target);
        let done = eventually("an answer", || {
            let done = migrate(&source, &target);
            (!text(&done.stderr).contains("in use by")).then_some(done)
        });
        refused(&done, "is not empty");
        assert!(
            text(&done.stderr).contains("workflow_definitions, workflow_events, workflow_runs"),
            "{}",
            text(&done.stderr)
        );
        assert_eq!(runs(&target), before);
        target.sound();
    }
    refused(&migrate(&source, &source), "is both the source and the target");
}

#[test]
fn what_is_in_use_is_neither_taken_from_nor_to() {
    for busy in [Installation::directory(), Installation::database()] {
        let server = busy.serve(None);
        let because = if matches!(busy, Installation::Directory(_)) { "another stepwell" } else { "in use by" };
        let empty = Installation::directory();
        refused(&migrate(&busy, &empty), because);
        let source = with_a_run(Installation::directory(), "source");
        refused(&migrate(&source, &busy), because);
        assert_eq!(server.api.data("/runs"), json!([]));
    }
}

#[test]
fn what_is_not_there_is_not_made_by_taking_from_it() {
    let (directory, database, target) =
        (Installation::directory(), Installation::database(), Installation::directory());
    refused(&migrate(&directory, &target), "is not a data directory");
    assert!(!std::path::Path::new(&directory.name()).exists());
    refused(&migrate(&database, &target), "contains no stepwell store");
    if let Installation::Database(schema, _) = &database {
        // An error if there were one.
        schema.execute("CREATE TABLE stepwell_schema (id INTEGER)");
    }
}

#[test]
fn a_connection_that_dies_halfway_leaves_the_target_empty() {
    let source = with_a_run(Installation::directory(), "source");
    let target = Installation::database();
    let Installation::Database(schema, _) = &target else { unreachable!("it is a database") };
    // The tables are made, so that one can be locked.
    target.sound();
    let moving = std::thread::scope(|scope| {
        // The connection that waits to write payloads has written runs before; its connection is ended then.
        let cut = scope.spawn(|| {
            schema.execute(
                "SET statement_timeout = '60s'; DO $$ DECLARE waiter INTEGER; BEGIN
                   LOCK TABLE step_values IN SHARE MODE;
                   LOOP
                     SELECT pid INTO waiter FROM pg_locks WHERE relation = 'step_values'::regclass AND NOT granted;
                     EXIT WHEN waiter IS NOT NULL;
                     PERFORM pg_sleep(0.01);
                   END LOOP;
                   PERFORM pg_terminate_backend(waiter);
                 END $$",
            );
        });
        let locked =
            "SELECT 1 / count(*) FROM pg_locks WHERE relation = 'step_values'::regclass AND mode = 'ShareLock'";
        eventually("the lock", || stepwell_testing::execute(schema.url(), locked).ok());
        let moving = migrate(&source, &target);
        cut.join().unwrap();
        moving
    });
    refused(&moving, "did not answer");
    assert_eq!(runs(&target), "");
    // So it can be tried again.
    let done = migrate(&source, &target);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(runs(&target), runs(&source));
}

#[test]
fn no_password_is_shown() {
    let source = with_a_run(Installation::directory(), "source");
    let target = Installation::database();
    // The test's server asks for none, so any will do.
    let url = target.name().replacen("postgres@", "postgres:s3cret@", 1);
    assert!(url.contains("s3cret"));
    for times in 0..2 {
        let done = stepwell().args(["migrate", "--from", &source.name(), "--to", &url]).output().unwrap();
        let said = text(&done.stdout) + &text(&done.stderr);
        assert!(done.status.success() == (times == 0), "{said}");
        assert!(said.contains("postgres:***@") && !said.contains("s3cret"), "{said}");
    }
}
