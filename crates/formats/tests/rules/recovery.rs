//! Regression tests for runs that were rebuilt, migrated to a newer version or pushed to a limit.

use super::story::{Story, check, check_input, compile, graph, newer};
use serde_json::json;
use std::sync::Arc;
use stepwell_core::event::{Event, Ignored, Outcome, Reply};
use stepwell_core::plan::{retry_onto, standing};
use stepwell_core::run::Run;
use stepwell_core::simulate::{World, callback, someone};
use stepwell_core::time::Time;
use stepwell_core::value::Values;

#[test]
fn a_branch_called_like_a_built_in_handle_is_still_that_branch_after_recovery() {
    let tasks = "
name: named
tasks:
  c: {condition: [{id: success, if: input.x == 1}, {id: other}]}
  w: {tool: echo}
  n: {needs: [c, w], tool: echo}
";
    check(tasks, &["w ok"], "c=success w=success n=running | running");
    let flow = "
name: named
flow:
  start: {parallel: [p, q]}
  p: {tool: echo, retries: 0, branch: [{if: result == ok, then: fine}, {then: error}], on_error: fallback}
  q: {tool: echo, next: fallback}
  fine: {tool: echo, done: true}
  error: {tool: echo, done: true}
  fallback: {tool: echo, done: true}
";
    check(
        flow,
        &["p breaks", "q ok"],
        "start=success p=failed q=success fine=skipped error=skipped fallback=running | running",
    );
}

/// What is kept and what runs again when a run is retried under another definition.
fn stands(old: &str, events: &[&str], new: &str) -> String {
    let (old, new) = (compile(old), compile(new));
    let mut story = Story::start(&old, json!({"l": [1]}));
    events.iter().for_each(|event| story.tell(event));
    let standing = standing(&old.graph, &new.graph, &story.world.run).unwrap();
    story.world.retry_onto(newer(&new, 2)).unwrap().unwrap();
    story.world.crash_and_replay().unwrap();
    story.world.crash_and_restore().unwrap();
    format!("{} / {} → {}", standing.stands.join(" "), standing.again.join(" "), story.line())
}

#[test]
fn a_gate_inside_a_loop_or_each_before_a_changed_step_is_asked_again() {
    let flow = "
name: g
flow:
  start: {tool: echo, next: review}
  review: {tool: null, branch: [{if: result == approved, then: deploy}, {then: rework}]}
  rework: {tool: echo, next: review}
  deploy: {tool: echo, args: {target: staging}, done: true}
";
    let found = stands(
        flow,
        &["start ok", "loop:review[0].review approved", "deploy breaks"],
        &flow.replace("staging", "production"),
    );
    assert_eq!(
        found,
        "start / deploy loop:review → start=success loop:review=open#2 loop:review[0].review=gate#2 | paused"
    );
    let each = "
name: g
tasks:
  ask: {for_each: '{{input.l}}', tasks: {gate: {approval: {message: ok?}}}}
  deploy: {needs: ask, tool: echo, retries: 0, args: {target: staging}}
";
    let found = stands(each, &["ask[0].gate approved", "deploy fails"], &each.replace("staging", "production"));
    assert_eq!(found, " / ask deploy → ask=open#2 ask[0].gate=gate#2 | paused");
}

#[test]
fn a_gate_is_asked_again_if_a_changed_step_feeds_a_call_behind_it() {
    let text = "
name: g
tasks:
  account: {tool: echo, args: {from: staging}}
  rate: {needs: account, tool: echo}
  gate: {approval: {message: pay?}}
  pay: {needs: [gate, rate], tool: echo, retries: 0, args: {to: '{{tasks.account.body.to}}'}}
  other: {tool: echo, args: {n: 1}}
";
    let events = ["account ok {\"to\": \"a\"}", "rate ok", "gate approved", "other ok", "pay fails"];
    let found = stands(text, &events, &text.replace("staging", "production"));
    assert_eq!(found, "other / account rate gate pay → account=running#2 gate=gate#2 other=success | running");
    // A change that the call is not made of leaves the gate as it was answered.
    let found = stands(text, &events, &text.replace("n: 1", "n: 2"));
    assert_eq!(
        found,
        "account rate gate / pay other → account=success rate=success gate=success pay=running#2 other=running#2 | running"
    );
}

