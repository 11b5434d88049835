//! The context that code sees, its result, and its errors.

use super::{alone, call, failure, javascript, run, success};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::FailureKind;
use stepwell_engine::StepCall;

async fn check(cases: &[(&str, Value)]) {
    let kinds = javascript(1);
    let ctx = json!({"input": {"items": [{"id": 1}, {"id": "two"}], "n": 3}, "tasks": {"a": {"body": null}}});
    for (code, expected) in cases {
        let reply = success(run(&kinds, call(code, ctx.clone())).await);
        assert_eq!(*reply.body, *expected, "{code}");
    }
}

#[tokio::test]
async fn what_code_returns_is_the_result() {
    check(&[
        ("return ctx.input.items.map(item => item.id);", json!([1, "two"])),
        ("const x = await Promise.resolve(ctx.input.n);\nreturn { x, twice: x * 2 };", json!({"x": 3, "twice": 6})),
        ("return ctx.tasks.a.body", json!(null)),
        ("", json!(null)),
        ("return undefined", json!(null)),
        ("return {a: undefined, b: [undefined]}", json!({"b": [null]})),
        ("return [1.5, -0, 1e21, NaN, 2**53]", json!([1.5, 0, 1e21, null, 9007199254740992u64])),
        ("return new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("return new Date(2026, 0, 1).toISOString()", json!("2026-01-01T00:00:00.000Z")),
        ("return 'grüße \u{1f600}\\u0000'", json!("grüße \u{1f600}\u{0}")),
        ("const later = async () => 7; return later()", json!(7)),
        ("for await (const x of [Promise.resolve(1), 2]) if (x === 2) return x", json!(2)),
        ("return 1 // and no more", json!(1)),
        ("return [...new Set([1, 1, 2])].length + `${Math.max(1, 2)}`", json!("22")),
        ("return structured = 5", json!(5)),
        ("try { null.x } catch (error) { return error.name }", json!("TypeError")),
    ])
    .await;
}

#[tokio::test]
async fn code_cannot_change_what_others_see_of_the_context() {
    let kinds = javascript(1);
    let mine = call(
        "ctx.input.n = 99; ctx.input.items.push(1); delete ctx.tasks; return ctx",
        json!({"input": {"n": 1, "items": []}}),
    );
    let given = mine.input.clone();
    let reply = success(run(&kinds, mine).await);
    assert_eq!(*reply.body, json!({"input": {"n": 99, "items": [1]}}));
    assert_eq!(given["ctx"], json!({"input": {"n": 1, "items": []}}));
}

#[tokio::test]
async fn an_error_names_its_line_and_column_in_the_code() {
    for (code, kind, message) in [
        ("return nothing.here", "javascript_error", "ReferenceError: nothing is not defined (1:8)"),
        ("const a = 1;\n\n  a.b.c;", "javascript_error", "TypeError: cannot read property 'c' of undefined (3:3)"),
        ("const f = () => {\n  throw new Error('no good');\n};\nf();", "javascript_error", "Error: no good (2:13)"),
        ("await null;\nthrow new RangeError('late')", "javascript_error", "RangeError: late (2:11)"),
        ("throw 'just text'", "javascript_error", "just text"),
        ("throw {reason: 7}", "javascript_error", "{\"reason\":7}"),
        ("throw null", "javascript_error", "null"),
        ("await null; const big = 'x'.repeat(1 << 20); throw null", "javascript_error", "null"),
        ("return Promise.reject(null)", "javascript_error", "null"),
        ("throw undefined", "javascript_error", "undefined"),
        ("JSON.parse('{oops')", "javascript_error", "SyntaxError: "),
        ("let a = ;", "syntax_error", "(1:9)"),
        ("const a = 1;\nconst a = 2;", "syntax_error", "(2:"),
        ("return (", "syntax_error", "SyntaxError"),
        ("return 1\0", "syntax_error", ""),
    ] {
        let (failure, _) = failure(alone(code).await);
        println!("{code:?}: {}", failure.message);
        assert_eq!(
            (&*failure.code, failure.retryable, failure.may_have_happened),
            (kind, false, false),
            "{code} {failure:?}"
        );
        assert!(failure.message.contains(message), "{code}: {}", failure.message);
    }
}

#[tokio::test]
async fn a_result_that_is_not_json_is_refused_with_the_reason() {
    for (code, message) in [
        ("return 10n", "it is a BigInt"),
        ("return {a: [{big: 10n}]}", "\"big\" in it is a BigInt"),
        ("return () => 1", "it is a function"),
        ("return {f() {}}", "\"f\" in it is a function"),
        ("return Symbol('x')", "it is a symbol"),
        ("const a = {}; a.a = a; return a", "it contains itself"),
        ("let a = []; for (let i = 0; i < 200; i++) a = [a]; return a", "recursion limit"),
        ("return '\\ud800'", "hex escape"),
    ] {
        let (failure, _) = failure(alone(code).await);
        assert_eq!(&*failure.code, "bad_result", "{code}: {failure:?}");
        assert!(failure.message.contains(message), "{code}: {}", failure.message);
    }
}

#[tokio::test]
async fn a_promise_that_nothing_settles_ends_the_step_at_once() {
    let (failure, _) = failure(alone("await new Promise(() => {})").await);
    assert_eq!((&*failure.code, failure.kind), ("never_finished", FailureKind::Error));
}

#[tokio::test]
async fn what_is_written_to_the_console_is_the_log_of_the_step_even_if_it_fails() {
    let code = "console.log('a', {b: [1n]}, null, undefined, new TypeError('t'));
        console.warn('careful'); console.error(Symbol('s')); console.debug(() => 1); console.info('\\ud800');";
    let expected = json!([
        {"level": "info", "text": "a {\"b\":[\"1n\"]} null undefined TypeError: t"},
        {"level": "warn", "text": "careful"},
        {"level": "error", "text": "Symbol(s)"},
        {"level": "debug", "text": "() => 1"},
        {"level": "info", "text": "\u{fffd}"},
    ]);
    let reply = success(alone(code).await);
    assert_eq!((*reply.body == Value::Null, reply.log.as_deref()), (true, Some(&expected)));
    let (_, reply) = failure(alone(&format!("{code} throw 1")).await);
    let reply = reply.unwrap();
    assert_eq!((&*reply.body, reply.log.as_deref()), (&Value::Null, Some(&expected)));
    assert_eq!(success(alone("return 1").await).log, None);
}

#[tokio::test]
async fn a_log_without_end_is_cut_off_and_the_step_goes_on() {
    let reply = success(alone("for (let i = 0; i < 100000; i++) console.log('line ' + i); return 'done'").await);
    let log = reply.log.unwrap();
    assert_eq!((*reply.body == json!("done"), log.as_array().unwrap().len()), (true, 1_001));
    assert!(log[1_000]["text"].as_str().unwrap().contains("1000 lines"));
}

#[tokio::test]
async fn a_step_without_code_or_context_is_refused() {
    let kinds = javascript(1);
    for (input, what) in [(json!({"ctx": {}}), "code"), (json!({"code": "return 1"}), "context")] {
        let (failure, _) = failure(run(&kinds, StepCall { input: Arc::new(input), ..call("", json!({})) }).await);
        assert_eq!((&*failure.code, failure.retryable), ("bad_input", false));
        assert!(failure.message.ends_with(&format!("has no {what}")), "{}", failure.message);
    }
}
