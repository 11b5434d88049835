//! Attempts, retries, lost nodes and unknown outcomes.

use super::story::{RETRY, check};

#[test]
fn a_step_is_retried_until_its_attempts_are_used_up() {
    check(RETRY, &["a fails"], "a=backoff | running");
    check(RETRY, &["a fails", "timer", "a fails", "timer"], "a=running#3 | running");
    check(RETRY, &["a fails", "timer", "a fails", "timer", "a fails"], "a=failed#3 b=skipped | failed");
}

#[test]
fn a_failure_that_is_not_retryable_ends_the_step() {
    check(RETRY, &["a breaks"], "a=failed b=skipped | failed");
}

#[test]
fn retries_that_the_author_wrote_apply_to_every_failure_but_refusals() {
    for written in ["retries: 1", "retry_attempts: 1", "maxAttempts: 2", "retry: {attempts: 2}", "retry: {first: 1s}"] {
        let text = format!("{{name: written, tasks: {{a: {{tool: echo, {written}}}}}}}");
        check(&text, &["a errs"], "a=backoff | running");
        check(&text, &["a breaks"], "a=failed | failed");
    }
    let nodes = r#"{"id": "a", "type": "http", "config": {"url": "http://x.example/", "maxAttempts": 2}}"#;
    let graph = format!(r#"{{"name": "written", "nodes": [{nodes}], "edges": []}}"#);
    check(&graph, &["a answers 404"], "a=backoff | running");
}

#[test]
fn the_author_can_restrict_what_is_retried_and_refusals_never_are() {
    let text = "{name: some, tasks: {a: {url: 'http://x.example/', retry: {attempts: 2, on: [timeout, 404]}}}}";
    check(text, &["a errs"], "a=failed | failed");
    check(text, &["a answers 404"], "a=backoff | running");
    let any = "{name: some, tasks: {a: {tool: echo, retry: {attempts: 2, on: any}}}}";
    check(any, &["a errs"], "a=backoff | running");
    check(any, &["a breaks"], "a=failed | failed");
}

#[test]
fn without_a_retry_of_the_author_tool_errors_are_retried_in_flow_only() {
    check("{name: t, tasks: {a: {tool: echo}}}", &["a errs"], "a=failed | failed");
    let graph = r#"{"name": "g", "nodes": [{"id": "a", "type": "tool", "config": {"tool": "echo"}}], "edges": []}"#;
    check(graph, &["a errs"], "a=failed | failed");
    let flow = "{name: f, flow: {start: {tool: echo, done: true}}}";
    check(flow, &["start errs", "+30s", "start errs", "+119s"], "start=backoff#2 | running");
    check(flow, &["start errs", "+30s", "start errs", "+120s", "start errs"], "start=failed#3 | failed");
    check(flow, &["start breaks"], "start=failed | failed");
}

#[test]
fn the_third_and_later_pauses_of_a_flow_are_five_minutes() {
    let flow = "{name: f, flow: {start: {tool: echo, retries: 4, done: true}}}";
    let twice = ["start errs", "+30s", "start errs", "+120s", "start errs"];
    let tell = |more: &[&str], expected: &str| check(flow, &[&twice[..], more].concat(), expected);
    tell(&["+299s"], "start=backoff#3 | running");
    tell(&["+300s", "start errs", "+299s"], "start=backoff#4 | running");
    tell(&["+300s", "start errs", "+300s"], "start=running#5 | running");
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
fn a_lost_node_does_not_count_as_an_attempt() {
    check(
        RETRY,
        &["a lost", "a lost", "a fails", "timer", "a fails", "timer", "a fails"],
        "a=failed#5 b=skipped | failed",
    );
}

#[test]
fn a_step_whose_node_is_lost_three_times_in_a_row_waits_for_a_person() {
    check(RETRY, &["a lost", "a lost"], "a=running#3 | running");
    check(RETRY, &["a lost", "a lost", "a lost", "~a lost"], "a=unsure#3 | paused");
    check(RETRY, &["a lost", "a lost", "a lost", "a again"], "a=running#4 | running");
    check(RETRY, &["a lost", "a lost", "a lost", "a happened"], "a=success#3 b=running | running");
    check(RETRY, &["a lost", "a lost", "a lost", "a given up"], "a=failed#3 b=skipped | failed");
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
