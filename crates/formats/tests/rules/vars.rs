//! Vars, times and calculations in a run (docs/semantics.md, "Vars and time").

use super::story::{Story, check, check_input, compile, newer};
use serde_json::json;
use stepwell_core::graph::{Backoff, Retry, RetryOn};
use stepwell_core::time::Millis;

const VARS: &str = "
name: v
vars:
  net: '{{sum(input.amounts)}}'
  gross: '{{round(vars.net * 1.19, 2)}}'
  began: '{{now}}'
tasks:
  nap: {sleep: 3d}
  pay: {needs: nap, tool: pay, args: {gross: '{{vars.gross}}', began: '{{vars.began}}', now: '{{now}}'}, retries: 1}
";

#[test]
fn vars_are_computed_once_and_now_is_the_time_of_the_step() {
    let definition = compile(VARS);
    let mut story = Story::start(&definition, json!({"amounts": [0.1, 0.2, 19.69]}));
    ["+3d", "pay fails", "timer"].iter().for_each(|event| story.tell(event));
    let input = story.input_of("pay")["args"].clone();
    assert_eq!(input, json!({"gross": 23.79, "began": "2026-01-01T00:00:00.000Z", "now": "2026-01-04T00:00:00.000Z"}));
    assert_eq!(story.line(), "nap=success pay=running#2 | running");
}

#[test]
fn a_var_without_a_value_fails_the_run_before_any_step() {
    let text = "{name: v, vars: {a: 1, b: '{{vars.a / input.n}}'}, tasks: {x: {tool: echo}, y: {tool: echo}}}";
    check_input(text, json!({"n": 0}), &[], "x=cancelled y=cancelled | failed");
    let definition = compile(text);
    let story = Story::start(&definition, json!({"n": 0}));
    let failure = story.world.run.failure.as_ref().unwrap();
    assert_eq!(&*failure.code, "template_error");
    assert_eq!(
        &*failure.message,
        "vars.b has no value: {{vars.a / input.n}}: `/` needs a divisor other than 0, but got 0"
    );
    // A retry computes them again, in vain.
    check_input(text, json!({"n": 0}), &["retry"], "x=cancelled y=cancelled | failed");
    check_input(text, json!({"n": 2}), &["x ok", "y ok"], "x=success y=success | completed");
}

#[test]
fn vars_can_be_read_in_every_dialect_and_by_code() {
    let tasks = "{name: t, vars: {n: '{{input.n + 1}}'}, tasks: {a: {javascript: 'return ctx.vars.n'}}}";
    let definition = compile(tasks);
    let story = Story::start(&definition, json!({"n": 1}));
    assert_eq!(story.input_of("a")["ctx"], json!({"vars": {"n": 2}, "tasks": {}}));
    let flow = "{name: f, vars: {n: '{{input.n ?? 1}}'}, flow: {
        start: {tool: echo, branch: [{if: result.v > vars.n, then: big}, {then: small}]},
        big: {tool: echo, done: true}, small: {tool: echo, done: true}}}";
    check(flow, &["start ok {\"v\": 2}"], "start=success big=running small=skipped | running");
    let graph = r#"{"name": "g", "vars": {"all": "{{split(input.text, ',')}}"},
        "nodes": [{"id": "each", "nodeType": "loop", "nodeConfig": {"sourceVariable": "vars.all"}},
                  {"id": "one", "nodeType": "tool", "nodeConfig": {"tool": "echo", "args": {"x": "{{item}}"}}}],
        "edges": [{"source": "each", "sourceHandle": "loop", "target": "one"}, {"source": "one", "target": "each"}]}"#;
    check_input(graph, json!({"text": "a,b"}), &[], "each=open each[0].one=running | running");
}

#[test]
fn a_newer_version_with_other_vars_computes_them_and_runs_again_what_reads_them() {
    let text = |rate: &str| {
        format!(
            "{{name: v, vars: {{rate: {rate}}}, tasks: {{
                one: {{tool: echo, args: {{x: 1}}}},
                two: {{needs: one, tool: echo, args: {{x: '{{{{vars.rate}}}}'}}}},
                three: {{needs: one, tool: echo, retries: 0}}}}}}"
        )
    };
    let (old, new) = (compile(&text("0.1")), compile(&text("0.2")));
    let mut story = Story::start(&old, json!({}));
    ["one ok", "two ok", "three breaks"].iter().for_each(|event| story.tell(event));
    story.world.retry_onto(newer(&new, 2)).unwrap().unwrap();
    assert_eq!(story.line(), "one=success two=running#2 three=running#2 | running");
    assert_eq!(story.input_of("two")["args"], json!({"x": 0.2}));
    story.tell("two ok");
}

