//! The systemd unit: `systemd-analyze` accepts it, and its command starts and stops.

use crate::harness::{BINARY, Server, command, eventually, is_known, root, stop_seconds, text};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use stepwell_testing::Outside;

const UNIT: &str = "deploy/systemd/stepwell.service";
const INSTALLED: &str = "/usr/local/bin/stepwell";

/// What the unit sets a key to; the last one counts.
#[track_caller]
fn setting(key: &str) -> String {
    let unit = text(UNIT);
    let found = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).next_back();
    found.unwrap_or_else(|| panic!("the unit does not set {key}")).to_string()
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_well_confined() {
    let place = tempfile::tempdir().unwrap();
    let unit = place.path().join("stepwell.service");
    std::fs::write(&unit, text(UNIT).replace(INSTALLED, BINARY)).unwrap();
    let check = |arguments: &[&str]| {
        let done = Command::new("systemd-analyze").args(arguments).arg(&unit).output();
        let done = done.unwrap_or_else(|why| panic!("systemd-analyze (scripts/setup.sh installs it): {why}"));
        let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let complaints = check(&["verify"]);
    assert!(!complaints.contains("stepwell.service"), "{complaints}");
    // In tenths; a service without any confinement has 96.
    check(&["security", "--offline=true", "--threshold=20", "--no-pager"]);
}

/// Starts the unit's own line with everything that is installed in other places.
fn start(place: &Path) -> Server {
    let (data, config) = (place.join("data"), place.join("stepwell.yaml"));
    std::fs::copy(root().join("deploy/systemd/stepwell.yaml"), &config).unwrap();
    let line = setting("ExecStart").replace(INSTALLED, BINARY);
    let state = format!("/var/lib/{}", setting("StateDirectory"));
    let line = line.replace(&state, data.to_str().unwrap());
    let line = line.replace("/etc/stepwell/stepwell.yaml", config.to_str().unwrap());
    let (program, arguments) = line.split_once(' ').unwrap();
    let mut command = command(program);
    // The configuration's own port may be taken here.
    command.args(arguments.split(' ')).env("STEPWELL_LISTEN", "127.0.0.1:0");
    Server::start(&mut command, &data)
}

#[test]
fn what_the_unit_starts_serves_and_lets_a_step_end_before_it_stops() {
    let place = tempfile::tempdir().unwrap();
    let outside = Outside::start();
    let server = start(place.path());
    let call = format!("{}/held", outside.url);
    server.api.create("/workflows", &json!({"name": "held", "tasks": {"call": {"url": call}}}));
    let run = server.api.create("/workflows/held/trigger", &json!({}))["run_id"].as_str().unwrap().to_string();
    eventually("a call that is under way", || (outside.held().len() == 1).then_some(()));
    assert_eq!(setting("KillSignal"), "SIGTERM");
    server.signal(rustix::process::Signal::TERM);
    outside.let_go();
    assert_eq!(server.gone(), Some(0));
    let server = start(place.path());
    assert_eq!(server.api.end(&run)["status"], "completed");
    assert_eq!(outside.held().len(), 1, "the step was cut off and made again");
}

#[test]
fn the_unit_gives_a_stop_more_time_than_it_may_take() {
    let seconds: u64 = setting("TimeoutStopSec").strip_suffix('s').unwrap().parse().unwrap();
    let may = stop_seconds(&root().join("deploy/systemd/stepwell.yaml"));
    assert!(seconds > may, "{seconds} s, and a stop may take {may} s");
}

#[test]
fn every_variable_of_the_environment_file_means_something() {
    for line in text("deploy/systemd/environment").lines() {
        if let Some((name, _)) = line.trim_start_matches('#').split_once('=').filter(|(name, _)| !name.contains(' ')) {
            assert!(is_known(name), "{name}");
        }
    }
}
