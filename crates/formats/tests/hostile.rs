//! Hostile documents: whatever the bytes, reading ends quickly and in bounded memory, with a definition or with faults.

use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use stepwell_core::graph::{Dialect, Graph, Kind, Origin, Spec, SpecStep, StepDef};
use stepwell_core::limits;
use stepwell_formats::{Faults, read, read_value};

/// Counts the bytes allocated now, and their peak.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Far more than needed on a busy machine, far less than a bomb would take.
const LONG: Duration = Duration::from_secs(20);
const MUCH: usize = 512 << 20;

fn outcome(text: &[u8], file: &str) -> Result<(), Faults> {
    let result = read(text, Some(file)).map(|_| ());
    if let Err(faults) = &result {
        assert!(!faults.list.is_empty() && faults.list.len() <= limits::MAX_FAULTS);
        let shown = faults.render(file, &String::from_utf8_lossy(text));
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    }
    result
}

/// The code of the first fault, found within the time and memory limits.
fn within_bounds(name: &str, text: &[u8], file: &str) -> &'static str {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let started = Instant::now();
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let found = match outcome(text, file) {
        Ok(()) => "valid",
        Err(faults) => faults.list[0].code,
    };
    let (took, held) = (started.elapsed(), PEAK.load(Ordering::Relaxed).saturating_sub(before));
    println!("{name}: {found} in {took:?}, {} KB", held / 1024);
    assert!(took < LONG, "{name} took {took:?}");
    assert!(held < MUCH, "{name} held {held} bytes");
    found
}

fn check(name: &str, text: &[u8], file: &str, expected: &str) {
    assert_eq!(within_bounds(name, text, file), expected, "{name}");
}

const MEGA: usize = 1_000_000;

#[test]
fn bombs_are_rejected() {
    let tasks = |steps: String| format!("name: t\ntasks:\n{steps}").into_bytes();
    for (open, file) in
        [("[", "a.json"), ("{\"a\":", "a.json"), ("[", "a.yaml"), ("{", "a.yaml"), ("- ", "a.yaml"), ("? ", "a.yaml")]
    {
        let text = open.repeat(if open == "[" && file == "a.json" { MEGA } else { MEGA / 3 });
        let expected = if open == "? " { "bad-key" } else { "limit-depth" };
        check(open, text.as_bytes(), file, expected);
    }
    let deep_keys: String = (0..1_400).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    check("deep keys", deep_keys.as_bytes(), "a.yaml", "limit-depth");
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..20 {
        let of = format!("*a{}, ", n - 1).repeat(10);
        laughs += &format!("a{n}: &a{n} [{}]\n", of.trim_end_matches(", "));
    }
    check("billion laughs", laughs.as_bytes(), "a.yaml", "limit-nodes");
    let long_text = format!("a: &a {}\nb: [{}]\n", "x".repeat(MEGA), "*a, ".repeat(10_000));
    check("one long text many times", long_text.as_bytes(), "a.yaml", "limit-nodes");
    let nested = (1..60).fold(String::from("a0: &a0 [x]\n"), |text, n| text + &format!("a{n}: &a{n} [*a{}]\n", n - 1))
        + "z: [[[[[[[[[[*a59]]]]]]]]]]\n";
    check("depth through aliases", nested.as_bytes(), "a.yaml", "limit-depth");
    check("many values", format!("[{}0]", "0,".repeat(600_000)).as_bytes(), "a.json", "limit-nodes");
    check("many values", format!("[{}0]", "0,".repeat(600_000)).as_bytes(), "a.yaml", "limit-nodes");
    for pattern in ["0,", ": ", "!a ", "a: b, "] {
        let indicators = pattern.bytes().filter(|b| b",:!".contains(b)).count();
        let text = format!("[{}", pattern.repeat(399_000 / indicators));
        assert_ne!(within_bounds(pattern, text.as_bytes(), "a.yaml"), "valid");
    }
    check("too many bytes", &vec![b' '; limits::MAX_DOCUMENT_BYTES + 1], "a.yaml", "limit-bytes");
    let long = format!("{{\"name\": {}, \"tasks\": {{\"a\": {{\"sleep\": 1}}}}}}", "9".repeat(MEGA));
    check("a long number", long.as_bytes(), "a.json", "bad-number");
    check("a huge exponent", b"name: 1e999999999999999999999\ntasks: {a: {sleep: 1}}\n", "a.yaml", "bad-number");
    let flawed = format!("{{\"name\": \"t\", \"labels\": [{}0], \"tasks\": {{}}}}", "1e999,".repeat(490_000));
    check("flaws", flawed.as_bytes(), "a.json", "bad-number");
    let repeated = format!("{{\"name\": \"t\", \"labels\": {{{}\"a\": 0}}}}", "\"a\":0,".repeat(490_000));
    check("repeated keys", repeated.as_bytes(), "a.json", "duplicate-key");
    check("not UTF-8", b"name: \xff\xfe\n", "a.yaml", "not-utf8");
    check("UTF-16", b"\xff\xfen\0a\0", "a.yaml", "not-utf8");
    check("NUL", b"{\"name\": \"\0\"}", "a.json", "bad-character");
    check("an unclosed string", format!("{{\"name\": \"{}", "x".repeat(MEGA)).as_bytes(), "a.json", "bad-json");
    check("byte order mark", "\u{feff}name: t\ntasks: {a: {sleep: 1s}}\n".as_bytes(), "a.yaml", "valid");
    check(
        "one line",
        format!(
            "name: t\ntasks: {{{}z: {{sleep: 1s}}}}\n",
            (0..9_000).map(|n| format!("t{n}: {{sleep: 1s}}, ")).collect::<String>()
        )
        .as_bytes(),
        "a.yaml",
        "valid",
    );
    check(
        "many steps",
        &tasks((0..10_001).map(|n| format!("  t{n}: {{sleep: 1s}}\n")).collect()),
        "a.yaml",
        "limit-steps",
    );
}

