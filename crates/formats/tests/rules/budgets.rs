//! What a transition, and the payloads of a run, may cost. Every story also folds the log and restores a snapshot after
//! each event, so what is left to decide follows from the state.

use super::story::{EACH, Story, compile};
use serde_json::json;
use stepwell_core::fact::Fact;
use stepwell_core::plan::Budget;

const WIDE: &str = "
name: wide
tasks:
  a: {tool: echo}
  b: {tool: echo}
  c: {tool: echo}
  end: {needs: [a, b, c], tool: echo}
";

/// Items that stop at a failure and all run at once.
const STOPS: &str = "
name: stops
tasks:
  all:
    for_each: '{{input.items}}'
    max_parallel: 10
    on_item_error: stop
    tasks:
      work: {tool: echo, retries: 0}
";

const COPIES: &str = "
name: copies
tasks:
  all:
    for_each: '{{input.items}}'
    max_parallel: 10000
    tasks:
      work: {tool: echo, args: {text: '{{input.text}}'}}
";

fn decisions(decisions: u32) -> Budget {
    Budget { decisions, ..Budget::UNLIMITED }
}

fn check_within(text: &str, budget: Budget, events: &[&str], expected: &str) {
    let definition = compile(text);
    let mut story = Story::start_within(&definition, json!({"items": [1, 2, 3]}), budget);
    events.iter().for_each(|event| story.tell(event));
    assert_eq!(story.line(), expected, "after {events:?}");
}

#[test]
fn a_transition_that_is_cut_goes_on_in_the_next_one() {
    check_within(WIDE, decisions(2), &[], "a=running b=running | running");
    check_within(WIDE, decisions(2), &["continue"], "a=running b=running c=running | running");
    check_within(WIDE, decisions(2), &["continue", "~continue"], "a=running b=running c=running | running");
    // Any event continues with what is left, and so does the timer if nothing else happens.
    check_within(WIDE, decisions(2), &["a ok"], "a=success b=running c=running | running");
    check_within(WIDE, decisions(2), &["+10s"], "a=running b=running c=running | running");
}

#[test]
fn a_run_can_be_cancelled_and_retried_in_the_middle_of_its_decisions() {
    let cancelled = "a=cancelled b=cancelled c=cancelled end=cancelled | cancelled";
    check_within(WIDE, decisions(1), &["cancel", "~continue"], cancelled);
    check_within(WIDE, decisions(1), &["cancel", "retry", "continue"], "a=running#2 b=running | running");
    check_within(WIDE, decisions(1), &["expire"], "a=cancelled b=cancelled c=cancelled end=cancelled | timeout");
}

#[test]
fn the_items_that_are_due_are_opened_though_one_failed_before() {
    let all = "all=failed all[0].work=failed all[1].work=success all[2].work=success | failed";
    let unlimited = ["all[0].work breaks", "all[1].work ok", "all[2].work ok"];
    check_within(STOPS, Budget::UNLIMITED, &unlimited, all);
    // The first item fails while the last one is not open yet.
    let cut = ["continue", "continue", "all[0].work breaks", "continue", "continue", "continue", "continue"];
    let cut: Vec<&str> = cut.into_iter().chain(["all[1].work ok", "all[2].work ok"]).collect();
    check_within(STOPS, decisions(1), &cut, all);
}

#[test]
fn a_retry_keeps_the_items_that_succeeded_and_opens_those_that_were_left() {
    let events = ["continue", "continue", "all[0].work ok 1", "cancel", "retry", "continue", "continue"];
    let line = "all=open all[0].work=success all[1].work=running | running";
    check_within(EACH, decisions(1), &events, line);
}

#[test]
fn a_large_text_in_every_item_ends_the_run_before_it_is_copied_often() {
    let text = "x".repeat(100_000);
    let items: Vec<u32> = (0..10_000).collect();
    let definition = compile(COPIES);
    let budget = Budget { bytes: 250_000, run_bytes: 2_000_000, ..Budget::default() };
    let mut story = Story::start_within(&definition, json!({"items": items, "text": text}), budget);
    let mut transitions = 1;
    while !story.world.run.status.is_terminal() {
        let before = story.world.run.values.weight();
        story.tell("continue");
        let added = story.world.run.values.weight() - before;
        assert!(added < 250_000 + 2 * 100_100, "one transition added {added} bytes");
        transitions += 1;
    }
    let failure = story.world.run.failure.clone().unwrap();
    assert_eq!(&*failure.code, "run_too_large");
    assert_eq!(story.world.run.status.name(), "failed");
    let started = story.world.log.iter().filter(|(_, fact)| matches!(fact, Fact::Entered { .. })).count();
    assert!(started < 25 && transitions > 3, "{started} steps started in {transitions} transitions");
    // It says the same when it is retried, and can be read and restored throughout.
    story.tell("retry");
    assert_eq!(&*story.world.run.failure.clone().unwrap().code, "run_too_large");
}

#[test]
fn reading_much_ends_a_transition_too() {
    let text = "
name: reads
tasks:
  a: {tool: echo, if: 'contains(input.text, \"y\")'}
  b: {tool: echo, if: 'contains(input.text, \"y\")'}
  c: {tool: echo, if: 'len(input.text) > 5'}
";
    let definition = compile(text);
    let budget = Budget { work: 60_000, ..Budget::UNLIMITED };
    let mut story = Story::start_within(&definition, json!({"text": "x".repeat(50_000)}), budget);
    assert_eq!(story.line(), "a=skipped b=skipped | running");
    story.tell("continue");
    assert_eq!(story.line(), "a=skipped b=skipped c=running | running");
}

#[test]
fn a_run_has_a_bounded_number_of_steps_in_its_items() {
    let steps: String = (1..5_000).map(|n| format!("      s{n}: {{needs: s0, tool: echo}}\n")).collect();
    let text = format!(
        "name: heavy\ntasks:\n  all:\n    for_each: '{{{{input.items}}}}'\n    max_parallel: 1000\n    tasks:\n      \
         s0: {{tool: echo}}\n{steps}"
    );
    let definition = compile(&text);
    let items: Vec<u32> = (0..1_000).collect();
    let story = Story::start(&definition, json!({"items": items}));
    let failure = story.world.run.failure.clone().unwrap();
    assert_eq!(&*failure.code, "too_many_items");
    assert_eq!(story.world.running.len(), 0);
    let opened = story.world.log.iter().filter(|(_, fact)| matches!(fact, Fact::Opened { .. })).count();
    assert_eq!(opened, 99, "{}", failure.message);
}
