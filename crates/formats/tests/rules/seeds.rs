//! The definitions from the requirements, unchanged, each run to its specified end.

use super::story::{Story, compile};
use serde_json::{Value, json};

struct Seed {
    definition: stepwell_core::definition::Definition,
    input: Value,
}

fn seed(name: &str, input: Value) -> Seed {
    let path = format!("{}/tests/cases/seeds/{name}.json", env!("CARGO_MANIFEST_DIR"));
    Seed { definition: compile(&std::fs::read_to_string(path).unwrap()), input }
}

/// The same with other code, which reads what the test checks: a code step gets only what it names.
fn seed_reading(name: &str, code: &str, input: Value) -> Seed {
    let path = format!("{}/tests/cases/seeds/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap().replace("return ctx.input;", code);
    Seed { definition: compile(&text), input }
}

impl Seed {
    fn tell(&self, events: &[&str]) -> Story<'_> {
        let mut story = Story::start(&self.definition, self.input.clone());
        events.iter().for_each(|event| story.tell(event));
        story
    }

    fn check(&self, events: &[&str], expected: &str) {
        assert_eq!(self.tell(events).line(), expected, "after {events:?}");
    }
}

#[test]
fn order_processing_with_a_good_charge_sends_receipt_and_ships_in_parallel() {
    let seed = seed("order-processing", json!({"order_id": 123}));
    let story = seed.tell(&["charge ok {\"amount\": 42}"]);
    assert_eq!(
        story.line(),
        "charge=success send-receipt=running notify-warehouse=running handle-failure=skipped | running"
    );
    assert_eq!(story.input_of("charge")["body"], json!({"order_id": 123}));
    assert_eq!(story.input_of("send-receipt")["body"], json!({"order_id": 123, "amount": 42}));
    seed.check(
        &["charge ok {\"amount\": 42}", "send-receipt ok", "notify-warehouse ok"],
        "charge=success send-receipt=success notify-warehouse=success handle-failure=skipped | completed",
    );
}

#[test]
fn order_processing_with_a_402_runs_the_failure_path_and_completes() {
    seed("order-processing", json!({"order_id": 123})).check(
        &["charge answers 402", "handle-failure ok"],
        "charge=failed send-receipt=skipped notify-warehouse=skipped handle-failure=success | completed",
    );
}

#[test]
fn a_created_workflow_sends_its_headers_and_retries_as_asked() {
    let seed =
        seed("create-workflow-request", json!({"order_id": 123, "email": "alice@example.com", "token": "sk_live"}));
    let story = seed.tell(&[]);
    assert_eq!(story.input_of("charge")["headers"], json!({"Authorization": "Bearer sk_live"}));
    seed.check(
        &["charge fails", "timer", "charge fails", "timer", "charge fails", "timer"],
        "charge=running#4 | running",
    );
}

#[test]
fn trial_expiry_waits_thirteen_days_and_one_more() {
    let seed = seed("trial-expiry", json!({"user_id": 7}));
    seed.check(&["start-trial ok", "+12d"], "start-trial=success wait-13-days=sleeping | running");
    seed.check(&["start-trial ok", "+13d"], "start-trial=success wait-13-days=success send-reminder=running | running");
    let story = seed.tell(&["start-trial ok", "+13d", "send-reminder ok", "+1d", "expire-trial ok"]);
    assert!(story.line().ends_with("expire-trial=success | completed"), "{}", story.line());
}

#[test]
fn checkout_flow_with_a_callback_fulfils_the_order() {
    let seed = seed("checkout-flow", json!({"amount": 5, "order_id": 1}));
    let story = seed.tell(&[]);
    let url = "https://stepwell.invalid/wh/payment-result";
    assert_eq!(story.input_of("create-checkout")["body"], json!({"amount": 5, "callback_url": url}));
    let events = ["create-checkout ok", "payment-result called {\"status\": \"paid\", \"payment_id\": \"p1\"}"];
    let story = seed.tell(&events);
    assert_eq!(story.input_of("fulfill-order")["body"], json!({"order_id": 1, "payment_id": "p1"}));
    assert_eq!(
        story.line(),
        "create-checkout=success payment-result=success fulfill-order=running handle-timeout=skipped | running"
    );
}