#[test]
fn a_gate_is_asked_again_if_a_changed_or_removed_step_writes_a_variable() {
    let nodes = |more: &str| format!("s:start; gate:approval; pay; w:tool outputVariable: v{more}");
    let edges = |more: &str| format!("s>w w>gate gate>pay{more}");
    let old = graph(&nodes("; side:tool outputVariable: v"), &edges(" s>side"));
    let events = ["w ok", "side ok", "gate approved", "pay breaks"];
    for new in [
        graph(&nodes(""), &edges("")),
        graph(&nodes("; side:tool outputVariable: v; extra"), &edges(" s>extra extra>side")),
    ] {
        let found = stands(&old, &events, &new);
        assert!(found.starts_with("s w / ") && found.contains("gate=gate#2"), "{found}");
    }
    assert!(stands(&old, &events, &old).contains("gate=success"));
}

#[test]
fn a_scope_stands_only_if_its_whole_body_is_unchanged() {
    let old = graph("s:start; e:loop sourceVariable: input.l; a; z", "s>e e.loop>a a>e e.done>z");
    let renamed = graph("s:start; e:loop sourceVariable: input.l; a2; z", "s>e e.loop>a2 a2>e e.done>z");
    assert!(stands(&old, &["e[0].a ok", "z breaks"], &renamed).starts_with("s / e z"));
    assert!(stands(&old, &["e[0].a ok", "z breaks"], &old).starts_with("s e / z"));
    let more = "c:condition branches: [{id: again, condition: 'false'}], defaultBranch: out";
    let cycle = graph(&format!("s:start; a; b; {more}; z"), "s>a a>b b>c c.again>a c.out>z");
    let edge = graph(&format!("s:start; a; b; {more}; z"), "s>a a>b b>c a>c c.again>a c.out>z");
    let events = ["loop:a[0].a ok", "loop:a[0].b ok", "z breaks"];
    assert!(stands(&cycle, &events, &edge).starts_with("s / z loop:a"), "{}", stands(&cycle, &events, &edge));
}

#[test]
fn swapped_exits_of_a_loop_are_a_change() {
    let nodes = "s:start; a; c:condition branches: [{id: again, condition: 'false'}, {id: out, condition: 'true'}], \
                 defaultBranch: two; y; z";
    let old = graph(nodes, "s>a a>c c.again>a c.out>z c.two>y");
    let new = graph(nodes, "s>a a>c c.again>a c.out>y c.two>z");
    let found = stands(&old, &["loop:a[0].a ok", "z breaks"], &new);
    assert!(found.contains("y=running") && found.ends_with("| running"), "{found}");
}

#[test]
fn a_step_added_after_a_condition_that_stands_runs() {
    let old = "{name: c, tasks: {c: {condition: [{id: yes, if: 'true'}]}, bad: {tool: echo, retries: 0}}}";
    let new = old.replace("retries: 0}", "retries: 0}, n: {needs: c, tool: echo}");
    assert_eq!(stands(old, &["bad fails"], &new), "c / bad → c=success bad=running#2 n=running | running");
}

#[test]
fn attempts_continue_counting_when_a_step_is_removed_and_comes_back() {
    let with = compile("{name: v, tasks: {a: {tool: echo, retries: 0}, b: {tool: echo, retries: 0}}}");
    let mut story = Story::start(&with, json!({}));
    ["a ok", "b fails"].iter().for_each(|event| story.tell(event));
    let changed = compile("{name: v, tasks: {a: {tool: log, retries: 0}}}");
    story.world.retry_onto(newer(&changed, 2)).unwrap().unwrap();
    story.tell("a fails");
    story.world.retry_onto(newer(&with, 3)).unwrap().unwrap();
    assert_eq!(story.line(), "a=running#3 b=running#2 | running");
}

#[test]
fn a_run_cancelled_in_the_queue_can_be_retried_after_recovery() {
    let definition = compile("{name: q, tasks: {a: {tool: echo}}}");
    let mut world = World::new(&definition.graph, 1, definition.max_duration);
    assert_eq!(
        world.feed(Event::Cancelled { by: someone(), reason: None }).unwrap().map(|_| ()),
        Err(Ignored::NotStarted)
    );
    let body = Arc::new(json!({}));
    world.feed(Event::Triggered { body, headers: None, query: None, by: someone(), queued: true }).unwrap().unwrap();
    assert_eq!(world.run.waiting_for(world.graph).len(), 1);
    world.feed(Event::Cancelled { by: someone(), reason: None }).unwrap().unwrap();
    world.crash_and_restore().unwrap();
    world.feed(Event::Retried { by: someone().into() }).unwrap().unwrap();
    assert_eq!(Story { world }.line(), "a=running | running");
}

