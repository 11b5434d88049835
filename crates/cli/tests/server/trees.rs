//! A workflow that calls itself: one trigger starts a bounded number of runs, and other organisations make
//! progress.

use crate::harness::Installation;
use serde_json::{Value, json};
use stepwell_testing::{Api, eventually};

const DESCENDANTS: usize = 300;

fn organisation(admin: &Api, name: &str, plan: &str) -> Api {
    let made = admin.post("/api/v1/organisations", &json!({"name": name, "plan": plan})).is(201).data();
    admin.but(made["admin_key"].as_str().unwrap())
}

/// Ten children, each with ten of its own, and so on.
fn bomb() -> Value {
    let call = json!({"again": {"workflow": "bomb", "input": {}}});
    let items: Vec<i64> = (0..10).collect();
    json!({"name": "bomb", "tasks": {"each": {"for_each": items, "max_parallel": 10, "tasks": call}}})
}

fn runs(api: &Api) -> usize {
    let page = api.get("/api/v1/runs?limit=500").is(200).json();
    page["data"].as_array().unwrap().len()
}

fn open_runs(api: &Api) -> u64 {
    api.data("/usage")["open_runs"].as_u64().unwrap()
}

#[test]
fn a_workflow_that_calls_itself_is_bounded_and_others_go_on() {
    let place = Installation::new().config(&format!("descendants_per_run: {DESCENDANTS}\n"));
    let server = place.serve();
    let wide = organisation(&server.api, "wide", "unlimited");
    let narrow = organisation(&server.api, "narrow", "free");
    let victim = organisation(&server.api, "victim", "free");
    victim.define(&json!({"name": "it", "tasks": {"nap": {"sleep": "1ms"}}}));
    let attacks = [&wide, &narrow].map(|attacker| {
        attacker.define(&bomb());
        attacker.trigger("bomb", &json!({}))
    });
    for _ in 0..10 {
        assert_eq!(victim.finished("it", &json!({}))["status"], "completed");
        // One path of the tree, which is at most 20 deep.
        assert!(open_runs(&narrow) <= 21, "{}", open_runs(&narrow));
    }
    for (attacker, run) in [&wide, &narrow].into_iter().zip(&attacks) {
        assert_eq!(attacker.end(run)["status"], "failed");
        eventually("all runs end", || (open_runs(attacker) == 0).then_some(()));
    }
    assert_eq!(runs(&wide), 1 + DESCENDANTS);
    assert!(runs(&narrow) <= 1 + DESCENDANTS);
    let failed = eventually("a step that names the limit", || {
        let page = wide.get("/api/v1/runs?limit=500").is(200).json();
        let all = page["data"].as_array().unwrap().iter().map(|row| wide.run(row["id"].as_str().unwrap()).to_string());
        all.into_iter().find(|run| run.contains("too_many_descendants"))
    });
    assert!(failed.contains("descendants_per_run"), "{failed}");
    server.stop();
    place.sound();
}
