//! Approvals: the calls that a gate lists, digests, and calls that are held or deferred.

use super::story::{GATE, RETRY, Story, check, compile, graph};
use serde_json::{Value, json};
use stepwell_core::event::Ignored;
use stepwell_core::value::Payload;

/// What a gate asks after these events.
fn asked(definition: &str, input: Value, events: &[&str], gate: &str) -> Value {
    let definition = compile(definition);
    let mut story = Story::start(&definition, input);
    events.iter().for_each(|event| story.tell(event));
    story.asked(gate).clone()
}

/// The calls that a gate lists after these events: `pay {"sum":1}; tell {"to":"{{x}}"} ?/args/to`. Only a call without a
/// question mark is covered.
fn listed(definition: &str, input: Value, events: &[&str], gate: &str) -> String {
    lines(&asked(definition, input, events, gate)["calls"], true)
}

fn lines(calls: &Value, covered: bool) -> String {
    let one = |call: &Value| {
        let mut line = call["step"].as_str().unwrap().to_string();
        if let Some(input) = call.get("input") {
            line += &format!(" {}", input.get("args").unwrap_or(input));
        }
        let unknown = call["unknown"].as_array().cloned().unwrap_or_default();
        let unknown: Vec<&str> = unknown.iter().map(|pointer| pointer.as_str().unwrap()).collect();
        if call.get("not_yet_known").is_some() {
            line += &format!(" ?{}", unknown.join(","));
        }
        let whole = call.get("not_yet_known").is_none() && call.get("input").is_some();
        assert_eq!(call.get("digest").is_some(), whole && covered, "{call:#}");
        if call.get("also_if_approved").is_some() { line + " (also if approved)" } else { line }
    };
    calls.as_array().into_iter().flatten().map(one).collect::<Vec<_>>().join("; ")
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
    let all = [
        r#"late {"n":1}"#,
        r#"a {"x":7}"#,
        r#"b {"x":"{{tasks.late.body.x}}"} ?/args/x"#,
        r#"c {"x":"{{tasks.late.body.x ?? 'none'}}"} ?/args/x"#,
        r#"d {"x":"{{tasks.gate.body.by}}"} ?/args/x"#,
        r#"each[*].one {"x":"{{item}}"} ?/args/x"#,
    ];
    assert_eq!(listed(text, json!({"list": [1]}), &["early ok {\"x\": 7}"], "gate"), all.join("; "));
}

