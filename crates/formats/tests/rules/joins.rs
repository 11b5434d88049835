//! When a step runs and when it is skipped (R1–R3).

use super::story::{DIAMOND, check, check_input, graph};
use serde_json::json;

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
fn a_failure_is_handled_if_an_if_let_a_step_run() {
    check(
        HANDLED,
        &["charge fails", "sorry ok"],
        "charge=failed receipt=skipped sorry=success after=skipped | completed",
    );
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
fn a_skip_propagates_down_to_the_next_if() {
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

#[test]
fn an_all_join_after_a_condition_runs_when_the_taken_side_arrives() {
    let text = graph(
        "s:start; c:condition branches: [{id: yes, condition: 'input.go'}], defaultBranch: no; a; b; j",
        "s>c c.yes>a c.no>b a>j b>j",
    );
    check_input(
        &text,
        json!({"go": true}),
        &["a ok", "j ok"],
        "s=success c=success a=success b=skipped j=success | completed",
    );
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
fn an_error_edge_handles_a_failure_and_the_other_edge_is_untaken() {
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
fn fail_workflow_ends_the_run_immediately_and_cancels_the_rest() {
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

#[test]
fn a_condition_in_tasks_returns_its_choice_and_its_dependents_decide() {
    let text = "
name: choice
tasks:
  size: {condition: [{id: big, if: input.n > 10}, {id: small}]}
  lift: {needs: size, if: tasks.size.body == 'big', tool: echo}
  carry: {needs: size, if: tasks.size.body == 'small', tool: echo}
  note: {needs: size, tool: echo}
";
    check_input(text, json!({"n": 50}), &[], "size=success lift=running carry=skipped note=running | running");
    check_input(text, json!({"n": 5}), &[], "size=success lift=skipped carry=running note=running | running");
}
