//! Backups: their content, their permissions, and files that are refused as backups.

use crate::harness::{json, serve, stdout_of, stepwell, text};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use stepwell_testing::listen;

struct Directory(tempfile::TempDir);

impl Directory {
    /// A data directory with a run in it.
    fn new() -> Directory {
        let place = Directory(tempfile::tempdir().unwrap());
        std::fs::write(place.path("nap.json"), json!({"name": "nap", "tasks": {"rest": {"sleep": 0}}}).to_string())
            .unwrap();
        stdout_of(&["run", &place.named("nap.json"), "--data", &place.named("data"), "--quiet"]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn named(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn refuses(&self, arguments: &[&str], because: &str) {
        let done = stepwell(arguments);
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && error.contains(because), "{}: {error}", done.status);
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_copy_of_a_directory_at_rest_is_one_private_file() {
    let place = Directory::new();
    let told = json(&stdout_of(&["backup", "--data", &place.named("data"), &place.named("copy.db"), "--json"]));
    assert_eq!((&told["runs"], &told["key_files"]), (&json!(1), &json!(0)), "{told:#}");
    assert_eq!(told["bytes"].as_u64().unwrap(), std::fs::metadata(place.path("copy.db")).unwrap().len());
    assert_eq!(mode(&place.path("copy.db")), 0o600);
    assert_eq!(place.names(), ["copy.db", "data", "nap.json"]);
    stdout_of(&["restore", &place.named("copy.db"), "--data", &place.named("new")]);
    assert_eq!((mode(&place.path("new")), mode(&place.path("new/stepwell.db"))), (0o700, 0o600));
    let runs = stdout_of(&["runs", "--data", &place.named("new"), "--json"]);
    assert_eq!(json(&runs)["status"], "completed");
}

#[test]
fn keys_are_copied_only_when_asked_for() {
    let place = Directory::new();
    let (data, plain, keyed) = (place.named("data"), place.named("plain.db"), place.named("keyed.db"));
    let server = serve(&place.path("data"));
    stdout_of(&["backup", "--data", &data, &plain]);
    assert_eq!(place.names(), ["data", "nap.json", "plain.db"]);
    stdout_of(&["backup", "--data", &data, &keyed, "--with-keys"]);
    assert_eq!(place.names(), ["data", "keyed.db", "keyed.db.admin.key", "keyed.db.agent.key", "nap.json", "plain.db"]);
    assert_eq!(mode(&place.path("keyed.db.admin.key")), 0o600);
    drop(server);
    stdout_of(&["restore", &keyed, "--data", &place.named("with")]);
    stdout_of(&["restore", &plain, "--data", &place.named("without")]);
    assert!(!place.path("without/admin.key").exists());
    // The key works on the restored store, with or without its file.
    let key = std::fs::read_to_string(place.path("data/admin.key")).unwrap();
    assert_eq!(std::fs::read_to_string(place.path("with/admin.key")).unwrap(), key);
    let server = serve(&place.path("without"));
    server.api.but(key.trim()).get("/api/v1/workflows").is(200);
}

#[test]
fn a_backup_with_keys_restores_secrets_that_can_be_used() {
    let place = Directory::new();
    let (data, copy, new) = (place.named("data"), place.named("copy.db"), place.named("new"));
    let (sent, received) = std::sync::mpsc::channel();
    let url = listen(move |request| {
        sent.send(String::from_utf8(request.body).unwrap()).unwrap();
        ("200 OK", "{}".into())
    });
    let server = serve(&place.path("data"));
    server.api.call("PUT", "/api/v1/secrets/KEY", &json!({"value": "hunter22hunter22"})).is(200);
    let step = json!({"url": url, "method": "POST", "body": {"key": "{{secrets.KEY}}"}});
    server.api.define(&json!({"name": "call", "tasks": {"call": step}}));
    stdout_of(&["backup", "--data", &data, &copy, "--with-keys"]);
    drop(server);
    // Nothing of the old directory is left.
    std::fs::remove_dir_all(&data).unwrap();
    stdout_of(&["restore", &copy, "--data", &new]);
    assert_eq!(mode(&place.path("new/master.key")), 0o600);
    let server = serve(&place.path("new"));
    assert_eq!(server.api.finished("call", &json!({}))["status"], "completed");
    assert_eq!(received.recv().unwrap(), r#"{"key":"hunter22hunter22"}"#);
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let place = Directory::new();
    let (data, copy) = (place.named("data"), place.named("copy.db"));
    std::fs::write(&copy, "mine").unwrap();
    place.refuses(&["backup", "--data", &data, &copy], "already exists");
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "mine");
    std::fs::remove_file(&copy).unwrap();
    stdout_of(&["backup", "--data", &data, &copy]);
    place.refuses(&["restore", &copy, "--data", &data], "already exists");
    // A journal that was left behind would be taken for the restored store's own.
    std::fs::create_dir(place.path("left")).unwrap();
    std::fs::write(place.path("left/stepwell.db-wal"), "").unwrap();
    place.refuses(&["restore", &copy, "--data", &place.named("left")], "stepwell.db-wal already exists");
    std::fs::write(place.path("copy.db.admin.key"), "sw_restored").unwrap();
    std::fs::create_dir(place.path("keyed")).unwrap();
    std::fs::write(place.path("keyed/admin.key"), "sw_mine").unwrap();
    place.refuses(&["restore", &copy, "--data", &place.named("keyed")], "admin.key already exists");
    assert!(!place.path("keyed/stepwell.db").exists());
    std::fs::remove_file(place.path("copy.db.admin.key")).unwrap();
    let _server = serve(&place.path("data"));
    place.refuses(&["restore", &copy, "--data", &data], "another stepwell");
}

#[test]
fn what_is_not_a_backup_is_refused_and_nothing_is_made() {
    let place = Directory::new();
    let new = place.named("new");
    let check = |from: &str, because: &str| {
        place.refuses(&["restore", &place.named(from), "--data", &new], because);
        assert!(!place.path("new").exists(), "{from}: a directory was made");
    };
    check("nothing.db", "No such file");
    check("data", "it is not a file");
    check("nap.json", "it is not a database");
    check("data/stepwell.db", "the file of a live store");
    let foreign = rusqlite::Connection::open(place.path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE t (x)").unwrap();
    check("foreign.db", "belongs to another program");
    stdout_of(&["backup", "--data", &place.named("data"), &place.named("copy.db")]);
    let copy = rusqlite::Connection::open(place.path("copy.db")).unwrap();
    copy.pragma_update(None, "user_version", 1_000).unwrap();
    drop(copy);
    check("copy.db", "use a newer stepwell");
    place.refuses(&["backup", "--data", &place.named("data2"), &place.named("c")], "is not a data directory");
}

#[test]
fn a_damaged_copy_is_refused_and_not_put_in_place() {
    let place = Directory::new();
    stdout_of(&["backup", "--data", &place.named("data"), &place.named("copy.db")]);
    let whole = std::fs::read(place.path("copy.db")).unwrap();
    const PAGE: usize = 4_096;
    for page in (1..whole.len() / PAGE).step_by(5) {
        let mut bytes = whole.clone();
        bytes[page * PAGE..][..PAGE].fill(0xa5);
        std::fs::write(place.path("damaged.db"), &bytes).unwrap();
        place.refuses(&["restore", &place.named("damaged.db"), "--data", &place.named("new")], "damaged.db");
        // Whether a directory was made depends on how soon the damage was seen.
        let left = std::fs::read_dir(place.path("new")).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        assert!({ left }.all(|name| name == "stepwell.lock"), "page {page}");
    }
    std::fs::write(place.path("short.db"), &whole[..whole.len() - PAGE]).unwrap();
    place.refuses(&["restore", &place.named("short.db"), "--data", &place.named("new")], "short.db");
}

#[test]
fn a_store_in_a_database_is_not_copied_by_this_command() {
    let place = Directory::new();
    let mut backup = crate::harness::command(crate::harness::BINARY);
    backup.args(["backup", "--data", &place.named("data"), &place.named("copy.db")]);
    let done = backup.env("STEPWELL_DATABASE", "postgres://db.example.com/stepwell").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("pg_dump"));
    assert!(text("docs/deployment.md").contains("pg_dump"));
}
