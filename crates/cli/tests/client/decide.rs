//! `approve`, `deny`, `cancel` and `retry` through a server, which continues the run.

use crate::served::{FAILS, GATE, Served};
use rustix::process::Signal;

/// A run that waits at its gate.
fn waits(served: &Served) -> String {
    let run = served.trigger(&["gate"]);
    let mut watching = served.place.start(&["watch", &run]);
    watching.until("ask asks for approval");
    watching.signal(Signal::TERM);
    watching.end().expect(130);
    run
}

#[test]
fn an_answer_moves_the_run_on_at_once() {
    let served = Served::with(&[GATE]);
    let run = waits(&served);
    let said = served.run(&["approve", &run, "ask", "--comment", "fine"]).expect(0).says("ask is approved");
    assert!(!said.err.contains("--resume"), "{}", said.err);
    served.run(&["watch", &run]).expect(0).says("go success");
    served.run(&["show", &run]).expect(0).says("\"comment\":\"fine\"");
    served.run(&["approve", &run, "ask"]).expect(1).says("already finished").says("it is completed");
    let run = waits(&served);
    served.run(&["approve", &run, "nobody"]).expect(2).says("there is no step");
    let denied = served.run(&["deny", &run, "ask", "--json"]).expect(0).json();
    assert_eq!(denied["id"], run.as_str());
    served.run(&["watch", &run]).expect(3).says("cancelled");
    served.stop().sound();
}

#[test]
fn what_is_asked_is_listed_and_printed_and_a_digest_pins_it() {
    let served = Served::with(&[GATE]);
    let run = waits(&served);
    let open = served.run(&["approvals", "--json"]).expect(0).json();
    let digest = open["digest"].as_str().unwrap().to_string();
    served.run(&["approvals"]).expect(0).says(&digest[..12]).says(&run).says("go: tool");
    served.run(&["approve", &run, "ask", "--digest", &"0".repeat(64)]).expect(1).says("read the request again");
    served.run(&["approve", &run, "ask", "--digest", &digest[..11]]).expect(1).says("read the request again");
    let link = served.run(&["approvals", "--link", &run, "ask"]).expect(0);
    assert!(link.out.contains("/approve/run_"), "{}", link.out);
    served.run(&["approvals", "--link", &run, "ask", "--user", "nobody"]).expect(1).says("gone or disabled");
    served.run(&["approve", &run, "ask", "--digest", &digest[..12]]).expect(0).says("go: tool").says("ask is approved");
    served.run(&["watch", &run]).expect(0);
    served.stop().sound();
}

#[test]
fn a_policy_is_set_listed_satisfied_by_a_gate_and_removed() {
    let served = Served::with(&[GATE]);
    served.run(&["policy", "set", "p", "tool:*", "maybe"]).expect(2).says("require_approval");
    served.run(&["policy", "set", "p", "mail", "deny"]).expect(2).says("tool:PATTERN");
    served.run(&["policy", "set", "p", "tool:*", "deny", "--rate", "often"]).expect(2).says("10/1m");
    let set = ["policy", "set", "p", "tool:*", "require_approval", "--approver", "admin", "--timeout", "1h"];
    served.run(&set).expect(0).says("1 of admin").says("within 1h");
    served.run(&["policy", "list"]).expect(0).says("p  tool:*  require_approval");
    let run = waits(&served);
    served.run(&["approve", &run, "ask"]).expect(0);
    served.run(&["watch", &run]).expect(0).says("go success");
    served.run(&["policy", "set", "l", "tool:*", "deny", "--when", "arg.sum > 5"]).expect(2).says("did you mean");
    let log = ["policy", "set", "l", "tool:*", "deny", "--when", "args.none > 5", "--log"];
    served.run(&log).expect(0).says("when args.none > 5").says("only logged");
    let run = waits(&served);
    served.run(&["approve", &run, "ask"]).expect(0);
    served.run(&["watch", &run]).expect(0);
    served.run(&["policy", "log", "l"]).expect(0).says("1 denied").says("could not be decided").says(&run);
    served.run(&["policy", "delete", "p"]).expect(0).says("is removed");
    served.run(&["policy", "delete", "p"]).expect(2).says("there is no");
    served.stop().sound();
}

#[test]
fn a_run_is_cancelled_and_goes_on_again() {
    let served = Served::with(&[GATE]);
    let run = waits(&served);
    served.run(&["cancel", &run, "--reason", "too late"]).expect(0).says("is cancelled");
    served.run(&["watch", &run]).expect(3).says("too late");
    let mut again = served.place.start(&["retry", &run]);
    again.until("runs again: ask");
    again.until("ask asks for approval");
    served.run(&["approve", &run, "ask"]).expect(0);
    again.end().expect(0).says("go success");
    served.stop().sound();
}

#[test]
fn a_failed_run_is_retried_and_what_stands_is_said() {
    let served = Served::with(&[FAILS]);
    let run = served.trigger(&["fails"]);
    served.run(&["watch", &run]).expect(1).says("no luck");
    let again = served.run(&["retry", &run]).expect(1).says("stands: a").says("runs again: b");
    assert!(!again.err.contains("run created"), "what was before is not shown: {}", again.err);
    let fixed = FAILS.replace("tool: fail, args: {message: no luck}", "tool: now");
    let file = served.place.file("fixed.yaml", &fixed);
    served.run(&["apply", "-f", &file]).expect(0).says("version 1 → 2");
    served.run(&["retry", &run, "--newest"]).expect(0).says("stands: a").says("runs again: b");
    served.stop().sound();
}