/// Documents that make the YAML scanner buffer many tokens, and documents that only look like it.
#[test]
fn brackets_are_bounded_and_block_scalars_are_not() {
    let valid = |code: &str| format!("name: t\ntasks:\n  a:\n    {code}\n  b: {{needs: [a], sleep: 1s}}\n");
    let line = "      f({a: [1, 2], b: !x ? y : z}, '&', \"*\");\n";
    for header in ["javascript: |", "javascript: &x |-", "javascript: !!str >2 # why"] {
        let text = valid(&format!("{header}\n{}", line.repeat(1_800_000 / line.len())));
        assert!(text.bytes().filter(|b| b",[]{}:?&*!".contains(b)).count() > 400_000);
        check(header, text.as_bytes(), "a.yaml", "valid");
    }
    let nodes = format!(
        "name: t\nnodes:\n- id: s\n  type: start\n- id: a\n  type: javascript\n  data:\n    code: |\n{}",
        line.repeat(40_000)
    );
    check("nodes", format!("{nodes}edges: [{{source: s, target: a}}]\n").as_bytes(), "a.yaml", "valid");
    let many = "0,".repeat(MEGA);
    let block = format!("a: |\n  {}\nb: [", ",".repeat(MEGA));
    assert_ne!(within_bounds("after a block", format!("{block}{many}").as_bytes(), "a.yaml"), "valid");
    for before in
        ["[", "? [", "- [", "a: [[", "a: {a: |\n [", "a: &a\n  [", "a: [\"x: |\n  \",", "a: \"b\" [", "{a: >\n  {"]
    {
        let document = format!("{before}{many}");
        assert_ne!(within_bounds(before, document.as_bytes(), "a.yaml"), "valid");
    }
    for pattern in [": ", "!a ", "&a ", "*a ", "a: b, ", "? ", "[", "- [", "| [,", "a: |\n [,", "\"\" [,"] {
        for start in ["", "[", "{", "a: ", "a: [", "a: {b: ", "- "] {
            let document = format!("{start}{}", pattern.repeat(3 * MEGA / pattern.len()));
            assert_ne!(within_bounds(&format!("{start}{pattern}"), document.as_bytes(), "a.yaml"), "valid");
        }
    }
    let Err(faults) = outcome(format!("[{many}").as_bytes(), "a.yaml") else { panic!("valid") };
    assert!(faults.list[0].message.contains("400000"), "{faults}");
}

#[test]
fn cron_expressions_are_validated_quickly() {
    let commas = format!("{}1", ",".repeat(250));
    for expression in [",,, * * * *", "* * * * ,", "0 0 31 2,4,6,9,11 *", "0 0 * * L", &commas] {
        let text = format!("name: t\ntrigger: [{{cron: \"{expression}\"}}]\ntasks: {{a: {{sleep: 1}}}}\n");
        let started = Instant::now();
        let _ = outcome(text.as_bytes(), "a.yaml");
        assert!(started.elapsed() < Duration::from_secs(1), "{expression} took {:?}", started.elapsed());
    }
}

