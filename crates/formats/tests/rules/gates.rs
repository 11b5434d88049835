//! Approvals: the calls that a gate lists, digests, and calls that are held or deferred.

use super::story::{GATE, RETRY, Story, check, compile, graph};
use serde_json::{Value, json};
use stepwell_core::event::Ignored;

/// The calls that a gate lists after these events: `pay {"sum":1}; tell ?`.
fn listed(definition: &str, input: Value, events: &[&str], gate: &str) -> String {
    let definition = compile(definition);
    let mut story = Story::start(&definition, input);
    events.iter().for_each(|event| story.tell(event));
    let asked = story.asked(gate);
    let calls = asked["calls"].as_array().cloned().unwrap_or_default();
    let one = |call: &Value| {
        let step = call["step"].as_str().unwrap();
        match call.get("input") {
            Some(input) => format!("{step} {}", input.get("args").unwrap_or(input)),
            None => format!("{step} ?"),
        }
    };
    calls.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_gate_lists_the_calls_that_wait_for_it_and_no_others() {
    let text = "
name: w
tasks:
  before: {tool: echo, args: {n: 0}}
  gate: {needs: before, approval: {message: go?}}
  pay: {needs: gate, tool: echo, args: {sum: '{{input.sum}}'}}
  beside: {needs: before, tool: echo, args: {n: 1}}
  both: {needs: [pay, beside], tool: echo, args: {n: 2}}
  nap: {needs: gate, sleep: 1h}
  child: {needs: nap, workflow: other, input: {n: 3}}
";
    let all = "pay {\"sum\":5}; both {\"n\":2}; child {\"n\":3}";
    assert_eq!(listed(text, json!({"sum": 5}), &["before ok"], "gate"), all);
}

#[test]
fn a_call_that_another_path_reaches_is_not_covered() {
    let nodes = "start:start; gate:approval; other; pay; no";
    let edges = "start>gate start>other gate>pay other>pay gate.denied>no";
    assert_eq!(listed(&graph(nodes, edges), json!({}), &[], "gate"), "");
    let edges = "start>gate start>other gate>pay gate.denied>no";
    assert_eq!(listed(&graph(nodes, edges), json!({}), &[], "gate"), "pay {}");
}

#[test]
fn arguments_that_depend_on_later_steps_are_not_yet_known() {
    let text = "
name: w
tasks:
  early: {tool: echo}
  late: {needs: gate, tool: echo, args: {n: 1}}
  gate: {needs: early, approval: {message: go?}}
  a: {needs: gate, tool: echo, args: {x: '{{tasks.early.body.x}}'}}
  b: {needs: [gate, late], tool: echo, args: {x: '{{tasks.late.body.x}}'}}
  c: {needs: [gate, late], tool: echo, args: {x: \"{{tasks.late.body.x ?? 'none'}}\"}}
  d: {needs: gate, tool: echo, args: {x: '{{tasks.gate.body.by}}'}}
  each: {needs: gate, for_each: '{{input.list}}', tasks: {one: {tool: echo, args: {x: '{{item}}'}}}}
";
    let all = "late {\"n\":1}; a {\"x\":7}; b ?; c ?; d ?; each[*].one ?";
    assert_eq!(listed(text, json!({"list": [1]}), &["early ok {\"x\": 7}"], "gate"), all);
}

#[test]
fn a_gate_in_an_item_lists_the_calls_of_its_item_with_its_arguments() {
    let text = "
name: w
tasks:
  each:
    for_each: '{{input.list}}'
    tasks:
      gate: {approval: {message: 'pay {{item}}?'}}
      pay: {needs: gate, tool: echo, args: {sum: '{{item}}', n: '{{index}}'}}
  after: {needs: each, tool: echo}
";
    let input = json!({"list": [10, 20]});
    assert_eq!(listed(text, input.clone(), &[], "each[0].gate"), "each[0].pay {\"sum\":10,\"n\":0}");
    assert_eq!(listed(text, input, &[], "each[1].gate"), "each[1].pay {\"sum\":20,\"n\":1}");
}

#[test]
fn an_answer_counts_for_the_digest_it_names() {
    let definition = compile(GATE);
    let mut story = Story::start(&definition, json!({}));
    let digest = story.asked("ask")["digest"].as_str().unwrap().to_string();
    assert_eq!(story.answer("ask", "something else"), Err(Ignored::OtherDigest));
    assert_eq!(story.line(), "ask=gate | paused");
    assert_eq!(story.answer("ask", &digest), Ok(()));
    assert_eq!(story.line(), "ask=success do=running | running");
}

#[test]
fn a_gate_that_opens_again_has_another_digest() {
    let definition = compile(GATE);
    let mut story = Story::start(&definition, json!({}));
    let first = story.asked("ask")["digest"].as_str().unwrap().to_string();
    story.tell("ask denied");
    story.tell("retry");
    assert_eq!(story.line(), "ask=gate#2 | paused");
    assert_ne!(story.asked("ask")["digest"], first.as_str());
    assert_eq!(story.answer("ask", &first), Err(Ignored::OtherDigest));
}

#[test]
fn an_escalated_gate_waits_for_another_timeout_and_is_then_denied() {
    let gate = |more: &str| format!("{{name: w, tasks: {{g: {{approval: {{timeout: 1h, escalate_to: eve{more}}}}}}}}}");
    for text in [gate(", on_timeout: escalate"), gate("")] {
        check(&text, &["+119m"], "g=gate | paused");
        check(&text, &["+119m", "g approved by eve"], "g=success | completed");
        check(&text, &["+2h"], "g=denied | cancelled");
    }
}

#[test]
fn a_held_call_waits_for_approval_and_does_not_use_up_an_attempt() {
    check(RETRY, &["a held"], "a=gate | paused");
    check(RETRY, &["a held", "~a#1 ok", "a approved"], "a=running#2 | running");
    check(RETRY, &["a held", "a approved", "a ok", "b ok"], "a=success#2 b=success | completed");
    // Three attempts are left.
    let fails = ["a held", "a approved", "a fails", "a woken", "a fails", "a woken", "a fails"];
    check(RETRY, &fails[..6], "a=running#4 | running");
    check(RETRY, &fails, "a=failed#4 b=skipped | failed");
}

#[test]
fn a_held_call_that_is_denied_or_times_out_is_a_denial() {
    check(RETRY, &["a held", "a denied"], "a=denied b=skipped | cancelled");
    check(RETRY, &["a held 1h", "+59m"], "a=gate | paused");
    check(RETRY, &["a held 1h", "+1h"], "a=denied b=skipped | cancelled");
    check(RETRY, &["a held", "cancel"], "a=cancelled b=cancelled | cancelled");
    check(RETRY, &["a held", "a denied", "retry"], "a=running#2 | running");
}

#[test]
fn several_people_approve_a_held_call() {
    check(RETRY, &["a held for 2", "a approved by ann", "~a approved by ann"], "a=gate | paused");
    check(RETRY, &["a held for 2", "a approved by ann", "a approved by bob"], "a=running#2 | running");
    check(RETRY, &["a held for 2", "a approved by ann", "a denied by bob"], "a=denied b=skipped | cancelled");
}

#[test]
fn a_deferred_call_is_made_later_and_does_not_use_up_an_attempt() {
    check(RETRY, &["a deferred 1m", "+59s"], "a=backoff | running");
    check(RETRY, &["a deferred 1m", "+1m"], "a=running#2 | running");
    let mut deferred: Vec<&str> = Vec::new();
    for _ in 0..10 {
        deferred.extend(["a deferred 1m", "+1m"]);
    }
    check(RETRY, &deferred, "a=running#11 | running");
    let fails = ["a fails", "a woken", "a fails", "a woken"];
    check(RETRY, &[&deferred[..], &fails].concat(), "a=running#13 | running");
    check(RETRY, &[&deferred[..], &fails, &["a fails"]].concat(), "a=failed#13 b=skipped | failed");
}

#[test]
fn the_request_of_a_held_call_names_the_call_and_its_digest() {
    let definition = compile("{name: w, tasks: {a: {tool: echo, args: {x: '{{input.x}}'}}}}");
    let mut story = Story::start(&definition, json!({"x": 1}));
    story.tell("a held");
    let asked = story.asked("a");
    let call = &asked["calls"][0];
    assert_eq!((&call["step"], &call["input"]), (&json!("a"), &json!({"tool": "echo", "args": {"x": 1}})));
    assert!(call["digest"].is_string() && asked["digest"].is_string(), "{asked:#}");
}
