//! What code cannot reach: the machine, the host's functions, and other evaluations.

use super::{call, javascript, run, success};
use serde_json::{Value, json};
use stepwell_core::event::Outcome;

/// All on one worker, one after the other: what one leaves behind the next would find.
async fn check(cases: &[(&str, Value)]) {
    let kinds = javascript(1);
    for (code, expected) in cases {
        let reply = success(run(&kinds, call(code, json!({"input": {"x": 1}}))).await);
        assert_eq!(*reply.body, *expected, "{code}");
    }
}

#[tokio::test]
async fn code_finds_the_language_and_a_console_and_nothing_of_a_host() {
    let host =
        "['process', 'require', 'module', 'std', 'os', 'bjson', 'scriptArgs', 'print', 'load', 'loadScript', 'gc',
        'fetch', 'secrets', 'XMLHttpRequest', 'WebSocket', 'Deno', 'Bun', 'setTimeout', 'setInterval', 'Worker',
        'WebAssembly',
        'navigator', 'performance', 'global', 'window', 'self', '__loadScript', 'Java', 'log', 'ask', 'mark']";
    let probe = format!("return {host}.filter(name => name in globalThis)");
    check(&[
        (probe.as_str(), json!([])),
        ("return [typeof Promise, typeof Proxy, typeof JSON]", json!(["function", "function", "object"])),
        ("return Object.keys(globalThis)", json!([])),
        ("return Object.keys(console)", json!(["log", "info", "warn", "error", "debug"])),
    ])
    .await;
}

#[tokio::test]
async fn walks_over_constructors_end_in_the_same_empty_place() {
    let reached =
        |expression: &str| format!("try {{ return String({expression}) }} catch (error) {{ return error.name }}");
    let cases = [
        "this.constructor.constructor('return process')()",
        "ctx.constructor.constructor('return process')()",
        "(() => {}).constructor('return process')()",
        "(async () => {}).constructor('return process')()()",
        "console.log.constructor('return process')()",
        "console.log.constructor.constructor('return require')()",
        "Function('return process')()",
        "new Function('return this.process.env')()",
        "eval('process')",
        "(0, eval)('require(\"fs\")')",
        "Reflect.construct(Function, ['return process'])()",
        "Object.getPrototypeOf(async function* () {}).constructor('return os')().next().value()",
        "console.log.caller.arguments[0]",
        "(function f() { return f.caller.arguments })()",
        "Error.prepareStackTrace.constructor('return std')()",
    ];
    let kinds = javascript(1);
    for case in cases {
        let reply = success(run(&kinds, call(&reached(case), json!({"input": {}}))).await);
        let found = reply.body.as_str().unwrap();
        assert!(["ReferenceError", "TypeError"].contains(&found), "{case}: {found}");
    }
}

#[tokio::test]
async fn modules_cannot_be_loaded() {
    let kinds = javascript(1);
    for name in ["fs", "os", "std", "qjs:os", "/etc/passwd", "file:///etc/passwd", "http://localhost/x.js", "./x.js"] {
        let code = format!("try {{ await import({name:?}); return 'loaded' }} catch (error) {{ return 'refused' }}");
        assert_eq!(*success(run(&kinds, call(&code, json!({}))).await).body, json!("refused"), "{name}");
    }
    let outcome = run(&kinds, call("import fs from 'fs'; return fs", json!({}))).await;
    assert!(matches!(outcome, Outcome::Failure { failure, .. } if &*failure.code == "syntax_error"));
}

#[tokio::test]
async fn nothing_of_one_evaluation_is_there_in_the_next() {
    let prepare = "
        globalThis.left = 'here'; var alsoLeft = 1; undeclared = 2;
        Object.prototype.polluted = 'yes'; Array.prototype.map = () => 'hijacked'; ({}).__proto__.toString = () => 'gone';
        JSON.stringify = () => '\"forged\"'; JSON.parse = () => ({forged: true}); Promise.prototype.then = () => {};
        Promise.resolve = () => 1; Map.prototype.get = () => 1; String.prototype.toWellFormed = () => 'forged';
        Function.prototype.call = () => 1; Object.defineProperty = () => 1; globalThis.console = undefined;
        Error.prepareStackTrace = () => 'forged'; Symbol.for('shared').description; delete globalThis.Object;
        Object.freeze; return 'done'";
    let probe = "
        let found = [];
        for (const name of ['left', 'alsoLeft', 'undeclared']) if (name in globalThis) found.push(name);
        if (({}).polluted || 'polluted' in ctx) found.push('prototype');
        if (String({}) !== '[object Object]') found.push('toString');
        if ([1].map(x => x + 1)[0] !== 2) found.push('map');
        if (JSON.stringify([1]) !== '[1]' || JSON.parse('[1]')[0] !== 1) found.push('json');
        if (await Promise.resolve(5).then(x => x + 1) !== 6) found.push('promise');
        if (typeof console.log !== 'function') found.push('console');
        console.log('still here');
        return found";
    let kinds = javascript(1);
    for _ in 0..3 {
        let outcome = run(&kinds, call(prepare, json!({}))).await;
        println!("{outcome:?}");
        let reply = success(run(&kinds, call(probe, json!({}))).await);
        assert_eq!((&*reply.body, reply.log.unwrap()[0]["text"].as_str()), (&json!([]), Some("still here")));
    }
}

#[tokio::test]
async fn odd_objects_stay_among_themselves() {
    check(&[
        ("}); globalThis.left = typeof process; (async () => { return left", json!("undefined")),
        ("return new Proxy({a: 1}, {get: (t, k) => t[k], ownKeys: () => ['a']})", json!({"a": 1})),
        ("return {get a() { return 1 }, toJSON() { return {b: 2} }}", json!({"b": 2})),
        ("return Object.getOwnPropertyDescriptor(ctx, 'input').get === undefined", json!(true)),
        ("return Object.getPrototypeOf(ctx) === Object.prototype", json!(true)),
        ("ctx.__proto__.x = 1; return ({}).x", json!(1)),
        ("return ({}).x === undefined", json!(true)),
        ("return JSON.parse('{\"__proto__\": {\"x\": 1}}').x === undefined", json!(true)),
        ("const r = {then(f) { f('from a thenable') }}; return r", json!("from a thenable")),
        (
            "const o = {}; return [new WeakRef(o).deref() === o, Atomics.load(new Int32Array(new SharedArrayBuffer(4)), 0)]",
            json!([true, 0]),
        ),
        (
            "try { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) } catch (error) { return error.name }",
            json!("TypeError"),
        ),
    ])
    .await;
}