#[test]
fn large_documents_full_of_faults_are_read_in_reasonable_time() {
    let unknown: String = (0..200_000).map(|n| format!("f{n}: 1\n")).collect();
    check(
        "unknown fields",
        format!("name: t\ntasks: {{a: {{sleep: 1s}}}}\n{unknown}").as_bytes(),
        "a.yaml",
        "unknown-field",
    );
    let steps: String = (0..9_000).map(|n| format!("  a{n}: {{needs: [b{n}, c{n}], sleep: 1}}\n")).collect();
    check("unknown needs", format!("name: t\ntasks:\n{steps}").as_bytes(), "a.yaml", "unknown-step");
    let steps: String = (0..9_000)
        .map(|n| format!("  a{n}: {{needs: b{n}, tool: t, args: {{x: \"{{{{tasks.c{n}}}}}\"}}}}\n"))
        .collect();
    check("unknown names", format!("name: t\ntasks:\n{steps}").as_bytes(), "a.yaml", "unknown-step");
    let all: String = (0..300).map(|n| format!("t{n}, ")).collect();
    let dense: String = (0..300).map(|n| format!("  t{n}: {{needs: [{all}], sleep: 1s}}\n")).collect();
    check("everything needs everything", format!("name: t\ntasks:\n{dense}").as_bytes(), "a.yaml", "self-need");
    let ring: String = (0..9_999).map(|n| format!("  t{n}: {{needs: t{}, sleep: 1s}}\n", (n + 1) % 9_999)).collect();
    check("a ring", format!("name: t\ntasks:\n{ring}").as_bytes(), "a.yaml", "cycle");
    let forks: String = (0..3_000)
        .map(|n| format!("  s{n}: {{parallel: [s{}, e{n}], join: last}}\n  e{n}: {{tool: x}}\n", n + 1))
        .collect();
    let flow =
        format!("name: f\nflow:\n  start: {{tool: x, next: s0}}\n{forks}  s3000: {{tool: x}}\n  last: {{tool: y}}\n");
    check("forks in forks", flow.as_bytes(), "a.yaml", "limit-steps");
    let entries = "{if: result == x, then: a}, ".repeat(20_000);
    check(
        "many branches",
        format!("name: f\nflow: {{start: {{tool: x, branch: [{entries}]}}, a: {{tool: y}}}}\n").as_bytes(),
        "a.yaml",
        "limit-steps",
    );
}

#[test]
fn loops_that_reach_everything_are_rejected_early() {
    let count = 4_000;
    let mut nodes = String::from("{id: s, type: start}");
    let mut edges = String::from("{source: s, target: l0}");
    for n in 0..count {
        nodes += &format!(", {{id: l{n}, type: loop, data: {{sourceVariable: input.x}}}}");
        edges += &format!(", {{source: l{n}, target: l{}, sourceHandle: loop}}", (n + 1) % count);
    }
    check("loops", format!("name: g\nnodes: [{nodes}]\nedges: [{edges}]\n").as_bytes(), "a.yaml", "limit-steps");
}

#[test]
fn the_reader_and_the_builder_report_a_limit_with_the_same_code() {
    let depth = limits::MAX_SCOPE_DEPTH + 1;
    // Nested for_each bodies are counted by the reader, nested cycles by the builder.
    let mut bodies = String::from("{x: {tool: x}}");
    let mut cycles = String::from("start: {tool: x, next: s0}, end: {tool: x, done: true}");
    for n in 0..depth {
        bodies = format!("{{l{n}: {{for_each: [1], tasks: {bodies}}}}}");
        let (inner, outer) = (format!("s{}", n + 1), if n == 0 { "end".into() } else { format!("t{}", n - 1) });
        let inner = if n + 1 < depth { inner } else { format!("t{n}") };
        cycles += &format!(", s{n}: {{tool: x, next: {inner}}}");
        cycles += &format!(", t{n}: {{tool: x, branch: [{{if: result == again, then: s{n}}}, {{then: {outer}}}]}}");
    }
    check("nested bodies", format!("name: t\ntasks: {bodies}\n").as_bytes(), "a.yaml", "limit-depth");
    check("nested cycles", format!("name: f\nflow: {{{cycles}}}\n").as_bytes(), "a.yaml", "limit-depth");

    let steps: String = (0..=limits::MAX_STEPS).map(|n| format!("s{n}: {{tool: x}}, ")).collect();
    check("steps", format!("name: t\ntasks: {{{steps}}}\n").as_bytes(), "a.yaml", "limit-steps");
    let step = |n: usize| SpecStep {
        def: StepDef::new(format!("s{n}"), Kind::Pass { output: None }),
        origin: Origin(0),
        parent: None,
        entry: true,
        aliases: Vec::new(),
    };
    let (dialect, origin) = (Dialect::Tasks, Origin(0));
    let steps = (0..=limits::MAX_STEPS).map(step).collect();
    let built = Graph::build(Spec {
        dialect,
        origin,
        steps,
        edges: Vec::new(),
        output: None,
        vars: Vec::new(),
        max_iterations: 1,
    });
    assert_eq!(built.map(|_| ()).map_err(|faults| faults[0].code), Err("limit-steps"));
}

