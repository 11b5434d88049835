//! Runs that use up shared resources: code workers, slots, places for runs.

use crate::world::{Flood, withstand};
use serde_json::json;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[test]
fn endless_code_does_not_stop_the_code_of_others() {
    withstand("endless code", |world| {
        let code = json!({"javascript": "for (;;);", "timeout": "36500d", "retries": 0});
        world.define(&json!({"name": "it", "tasks": {"a": code, "b": code, "c": code, "d": code}}));
        for _ in 0..4 {
            world.attacker.trigger("it", &json!({}));
        }
    });
}

/// Accepts connections and never answers.
fn silent() -> (String, Arc<Mutex<Vec<TcpStream>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let held: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let of_all = held.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            of_all.lock().unwrap().push(stream);
        }
    });
    (url, held)
}

#[test]
fn calls_to_a_silent_server_leave_slots_for_others() {
    withstand("1,500 silent calls", |world| {
        let (url, held) = silent();
        world.define(&json!({"name": "it", "tasks": {"all": {
            "for_each": "{{input.items}}", "max_parallel": 1_500,
            "tasks": {"one": {"url": url, "timeout": "1h", "retries": 0}},
        }}}));
        world.attacker.trigger("it", &json!({"items": vec![1; 1_500]}));
        stepwell_testing::eventually("calls that hang", || (held.lock().unwrap().len() >= 800).then_some(()));
        held
    });
}

#[test]
fn a_workflow_that_starts_itself_is_bounded() {
    withstand("children of children", |world| {
        world.define(&json!({"name": "it", "tasks": {"all": {
            "for_each": "{{input.items}}", "max_parallel": 10,
            "tasks": {"one": {"workflow": "it", "input": {"items": "{{input.items}}"}}},
        }}}));
        world.attacker.trigger("it", &json!({"items": vec![1; 10]}));
    });
}

#[test]
fn many_triggers_of_one_organisation_leave_room_for_others() {
    withstand("a flood of triggers", |world| {
        world.define(&json!({"name": "it", "tasks": {"a": {"tool": "echo", "args": {"message": "x"}}}}));
        let attacker = world.attacker.clone();
        Flood::of(8, move || {
            let answer = attacker.post("/api/v1/workflows/it/trigger", &json!({}));
            assert!(answer.status < 500, "{}", answer.text());
        })
    });
}

#[test]
fn readers_of_large_runs_take_no_memory_from_others() {
    withstand("readers of large runs", |world| {
        world.define(&json!({"name": "it", "tasks": {"all": {
            "for_each": "{{input.items}}", "output": "{{index}}",
            "tasks": {"one": {"tool": "echo", "args": {"message": "{{input.text}}"}}},
        }}}));
        // About 120 MB of inputs and results.
        let run = world.attacker.trigger("it", &json!({"items": vec![1; 30], "text": "x".repeat(2 << 20)}));
        let attacker = world.attacker.clone();
        assert_eq!(attacker.end(&run)["status"], "completed");
        // More of them take processor time from others, which no limit shares out.
        Flood::of(3, move || {
            for path in ["", "/steps?limit=1000", "/status"] {
                let answer = attacker.get(&format!("/api/v1/runs/{run}{path}"));
                assert!(answer.status < 500, "{path}: {}", answer.text());
                assert!(answer.bytes.len() < 20 << 20, "{path}: {} bytes", answer.bytes.len());
            }
        })
    });
}
