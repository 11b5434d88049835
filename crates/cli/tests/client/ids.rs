//! Runs named by a part of their id, on a server and in a directory.

use crate::harness::Installation;
use crate::served::{CHAIN, FAILS, GATE, Served};

/// The shortest beginning that only `one` has, and the last eight digits.
fn parts<'a>(one: &'a str, other: &str) -> [&'a str; 3] {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    [&one[..same + 1], &one["run_".len()..same + 1], &one[one.len() - 8..]]
}

#[test]
fn a_run_is_named_by_a_part_of_its_id() {
    let served = Served::with(&[CHAIN, GATE, FAILS]);
    let (one, other) = (served.trigger(&["chain"]), served.trigger(&["fails"]));
    served.run(&["watch", &one, "--quiet"]).expect(0);
    served.run(&["watch", &other, "--quiet"]).expect(1);
    let check = |place: &Installation| {
        for part in parts(&one, &other) {
            place.stepwell(&["show", part]).expect(0).says(&format!("{one}: chain"));
            place.stepwell(&["events", part]).expect(0).says("run completed");
            place.stepwell(&["cancel", part]).expect(1).says("already finished");
        }
        let both = &one[..9];
        let several = place.stepwell(&["show", both]).expect(2);
        several.says("is part of the ids of several runs").says(&one).says(&other).says("fails (1)");
        let json = place.stepwell(&["show", both, "--json"]).expect(2);
        assert!(json.err.contains("{\"error\":{\"code\":\"ambiguous-run\""), "{}", json.err);
        place.stepwell(&["show", "run_0000"]).expect(2).says("there is no run \"run_0000\"");
        // An end must be long enough not to be met by chance.
        place.stepwell(&["show", &one[one.len() - 2..]]).expect(2);
    };
    check(&served.place);
    let [begin, _, end] = parts(&one, &other);
    served.run(&["watch", begin, "--quiet"]).expect(0);
    served.run(&["rerun", end, "--wait"]).expect(0);
    let waits = served.trigger(&["gate"]);
    let end = &waits[waits.len() - 8..];
    let mut watching = served.place.start(&["watch", end]);
    watching.until("ask asks for approval");
    served.run(&["approvals", "--link", end, "ask"]).expect(0).says("http");
    served.run(&["approve", end, "ask"]).expect(0).says("ask is approved");
    watching.end().expect(0);
    let place = served.stop();
    place.stepwell(&["show", &one[one.len() - 8..]]).expect(0).says(&one);
    place.stepwell(&["show", &one[..6]]).expect(2).says("several runs");
    let failed = &other[other.len() - 8..];
    place.stepwell(&["retry", failed]).expect(1).says("runs again: b");
    place.stepwell(&["run", "--resume", failed]).expect(1).says("no luck");
}

#[test]
fn a_retry_that_is_detached_is_only_started() {
    let served = Served::with(&[FAILS]);
    let run = served.trigger(&["fails"]);
    served.run(&["watch", &run, "--quiet"]).expect(1);
    let detached = served.run(&["retry", &run, "--detach"]).expect(0);
    assert_eq!(detached.out, "");
    detached.says("stands: a").says("runs again: b").says(&format!("stepwell watch {run}"));
    served.run(&["watch", &run, "--quiet"]).expect(1);
    let document = served.run(&["retry", &run, "--detach", "--json"]).expect(0).json();
    assert_eq!((document["id"].as_str(), document["generation"].as_u64()), (Some(run.as_str()), Some(2)));
    served.run(&["watch", &run, "--quiet"]).expect(1);
    let place = served.stop();
    place.stepwell(&["retry", &run, "--detach"]).expect(0).says(&format!("stepwell run --resume {run}"));
    place.stepwell(&["show", &run, "--json"]).expect(0).says("\"running\"");
    place.stepwell(&["run", "--resume", &run]).expect(1).says("no luck");
    place.sound();
}
