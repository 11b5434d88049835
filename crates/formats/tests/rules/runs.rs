//! How a run ends, and how it is retried, under its own version or a newer one (R4, R6, R7).

use super::story::{DIAMOND, EACH, GATE, RETRY, Story, check, check_input, compile, graph, newer};
use serde_json::json;

#[test]
fn cancel_reaches_everything_and_the_first_end_wins() {
    check(
        DIAMOND,
        &["a ok", "cancel", "~b ok", "~cancel"],
        "a=success b=cancelled c=cancelled d=cancelled | cancelled",
    );
}

#[test]
fn a_run_that_takes_too_long_times_out() {
    let text = "{name: slow, max_duration: 1h, tasks: {a: {sleep: 2h}, b: {needs: a, tool: echo}}}";
    check(text, &["+1h"], "a=cancelled b=cancelled | timeout");
}

#[test]
fn retry_runs_again_what_failed_and_what_follows_and_nothing_else() {
    check(DIAMOND, &["a ok", "b breaks", "c ok", "retry"], "a=success b=running#2 c=success | running");
    check(
        DIAMOND,
        &["a ok", "b breaks", "c ok", "retry", "b ok", "d ok"],
        "a=success b=success#2 c=success d=success | completed",
    );
}

#[test]
fn a_retry_resets_the_attempts_and_old_reports_stay_stale() {
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
fn a_cancelled_run_resumes_where_it_stopped() {
    check(DIAMOND, &["a ok", "b ok", "cancel", "retry"], "a=success b=success c=running#2 | running");
}

#[test]
fn a_handled_failure_is_kept_when_a_run_is_retried() {
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
fn a_retried_for_each_resumes_with_the_items_that_did_not_succeed() {
    check_input(
        EACH,
        json!({"items": [1, 2, 3]}),
        &["all[0].work breaks", "all[1].work ok", "retry"],
        "all=open all[0].work=running#2 all[1].work=success all[2].work=running | running",
    );
}

#[test]
fn a_retried_loop_resumes_in_the_pass_that_failed() {
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

#[test]
fn under_a_newer_version_only_unchanged_successful_steps_are_kept() {
    let old = compile(DIAMOND);
    let new = compile(&DIAMOND.replace("c: {needs: a, tool: echo}", "c: {needs: a, tool: log}"));
    let mut story = Story::start(&old, json!({}));
    ["a ok", "b ok", "c ok", "d breaks"].iter().for_each(|event| story.tell(event));
    let standing = stepwell_core::plan::standing(&old.graph, &new.graph, &story.world.run).unwrap();
    assert_eq!((standing.stands.join(" "), standing.again.join(" ")), ("a b".into(), "c d".into()));
    story.world.retry_onto(newer(&new, 2)).unwrap().unwrap();
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
    story.world.retry_onto(newer(&new, 2)).unwrap().unwrap();
    assert_eq!(story.line(), "ask=gate#2 | paused");
}
