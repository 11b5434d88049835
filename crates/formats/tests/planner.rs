//! The rules of the plan, one sentence per test. Each story also checks, after every event, that folding the log and
//! restoring a snapshot both give the state the planner had.

mod story;

use serde_json::json;
use story::{Story, check, check_input, compile};

const DIAMOND: &str = "
name: diamond
tasks:
  a: {tool: echo}
  b: {needs: a, tool: echo}
  c: {needs: a, tool: echo}
  d: {needs: [b, c], tool: echo}
";

// Joins and skips (R1, R2)

#[test]
fn a_join_waits_for_every_need_and_runs_once() {
    check(DIAMOND, &["a ok", "b ok"], "a=success b=success c=running | running");
    check(DIAMOND, &["a ok", "b ok", "c ok"], "a=success b=success c=success d=running | running");
    check(DIAMOND, &["a ok", "c ok", "b ok", "d ok"], "a=success b=success c=success d=success | completed");
}

#[test]
fn a_failed_need_skips_what_follows_and_fails_the_run() {
    check(DIAMOND, &["a ok", "b breaks", "c ok"], "a=success b=failed c=success d=skipped | failed");
}

#[test]
fn a_step_is_skipped_only_once_all_its_needs_are_final() {
    check(DIAMOND, &["a ok", "b breaks"], "a=success b=failed c=running | running");
}

const HANDLED: &str = "
name: handled
tasks:
  charge: {tool: echo, retries: 0}
  receipt: {needs: charge, if: tasks.charge.status == 'success', tool: echo}
  sorry: {needs: charge, if: tasks.charge.status != 'success', tool: echo}
  after: {needs: receipt, tool: echo}
";

#[test]
fn a_failure_that_an_if_looks_at_and_a_step_ran_for_is_handled() {
    check(HANDLED, &["charge fails", "sorry ok"], "charge=failed receipt=skipped sorry=success after=skipped | completed");
}

#[test]
fn a_failure_for_which_nothing_ran_fails_the_run() {
    let unhandled = "
name: unhandled
tasks:
  a: {tool: echo, retries: 0}
  b: {needs: a, if: tasks.a.status == 'success', tool: echo}
";
    check(unhandled, &["a fails"], "a=failed b=skipped | failed");
}

#[test]
fn a_skip_travels_down_until_an_if_is_asked() {
    let text = "
name: cascade
tasks:
  a: {tool: echo}
  b: {needs: a, if: 'false', tool: echo}
  c: {needs: b, tool: echo}
  d: {needs: c, if: tasks.c.status == 'skipped', tool: echo}
";
    check(text, &["a ok"], "a=success b=skipped c=skipped d=running | running");
}

// Graph joins

fn graph(nodes: &str, edges: &str) -> String {
    let node = |entry: &str| {
        let (id, rest) = entry.split_once(':').unwrap_or((entry, "tool"));
        let (kind, config) = rest.split_once(' ').unwrap_or((rest, ""));
        let base = if kind == "tool" { "tool: echo, maxAttempts: 1, " } else { "" };
        format!("  - {{nodeID: {id}, nodeType: {kind}, nodeConfig: {{{base}{config}}}}}\n")
    };
    let edge = |entry: &str| {
        let (from, to) = entry.split_once('>').unwrap();
        let (from, handle) = from.split_once('.').unwrap_or((from, "output"));
        format!("  - {{upstreamNodeID: {from}, downstreamNodeID: {to}, sourceHandle: {handle}}}\n")
    };
    let nodes: String = nodes.split("; ").map(node).collect();
    let edges: String = edges.split_whitespace().map(edge).collect();
    format!("name: g\nmax_iterations: 3\nnodes:\n{nodes}edges:\n{edges}")
}

#[test]
fn an_all_join_after_a_condition_runs_when_the_taken_side_arrives() {
    let text = graph(
        "s:start; c:condition branches: [{id: yes, condition: 'input.go'}], defaultBranch: no; a; b; j",
        "s>c c.yes>a c.no>b a>j b>j",
    );
    check_input(&text, json!({"go": true}), &["a ok", "j ok"], "s=success c=success a=success b=skipped j=success | completed");
    check_input(&text, json!({"go": false}), &["b ok"], "s=success c=success a=skipped b=success j=running | running");
}

