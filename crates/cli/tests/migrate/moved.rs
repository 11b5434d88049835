//! A moved installation is the same: its lists, waits, keys and audit trail.

use crate::harness::{Installation, PUBLIC_URL, Server, eventually, migrate, text};
use serde_json::{Value, json};
use stepwell_testing::Outside;

/// Runs in every state, by their ids.
struct Runs {
    done: String,
    failed: String,
    erased: String,
    sleeping: String,
    gate: String,
    waiting: String,
    /// Where the one that waits is called.
    callback: String,
    first: String,
    queued: String,
    held: String,
}

fn install(server: &Server, outside: &Outside) -> Runs {
    let url = &outside.url;
    let define = |definition: Value| drop(server.api.create("/workflows", &definition));
    define(json!({"name": "plain", "tasks": {"rest": {"sleep": 0}}, "output": "{{trigger.body}}"}));
    define(json!({"name": "broken", "tasks": {"go": {"url": format!("{url}/missing")}}}));
    define(json!({"name": "nap", "tasks": {"rest": {"sleep": "1h"}}, "labels": {"team": "red"}}));
    define(json!({"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}}));
    define(json!({"name": "call", "tasks": {
        "tell": {"url": format!("{url}/tell"), "body": {"to": "{{wait.heard.url}}"}},
        "heard": {"needs": ["tell"], "wait_for_webhook": {"timeout": "1h"}},
    }, "output": "{{tasks.heard.body}}"}));
    define(json!({"name": "one", "concurrency": {"limit": 1}, "tasks": {"rest": {"sleep": "1h"}}}));
    define(json!({"name": "hold", "tasks": {"go": {"url": format!("{url}/held"), "timeout": "1h"}}}));
    define(json!({"name": "yearly", "trigger": {"schedule": "0 0 29 2 *"}, "tasks": {"rest": {"sleep": 0}}}));
    define(json!({"name": "hook", "trigger": {"webhook": true}, "tasks": {"rest": {"sleep": 0}}}));
    server.api.create("/users", &json!({"name": "ann", "grants": ["workflow.read", "workflow.run"]}));
    server.api.create("/organisations", &json!({"name": "other"}));
    let done = server.api.create("/workflows/plain/trigger?label=order%3D7", &json!({}));
    let done = done["run_id"].as_str().unwrap().to_string();
    let large = "ä€ \u{1f600}".repeat(500_000);
    let done_large = server.api.trigger("plain", &json!({"large": large}));
    let failed = server.api.trigger("broken", &json!({}));
    let ends = [&done, &done_large, &failed].map(|run| server.api.end(run)["status"].clone());
    assert_eq!(ends, ["completed", "completed", "failed"]);
    server.api.create(&format!("/runs/{done}/erase"), &json!({}));
    let sleeping = server.api.trigger("nap", &json!({}));
    let gate = server.api.trigger("gate", &json!({}));
    let waiting = server.api.trigger("call", &json!({}));
    let (first, queued) = (server.api.trigger("one", &json!({})), server.api.trigger("one", &json!({})));
    let held = server.api.trigger("hold", &json!({}));
    server.api.step(&sleeping, "rest", "sleeping");
    server.api.step(&gate, "ask", "waiting");
    server.api.step(&waiting, "heard", "waiting");
    server.api.step(&first, "rest", "sleeping");
    assert_eq!(server.api.run(&queued)["status"], "queued");
    eventually("the held call", || (outside.held().len() == 1).then_some(()));
    let told: Value = serde_json::from_slice(&outside.told().unwrap()).unwrap();
    let callback = told["to"].as_str().unwrap().strip_prefix(PUBLIC_URL).unwrap().to_string();
    Runs { done: done_large, failed, erased: done, sleeping, gate, waiting, callback, first, queued, held }
}

/// What the API shows of all of it.
fn shown(server: &Server, runs: &Runs) -> Vec<(String, Value)> {
    let lists = ["/runs?limit=1000", "/workflows", "/users", "/audit?limit=1000", "/approvals", "/organisations"];
    let mut paths: Vec<String> = lists.map(str::to_string).to_vec();
    paths.push("/runs?label=order%3D7".into());
    let stopped = [&runs.done, &runs.failed, &runs.erased, &runs.sleeping, &runs.gate, &runs.waiting, &runs.queued];
    for run in stopped {
        paths.push(format!("/runs/{run}"));
        paths.push(format!("/runs/{run}/events?limit=1000"));
    }
    paths.into_iter().map(|path| (path.clone(), server.api.data(&path))).collect()
}

#[track_caller]
fn same(before: Vec<(String, Value)>, after: Vec<(String, Value)>) {
    for ((path, before), (_, after)) in before.into_iter().zip(after) {
        assert_eq!(before, after, "{path}");
    }
}

/// Moves all of it; a node that was killed is alive until its lease is over.
#[track_caller]
fn move_all(from: &Installation, to: &Installation) -> Value {
    let done = eventually("a move", || {
        let done = migrate(from, to);
        let in_use = text(&done.stderr).contains("in use by");
        (!in_use).then_some(done)
    });
    assert!(done.status.success(), "{}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn an_installation_goes_to_a_database_and_back_with_its_runs_under_way() {
    let (directory, database, again) = (Installation::directory(), Installation::database(), Installation::directory());
    let outside = Outside::start();
    let server = directory.serve(None);
    let key = server.api.key.clone().unwrap();
    let runs = install(&server, &outside);
    let before = shown(&server, &runs);
    // As a power cut would: the held call is under way on a node that is no more.
    drop(server);
    let told = move_all(&directory, &database);
    assert_eq!(told["verified"], true);
    let rows = |told: &Value, table: &str| {
        let tables = told["tables"].as_array().unwrap();
        tables.iter().find(|row| row["table"] == table).unwrap()["rows"].as_u64().unwrap()
    };
    assert_eq!((rows(&told, "workflow_runs"), rows(&told, "work"), rows(&told, "organisations")), (9, 1, 2));
    if let Installation::Database(schema, _) = &database {
        // An error if a timer is not in its run's part.
        let strays = "SELECT 1 / (CASE WHEN count(*) = 0 THEN 1 ELSE 0 END) FROM timers WHERE shard <> mod(run, 64)";
        schema.execute(strays);
    }
    database.sound();

    let server = database.serve(Some(&key));
    same(before, shown(&server, &runs));
    // Taken up where it was left, as after a crash.
    eventually("the held call again", || (outside.held().len() == 2).then_some(()));
    outside.let_go();
    assert_eq!(server.api.end(&runs.held)["status"], "completed");
    server.api.create(&format!("/runs/{}/steps/ask/approve", runs.gate), &json!({}));
    assert_eq!(server.api.end(&runs.gate)["status"], "completed");
    server.api.post(&runs.callback, &json!({"n": 1})).is(200);
    assert_eq!(server.api.end(&runs.waiting)["status"], "completed");
    assert_eq!(server.api.run(&runs.waiting)["output"], json!({"n": 1}));
    // New rows are numbered after the old ones, and the audit trail has other writers.
    server.api.create("/workflows", &json!({"name": "newer", "tasks": {"rest": {"sleep": 0}}}));
    server.api.create("/organisations", &json!({"name": "third"}));
    let newer = server.api.trigger("newer", &json!({}));
    assert_eq!(server.api.end(&newer)["status"], "completed");
    assert_eq!(server.api.data("/audit/verify")["broken_at"], Value::Null);
    let before = shown(&server, &runs);
    drop(server);
    database.sound();

    let told = move_all(&database, &again);
    assert_eq!((rows(&told, "workflow_runs"), rows(&told, "organisations")), (10, 3));
    again.sound();
    let server = again.serve(Some(&key));
    same(before, shown(&server, &runs));
    server.api.ready(&runs.sleeping, "rest");
    assert_eq!(server.api.end(&runs.sleeping)["status"], "completed");
    server.api.ready(&runs.first, "rest");
    assert_eq!(server.api.end(&runs.first)["status"], "completed");
    server.api.step(&runs.queued, "rest", "sleeping");
    server.api.create("/workflows", &json!({"name": "newest", "tasks": {"rest": {"sleep": 0}}}));
    let newest = server.api.trigger("newest", &json!({}));
    assert_eq!(server.api.end(&newest)["status"], "completed");
    // Its rows continue those of the earlier store of its kind.
    let verdict = server.api.data("/audit/verify");
    assert_eq!(verdict["broken_at"], Value::Null, "{verdict:#}");
    drop(server);
    again.sound();

    // From one database to another, with what has been through both kinds.
    let other = Installation::database();
    let third = Installation::database();
    let first = move_all(&again, &other);
    other.sound();
    let second = move_all(&other, &third);
    assert_eq!(first["tables"], second["tables"]);
    third.sound();
}