#[test]
fn a_value_has_the_same_limits_as_text() {
    let mut deep = serde_json::json!(1);
    for _ in 0..100 {
        deep = serde_json::json!([deep]);
    }
    let code = |value| read_value(&value).map(|_| ()).map_err(|faults| faults.list[0].code);
    assert_eq!(code(serde_json::json!({"name": "t", "tasks": deep})), Err("limit-depth"));
    assert_eq!(code(serde_json::json!(vec![0; limits::MAX_NODES])), Err("limit-nodes"));
    assert_eq!(code(serde_json::json!(null)), Err("wrong-type"));
    assert_eq!(code(serde_json::json!({"name": "t", "tasks": {"a": {"sleep": 1}}})), Ok(()));
}

fn cases() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folders = ["seeds", "good", "bad"].map(|name| folder.join(name));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("cases"));
    let mut all: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e != "expected"))
        .map(|path| {
            (path.file_name().expect("a name").to_string_lossy().into_owned(), std::fs::read(&path).expect("a case"))
        })
        .collect();
    all.sort();
    all
}

/// Fragments that are significant to a reader of documents.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{{".to_owned()),
        Just("}}".into()),
        Just("- ".into()),
        Just(": ".into()),
        Just("\n".into()),
        Just("\n  ".into()),
        Just("\r".into()),
        Just("\t".into()),
        Just("[".into()),
        Just("]".into()),
        Just("{".into()),
        Just("}".into()),
        Just("\"".into()),
        Just("'".into()),
        Just("&a ".into()),
        Just("*a".into()),
        Just("<<: *a".into()),
        Just("!!str ".into()),
        Just("|\n".into()),
        Just("---\n".into()),
        Just("\\ud800".into()),
        Just("1e999".into()),
        Just("null".into()),
        Just("\u{feff}".into()),
        Just("é".into()),
        "[a-z_]{1,8}",
        "-?[0-9]{1,20}",
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for file in ["a.json", "a.yaml", "a"] {
            let _ = outcome(&bytes, file);
        }
    }

    #[test]
    fn any_fragments_are_handled(pieces in prop::collection::vec(piece(), 0..80)) {
        let text = pieces.concat();
        for file in ["a.json", "a.yaml"] {
            let _ = outcome(text.as_bytes(), file);
        }
    }

    #[test]
    fn json_that_both_readers_accept_has_the_same_value(pieces in prop::collection::vec(piece(), 0..12)) {
        // Our reader is stricter (duplicate keys, exact numbers) but never accepts more or reads a different value.
        let labels = pieces.concat();
        let text = format!(r#"{{"name": "t", "tasks": {{"a": {{"sleep": 1}}}}, "labels": {{"x": {labels}}}}}"#);
        if let Ok(definition) = read(text.as_bytes(), Some("a.json")) {
            let value: serde_json::Value = serde_json::from_str(&text).expect("serde reads it too");
            prop_assert!(definition.labels.len() <= value["labels"].as_object().map_or(0, |labels| labels.len()));
        }
    }

    #[test]
    fn a_damaged_document_is_handled(
        seed in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, piece()), 1..6),
    ) {
        let all = cases();
        let (name, text) = seed.get(&all);
        let mut text = text.clone();
        for (at, remove, insert) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + remove).min(text.len());
            text.splice(at..end, insert.into_bytes());
        }
        let _ = outcome(&text, name);
    }

    #[test]
    fn a_document_with_swapped_lines_is_handled(
        seed in any::<prop::sample::Index>(),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let all = cases();
        let (name, text) = seed.get(&all);
        let text = String::from_utf8_lossy(text).into_owned();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (a, b) in swaps {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        let _ = outcome(lines.concat().as_bytes(), name);
    }

    #[test]
    fn any_cron_expression_is_handled(expression in "[0-9*/,L#W?@A-Za-z -]{0,30}") {
        let text = serde_json::json!({"name": "t", "trigger": [{"cron": expression}], "tasks": {"a": {"sleep": 1}}});
        let _ = read_value(&text);
    }
}