#[test]
fn an_any_join_runs_at_the_first_arrival_and_ignores_the_second() {
    let text = graph("s:start; a; b; j:tool joinMode: any", "s>a s>b a>j b>j");
    check(&text, &["a ok"], "s=success a=success b=running j=running | running");
    check(&text, &["a ok", "j ok"], "s=success a=success b=running j=success | running");
    check(&text, &["b ok", "j ok", "a breaks"], "s=success a=failed b=success j=success | completed");
}

#[test]
fn an_any_join_that_nothing_reaches_is_skipped() {
    let text = graph("s:start; a; b; j:tool joinMode: any", "s>a s>b a>j b>j");
    check(&text, &["a breaks", "b breaks"], "s=success a=failed b=failed j=skipped | failed");
}

#[test]
fn an_error_edge_handles_a_failure_and_leaves_the_other_untaken() {
    let text = graph("s:start; a; good; bad", "s>a a>good a.error>bad");
    check(&text, &["a breaks", "bad ok"], "s=success a=failed good=skipped bad=success | completed");
    check(&text, &["a ok", "good ok"], "s=success a=success good=success bad=skipped | completed");
}

#[test]
fn a_failed_edge_reaches_through_skipped_steps_and_keeps_an_all_join_from_running() {
    let text = graph("s:start; a; b; x; j", "s>a s>b a>x x>j b>j");
    check(&text, &["a breaks", "b ok"], "s=success a=failed b=success x=skipped j=skipped | failed");
}

#[test]
fn fail_workflow_ends_the_run_at_once_and_cancels_the_rest() {
    let text = graph("s:start; a:tool errorHandling: fail_workflow; b; c", "s>a s>b b>c");
    check(&text, &["a breaks"], "s=success a=failed b=cancelled c=cancelled | failed");
}

#[test]
fn a_condition_without_a_match_ends_that_path() {
    let text = graph("s:start; c:condition branches: [{id: yes, condition: 'false'}]; a", "s>c c.yes>a");
    check(&text, &[], "s=success c=success a=skipped | completed");
}

#[test]
fn a_disabled_node_is_passed_through() {
    let text = graph("s:start; a:tool isDisabled: true; b", "s>a a>b");
    check(&text, &[], "s=success a=success b=running | running");
}

// Loops (R5)

#[test]
fn a_cycle_repeats_until_an_edge_leaves_it() {
    let text = graph(
        "s:start; poll:tool outputVariable: p; c:condition branches: [{id: again, condition: 'ctx.p.more'}], defaultBranch: out; e",
        "s>poll poll>c c.again>poll c.out>e",
    );
    check(
        &text,
        &["loop:poll[0].poll ok {\"more\":true}", "loop:poll[1].poll ok {\"more\":false}", "e ok"],
        "s=success e=success loop:poll=success loop:poll[0].poll=success loop:poll[0].c=success \
         loop:poll[1].poll=success loop:poll[1].c=success | completed",
    );
}

#[test]
fn a_loop_over_its_limit_fails() {
    let text = graph("s:start; a; b", "s>a a>b b>a");
    let pass = |k: usize| [format!("loop:a[{k}].a ok"), format!("loop:a[{k}].b ok")];
    let events: Vec<String> = (0..3).flat_map(pass).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let definition = compile(&text);
    let mut story = Story::start(&definition, json!({}));
    events.iter().for_each(|event| story.tell(event));
    assert!(story.line().ends_with("| failed"), "{}", story.line());
    assert_eq!(story.error_of("loop:a"), "the loop was still going after 3 passes");
}

#[test]
fn an_unhandled_failure_inside_a_loop_ends_the_loop() {
    let text = graph("s:start; a; b; after", "s>a a>b b>a b.error>after");
    check(
        &text,
        &["loop:a[0].a ok", "loop:a[0].b ok", "loop:a[1].a breaks"],
        "s=success after=skipped loop:a=failed loop:a[0].a=success loop:a[0].b=success loop:a[1].a=failed \
         loop:a[1].b=skipped | failed",
    );
}

const EACH: &str = "
name: each
tasks:
  all:
    for_each: '{{input.items}}'
    max_parallel: 2
    tasks:
      work: {tool: echo, args: {x: '{{item}}', i: '{{index}}'}, retries: 0}
    output: '{{tasks.work.body}}'
  after: {needs: all, tool: echo, args: {list: '{{tasks.all.body}}'}}