#[test]
fn payload_numbers_are_never_reused() {
    let definition = compile("{name: v, tasks: {a: {tool: echo}, b: {needs: a, tool: echo}}}");
    let story = Story::start(&definition, json!({}));
    let snapshot = story.world.run.snapshot(&definition.graph);
    let next = snapshot.values;
    let mut run = Run::restore(&definition.graph, snapshot, Values::default()).unwrap();
    let at = run.find(&definition.graph, "a").unwrap();
    let event = Event::Reported { at, attempt: 1, outcome: Outcome::Success(Reply::body(json!(1))) };
    let env = stepwell_core::plan::Env::plain(Time(0), &callback);
    let transition = stepwell_core::plan::advance(&definition.graph, &mut run, event, env).unwrap();
    assert!(transition.values.iter().all(|(id, _)| id.0 >= next), "{:?}", transition.values);
}

#[test]
fn reading_into_a_truncated_result_fails_wherever_it_is_read() {
    let cut = |path: &str, story: &mut Story| {
        let at = story.world.run.find(story.world.graph, path).unwrap();
        let reply = Reply { truncated: true, ..Reply::body(json!("{\"ok\": tr")) };
        story.world.report(at, 1, Outcome::Success(reply)).unwrap().unwrap();
    };
    let text = graph(
        "s:start; a:tool outputVariable: big; c:condition branches: [{id: yes, condition: 'ctx.big.ok == true'}]; z",
        "s>a a>c c.yes>z",
    );
    let definition = compile(&text);
    let mut story = Story::start(&definition, json!({}));
    cut("a", &mut story);
    assert!(story.line().contains("c=template_error"), "{}", story.line());
    let message = "Cannot read 'body.ok' because the response from 'a' exceeded the 256KB limit and was truncated";
    assert_eq!(story.error_of("c"), message);
    let flow = compile(
        "{name: f, flow: {start: {tool: echo, branch: [{if: result.ok == true, then: b}, {then: c}]}, b: {tool: echo}, c: {tool: echo}}}",
    );
    let mut story = Story::start(&flow, json!({}));
    cut("start", &mut story);
    assert!(story.line().starts_with("start=template_error"), "{}", story.line());
}

#[test]
fn an_item_whose_output_failed_runs_again_alone() {
    let text = "
name: m
tasks:
  all:
    for_each: '{{input.items}}'
    tasks: {work: {tool: echo, retries: 0}}
    output: '{{tasks.work.body.v}}'
";
    check_input(
        text,
        json!({"items": [1, 2]}),
        &["all[0].work ok {}", "all[1].work ok {\"v\": 1}", "retry"],
        "all=open all[0].work=running#2 all[1].work=success | running",
    );
}

#[test]
fn a_run_with_too_many_instances_fails_instead_of_growing() {
    let text = "
name: deep
tasks:
  a:
    for_each: '{{input.l}}'
    tasks:
      b:
        for_each: '{{input.l}}'
        tasks:
          c: {condition: [{id: x}]}
";
    let definition = compile(text);
    let list: Vec<u32> = (0..400).collect();
    let mut world = World::new(&definition.graph, 1, definition.max_duration);
    let body = Arc::new(json!({"l": list}));
    world.feed(Event::Triggered { body, headers: None, query: None, by: someone(), queued: false }).unwrap().unwrap();
    let failure = world.run.failure.clone().unwrap();
    assert_eq!(&*failure.code, "too_many_items", "{failure:?}");
}

#[test]
fn a_result_that_could_not_be_stored_is_rejected() {
    let mut deep = json!(1);
    for _ in 0..118 {
        deep = json!([deep]);
    }
    let definition = compile("{name: d, tasks: {all: {for_each: '{{input.l}}', tasks: {w: {tool: echo}}}}}");
    let mut story = Story::start(&definition, json!({"l": [1]}));
    let at = story.world.run.find(story.world.graph, "all[0].w").unwrap();
    story.world.report(at, 1, Outcome::Success(Reply::body(deep))).unwrap().unwrap();
    assert_eq!(story.line(), "all=failed all[0].w=success | failed");
    assert!(story.error_of("all").contains("nested more than"), "{}", story.error_of("all"));
}