#[test]
fn checkout_flow_without_a_callback_handles_the_timeout() {
    seed("checkout-flow", json!({"amount": 5, "order_id": 1})).check(
        &["create-checkout ok", "+1h", "handle-timeout ok"],
        "create-checkout=success payment-result=timeout fulfill-order=skipped handle-timeout=success | completed",
    );
}

#[test]
fn research_runs_its_three_tools_in_order_though_one_input_is_missing() {
    let seed = seed("research", json!({"topic": "AI safety"}));
    let story = seed.tell(&["search ok \"found\""]);
    assert_eq!(story.input_of("search")["args"], json!({"query": "AI safety"}));
    assert_eq!(story.input_of("summarize")["args"], json!({"id": ""}));
    let story = seed.tell(&["search ok", "summarize ok", "notify ok \"sent\""]);
    assert_eq!(story.line(), "search=success summarize=success notify=success | completed");
    assert_eq!(story.output(), json!("sent"));
}

#[test]
fn branching_follows_the_result_whether_it_is_true_or_the_word() {
    let seed = seed("branching", json!({"title": "t"}));
    for yes in ["check_admin ok [true]", "check_admin ok \"maybe\""] {
        // Neither true nor false: no entry matches, and the error contains the result.
        let story = seed.tell(&[yes]);
        assert!(story.line().ends_with("| failed"), "{}", story.line());
        assert!(story.error_of("check_admin").starts_with("no branch matches the result"));
    }
    seed.check(
        &["check_admin ok \"true\"", "admin_action ok"],
        "check_admin=success admin_action=success user_action=skipped | completed",
    );
    seed.check(
        &["check_admin ok \"false\"", "user_action ok"],
        "check_admin=success admin_action=skipped user_action=success | completed",
    );
}

#[test]
fn parallel_steps_start_together_and_their_join_runs_once_with_their_results() {
    let seed = seed("parallel-join", json!({}));
    seed.check(&[], "start=success b=running c=running d=running | running");
    seed.check(&["d ok", "b ok \"B\""], "start=success b=success c=running d=success | running");
    let story = seed.tell(&["d ok", "b ok \"B\"", "c ok"]);
    assert_eq!(story.input_of("merge")["args"], json!({"b": "B"}));
    seed.check(
        &["d ok", "b ok \"B\"", "c ok", "merge ok"],
        "start=success b=success c=success d=success merge=success | completed",
    );
    seed.check(&["d breaks"], "start=success b=cancelled c=cancelled d=failed merge=cancelled | failed");
}

#[test]
fn a_flow_step_is_retried_after_30_and_120_seconds_and_then_fails_the_run() {
    let seed = seed("research", json!({"topic": "x"}));
    seed.check(&["search fails", "+29s"], "search=backoff | running");
    seed.check(&["search fails", "+30s"], "search=running#2 | running");
    seed.check(&["search fails", "+30s", "search fails", "+119s"], "search=backoff#2 | running");
    seed.check(
        &["search fails", "+30s", "search fails", "+120s", "search fails"],
        "search=failed#3 summarize=cancelled notify=cancelled | failed",
    );
}

#[test]
fn an_approval_gate_holds_the_write_until_someone_approves() {
    let seed = seed("approval", json!({"title": "a", "body": "b"}));
    seed.check(&[], "request_approval=gate | paused");
    seed.check(
        &["request_approval approved", "execute_write ok"],
        "request_approval=success execute_write=success | completed",
    );
    seed.check(&["request_approval denied"], "request_approval=denied execute_write=cancelled | cancelled");
}