";

#[test]
fn for_each_keeps_at_most_max_parallel_items_open_and_results_in_order() {
    let definition = compile(EACH);
    let mut story = Story::start(&definition, json!({"items": [10, 20, 30]}));
    assert_eq!(story.line(), "all=open all[0].work=running all[1].work=running | running");
    story.tell("all[1].work ok \"b\"");
    assert_eq!(story.input_of("all[2].work"), json!({"tool": "echo", "args": {"x": 30, "i": 2}}));
    story.tell("all[2].work ok \"c\"");
    story.tell("all[0].work ok \"a\"");
    assert_eq!(story.input_of("after")["args"], json!({"list": ["a", "b", "c"]}));
}

#[test]
fn for_each_of_nothing_is_an_empty_list() {
    let definition = compile(EACH);
    let story = Story::start(&definition, json!({"items": []}));
    assert_eq!(story.line(), "all=success after=running | running");
    assert_eq!(story.input_of("after")["args"], json!({"list": []}));
}

#[test]
fn for_each_over_something_else_is_a_template_error() {
    let definition = compile(EACH);
    let story = Story::start(&definition, json!({"items": "abc"}));
    assert_eq!(story.line(), "all=template_error after=skipped | failed");
    assert_eq!(story.error_of("all"), "expected a list of items, found abc");
}

#[test]
fn a_failed_item_stops_new_ones_and_lets_running_ones_end() {
    check_input(
        EACH,
        json!({"items": [1, 2, 3]}),
        &["all[0].work breaks"],
        "all=open all[0].work=failed all[1].work=running | running",
    );
    check_input(
        EACH,
        json!({"items": [1, 2, 3]}),
        &["all[0].work breaks", "all[1].work ok"],
        "all=failed after=skipped all[0].work=failed all[1].work=success | failed",
    );
}

#[test]
fn on_item_error_continue_records_the_error_in_its_place() {
    let text = EACH.replace("max_parallel: 2", "on_item_error: continue");
    let definition = compile(&text);
    let mut story = Story::start(&definition, json!({"items": [1, 2]}));
    story.tell("all[0].work breaks");
    story.tell("all[1].work ok \"b\"");
    let error = json!({"error": {"code": "test", "message": "all[0].work: it broke"}});
    assert_eq!(story.input_of("after")["args"], json!({"list": [error, "b"]}));
}

// Attempts

const RETRY: &str = "
name: retry
tasks:
  a: {tool: echo, retries: 2}
  b: {needs: a, tool: echo}
";

#[test]
fn a_step_is_retried_until_its_attempts_are_used_up() {
    check(RETRY, &["a fails"], "a=backoff | running");
    check(RETRY, &["a fails", "timer", "a fails", "timer"], "a=running#3 | running");
    check(RETRY, &["a fails", "timer", "a fails", "timer", "a fails"], "a=failed#3 b=skipped | failed");
}

#[test]
fn a_failure_that_is_not_worth_retrying_ends_the_step() {
    check(RETRY, &["a breaks"], "a=failed b=skipped | failed");
}

#[test]
fn the_last_attempt_decides_between_failed_and_timeout() {
    check(RETRY, &["a fails", "timer", "a fails", "timer", "a times out"], "a=timeout#3 b=skipped | failed");
}

#[test]
fn late_report_of_an_expired_attempt_changes_nothing() {
    check(RETRY, &["a fails", "timer", "~a#1 ok"], "a=running#2 | running");
    check(RETRY, &["a fails", "~a#1 ok", "~a#1 fails"], "a=backoff | running");
}

#[test]
fn a_repeated_report_changes_nothing() {
    check(RETRY, &["a ok", "~a ok", "~a fails"], "a=success b=running | running");
}

#[test]
fn a_lost_node_costs_no_attempt_of_the_budget() {
    check(
        RETRY,
        &["a lost", "a lost", "a fails", "timer", "a fails", "timer", "a fails"],
        "a=failed#5 b=skipped | failed",
    );
}

#[test]
fn a_step_that_takes_its_node_down_every_time_is_given_up() {
    let mut events = vec!["a lost"; 26];
    events.push("~a lost");
    check(RETRY, &events, "a=failed#26 b=skipped | failed");
}

