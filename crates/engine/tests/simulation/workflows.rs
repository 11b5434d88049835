//! The simulated workflows: small, and together they use every kind of wait, join, loop and failure.
//!
//! All waits are short: what is proven does not depend on how long they are, and virtual time costs polls.

/// A workflow; where there is a second text it is a later version of it.
pub struct Workflow {
    pub name: &'static str,
    pub text: &'static str,
    pub newer: Option<&'static str>,
    /// How many of its runs may be under way for one key.
    pub limit: Option<usize>,
    /// Started by clients; the others only as children.
    pub entry: bool,
}

const fn plain(name: &'static str, text: &'static str) -> Workflow {
    Workflow { name, text, newer: None, limit: None, entry: true }
}

const fn child(name: &'static str, text: &'static str) -> Workflow {
    Workflow { entry: false, ..plain(name, text) }
}

const fn limited(name: &'static str, limit: usize, text: &'static str) -> Workflow {
    Workflow { limit: Some(limit), ..plain(name, text) }
}

/// Runs with this retention are gone before a simulation ends.
pub const SHORT_RETENTION: &str = "retention: 15s";

pub const ALL: &[Workflow] = &[
    Workflow {
        newer: Some(
            r#"
name: chain
retention: 900d
output: {last: "{{tasks.d.body.n}}"}
tasks:
  a: {tool: work, args: {tag: "{{input.tag}}"}, retry: {attempts: 3, backoff: fixed, first: 1s}, timeout: 4s}
  b: {needs: a, tool: work, args: {m: "{{tasks.a.body.n}}"}, retry: {attempts: 2, first: 500ms}, timeout: 4s}
  c: {needs: b, url: "https://x.test/c", body: {n: "{{tasks.b.body.n}}"}, retries: 0, timeout: 4s}
  d: {needs: [b, c], tool: work, timeout: 4s}
"#,
        ),
        ..plain(
            "chain",
            r#"
name: chain
retention: 900d
output: {last: "{{tasks.c.body.n}}"}
tasks:
  a: {tool: work, args: {tag: "{{input.tag}}"}, retry: {attempts: 3, backoff: fixed, first: 1s}, timeout: 4s}
  b: {needs: a, tool: work, args: {n: "{{tasks.a.body.n}}"}, retry: {attempts: 2, first: 500ms}, timeout: 4s}
  c: {needs: b, url: "https://x.test/c", body: {n: "{{tasks.b.body.n}}"}, retries: 0, timeout: 4s}
"#,
        )
    },
    Workflow {
        newer: Some(
            r#"
name: repaired
retention: 900d
tasks:
  a: {tool: sure}
  b: {needs: a, tool: work, retries: 2, timeout: 3s}
"#,
        ),
        ..plain(
            "repaired",
            r#"
name: repaired
retention: 900d
tasks:
  a: {tool: sure}
  b: {needs: a, tool: fail, timeout: 3s}
"#,
        )
    },
    Workflow {
        newer: Some(
            r#"
name: diamond
retention: 900d
tasks:
  a: {tool: sure}
  b: {needs: a, tool: work, timeout: 3s, retries: 1}
  c: {needs: a, tool: work, args: {new: true}, timeout: 3s, retries: 1}
  d: {needs: a, sleep: 1s}
  join: {needs: [b, c, d], tool: work, retries: 2, timeout: 3s}
"#,
        ),
        ..plain(
            "diamond",
            r#"
name: diamond
retention: 900d
tasks:
  a: {tool: sure}
  b: {needs: a, tool: work, timeout: 3s, retries: 1}
  c: {needs: a, tool: work, timeout: 3s, retries: 1}
  d: {needs: a, tool: work, timeout: 3s, retries: 0}
  join: {needs: [b, c, d], tool: work, retries: 2, timeout: 3s}
"#,
        )
    },
    Workflow {
        newer: Some(
            r#"
name: items
retention: 900d
tasks:
  each:
    for_each: [1, 2, 3, 4, 5]
    max_parallel: 2
    on_item_error: continue
    output: "{{tasks.two.body.n ?? 0}}"
    tasks:
      one: {tool: work, args: {i: "{{item}}"}, retries: 1, timeout: 2s}
      two: {needs: one, tool: work, args: {n: "{{tasks.one.body.n}}"}, retries: 0, timeout: 2s}
  other: {needs: each, tool: work, timeout: 2s}
"#,
        ),
        ..plain(
            "items",
            r#"
name: items
retention: 900d
output: "{{tasks.each.body}}"
tasks:
  each:
    for_each: [1, 2, 3, 4, 5]
    max_parallel: 2
    on_item_error: continue
    output: "{{tasks.two.body.n ?? 0}}"
    tasks:
      one: {tool: work, args: {i: "{{item}}"}, retries: 1, timeout: 2s}
      two: {needs: one, tool: work, args: {n: "{{tasks.one.body.n}}"}, retries: 0, timeout: 2s}
  join: {needs: each, tool: work, timeout: 2s}
"#,
        )
    },
    Workflow {
        newer: Some(
            r#"
name: nested-items
retention: 900d
tasks:
  outer:
    for_each: [[1, 2], [3, 4]]
    tasks:
      inner:
        for_each: "{{item}}"
        tasks:
          call: {tool: work, args: {i: "{{item}}"}, retries: 1, timeout: 2s}
  join: {needs: outer, tool: sure}
"#,
        ),
        ..plain(
            "nested-items",
            r#"
name: nested-items
retention: 900d
tasks:
  outer:
    for_each: [[1, 2], [3], []]
    max_parallel: 3
    tasks:
      inner:
        for_each: "{{item}}"
        tasks:
          nap: {sleep: 300ms}
          call: {needs: nap, tool: work, args: {i: "{{item}}"}, retries: 1, timeout: 2s}
      after: {needs: inner, tool: sure}
  join: {needs: outer, tool: sure}
"#,
        )
    },
    plain(
        "handled",
        r#"
name: handled
retention: 900d
tasks:
  charge: {url: "https://x.test/charge", retries: 0, timeout: 2s}
  ship: {needs: charge, tool: work, timeout: 2s, retries: 0}
  sorry: {needs: charge, if: "tasks.charge.status != 'success'", tool: work, retries: 3, timeout: 2s}
  log: {needs: [ship, sorry], if: "tasks.ship.status != 'nothing'", tool: sure}
"#,
    ),
    plain(
        "any",
        r#"
name: any
retention: 900d
nodes:
  - {id: s, type: start}
  - {id: fast, type: tool, data: {tool: work, maxAttempts: 2, timeout: 2s}}
  - {id: slow, type: delay, data: {delaySeconds: 2}}
  - {id: slower, type: tool, data: {tool: work, maxAttempts: 1, timeout: 5s}}
  - {id: join, type: tool, data: {tool: work, joinMode: any, maxAttempts: 2, timeout: 2s}}
  - {id: e, type: end}
edges:
  - {source: s, target: fast}
  - {source: s, target: slow}
  - {source: s, target: slower}
  - {source: fast, target: join}
  - {source: slow, target: join}
  - {source: slower, target: join}
  - {source: join, target: e}
"#,
    ),
    plain(
        "cycle",
        r#"
name: cycle
retention: 900d
max_iterations: 6
nodes:
  - {id: s, type: start}
  - {id: try, type: http, data: {url: "https://x.test", outputVariable: r, maxAttempts: 2, timeout: 2s}}
  - {id: ok, type: condition, data: {branches: [{id: good, condition: "ctx.r.state == 'done'"}], defaultBranch: again}}
  - {id: wait, type: delay, data: {delaySeconds: 1}}
  - {id: e, type: end}
edges:
  - {source: s, target: try}
  - {source: try, target: ok}
  - {source: ok, target: e, sourceHandle: good}
  - {source: ok, target: wait, sourceHandle: again}
  - {source: wait, target: try}
"#,
    ),
    plain(
        "loop-node",
        r#"
name: loop-node
retention: 900d
nodes:
  - {id: s, type: start}
  - {id: rows, type: loop, data: {sourceVariable: input.rows, itemVariable: row, outputVariable: out}}
  - {id: work, type: tool, data: {tool: work, args: {row: "{{ctx.row}}"}, maxAttempts: 2, timeout: 2s}}
  - {id: rescue, type: tool, data: {tool: sure}}
  - {id: e, type: end, data: {outputParameters: [{name: out, sourceVariable: out}]}}
edges:
  - {source: s, target: rows}
  - {source: rows, target: work, sourceHandle: loop}
  - {source: work, target: rows}
  - {source: work, target: rescue, sourceHandle: error}
  - {source: rescue, target: rows}
  - {source: rows, target: e, sourceHandle: done}
"#,
    ),
    plain(
        "abort",
        r#"
name: abort
retention: 900d
nodes:
  - {id: s, type: start}
  - {id: a, type: tool, data: {tool: work, errorHandling: fail_workflow, maxAttempts: 1, timeout: 2s}}
  - {id: b, type: tool, data: {tool: work, maxAttempts: 3, timeout: 5s}}
  - {id: c, type: delay, data: {delaySeconds: 4}}
  - {id: d, type: workflow, data: {workflow: leaf}}
  - {id: e, type: end}
edges:
  - {source: s, target: a}
  - {source: s, target: b}
  - {source: s, target: c}
  - {source: s, target: d}
  - {source: a, target: e}
  - {source: b, target: e}
  - {source: c, target: e}
  - {source: d, target: e}
"#,
    ),
    plain(
        "poll",
        r#"
name: poll
retention: 900d
max_iterations: 8
flow:
  start: {name: create, tool: sure, next: look}
  look:
    tool: work
    retry: {attempts: 2, backoff: fixed, first: 1s}
    timeout: 2s
    branch: [{if: "result.state == 'more'", then: pause}, {then: report}]
  pause: {sleep: 1s, next: look}
  report: {tool: work, args: {last: "{{steps.look.result.n}}"}, retries: 1, timeout: 2s, on_error: continue}
"#,
    ),
    plain(
        "deploy",
        r#"
name: deploy
retention: 900d
flow:
  start: {name: build, tool: sure, parallel: [tests, scan], join: ask}
  tests: {tool: work, retry: {attempts: 3, backoff: [1s, 2s]}, timeout: 3s}
  scan: {tool: work, on_error: continue, retries: 0, timeout: 3s}
  ask:
    approval: {message: "Deploy {{steps.build.result.n}}?", timeout: 30s}
    branch: [{if: result == approved, then: once-roll-out}, {then: tidy-up}]
  once-roll-out: {tool: work, at_most_once: true, timeout: 2s, done: true}
  tidy-up: {tool: sure, done: true}
"#,
    ),
    plain(
        "stubborn",
        r#"
name: stubborn
retention: 900d
tasks:
  a:
    url: "https://x.test/a"
    retry: {attempts: 6, backoff: exponential, first: 250ms, cap: 3s, jitter: true, on: any}
    timeout: 1s
  b: {tool: fail, retry: {attempts: 3, backoff: fixed, first: 2s}, timeout: 1s}
  c: {needs: [a, b], if: "true", tool: never, retries: 1, timeout: 1s}
  d: {needs: c, if: "tasks.c.status == 'timeout'", tool: sure}
"#,
    ),
    plain(
        "hooks",
        r#"
name: hooks
retention: 900d
tasks:
  tell: {tool: work, args: {callback: "{{wait.hook.url}}"}, retries: 4, timeout: 2s}
  hook: {needs: tell, wait_for_webhook: {timeout: 20s}}
  forever: {wait_for_webhook: true}
  good: {needs: hook, tool: work, args: {got: "{{tasks.hook.body}}"}, timeout: 2s}
  late: {needs: hook, if: "tasks.hook.status == 'timeout'", tool: sure}
"#,
    ),
    plain(
        "hooks-in-items",
        r#"
name: hooks-in-items
retention: 900d
tasks:
  each:
    for_each: ["a", "b"]
    tasks:
      tell: {url: "https://x.test/tell", body: {callback: "{{wait.hook.url}}"}, retries: 3, timeout: 2s}
      hook: {needs: tell, wait_for_webhook: {timeout: 15s}}
      after: {needs: hook, if: "true", tool: sure}
  join: {needs: each, tool: sure}
"#,
    ),
    plain(
        "gates",
        r#"
name: gates
retention: 900d
tasks:
  first:
    approval:
      approvers: [ann]
      message: one
      timeout: 20s
      escalate_to: boss
      escalate_after: 5s
      on_timeout: approve
  two: {approval: {approvers: [ann, bob], message: both, approvals: 2}}
  open: {needs: first, approval: {message: any, timeout: 8s}}
  after: {needs: [two, open], tool: work, retries: 2, timeout: 2s}
  denied: {needs: open, if: "tasks.open.status == 'denied'", tool: sure}
"#,
    ),
    child(
        "leaf",
        r#"
name: leaf
retention: 900d
output: "{{tasks.b.body.n}}"
tasks:
  a: {tool: work, retries: 1, timeout: 2s}
  nap: {needs: a, sleep: 2s}
  b: {needs: nap, tool: work, retries: 1, timeout: 2s}
"#,
    ),
    child(
        "middle",
        r#"
name: middle
retention: 900d
output: "{{tasks.call.body}}"
tasks:
  call: {workflow: leaf, retry: {attempts: 2, backoff: fixed, first: 1s}}
  side: {tool: work, retries: 0, timeout: 2s}
"#,
    ),
    child(
        "sleeper",
        r#"
name: sleeper
retention: 900d
tasks:
  nap: {sleep: 25s}
  tell: {needs: nap, tool: sure}
"#,
    ),
    plain(
        "family",
        r#"
name: family
retention: 900d
tasks:
  one: {workflow: middle, input: {n: 1}, retry: {attempts: 2, backoff: fixed, first: 1s}}
  two: {workflow: leaf, retries: 0}
  missing: {workflow: nobody-wrote-this, retries: 0}
  join: {needs: [one, two, missing], if: "true", tool: work, retries: 1, timeout: 2s}
"#,
    ),
    plain(
        "impatient",
        r#"
name: impatient
retention: 900d
tasks:
  call: {workflow: sleeper, timeout: 4s, retry: {attempts: 2, backoff: fixed, first: 1s}}
  after: {needs: call, if: "true", tool: sure}
"#,
    ),
    plain(
        "many-children",
        r#"
name: many-children
retention: 900d
tasks:
  each:
    for_each: [1, 2, 3]
    on_item_error: continue
    tasks:
      call: {workflow: narrow, input: {key: "same"}, retries: 0}
  join: {needs: each, tool: sure}
"#,
    ),
    limited(
        "narrow",
        1,
        r#"
name: narrow
retention: 900d
concurrency: {limit: 1, key: "{{input.key ?? 'none'}}", when_full: queue}
tasks:
  a: {tool: work, retries: 1, timeout: 3s}
  b: {needs: a, if: "true", sleep: 1s}
"#,
    ),
    limited(
        "queue",
        2,
        r#"
name: queue
retention: 900d
concurrency: {limit: 2, when_full: queue}
tasks:
  a: {tool: work, retries: 1, timeout: 3s}
  gate: {needs: a, if: "true", approval: {message: go, timeout: 6s, on_timeout: approve}}
  b: {needs: gate, tool: work, retries: 0, timeout: 2s}
"#,
    ),
    limited(
        "skip",
        1,
        r#"
name: skip
retention: 900d
concurrency: {limit: 1, key: "{{input.key ?? 'none'}}", when_full: skip}
tasks:
  a: {tool: work, retries: 1, timeout: 3s}
  b: {needs: a, sleep: 3s}
"#,
    ),
    limited(
        "evict",
        1,
        r#"
name: evict
retention: 900d
concurrency: {limit: 1, when_full: cancel_oldest}
tasks:
  a: {tool: work, retries: 1, timeout: 3s}
  call: {workflow: leaf, retries: 0}
  b: {needs: a, if: "true", sleep: 4s}
"#,
    ),
    limited(
        "evicts-its-parent",
        1,
        r#"
name: evicts-its-parent
retention: 900d
concurrency: {limit: 1, when_full: cancel_oldest}
tasks:
  a: {tool: work, retries: 1, timeout: 2s}
  again: {needs: a, if: "input.again ?? true", workflow: evicts-its-parent, input: {again: false}, retries: 0}
"#,
    ),
    plain(
        "once-fail",
        r#"
name: once-fail
retention: 900d
tasks:
  once-a: {tool: work, at_most_once: true, timeout: 2s}
  once-b: {needs: once-a, if: "true", url: "https://x.test/b", at_most_once: true, timeout: 2s}
  after: {needs: [once-a, once-b], if: "true", tool: sure}
"#,
    ),
    plain(
        "once-ask",
        r#"
name: once-ask
retention: 900d
tasks:
  once-a: {tool: work, at_most_once: true, on_unknown: ask, timeout: 2s}
  once-b: {needs: once-a, tool: work, at_most_once: true, on_unknown: ask, timeout: 2s}
  after: {needs: once-b, tool: sure}
"#,
    ),
    plain(
        "expires",
        r#"
name: expires
retention: 900d
max_duration: 7s
tasks:
  a: {tool: work, retries: 5, timeout: 3s}
  call: {workflow: sleeper}
  gate: {needs: a, approval: {message: too late, timeout: 1h}}
  hook: {needs: a, wait_for_webhook: true}
"#,
    ),
    plain(
        "short-lived",
        r#"
name: short-lived
retention: 15s
tasks:
  a: {tool: work, retries: 1, timeout: 2s}
  call: {needs: a, if: "true", workflow: short-leaf, timeout: 2s, retries: 0}
  b: {needs: call, if: "true", tool: sure}
"#,
    ),
    child(
        "short-leaf",
        r#"
name: short-leaf
retention: 15s
tasks:
  a: {tool: work, retries: 0, timeout: 2s}
  b: {needs: a, sleep: 2s}
"#,
    ),
];

/// Takes up every slot, to see how many there are.
pub const PROBE: &str = r#"
name: probe
retention: 900d
tasks:
  each:
    for_each: "{{input.items}}"
    max_parallel: 100
    tasks:
      one: {tool: hold, timeout: 100s}
"#;
