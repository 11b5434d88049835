//! The recovery drill: a backup under load, the loss of the machine, and a restore elsewhere.

use crate::harness::{Server, eventually, json, serve, stdout_of};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use stepwell_testing::Outside;

/// Runs by their number, once the server acknowledged them.
pub type Acknowledged = Mutex<BTreeMap<u64, String>>;

/// Starts runs from several threads until no one answers.
pub fn load(server: &Server, acknowledged: &Acknowledged) {
    // So much that copying it takes a while.
    let ballast = "x".repeat(20_000);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let ballast = &ballast;
            scope.spawn(move || {
                for n in 0.. {
                    let number = 4 * n + thread;
                    let input = json!({"n": number, "ballast": ballast});
                    // No answer is no promise.
                    let (path, body) = ("/api/v1/workflows/it/trigger", input.to_string().into());
                    let json = [("content-type", "application/json")];
                    let Ok(answer) = server.api.try_send("POST", path, &json, Some(body)) else { return };
                    let run = answer.is(201).data()["run_id"].as_str().unwrap().to_string();
                    acknowledged.lock().unwrap().insert(number, run);
                }
            });
        }
    });
}

/// A backup during which runs were acknowledged: what had been when it began.
fn backup_under_load(data: &Path, to: &Path, acknowledged: &Acknowledged) -> BTreeMap<u64, String> {
    let mut tries = 0;
    loop {
        let before = acknowledged.lock().unwrap().clone();
        let (from, to) = (data.to_str().unwrap(), to.to_str().unwrap());
        let told = json(&stdout_of(&["backup", "--data", from, to, "--with-keys", "--json"]));
        assert!(told["runs"].as_u64().unwrap() >= before.len() as u64, "{told:#}");
        if acknowledged.lock().unwrap().len() > before.len() {
            return before;
        }
        tries += 1;
        assert!(tries < 100, "nothing was acknowledged during any backup");
        for name in ["", ".admin.key", ".agent.key"] {
            std::fs::remove_file(format!("{to}{name}")).unwrap();
        }
    }
}

#[track_caller]
fn sound(data: &Path) {
    let told = stdout_of(&["doctor", "--data", data.to_str().unwrap()]);
    assert!(told.contains("nothing is wrong"), "{told}");
}

#[test]
fn what_was_acknowledged_before_a_backup_is_restored_from_it_and_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let (data, copy, elsewhere) =
        (place.path().join("data"), place.path().join("copy.db"), place.path().join("elsewhere"));
    let outside = Outside::start();
    let server = serve(&data);
    let call = |path: &str| format!("{}/{path}", outside.url);
    server.api.create(
        "/workflows",
        &json!({"name": "it", "tasks": {
            "first": {"url": call("first")},
            "rest": {"sleep": "5ms", "needs": ["first"]},
            "last": {"url": call("last"), "needs": ["rest"]},
        }, "output": {"n": "{{trigger.body.n}}"}}),
    );
    server.api.create("/workflows", &json!({"name": "held", "tasks": {"call": {"url": call("held")}}}));
    server.api.create("/workflows", &json!({"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    server.api.create("/workflows", &json!({"name": "nap", "tasks": {"rest": {"sleep": "1s"}}}));
    let start = |workflow: &str| {
        let run = server.api.create(&format!("/workflows/{workflow}/trigger"), &json!({}));
        run["run_id"].as_str().unwrap().to_string()
    };
    let (held, gate) = (start("held"), start("gate"));
    eventually("a call that is under way", || (outside.held().len() == 1).then_some(()));

    let acknowledged = Acknowledged::default();
    let (before, nap) = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&server, &acknowledged));
        eventually("acknowledged runs", || (acknowledged.lock().unwrap().len() >= 60).then_some(()));
        let nap = start("nap");
        let before = backup_under_load(&data, &copy, &acknowledged);
        server.signal(rustix::process::Signal::KILL);
        loading.join().unwrap();
        (before, nap)
    });
    assert_eq!(server.gone(), None);
    // Only the copy is left of the old machine.
    std::fs::remove_dir_all(&data).unwrap();

    stdout_of(&["restore", copy.to_str().unwrap(), "--data", elsewhere.to_str().unwrap()]);
    sound(&elsewhere);
    let server = serve(&elsewhere);
    for (number, run) in &before {
        let end = server.api.end(run);
        assert_eq!((&end["status"], &end["output"]), (&json!("completed"), &json!({"n": number})), "{end:#}");
    }
    assert_eq!(server.api.end(&nap)["status"], "completed");
    // The call that was under way is made again, under the same key.
    let calls = eventually("the call once more", || Some(outside.held()).filter(|calls| calls.len() == 2));
    assert_eq!(calls[0], calls[1]);
    outside.let_go();
    assert_eq!(server.api.end(&held)["status"], "completed");
    stdout_of(&["approve", &gate, "ask", "--data", elsewhere.to_str().unwrap()]);
    assert_eq!(server.api.end(&gate)["status"], "completed");
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.gone(), Some(0));
    sound(&elsewhere);
}