#[test]
fn at_most_once_is_never_dispatched_twice() {
    let text = "{name: once, tasks: {a: {tool: echo, at_most_once: true}, b: {needs: a, tool: echo}}}";
    check(text, &["a lost"], "a=failed b=skipped | failed");
    check(text, &["a unknown"], "a=failed b=skipped | failed");
    check(text, &["a fails"], "a=failed b=skipped | failed");
}

#[test]
fn an_unknown_outcome_can_be_settled_by_a_person() {
    let text = "{name: once, tasks: {a: {tool: echo, at_most_once: true, on_unknown: ask}, b: {needs: a, tool: echo}}}";
    check(text, &["a lost"], "a=unsure | paused");
    check(text, &["a lost", "a happened"], "a=success b=running | running");
    check(text, &["a lost", "a again"], "a=running#2 | running");
    check(text, &["a lost", "a given up"], "a=failed b=skipped | failed");
}

// Waits

#[test]
fn a_sleep_ends_on_time_and_a_signal_ends_it_early() {
    let text = "{name: nap, tasks: {a: {sleep: 1h}, b: {needs: a, tool: echo}}}";
    check(text, &["+59m"], "a=sleeping | running");
    check(text, &["+60m"], "a=success b=running | running");
    check(text, &["a woken"], "a=success b=running | running");
    check(text, &["a woken", "~a woken"], "a=success b=running | running");
}

#[test]
fn a_backoff_can_be_cut_short() {
    check(RETRY, &["a fails", "a woken"], "a=running#2 | running");
}

const HOOK: &str = "
name: hook
tasks:
  first: {tool: echo, args: {url: '{{wait.paid.url}}'}}
  paid: {needs: first, wait_for_webhook: {timeout: 1h}}
  ship: {needs: paid, if: tasks.paid.status == 'received', tool: echo, args: {id: '{{tasks.paid.body.id}}'}}
  gone: {needs: paid, if: tasks.paid.status == 'timeout', tool: echo}
";

#[test]
fn a_webhook_wait_ends_with_its_call() {
    let definition = compile(HOOK);
    let mut story = Story::start(&definition, json!({}));
    assert_eq!(story.input_of("first")["args"], json!({"url": "https://stepwell.invalid/wh/paid"}));
    story.tell("first ok");
    story.tell("paid called {\"id\": 7}");
    assert_eq!(story.line(), "first=success paid=success ship=running gone=skipped | running");
    assert_eq!(story.input_of("ship")["args"], json!({"id": 7}));
    story.tell("~paid called {\"id\": 8}");
}

#[test]
fn a_call_that_comes_early_is_kept_and_a_second_one_refused() {
    check(
        HOOK,
        &["paid called {\"id\": 7}", "~paid called {\"id\": 8}", "first ok"],
        "first=success paid=success ship=running gone=skipped | running",
    );
}

#[test]
fn a_wait_that_nobody_calls_times_out_and_that_is_handled() {
    check(
        HOOK,
        &["first ok", "+1h", "gone ok"],
        "first=success paid=timeout ship=skipped gone=success | completed",
    );
}

// Gates

const GATE: &str = "
name: gate
tasks:
  ask: {approval: {message: ok?, timeout: 1h}}
  do: {needs: ask, tool: echo}
";

#[test]
fn a_run_at_a_gate_is_paused_until_someone_answers() {
    check(GATE, &[], "ask=gate | paused");
    check(GATE, &["ask approved", "do ok"], "ask=success do=success | completed");
    check(GATE, &["ask approved", "~ask approved by bob", "~ask denied"], "ask=success do=running | running");
}

#[test]
fn a_denial_that_nothing_handles_cancels_the_run() {
    check(GATE, &["ask denied"], "ask=denied do=skipped | cancelled");
    check(GATE, &["+1h"], "ask=denied do=skipped | cancelled");
}

#[test]
fn a_denial_beside_a_failure_fails_the_run() {
    let text = "{name: both, tasks: {ask: {approval: {message: ok?}}, a: {tool: echo, retries: 0}}}";
    check(text, &["ask denied", "a breaks"], "ask=denied a=failed | failed");
}

#[test]
fn on_timeout_approve_lets_the_run_go_on() {
    let text = GATE.replace("timeout: 1h", "timeout: 1h, on_timeout: approve");
    check(&text, &["+1h"], "ask=success do=running | running");
}