#[test]
fn retrying_under_a_newer_version_needs_a_finished_run_and_the_same_dialect() {
    let tasks = compile("{name: t, tasks: {a: {tool: echo, retries: 0}}}");
    let flow = compile("{name: t, flow: {start: {tool: echo}}}");
    let mut story = Story::start(&tasks, json!({}));
    assert_eq!(standing(&tasks.graph, &tasks.graph, &story.world.run), Err(Ignored::NothingToRetry));
    story.tell("a fails");
    let env = stepwell_core::plan::Env::plain(Time(0), &callback);
    let refused = retry_onto(&tasks.graph, newer(&flow, 2), &mut story.world.run, someone().into(), env);
    assert_eq!(refused.map(|_| ()), Err(Ignored::OtherDialect));
}

#[test]
fn code_sees_the_steps_before_it_and_no_others() {
    let text = "
name: js
tasks:
  a: {tool: echo}
  p: {tool: echo}
  j: {needs: a, javascript: 'return Object.keys(ctx.tasks)'}
  k: {needs: a, javascript: 'return ctx.tasks.a.body.v'}
  l: {needs: a, javascript: 'return 1'}
";
    let definition = compile(text);
    let mut story = Story::start(&definition, json!({}));
    ["p ok", "a ok {\"v\": 1}"].iter().for_each(|event| story.tell(event));
    let tasks = story.input_of("j")["ctx"]["tasks"].clone();
    assert_eq!(tasks["a"]["body"], json!({"v": 1}));
    assert_eq!(tasks.as_object().unwrap().len(), 1, "{tasks}");
    assert_eq!(story.input_of("k")["ctx"]["tasks"], tasks);
    assert_eq!(story.input_of("l")["ctx"], json!({"tasks": {}}));
}

#[test]
fn a_newer_version_brings_its_own_max_duration_and_a_description_changes_nothing() {
    let text = "{name: d, max_duration: 1h, tasks: {a: {tool: echo}, b: {needs: a, sleep: 2h}}}";
    let new = text.replace("1h,", "9h,").replace("tool: echo", "tool: echo, description: why");
    let (old, new) = (compile(text), compile(&new));
    let mut story = Story::start(&old, json!({}));
    ["a ok", "+1h"].iter().for_each(|event| story.tell(event));
    assert_eq!(story.line(), "a=success b=cancelled | timeout");
    story.world.retry_onto(newer(&new, 2)).unwrap().unwrap();
    story.tell("+2h");
    assert_eq!(story.line(), "a=success b=success#2 | completed");
}

#[test]
fn any_waiting_step_can_be_overridden() {
    let tasks = "
name: stuck
tasks:
  call: {tool: echo}
  nap: {sleep: 1d}
  hook: {wait_for_webhook: {timeout: 1h}}
  after: {needs: [call, nap, hook], if: tasks.call.body.n == 1, tool: echo}
";
    let all = ["call overridden ok {\"n\": 1}", "nap overridden ok null", "hook overridden ok {}"];
    check(tasks, &all, "call=success nap=success hook=success after=running | running");
    // Also between two attempts; an overridden failure is an ordinary failure, and is not retried.
    let backoff = ["call fails", "call overridden fails", "nap overridden ok null", "hook overridden ok {}"];
    check(tasks, &backoff, "call=failed nap=success hook=success after=skipped | failed");
}

#[test]
fn a_gate_cannot_be_overridden_and_an_ended_step_keeps_its_outcome() {
    let gated = compile("name: g\ntasks:\n  ask: {approval: {message: go}}\n  call: {tool: echo}\n");
    let mut story = Story::start(&gated, json!({}));
    story.tell("call ok");
    let mut say = |path: &str| {
        let at = story.world.run.find(&gated.graph, path).unwrap();
        let attempt = story.world.run.step(&gated.graph, at).unwrap().attempt;
        let outcome = Outcome::Success(Reply::default());
        story.world.feed(Event::Overridden { at, attempt, outcome, by: someone(), comment: None }).unwrap().err()
    };
    assert_eq!(say("ask"), Some(Ignored::NotWaiting));
    assert_eq!(say("call"), Some(Ignored::StepFinished));
}
