//! Loops and for_each (R5).

use super::story::{EACH, Story, check, check_input, compile, graph};
use serde_json::json;

#[test]
fn a_cycle_repeats_until_an_edge_leaves_it() {
    let text = graph(
        "s:start; poll:tool outputVariable: p; \
         c:condition branches: [{id: again, condition: 'ctx.p.more'}], defaultBranch: out; e",
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
fn for_each_over_no_items_is_an_empty_list() {
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
    let error = json!({"error": {"code": "forbidden", "message": "all[0].work: it was refused"}});
    assert_eq!(story.input_of("after")["args"], json!({"list": [error, "b"]}));
}