#[test]
fn an_escalated_gate_can_still_be_answered_and_expires_later() {
    let text = GATE.replace("timeout: 1h", "timeout: 1h, escalate_to: [boss]");
    check(&text, &["+1h"], "ask=gate | paused");
    check(&text, &["+1h", "ask approved by boss"], "ask=success do=running | running");
    check(&text, &["+2h"], "ask=denied do=skipped | cancelled");
}

#[test]
fn several_people_must_approve_and_nobody_twice() {
    let text = GATE.replace("timeout: 1h", "approvals: 2");
    check(&text, &["ask approved by ann", "~ask approved by ann"], "ask=gate | paused");
    check(&text, &["ask approved by ann", "ask approved by bob"], "ask=success do=running | running");
    check(&text, &["ask approved by ann", "ask denied by bob"], "ask=denied do=skipped | cancelled");
}

#[test]
fn a_denied_edge_is_preferred_to_an_error_edge() {
    let text = graph("s:start; g:approval message: hm; no; err", "s>g g.denied>no g.error>err");
    check(&text, &["g denied", "no ok"], "s=success g=denied no=success err=skipped | completed");
    let text = graph("s:start; g:approval message: hm; err", "s>g g.error>err");
    check(&text, &["g denied", "err ok"], "s=success g=denied err=success | completed");
}

// Children

#[test]
fn a_child_run_ends_its_step_and_is_cancelled_with_its_parent() {
    let text = "{name: p, tasks: {kid: {workflow: other, input: {a: 1}}, b: {needs: kid, tool: echo}}}";
    check(text, &["kid ok"], "kid=success b=running | running");
    check(text, &["kid breaks"], "kid=failed b=skipped | failed");
    check(text, &["cancel"], "kid=cancelled b=cancelled | cancelled");
}

// Ending and retrying runs (R6, R7)

#[test]
fn cancel_reaches_everything_and_the_first_end_wins() {
    check(DIAMOND, &["a ok", "cancel", "~b ok", "~cancel"], "a=success b=cancelled c=cancelled d=cancelled | cancelled");
}

#[test]
fn a_run_that_takes_too_long_times_out() {
    let text = "{name: slow, max_duration: 1h, tasks: {a: {sleep: 2h}, b: {needs: a, tool: echo}}}";
    check(text, &["+1h"], "a=cancelled b=cancelled | timeout");
}

#[test]
fn retry_runs_again_what_failed_and_what_follows_and_nothing_else() {
    check(
        DIAMOND,
        &["a ok", "b breaks", "c ok", "retry"],
        "a=success b=running#2 c=success | running",
    );
    check(
        DIAMOND,
        &["a ok", "b breaks", "c ok", "retry", "b ok", "d ok"],
        "a=success b=success#2 c=success d=success | completed",
    );
}

#[test]
fn a_retry_has_a_fresh_budget_and_old_reports_stay_stale() {
    check(
        RETRY,
        &["a breaks", "retry", "~a#1 ok", "a fails", "timer", "a fails", "timer", "a ok"],
        "a=success#4 b=running | running",
    );
}

#[test]
fn a_completed_run_has_nothing_to_retry() {
    check(RETRY, &["~retry", "a ok", "b ok", "~retry"], "a=success b=success | completed");
}

#[test]
fn a_cancelled_run_goes_on_where_it_stopped() {
    check(DIAMOND, &["a ok", "b ok", "cancel", "retry"], "a=success b=success c=running#2 | running");
}

#[test]
fn a_handled_failure_stands_when_a_run_is_retried() {
    let text = "
name: stands
tasks:
  a: {tool: echo, retries: 0}
  fix: {needs: a, if: tasks.a.status == 'failed', tool: echo}
  b: {needs: fix, tool: echo, retries: 0}
";
    check(text, &["a fails", "fix ok", "b fails", "retry"], "a=failed fix=success b=running#2 | running");
}

#[test]
fn a_retried_for_each_goes_on_with_the_items_that_did_not_succeed() {
    check_input(
        EACH,
        json!({"items": [1, 2, 3]}),
        &["all[0].work breaks", "all[1].work ok", "retry"],
        "all=open all[0].work=running#2 all[1].work=success all[2].work=running | running",
    );
}

