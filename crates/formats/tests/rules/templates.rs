//! Templates and outputs in a run.

use super::story::{RETRY, Story, check, compile};
use serde_json::json;

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
fn the_output_of_a_run_comes_from_the_definition() {
    let text = "{name: o, output: {sum: '{{tasks.a.body.n}}'}, tasks: {a: {tool: echo}}}";
    let definition = compile(text);
    let mut story = Story::start(&definition, json!({}));
    story.tell("a ok {\"n\": 5}");
    assert_eq!(story.output(), json!({"sum": 5}));
}

#[test]
fn an_output_that_cannot_be_resolved_fails_the_run() {
    let text = "{name: o, output: {sum: '{{tasks.a.body.n}}'}, tasks: {a: {tool: echo}}}";
    check(text, &["a ok {}"], "a=success | failed");
}

#[test]
fn a_value_in_a_url_is_encoded_and_cannot_climb() {
    let text = "{name: u, tasks: {a: {url: 'https://x.test/v1/{{input.id}}?q={{input.q}}'}}}";
    let definition = compile(text);
    let story = Story::start(&definition, json!({"id": "x/../y", "q": "1&z=2#f"}));
    assert_eq!(story.input_of("a")["url"], "https://x.test/v1/x%2F..%2Fy?q=1%26z%3D2%23f");
    let story = Story::start(&definition, json!({"id": "..", "q": ""}));
    assert_eq!(story.line(), "a=template_error | failed");
}
