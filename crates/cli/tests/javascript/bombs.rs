//! Code that does not end, or uses up memory: it is stopped in time with the right error, and other steps continue.

use super::{call, failure, javascript, run, success};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stepwell_core::event::FailureKind;
use stepwell_engine::StepCall;

const LIMIT: Duration = Duration::from_secs(1);
/// From the limit to the result, on a busy machine. Code that is not stopped never ends.
const LEEWAY: Duration = Duration::from_secs(30);

const LATE: [(&str, &str); 13] = [
    ("a tight loop", "while (true) {}"),
    ("one that catches everything", "while (true) { try { while (true) {} } catch {} finally { continue } }"),
    ("one of microtasks", "while (true) await null"),
    ("a catastrophic regex", "return /^(a+)+$/.test('a'.repeat(40) + 'b')"),
    ("join of nothing", "const a = []; a.length = 4294967295; return a.join('').length"),
    ("a sparse reverse", "const a = []; a.length = 4294967295; a[0] = 1; a.reverse(); return 1"),
    ("a slice of nothing", "return Array.prototype.slice.call({length: 2 ** 32 - 1}).length"),
    ("indexOf in a loop", "const s = 'a'.repeat(1 << 20); while (true) s.indexOf('b')"),
    ("a big integer as text", "while (true) (3n ** (1n << 19n)).toString()"),
    (
        "a sort that never compares well",
        "const a = Array(1e6).fill(0).map((_, i) => i); while (true) a.sort(() => Math.random() - 0.5)",
    ),
    ("a getter that loops", "return {get a() { while (true) {} }}"),
    ("toJSON that loops", "return {toJSON() { while (true) {} }}"),
    ("an error whose text loops", "throw {toJSON() { while (true) {} }}"),
];

const FULL: [(&str, &str); 4] = [
    ("a list that grows", "const a = []; while (true) a.push(new Array(1000).fill(1))"),
    ("buffers", "const a = []; while (true) a.push(new ArrayBuffer(1 << 20).slice(0))"),
    ("a map that grows", "const m = new Map(); for (let i = 0; ; i++) m.set(i, {i})"),
    ("promises that wait", "const all = []; while (true) all.push(new Promise(() => {}))"),
];

/// The language itself does not go that far.
const HUGE: [(&str, &str); 2] = [
    ("text that doubles", "let s = 'x'; while (true) s += s"),
    ("one huge buffer", "return new ArrayBuffer(2 ** 31).byteLength"),
];

const DEEP: [(&str, &str); 3] = [
    ("recursion", "const f = () => f() + 1; return f()"),
    ("recursion over a getter", "const o = {get a() { return this.a }}; return o.a"),
    ("recursion of a proxy", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x"),
];

/// Enough to come to any other limit.
const LONG: Duration = Duration::from_secs(60);

fn limited(code: &str) -> StepCall {
    StepCall { timeout: LIMIT, ..call(code, json!({})) }
}

async fn check(cases: &[(&str, &str)], codes: &[&str], timeout: Duration) {
    let kinds = javascript(1);
    for (name, code) in cases {
        let begun = Instant::now();
        let (failure, _) = failure(run(&kinds, StepCall { timeout, ..call(code, json!({})) }).await);
        let took = begun.elapsed();
        println!("{name}: {} after {} ms: {}", failure.code, took.as_millis(), failure.message);
        assert!(codes.contains(&&*failure.code), "{name}: {failure:?}");
        assert!(!failure.retryable && took < timeout + LEEWAY, "{name}: {failure:?} after {took:?}");
        if &*failure.code == "timeout" {
            assert_eq!(failure.kind, FailureKind::Timeout);
        }
        // There is a worker for the next evaluation in any case.
        assert_eq!(*success(run(&kinds, call("return 1", json!({}))).await).body, json!(1), "after {name}");
    }
}

#[tokio::test]
async fn what_does_not_end_is_stopped_at_its_limit() {
    check(&LATE, &["timeout"], LIMIT).await;
}

#[tokio::test]
async fn what_takes_too_much_memory_is_stopped() {
    check(&FULL, &["memory_limit"], LONG).await;
    check(&HUGE, &["javascript_error"], LONG).await;
}

#[tokio::test]
async fn what_calls_itself_too_deep_is_stopped() {
    check(&DEEP, &["stack_limit"], LONG).await;
}

#[tokio::test]
async fn a_result_beyond_the_limit_is_refused() {
    check(&[("a long text", "return 'x'.repeat(5 << 20)")], &["output_too_large"], LONG).await;
}

#[tokio::test]
async fn memory_is_what_the_step_says() {
    let kinds = javascript(1);
    let with = |memory: u64| StepCall {
        input: Arc::new(json!({"code": "return new Array(2e6).fill(1.5).length", "ctx": {}, "memory": memory})),
        ..call("", json!({}))
    };
    assert_eq!(&*failure(run(&kinds, with(8 << 20)).await).0.code, "memory_limit");
    assert_eq!(*success(run(&kinds, with(128 << 20)).await).body, json!(2_000_000));
}

#[tokio::test]
async fn what_was_logged_before_a_bomb_is_kept() {
    let kinds = javascript(1);
    for code in [
        "console.log('before'); while (true) {}",
        "console.log('before'); const a = []; a.length = 4294967295; a.join('')",
    ] {
        let (_, reply) = failure(run(&kinds, limited(code)).await);
        assert_eq!(reply.unwrap().log.unwrap()[0]["text"], "before", "{code}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_steps_go_on_beside_bombs() {
    let kinds = javascript(std::thread::available_parallelism().unwrap().get());
    let bombs: Vec<_> = LATE[..4]
        .iter()
        .map(|(_, code)| {
            let (kinds, call) = (kinds.clone(), StepCall { timeout: LONG, ..limited(code) });
            tokio::spawn(async move { run(&kinds, call).await })
        })
        .collect();
    let tool = kinds.get("tool").unwrap();
    let began = Instant::now();
    for n in 0..2_000 {
        let input = Arc::new(json!({"tool": "echo", "args": {"value": n}}));
        success(tool.run(StepCall { input, ..call("", json!({})) }).await);
        tokio::task::yield_now().await;
    }
    println!("2,000 calls beside bombs on every worker took {:?}", began.elapsed());
    // None of the calls waited for the end of a bomb.
    assert!(bombs.iter().all(|bomb| !bomb.is_finished()));
    bombs.iter().for_each(tokio::task::JoinHandle::abort);
}