#[test]
fn a_retried_loop_goes_on_in_the_pass_that_failed() {
    let text = graph("s:start; a; b", "s>a a>b b>a");
    check(
        &text,
        &["loop:a[0].a ok", "loop:a[0].b ok", "loop:a[1].a ok", "loop:a[1].b breaks", "retry"],
        "s=success loop:a=open loop:a[0].a=success loop:a[0].b=success loop:a[1].a=success loop:a[1].b=running#2 | running",
    );
}

#[test]
fn a_denied_gate_is_asked_again_after_a_retry() {
    check(GATE, &["ask denied", "retry", "~ask#1 approved"], "ask=gate#2 | paused");
}

#[test]
fn a_retry_restarts_max_duration() {
    let text = "{name: slow, max_duration: 1h, tasks: {a: {tool: echo}}}";
    check(text, &["+1h", "retry", "+59m"], "a=running#2 | running");
    check(text, &["+1h", "retry", "+60m"], "a=cancelled#2 | timeout");
}

// Newer versions

#[test]
fn on_a_newer_version_only_what_is_unchanged_and_succeeded_stands() {
    let old = compile(DIAMOND);
    let new = compile(&DIAMOND.replace("c: {needs: a, tool: echo}", "c: {needs: a, tool: log}"));
    let mut story = Story::start(&old, json!({}));
    ["a ok", "b ok", "c ok", "d breaks"].iter().for_each(|event| story.tell(event));
    let standing = stepwell_core::plan::standing(&old.graph, &new.graph, &story.world.run).unwrap();
    assert_eq!((standing.stands.join(" "), standing.again.join(" ")), ("a b".into(), "c d".into()));
    story.world.retry_onto(&new.graph, 2).unwrap().unwrap();
    assert_eq!(story.line(), "a=success b=success c=running#2 | running");
    ["c ok", "d ok"].iter().for_each(|event| story.tell(event));
    assert_eq!(story.line(), "a=success b=success c=success#2 d=success#2 | completed");
}

#[test]
fn a_gate_before_a_changed_step_is_asked_again() {
    let old = compile("{name: g, tasks: {ask: {approval: {message: ok?}}, do: {needs: ask, tool: echo, retries: 0}}}");
    let new = compile("{name: g, tasks: {ask: {approval: {message: ok?}}, do: {needs: ask, tool: log, retries: 0}}}");
    let mut story = Story::start(&old, json!({}));
    ["ask approved", "do fails"].iter().for_each(|event| story.tell(event));
    story.world.retry_onto(&new.graph, 2).unwrap().unwrap();
    assert_eq!(story.line(), "ask=gate#2 | paused");
}

// Templates and conditions

#[test]
fn a_missing_value_fails_the_step_and_names_it() {
    let text = "{name: t, tasks: {a: {tool: echo}, b: {needs: a, tool: echo, args: {x: '{{tasks.a.body.nope}}'}}}}";
    let definition = compile(text);
    let mut story = Story::start(&definition, json!({}));
    story.tell("a ok {\"v\": 1}");
    assert_eq!(story.line(), "a=success b=template_error | failed");
    assert_eq!(story.error_of("b"), "Failed to resolve {{tasks.a.body.nope}}");
}

#[test]
fn the_input_is_frozen_for_all_attempts() {
    let definition = compile(RETRY);
    let mut story = Story::start(&definition, json!({}));
    let before = story.world.run.find(story.world.graph, "a").unwrap();
    let input = story.world.run.step(story.world.graph, before).unwrap().input;
    ["a fails", "timer"].iter().for_each(|event| story.tell(event));
    assert_eq!(story.world.run.step(story.world.graph, before).unwrap().input, input);
}

#[test]
fn the_output_of_a_run_is_what_the_definition_says() {
    let text = "{name: o, output: {sum: '{{tasks.a.body.n}}'}, tasks: {a: {tool: echo}}}";
    let definition = compile(text);
    let mut story = Story::start(&definition, json!({}));
    story.tell("a ok {\"n\": 5}");
    assert_eq!(story.output(), json!({"sum": 5}));
}

#[test]
fn an_output_that_cannot_be_had_fails_the_run() {
    let text = "{name: o, output: {sum: '{{tasks.a.body.n}}'}, tasks: {a: {tool: echo}}}";
    check(text, &["a ok {}"], "a=success | failed");
}