#[test]
fn a_gate_that_notifies_someone_is_denied_when_it_times_out() {
    let seed = seed("approval-notify", json!({"id": 1}));
    seed.check(&["read ok"], "read=success confirm=gate | paused");
    seed.check(&["read ok", "+1h"], "read=success confirm=denied write=cancelled | cancelled");
}

#[test]
fn a_diamond_joins_once_with_all_and_once_with_any() {
    seed("diamond-all", json!({})).check(
        &["right ok", "left ok {\"l\": 1}", "join ok"],
        "start=success left=success right=success join=success end=success | completed",
    );
    let any = seed("diamond-any", json!({}));
    any.check(&["right ok"], "start=success left=running right=success join=running | running");
    any.check(
        &["right ok", "join ok", "left ok"],
        "start=success left=success right=success join=success end=success | completed",
    );
}

#[test]
fn an_error_path_is_taken_after_the_last_of_three_attempts() {
    let seed = seed("error-path", json!({}));
    seed.check(&["risky fails", "+1s", "risky fails", "+1s"], "start=success risky=backoff#2 | running");
    seed.check(
        &["risky fails", "+1s", "risky fails", "+2s", "risky fails", "recover ok"],
        "start=success risky=failed#3 recover=success end=skipped | completed",
    );
}

#[test]
fn error_recovery_continues_where_success_would_have() {
    let seed = seed("error-recovery", json!({}));
    seed.check(
        &["risky breaks", "recover ok", "after ok"],
        "start=success risky=failed recover=success after=success end=success | completed",
    );
    seed.check(
        &["risky ok", "after ok"],
        "start=success risky=success recover=skipped after=success end=success | completed",
    );
    let seed = seed_reading("error-recovery", "return ctx.r", json!({}));
    let story = seed.tell(&["risky breaks"]);
    let error = json!({"error": {"code": "forbidden", "message": "it was refused"}});
    assert_eq!(story.input_of("recover")["ctx"]["r"], error);
}

#[test]
fn fail_workflow_fails_the_run_immediately() {
    let story = seed("fail-workflow", json!({}));
    let steps: Vec<String> = story.definition.graph.steps.iter().map(|step| step.def.name.to_string()).collect();
    assert!(steps.contains(&"risky".to_string()), "{steps:?}");
    let story = story.tell(&["risky breaks"]);
    assert!(story.line().ends_with("| failed"), "{}", story.line());
}

#[test]
fn a_loop_runs_its_items_one_by_one_and_collects_the_results() {
    let seed = seed_reading("loop", "return [ctx.item, ctx.i]", json!({"items": ["a", "b"]}));
    let story = seed.tell(&["each[0].work ok \"A\""]);
    assert_eq!(story.line(), "start=success each=open each[0].work=success each[1].work=running | running");
    assert_eq!(story.input_of("each[1].work")["ctx"]["item"], json!("b"));
    assert_eq!(story.input_of("each[1].work")["ctx"]["i"], json!(1));
    let story = seed.tell(&["each[0].work ok \"A\"", "each[1].work ok \"B\""]);
    assert!(story.line().contains("end=success"), "{}", story.line());
    assert_eq!(story.output(), json!({"results": [{"work": "A"}, {"work": "B"}]}));
}

#[test]
fn a_loop_with_more_items_than_allowed_fails_and_never_truncates() {
    let items: Vec<u32> = (0..51).collect();
    let story_seed = seed("loop", json!({"items": items}));
    let story = story_seed.tell(&[]);
    assert_eq!(story.line(), "start=success each=failed end=skipped | failed");
    assert_eq!(story.error_of("each"), "51 items; at most 50 are allowed");
}

#[test]
fn a_condition_takes_one_branch_and_a_delay_does_not_block_other_steps() {
    let story_seed = seed("conditional", json!({"amount": 500}));
    let line = story_seed.tell(&[]).line();
    assert!(line.contains("=skipped"), "{line}");
    let delay = seed("delay", json!({}));
    assert!(delay.tell(&[]).line().contains("sleeping"));
}