#[test]
fn a_step_whose_defaults_changed_runs_again() {
    let text = |timeout: &str| {
        format!(
            "{{name: d, defaults: {{timeout: {timeout}}},
             tasks: {{a: {{tool: echo}}, b: {{needs: a, tool: echo, retries: 0}}}}}}"
        )
    };
    let (old, new) = (compile(&text("10s")), compile(&text("20s")));
    let mut story = Story::start(&old, json!({}));
    ["a ok", "b breaks"].iter().for_each(|event| story.tell(event));
    story.world.retry_onto(newer(&new, 2)).unwrap().unwrap();
    assert_eq!(story.line(), "a=running#2 | running");
}

#[test]
fn defaults_are_for_calls_and_each_step_can_set_its_own() {
    let text = "
name: d
defaults: {timeout: 20s, retry: {attempts: 3, backoff: fixed, first: 5s, on: 5xx}, headers: {X-Team: '{{input.team}}'}}
tasks:
  plain: {url: https://x.test}
  own: {url: https://x.test, timeout: 1s, retries: 0, headers: {x-team: other, y: z}}
  more: {tool: echo, retries: 5}
  once: {tool: echo, at_most_once: true}
  child: {workflow: other}
  wait: {wait_for_webhook: true}
";
    let definition = compile(text);
    let story = Story::start(&definition, json!({"team": "red"}));
    assert_eq!(story.input_of("plain")["headers"], json!({"X-Team": "red"}));
    assert_eq!(story.input_of("own")["headers"], json!({"x-team": "other", "y": "z"}));
    let def = |name: &str| {
        let graph = &definition.graph;
        let step = graph.find(stepwell_core::graph::ScopeIx::ROOT, name).unwrap();
        (graph.step(step).def.retry.clone(), graph.step(step).def.timeout)
    };
    let given = |attempts: u32| Retry {
        attempts,
        backoff: Backoff::Fixed(Millis::from_secs(5)),
        jitter: false,
        on: vec![RetryOn::StatusClass(5)],
    };
    assert_eq!(def("plain"), (given(3), Some(Millis::from_secs(20))));
    assert_eq!(def("own"), (given(1), Some(Millis::from_secs(1))));
    assert_eq!(def("more"), (given(6), Some(Millis::from_secs(20))));
    assert_eq!(def("once"), (Retry::NEVER, Some(Millis::from_secs(20))));
    assert_eq!(def("child"), (Retry::NEVER, None));
    assert_eq!(def("wait"), (Retry::NEVER, None));
}

#[test]
fn a_calculation_without_a_value_fails_a_template_and_is_null_in_a_condition() {
    let text = "{name: c, tasks: {
        a: {tool: echo},
        b: {needs: a, tool: echo, args: {x: '{{tasks.a.body.n / tasks.a.body.of}}'}},
        c: {needs: a, if: 'tasks.a.body.n / tasks.a.body.of > 1', tool: echo}}}";
    let definition = compile(text);
    let mut story = Story::start(&definition, json!({}));
    story.tell("a ok {\"n\": 1, \"of\": 0}");
    assert_eq!(story.line(), "a=success b=template_error c=skipped | failed");
    assert_eq!(
        story.error_of("b"),
        "{{tasks.a.body.n / tasks.a.body.of}}: `/` needs a divisor other than 0, but got 0"
    );
}

#[test]
fn an_approval_does_not_cover_a_call_that_reads_the_time() {
    let text = "{name: g, vars: {n: 2}, tasks: {
        ask: {approval: {message: ok?}},
        fixed: {needs: ask, tool: echo, args: {x: '{{vars.n * 2}}'}},
        timed: {needs: ask, tool: echo, args: {x: '{{now}}'}}}}";
    let definition = compile(text);
    let story = Story::start(&definition, json!({}));
    let ask = story.asked("ask");
    let call = |name: &str| ask["calls"].as_array().unwrap().iter().find(|call| call["step"] == name).unwrap().clone();
    assert_eq!(call("fixed")["input"]["args"], json!({"x": 4}));
    assert!(call("fixed").get("digest").is_some());
    assert_eq!(call("timed")["not_yet_known"], true);
}
