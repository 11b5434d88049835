//! `workflows`, `enable`, `disable`, `pause`, `resume` and `schedule`, with and without a server.

use crate::harness::Installation;
use crate::served::{CHAIN, Served};
use serde_json::json;

const TICKS: &str = "name: ticks\ntrigger: {cron: \"0 9 * * *\"}\ntasks: {a: {tool: now}}\n";

fn switches(place: &Installation) {
    place.stepwell(&["disable", "chain"]).expect(0).says("chain is disabled");
    place.stepwell(&["workflows"]).expect(0).says("chain (1)  disabled");
    assert_eq!(place.stepwell(&["enable", "chain", "--json"]).expect(0).json()["enabled"], json!(true));
    place.stepwell(&["pause", "chain"]).expect(0).says("new runs of chain wait");
    place.stepwell(&["workflows"]).expect(0).says("chain (1)  paused");
    place.stepwell(&["resume", "chain"]).expect(0).says("are released");
    place.stepwell(&["workflows"]).expect(0).says("chain (1)  enabled");
    place.stepwell(&["pause", "chain", "--concurrency-key", "\"eu\""]).expect(0).says("with the key \"eu\"");
    place.stepwell(&["resume", "chain", "--concurrency-key", "\"eu\""]).expect(0);
    place.stepwell(&["pause", "chain", "--concurrency-key", "eu"]).expect(2).says("is not JSON");
    let fires = place.stepwell(&["schedule", "ticks"]).expect(0).says("cron 0 9 * * *, UTC").out;
    assert_eq!(fires.matches("T09:00:00Z").count(), 10, "{fires}");
    assert_eq!(place.stepwell(&["schedule", "ticks", "--json"]).expect(0).lines().len(), 1);
    place.stepwell(&["schedule", "chain"]).expect(0).says("has no schedule");
}

#[test]
fn workflows_are_switched_with_and_without_a_server() {
    let served = Served::with(&[CHAIN, TICKS]);
    switches(&served.place);
    served.run(&["disable", "chain"]).expect(0);
    served.run(&["trigger", "chain"]).expect(1).says("is disabled");
    served.run(&["enable", "chain"]).expect(0);
    let place = served.stop();
    switches(&place);
    place.sound();
}

#[test]
fn what_is_paused_waits_until_it_is_resumed() {
    let served = Served::with(&[CHAIN]);
    served.run(&["pause", "chain"]).expect(0);
    let run = served.trigger(&["chain"]);
    served.run(&["show", &run]).expect(0).says("waits in the queue");
    served.run(&["resume", "chain"]).expect(0);
    served.run(&["watch", &run]).expect(0);
}
