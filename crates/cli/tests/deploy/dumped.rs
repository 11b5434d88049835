//! The recovery drill on PostgreSQL, with its own tools: a dump under load, the loss of node and database, and a
//! restore into another database.

use crate::drill::{Acknowledged, load};
use crate::harness::{Server, command, eventually, stdout_of};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use stepwell_testing::{Cluster, execute};

fn serve(database: &str, data: &Path) -> Server {
    // One that was killed left its address behind.
    let _ = std::fs::remove_file(data.join("server.url"));
    let mut serve = command(env!("CARGO_BIN_EXE_stepwell"));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--database", database, "--data"]).arg(data);
    serve.env("STEPWELL_NODE_LEASE", "1s");
    Server::start(&mut serve, data)
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn what_was_acknowledged_before_a_dump_is_restored_from_it_and_goes_on() {
    let cluster = Cluster::start();
    let server_url = cluster.url().trim_end_matches("/postgres");
    let named = |name: &str| format!("{server_url}/{name}");
    for name in ["before", "after"] {
        execute(cluster.url(), &format!("CREATE DATABASE {name}")).unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    let (data, dump) = (place.path().join("data"), place.path().join("dump"));
    let server = serve(&named("before"), &data);
    let rest = json!({"name": "it", "tasks": {"rest": {"sleep": "5ms"}}, "output": {"n": "{{trigger.body.n}}"}});
    server.api.create("/workflows", &rest);
    server.api.create("/workflows", &json!({"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    let gate = server.api.create("/workflows/gate/trigger", &json!({}))["run_id"].as_str().unwrap().to_string();
    let acknowledged = Acknowledged::default();
    let before = std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&server, &acknowledged));
        eventually("acknowledged runs", || (acknowledged.lock().unwrap().len() >= 40).then_some(()));
        let before = acknowledged.lock().unwrap().clone();
        run("pg_dump", &["-Fc", "-d", &named("before"), "-f", dump.to_str().unwrap()]);
        assert!(acknowledged.lock().unwrap().len() > before.len(), "nothing went on during the dump");
        server.signal(rustix::process::Signal::KILL);
        loading.join().unwrap();
        before
    });
    assert_eq!(server.gone(), None);
    execute(cluster.url(), "DROP DATABASE before WITH (FORCE)").unwrap();

    run("pg_restore", &["-d", &named("after"), dump.to_str().unwrap()]);
    let told = stdout_of(&["doctor", "--database", &named("after")]);
    assert!(told.contains("nothing is wrong"), "{told}");
    // The key files of the machine still work.
    let server = serve(&named("after"), &data);
    for (number, run) in &before {
        let end = server.api.end(run);
        assert_eq!((&end["status"], &end["output"]), (&json!("completed"), &json!({"n": number})), "{end:#}");
    }
    stdout_of(&["approve", &gate, "ask", "--data", data.to_str().unwrap()]);
    assert_eq!(server.api.end(&gate)["status"], "completed");
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.gone(), Some(0));
}