#[test]
fn a_call_that_depends_on_the_form_is_shown_with_all_that_is_known() {
    let text = "
name: w
tasks:
  gate: {approval: {message: go?, form: {type: object}}}
  pay:
    needs: gate
    tool: echo
    args: {to: '{{input.account}}', note: 'for {{input.name}}: {{tasks.gate.body.data.note}}', key: '{{secrets.KEY}}'}
  code: {needs: gate, javascript: 'return 1'}
";
    let all = [
        r#"pay {"to":"NL01","note":"for Ann: {{tasks.gate.body.data.note}}","key":"{{secrets.KEY}}"} ?/args/note"#,
        r#"code {"code":"return 1"} ?/ctx"#,
    ];
    assert_eq!(listed(text, json!({"account": "NL01", "name": "Ann"}), &[], "gate"), all.join("; "));
    // A value that looks like a hole is not marked as unknown.
    let shown = listed(text, json!({"account": "{{tasks.gate.body.by}}", "name": ""}), &[], "gate");
    assert!(shown.contains(r#""to":"{{tasks.gate.body.by}}""#) && shown.contains("?/args/note;"), "{shown}");
}

#[test]
fn what_follows_a_denial_is_listed_apart() {
    let text = "
name: w
tasks:
  gate: {approval: {message: go?}}
  pay: {needs: gate, tool: echo, args: {n: 1}}
  refuse: {needs: gate, if: tasks.gate.status == 'denied', tool: echo, args: {n: 2}}
  told: {needs: refuse, tool: echo, args: {n: 3}}
  both: {needs: gate, if: input.on == true, tool: echo, args: {n: 4}}
  never: {needs: gate, if: input.on == false && tasks.gate.body.data.x == 1, tool: echo, args: {n: 5}}
  maybe: {needs: gate, if: tasks.gate.result == 'approved' && tasks.gate.body.data.x == 1, tool: echo, args: {n: 6}}
  beside: {tool: echo, args: {n: 7}}
";
    let ask = asked(text, json!({"on": true}), &[], "gate");
    assert_eq!(lines(&ask["calls"], true), r#"pay {"n":1}; both {"n":4}; maybe {"n":6}"#);
    let denied = r#"refuse {"n":2}; told {"n":3}; both {"n":4} (also if approved)"#;
    assert_eq!(lines(&ask["on_denial"], false), denied);

    let nodes = "start:start; gate:approval; other; pay; no";
    let ask = asked(&graph(nodes, "start>gate start>other gate>pay other>pay gate.denied>no"), json!({}), &[], "gate");
    assert_eq!(lines(&ask["on_denial"], false), "pay {} (also if approved); no {}");

    let flow = "
name: w
flow:
  start: {tool: null, branch: [{if: result == approved, then: pay}, {then: tell}]}
  pay: {tool: echo, args: {n: 1}, done: true}
  tell: {tool: echo, args: {n: 2}, done: true}
";
    let ask = asked(flow, json!({}), &[], "start");
    assert_eq!(
        (lines(&ask["calls"], true), lines(&ask["on_denial"], false)),
        (r#"pay {"n":1}"#.into(), r#"tell {"n":2}"#.into())
    );
    // Without anything that handles it, a denial makes no call.
    assert_eq!(asked(GATE, json!({}), &[], "ask").get("on_denial"), None);
}

#[test]
fn a_call_that_is_not_shown_is_named_and_not_covered() {
    let call =
        |n: usize| format!("  c{n}: {{needs: gate, tool: echo, args: {{text: '{{{{input.text}}}}', n: {n}}}}}\n");
    let text = |calls: usize| {
        let calls: String = (0..calls).map(call).collect();
        format!("name: w\ntasks:\n  gate: {{approval: {{message: go?}}}}\n{calls}")
    };
    let ask = asked(&text(3), json!({"text": "x".repeat(100_000)}), &[], "gate");
    let last = &ask["calls"][2];
    assert_eq!(
        (&last["step"], &last["tool"], &last["too_large_to_show"]),
        (&json!("c2"), &json!("echo"), &json!(true))
    );
    assert!(last.get("digest").is_none() && last.get("input").is_none(), "{last:#}");
    let ask = asked(&text(1_005), json!({"text": ""}), &[], "gate");
    let calls = ask["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &ask["more_calls"]), (1_000, &json!(5)));
    assert!(calls.iter().all(|call| call["tool"] == "echo"));
    assert_eq!(calls.iter().filter(|call| call.get("digest").is_some()).count(), 200);
}

#[test]
fn a_held_call_is_shown_whole_whatever_its_size() {
    let definition = compile("{name: w, tasks: {a: {tool: echo, args: {x: '{{input.x}}'}}}}");
    let mut story = Story::start(&definition, json!({"x": "y".repeat(1_000_000)}));
    story.tell("a held");
    let call = &story.asked("a")["calls"][0];
    assert!(call["digest"].is_string() && call["input"]["args"]["x"].as_str().unwrap().len() == 1_000_000);
}

#[test]
fn what_silence_means_is_part_of_the_request_and_its_digest() {
    let gate = |more: &str| format!("{{name: w, tasks: {{g: {{approval: {{message: go?{more}}}}}}}}}");
    let ask = |more: &str| asked(&gate(more), json!({}), &[], "g");
    assert_eq!(ask("").get("on_timeout"), None);
    let (deny, approve) = (ask(", timeout: 1h"), ask(", timeout: 1h, on_timeout: approve"));
    assert_eq!((&deny["on_timeout"], &approve["on_timeout"]), (&json!("deny"), &json!("approve")));
    assert_eq!(ask(", timeout: 1h, on_timeout: escalate, escalate_to: eve")["on_timeout"], "deny");
    assert_ne!(deny["digest"], approve["digest"]);
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
fn a_gate_that_an_earlier_version_opened_can_still_be_answered() {
    let definition = compile(GATE);
    let mut story = Story::start(&definition, json!({}));
    let world = &mut story.world;
    let at = world.run.find(world.graph, "ask").unwrap();
    let input = world.run.step(world.graph, at).unwrap().input.unwrap();
    // Made of less, and so with another digest.
    let old = json!({"message": "go?", "generation": 0, "digest": "of an earlier version"});
    world.run.values.put(input, Payload::from(old));
    assert_eq!(story.answer("ask", "of an earlier version"), Ok(()));
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
