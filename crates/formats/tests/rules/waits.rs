//! Sleeps, webhook waits, gates and child runs.

use super::story::{GATE, RETRY, Story, check, compile, graph};
use serde_json::json;

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
fn an_early_call_is_kept_and_a_second_one_is_ignored() {
    check(
        HOOK,
        &["paid called {\"id\": 7}", "~paid called {\"id\": 8}", "first ok"],
        "first=success paid=success ship=running gone=skipped | running",
    );
}

#[test]
fn a_wait_without_a_call_times_out_and_that_is_handled() {
    check(HOOK, &["first ok", "+1h", "gone ok"], "first=success paid=timeout ship=skipped gone=success | completed");
}

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
fn a_denial_together_with_a_failure_fails_the_run() {
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
fn several_people_must_approve_and_each_counts_once() {
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

#[test]
fn a_child_run_ends_its_step_and_is_cancelled_with_its_parent() {
    let text = "{name: p, tasks: {kid: {workflow: other, input: {a: 1}}, b: {needs: kid, tool: echo}}}";
    check(text, &["kid ok"], "kid=success b=running | running");
    check(text, &["kid breaks"], "kid=failed b=skipped | failed");
    check(text, &["cancel"], "kid=cancelled b=cancelled | cancelled");
}
