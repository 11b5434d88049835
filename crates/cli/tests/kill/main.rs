//! `kill -9` at random moments, again and again, of the real binary under load. Every acknowledged run is there
//! afterwards, complete and correct.
//!
//! `STEPWELL_KILLS` says how often (the soak asks for more), `STEPWELL_SEED` when.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

mod load;
mod server;

use load::Load;
use serde_json::Value;
use server::Server;
use std::collections::BTreeMap;
use stepwell_store::Progress;
use stepwell_testing::TestStore;

#[test]
fn what_was_acknowledged_survives_being_killed_again_and_again() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let kills: u64 = number("STEPWELL_KILLS").unwrap_or(15);
    let seed: u64 = number("STEPWELL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("STEPWELL_SEED={seed} STEPWELL_KILLS={kills}");
    let place = TestStore::new();
    let server = Server::start();
    let mut load = Load::new(&place, &server, seed);
    for _ in 0..kills {
        load.run_and_kill();
    }
    let acknowledged = load.finish();
    println!("{} runs acknowledged, {} requests", acknowledged.len(), server.requests().len());
    assert!(acknowledged.len() as u64 > kills, "hardly anything was started between the kills");
    let runs = ended(&place);
    for (key, run) in &acknowledged {
        let ended = runs.get(run).unwrap_or_else(|| panic!("{key}: the acknowledged run {run} is gone"));
        check(key, run, ended, &server);
    }
    assert_eq!(server.with_several_keys(), Vec::<String>::new(), "one step sent different idempotency keys");
    let doctor = load::stepwell(&place, "doctor").output().unwrap();
    assert!(doctor.status.success(), "{}", String::from_utf8_lossy(&doctor.stdout));
}

/// What the log says of a run.
#[derive(Default, Debug)]
struct Ended {
    status: Vec<String>,
    /// Per path: how often it ended, and how.
    steps: BTreeMap<String, Vec<String>>,
}

fn ended(place: &TestStore) -> BTreeMap<String, Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = place.open().await.unwrap();
        let mut runs: BTreeMap<String, Ended> = BTreeMap::new();
        let mut names = BTreeMap::new();
        let mut after = Progress::default();
        loop {
            let page = store.feed(&after, 1_000).await.unwrap();
            if page.is_empty() {
                return runs;
            }
            page.iter().for_each(|row| after.pass(row.log.position));
            for row in page {
                if let std::collections::btree_map::Entry::Vacant(unknown) = names.entry(row.run) {
                    unknown.insert(store.run(row.run).await.unwrap().unwrap().public);
                }
                let run = runs.entry(names[&row.run].clone()).or_default();
                for fact in serde_json::from_str::<Vec<Value>>(&row.log.row.facts).unwrap() {
                    let text = |name: &str| fact[name].as_str().unwrap_or_default().to_string();
                    match fact["type"].as_str() {
                        Some("finished") => run.steps.entry(text("step")).or_default().push(text("status")),
                        Some("ended") => run.status.push(text("status")),
                        _ => {}
                    }
                }
            }
        }
    })
}

fn check(key: &str, run: &str, ended: &Ended, server: &Server) {
    let what = || format!("{key} {run}: {ended:?}");
    assert_eq!(ended.status.len(), 1, "{}: ended more or less than once", what());
    for (path, ends) in &ended.steps {
        assert_eq!(ends.len(), 1, "{}: {path} ended more than once", what());
    }
    let careful = key.starts_with("careful");
    assert!(careful || ended.status == ["completed"], "{}", what());
    if careful {
        let sent = server.count(run, "once");
        assert!(sent <= 1, "{}: sent {sent} times, and may be at most once", what());
        assert!(sent == 1 || ended.status != ["completed"], "{}: completed and never sent", what());
    }
    for path in load::calls(key) {
        assert_eq!(ended.steps.get(*path).map(Vec::as_slice), Some(&["success".to_string()][..]), "{}: {path}", what());
        assert!(server.count(run, path) >= 1, "{}: {path} succeeded and was never sent", what());
    }
}
