//! The `stepwell` binary from outside: arguments and files in, text and exit codes out.
//!
//! Written from the documents alone. Not here: what definitions mean (`formats`), what runs do (`core`).

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Nothing here should take a second; a loaded machine gets twenty.
const PATIENCE: Duration = Duration::from_secs(20);

const HELLO: &str = "name: hello
tasks:
  ask:
    url: https://api.example/quote
    body: {who: \"{{input.who ?? 'you'}}\"}
  gate: {needs: ask, approval: {message: Send it?, timeout: 1h}}
  send: {needs: gate, url: https://mail.example/send}
  sorry: {needs: gate, if: tasks.gate.status == 'denied', url: https://mail.example/send}
output: {quote: \"{{tasks.ask.body.text ?? 'none'}}\", who: \"{{input.who ?? 'nobody'}}\"}
";

const CALLBACK: &str = "name: callback
tasks: {wait: {wait_for_webhook: {timeout: 2h}}}
output: \"{{tasks.wait.body.state ?? 'nothing'}}\"
";

const ECHO: &str = "name: echo\ntasks: {a: {sleep: 1}}\noutput: \"{{input}}\"\n";

struct Output {
    code: i32,
    out: String,
    err: String,
}

impl Output {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    fn expect(self, code: i32) -> Output {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

fn start(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.args(args).current_dir(env!("CARGO_TARGET_TMPDIR"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Reads to the end on a thread of its own, so that no pipe fills up and a hang can be told.
fn collect(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (to, collected) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = to.send(bytes);
    });
    collected
}

/// Runs the binary to its end. It never panics, never dies of a signal and never keeps anybody waiting.
fn stepwell(args: &[&str], stdin: impl AsRef<[u8]>) -> Output {
    let mut child = start(args);
    let (out, err) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
    // A child that reads nothing closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_ref());
    let Ok(out) = out.recv_timeout(PATIENCE) else {
        child.kill().unwrap();
        panic!("stepwell {args:?} did not end within {PATIENCE:?}");
    };
    let err = String::from_utf8(err.recv().unwrap()).unwrap();
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(0..=2)), "stepwell {args:?} ended with {code:?}: {err}");
    Output { code: code.unwrap(), out: String::from_utf8(out).unwrap(), err }
}

/// Writes a file where the binary is run; names are unique across tests.
fn file(name: &str, text: impl AsRef<[u8]>) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn example(name: &str) -> String {
    root().join("examples").join(name).to_str().unwrap().to_string()
}

/// The codes that `check --json` finds in a document, in its order.
fn codes(document: impl AsRef<[u8]>) -> Vec<String> {
    let result = stepwell(&["check", "--json", "-"], document).expect(2).json();
    let faults = result["faults"].as_array().unwrap().clone();
    faults.iter().map(|fault| fault["code"].as_str().unwrap().to_string()).collect()
}

fn simulate(definition: &str, args: &[&str]) -> Output {
    stepwell(&[&["simulate", "-"], args].concat(), definition)
}

/// A chain of calls, each needing the one before.
fn chain(steps: usize) -> String {
    let mut text = String::from("name: chain\ntasks:\n  s0: {tool: t}\n");
    (1..steps).for_each(|n| text.push_str(&format!("  s{n}: {{tool: t, needs: s{}}}\n", n - 1)));
    text
}

#[test]
fn help_and_version_say_what_there_is() {
    let help = stepwell(&["--help"], "").expect(0).out;
    for command in ["check", "graph", "simulate"] {
        assert!(help.contains(command) && stepwell(&[command, "--help"], "").expect(0).out.contains("FILE"), "{help}");
    }
    let version = concat!("stepwell ", env!("CARGO_PKG_VERSION"), env!("STEPWELL_BUILT"), "\n");
    assert_eq!(stepwell(&["--version"], "").expect(0).out, version);
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for args in [&["chek"][..], &[], &["check"], &["graph"], &["simulate"], &["check", "--zork", "x"]] {
        let output = stepwell(args, "").expect(2);
        assert!(output.err.contains("Usage"), "{}", output.err);
    }
    assert!(stepwell(&["chek", "x"], "").err.contains("check"), "names the near miss");
}

#[test]
fn sound_definitions_pass() {
    for (name, dialect) in [("refund.yaml", "tasks"), ("deploy.yaml", "flow"), ("triage.json", "graph")] {
        let output = stepwell(&["check", &example(name)], "").expect(0);
        let workflow = name.split('.').next().unwrap();
        assert!(output.out.contains(workflow) && output.out.contains(dialect), "{}", output.out);
        assert_eq!(output.err, "");
    }
}

#[test]
fn a_fault_shows_its_line_with_carets_under_the_word() {
    let output = stepwell(&["check", "-"], HELLO.replace("needs: gate, url", "needs: gat, url")).expect(2);
    let rows: Vec<&str> = output.out.lines().collect();
    assert!(rows[0].contains(":7:17: tasks.send.needs: no step named \"gat\""), "{}", output.out);
    assert!(rows[0].contains("[unknown-step]") && output.out.contains("did you mean \"gate\"?"), "{}", output.out);
    let excerpt = rows.iter().position(|row| row.contains("needs: gat, url")).unwrap();
    let carets = rows[excerpt + 1];
    assert_eq!(carets.matches('^').count(), 3);
    assert_eq!(carets.find('^').unwrap(), rows[excerpt].find("gat,").unwrap());
}

#[test]
fn one_unreadable_file_does_not_hide_the_others() {
    let (good, bad) = (file("several-good.yaml", HELLO), file("several-bad.yaml", "name: x\nzork: 1\n"));
    let output = stepwell(&["check", &good, "several-missing.yaml", &bad], "").expect(2);
    let all = output.out + &output.err;
    assert!(all.contains(&format!("{good}: ok")), "{all}");
    assert!(all.contains("several-missing.yaml: No such file") && all.contains("zork"), "{all}");
}

#[test]
fn check_answers_programs_in_json() {
    let output = stepwell(&["check", "--json", "-", "json-missing.yaml"], HELLO).expect(2).out;
    let results: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sound = results[0].as_object().unwrap();
    assert_eq!((&sound["ok"], &sound["name"], &sound["dialect"]), (&json!(true), &json!("hello"), &json!("tasks")));
    assert_eq!(sound["steps"], 4);
    assert_eq!((&results[1]["ok"], &results[1]["file"]), (&json!(false), &json!("json-missing.yaml")));

    let result = stepwell(&["check", "--json", "-"], HELLO.replace("needs: ask", "needs: aks")).expect(2).json();
    assert_eq!((&result["ok"], &result["more"]), (&json!(false), &json!(0)));
    let fault = &result["faults"][0];
    assert_eq!((&fault["line"], &fault["column"], &fault["path"]), (&json!(6), &json!(17), &json!("tasks.gate.needs")));
    assert_eq!((&fault["code"], &fault["hint"]), (&json!("unknown-step"), &json!("did you mean \"ask\"?")));
    assert_eq!(fault["message"], "no step named \"aks\"");
}

#[test]
fn all_faults_of_a_document_come_at_once() {
    let document = "name: all
zork: 1
trigger: {cron: 61 * * * *}
max_duration: soon
tasks:
  a: {url: ftp://x, method: FETCH}
  b: {sleep: 1, tool: t}
  c: {}
  d: {tool: t, if: 1 ==}
  e: {tool: t, args: \"{{\"}
  f: {approval: {timeout: 1x}}
";
    let found = codes(document);
    let structure = ["unknown-field", "bad-cron", "bad-duration", "bad-url", "bad-method", "many-step-types"];
    for code in structure.into_iter().chain(["no-step-type", "bad-expression", "bad-template"]) {
        assert!(found.iter().any(|found| found == code), "no {code} in {found:?}");
    }
    assert_eq!(found.iter().filter(|code| *code == "bad-duration").count(), 2);
}

#[test]
fn a_wrong_need_does_not_hide_faults_in_expressions() {
    let rest = "  y: {tool: t, if: foo == 1}\n  z: {tool: t, args: {x: \"{{tasks.gone.body}}\"}}\n";
    let missing = format!("name: p\ntasks:\n  a: {{tool: t, needs: nowhere}}\n{rest}");
    assert_eq!(codes(missing), ["unknown-step", "unknown-name", "unknown-step"]);
    let circle = format!("name: p\ntasks:\n  a: {{tool: t, needs: b}}\n  b: {{tool: t, needs: a}}\n{rest}");
    assert_eq!(codes(circle), ["cycle", "unknown-name", "unknown-step"]);
}

#[test]
fn a_number_that_cannot_be_kept_does_not_hide_other_faults() {
    assert_eq!(codes("name: n\nzork: 1\ntasks:\n  a: {sleep: 1e400}\n"), ["unknown-field", "bad-number"]);
}

#[test]
fn faults_beyond_a_hundred_are_counted() {
    let steps: String = (0..150).map(|n| format!("  s{n}: {{tool: t, needs: x{n}}}\n")).collect();
    let document = format!("name: many\ntasks:\n{steps}");
    let result = stepwell(&["check", "--json", "-"], &document).expect(2).json();
    assert_eq!((result["faults"].as_array().unwrap().len(), &result["more"]), (100, &json!(50)));
    assert!(stepwell(&["check", "-"], &document).expect(2).out.contains("50 more"));
}

#[test]
fn hostile_documents_are_refused_and_named() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for n in 1..10 {
        bomb.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(",")));
    }
    let (million, objects) = (1_000_000, "{\"a\":".repeat(500_000));
    let cases: [(&str, &[u8], &str); 11] = [
        ("invalid UTF-8", b"name: \xff\xfe\n", "not-utf8"),
        ("NUL", b"name: a\0b\n", "bad-character"),
        ("deep JSON", &b"[".repeat(million), "limit-"),
        ("deep JSON objects", objects.as_bytes(), "limit-depth"),
        ("deep YAML", &b"- ".repeat(million), "limit-depth"),
        ("deep YAML keys", &b"? ".repeat(million), "bad-key"),
        ("alias bomb", bomb.as_bytes(), "limit-nodes"),
        ("5 MB", &b"# comment\n".repeat(512 * 1024), "limit-bytes"),
        ("empty", b"", "empty-document"),
        ("blank", b" \n\n# nothing\n", "empty-document"),
        ("alias of itself", b"name: &a [*a]\n", "bad-alias"),
    ];
    for (what, document, code) in cases {
        let found = codes(document);
        assert!(found.len() == 1 && found[0].starts_with(code), "{what}: {found:?}");
        let shown = stepwell(&["check", "-"], document).expect(2).out;
        assert!(shown.len() < 2_000, "{what}: {} bytes", shown.len());
    }
}

#[test]
fn every_code_of_check_is_in_the_list_of_faults() {
    let list = std::fs::read_to_string(root().join("docs/faults.md")).unwrap();
    for path in ["codes-missing.yaml", "."] {
        let result = stepwell(&["check", "--json", path], "").expect(2).json();
        let code = result["faults"][0]["code"].as_str().unwrap();
        assert!(list.contains(&format!("`{code}`")), "{path}: {code} is not in docs/faults.md");
    }
}

#[test]
fn a_directory_is_not_a_definition() {
    for command in ["check", "graph", "simulate"] {
        let output = stepwell(&[command, "."], "").expect(2);
        assert!((output.out + &output.err).to_lowercase().contains("directory"));
        let output = stepwell(&[command, "no-such-file.yaml"], "").expect(2);
        assert!((output.out + &output.err).contains("no-such-file.yaml"));
    }
}

#[test]
fn a_cron_expression_of_commas_is_refused_at_once() {
    let triggers = "  - {cron: \",,, * * * *\"}\n".repeat(10);
    let found = codes(format!("name: cron\ntrigger:\n{triggers}tasks:\n  a: {{sleep: 1}}\n"));
    assert_eq!(found, ["bad-cron"; 10]);
}

/// Text that is safe to print: nothing a terminal acts on, nothing that reorders what stands around it.
fn assert_harmless(text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(bad), "{text:?}");
}

#[test]
fn escapes_in_a_document_do_not_reach_the_terminal() {
    let document = r#"{"name": "\u001b[2J", "\u001b]0;x\u0007": 1, "tasks": {"\u202ea\u009b": {"tool": 5}}}"#;
    assert_harmless(&stepwell(&["check", "-"], document).expect(2).out);
    assert_harmless(&stepwell(&["check", "-"], "name: \u{202e}x\nzo\u{200f}rk: \u{202d}1\n").expect(2).out);
    let document = r#"{"name": "x", "tasks": {"a": {"tool": "t"}, "b": {"needs": "a", "tool": "\u001b[2J\u202e",
        "if": "tasks.a.body == '\u001b]0;x\u0007'"}}}"#;
    for format in ["text", "mermaid", "dot", "svg"] {
        assert_harmless(&stepwell(&["graph", "-", "--format", format], document).expect(0).out);
    }
    assert_harmless(&simulate(document, &["--calm"]).expect(0).out);
}

#[test]
#[cfg(unix)]
fn escapes_in_a_file_name_do_not_reach_the_terminal() {
    let good = file("good\u{1b}[31m.yaml", HELLO);
    let bad = file("bad\u{1b}[31m.yaml", "zork: 1\n");
    assert_harmless(&stepwell(&["check", &bad], "").expect(2).out);
    let output = stepwell(&["check", &good, "missing\u{1b}[31m.yaml"], "").expect(2);
    assert_harmless(&(output.out + &output.err));
    assert_harmless(&stepwell(&["graph", "missing\u{1b}[31m.yaml"], "").expect(2).err);
}

#[test]
fn the_text_drawing_has_every_step() {
    let deploy = ["build", "unit-tests", "scan", "approve", "roll-out", "pause", "healthy", "announce", "tidy-up"];
    let invoices = ["overdue", "each", "remind", "wait", "paid", "escalate"];
    let triage = ["start", "each", "classify", "urgent", "page", "file", "end"];
    for (name, steps) in [("deploy.yaml", &deploy[..]), ("invoices.yaml", &invoices), ("triage.json", &triage)] {
        let drawing = stepwell(&["graph", &example(name)], "").expect(0).out;
        for step in steps {
            assert!(drawing.contains(step), "no {step} in\n{drawing}");
        }
        assert!(drawing.lines().all(|line| line.chars().count() <= 200), "{drawing}");
    }
}

const NASTY: &str = r#"{"name": "nasty", "nodes": [{"id": "s", "type": "start"},
  {"id": "t", "type": "tool", "data": {"tool": "</text><script>\"a\" & ]]> --> | {x}; %% \\ '"}}],
  "edges": [{"source": "s", "target": "t"}]}"#;

#[test]
fn svg_is_well_formed_and_user_text_stays_text() {
    for name in ["refund.yaml", "deploy.yaml", "invoices.yaml", "triage.json"] {
        well_formed(&stepwell(&["graph", &example(name), "--format", "svg"], "").expect(0).out);
    }
    let svg = stepwell(&["graph", "-", "--format", "svg"], NASTY).expect(0).out;
    well_formed(&svg);
    assert!(svg.contains("&lt;script&gt;"), "{svg}");
}

/// Enough of XML for what a drawing holds: tags that nest, quoted attributes, known references.
fn well_formed(svg: &str) {
    assert!(svg.trim_start().starts_with("<svg ") && svg.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(!svg.contains("<script") && !svg.contains("javascript:"), "{svg}");
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag is closed");
        for reference in tag.split('&').skip(1).chain(text.split('&').skip(1)) {
            let name = reference.split(';').next().unwrap();
            assert!(["lt", "gt", "amp", "quot", "apos"].contains(&name) || name.starts_with('#'), "&{reference}");
        }
        assert!(!text.contains("]]>"), "{text}");
        assert!(tag.matches('"').count() % 2 == 0 && !tag.contains(" on"), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{piece}");
        } else {
            let name = tag.split([' ', '/']).next().unwrap();
            assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "{piece}");
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn mermaid_and_dot_keep_user_text_inside_quotes() {
    let mermaid = stepwell(&["graph", "-", "--format", "mermaid"], NASTY).expect(0).out;
    assert!(mermaid.lines().any(|line| line.starts_with("flowchart ")), "{mermaid}");
    assert_eq!(mermaid.matches("-->").count(), 1, "{mermaid}");
    assert!(!mermaid.contains("<script") && mermaid.lines().all(|line| line.matches('"').count() % 2 == 0));
    let dot = stepwell(&["graph", "-", "--format", "dot"], NASTY).expect(0).out;
    assert!(dot.starts_with("digraph ") && dot.trim_end().ends_with('}'), "{dot}");
    // Without escaped characters and quoted text, what remains has one edge and balanced braces.
    let bare = dot.replace("\\\\", "").replace("\\\"", "");
    let bare: String = bare.split('"').step_by(2).collect();
    assert_eq!((bare.matches("->").count(), bare.matches('{').count(), bare.matches('}').count()), (1, 1, 1));
}

#[test]
fn json_is_the_drawing_with_coordinates() {
    let diamond =
        "name: d\ntasks: {a: {tool: t}, b: {tool: t, needs: a}, c: {tool: t, needs: a}, d: {tool: t, needs: [b, c]}}";
    let drawing = stepwell(&["graph", "-", "--format", "json"], diamond).expect(0).json();
    let at = |n: usize, field: &str| drawing["nodes"][n][field].as_i64().unwrap();
    assert_eq!((&drawing["nodes"][3]["name"], drawing["edges"].as_array().unwrap().len()), (&json!("d"), 4));
    // Laid out, not a list: b and c stand beside each other, between a and d.
    assert_eq!(at(1, "y"), at(2, "y"));
    assert!(at(0, "y") < at(1, "y") && at(1, "y") < at(3, "y"));
    assert!(at(1, "x") + at(1, "width") <= at(2, "x") || at(2, "x") + at(2, "width") <= at(1, "x"));
}

#[test]
fn two_thousand_steps_are_drawn_in_every_format() {
    let wide: String = (0..2_000).map(|n| format!("  s{n}: {{tool: t, needs: root}}\n")).collect();
    for definition in [chain(2_000), format!("name: wide\ntasks:\n  root: {{tool: t}}\n{wide}")] {
        for format in ["text", "mermaid", "dot", "svg", "json"] {
            let drawing = stepwell(&["graph", "-", "--format", format], &definition).expect(0).out;
            assert!(drawing.contains("s1999"), "{format}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for command in [&["graph", "-", "--format", "json"][..], &["simulate", "-", "--calm"]] {
        let mut child = start(command);
        child.stdin.take().unwrap().write_all(chain(3_000).as_bytes()).unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 1]).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(0), "".into()));
    }
}

#[test]
fn what_cannot_be_drawn_or_run_says_why() {
    for args in [&["graph", "-"][..], &["simulate", "-"]] {
        let output = stepwell(args, "name: x\nzork: 1\n").expect(2);
        assert!(output.out.is_empty() && output.err.contains("[unknown-field]"), "{}{}", output.out, output.err);
    }
    let output = stepwell(&["graph", "-", "--format", "png"], HELLO).expect(2);
    assert!(output.err.contains("mermaid") && output.err.contains("svg"), "{}", output.err);
}

#[test]
fn the_same_seed_gives_the_same_run_byte_for_byte() {
    let invoices = std::fs::read_to_string(example("invoices.yaml")).unwrap();
    let run = |seed: u32| simulate(&invoices, &["--seed", &seed.to_string()]).expect(0).out;
    let runs: Vec<String> = (0..20).map(run).collect();
    assert_eq!(runs, (0..20).map(run).collect::<Vec<_>>());
    assert!(runs.iter().any(|one| one.lines().count() != runs[0].lines().count()), "seeds differ");
    assert!(runs.iter().any(|one| one.contains("crash")), "trouble comes along the way");
}

#[test]
fn many_runs_are_summed_up() {
    for name in ["refund.yaml", "deploy.yaml", "invoices.yaml", "triage.json"] {
        let output = stepwell(&["simulate", &example(name), "--runs", "300"], "").expect(0);
        assert!(output.out.contains("300 runs") && output.out.contains("nothing broke"), "{}", output.out);
        assert_eq!(output.out.lines().count(), 1);
    }
}

#[test]
fn simulate_answers_programs_with_one_document_per_run() {
    let output = simulate(HELLO, &["--json", "--runs", "3", "--seed", "7", "--calm", "--input", "who=ann"]).expect(0);
    let runs: Vec<Value> = output.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [7, 8, 9]);
    for run in runs {
        assert_eq!((&run["status"], &run["output"]["who"]), (&json!("completed"), &json!("ann")));
        let status = |step: &str| run["steps"][step]["status"].clone();
        assert_eq!((status("send"), status("sorry")), (json!("success"), json!("skipped")));
        assert!(run["events"].as_u64().unwrap() > 0);
    }
}

#[test]
fn calm_runs_have_no_trouble() {
    for seed in 1..=10 {
        let output = simulate(HELLO, &["--calm", "--seed", &seed.to_string()]).expect(0).out;
        assert!(!output.contains("crash") && !output.contains("fail") && output.contains("completed"), "{output}");
    }
}

/// How a calm run and the named step of it end.
fn ends(definition: &str, step: &str, fate: &str) -> (String, String, Value) {
    let run = simulate(definition, &["--json", "--calm", "--on", &format!("{step}={fate}")]).expect(0).json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    (text(&run["status"]), text(&run["steps"][step]["status"]), run["output"].clone())
}

#[test]
fn every_outcome_can_be_scripted() {
    let check = |definition: &str, step: &str, fate: &str, status: &str, becomes: &str| {
        let (run, one, output) = ends(definition, step, fate);
        assert_eq!((run.as_str(), one.as_str()), (status, becomes), "{step}={fate}");
        output
    };
    check(HELLO, "ask", "ok", "completed", "success");
    assert_eq!(check(HELLO, "ask", "ok:{\"text\":\"hi\"}", "completed", "success")["quote"], "hi");
    check(HELLO, "ask", "fail", "failed", "failed");
    check(HELLO, "ask", "fail:402", "failed", "failed");
    check(HELLO, "ask", "timeout", "failed", "timeout");
    check(HELLO, "gate", "approve", "completed", "success");
    check(HELLO, "gate", "deny", "completed", "denied");
    assert_eq!(check(CALLBACK, "wait", "call:{\"state\":\"paid\"}", "completed", "success"), "paid");
    let timeline = simulate(HELLO, &["--calm", "--on", "ask=fail:402"]).expect(0).out;
    assert!(timeline.contains("402") && !timeline.contains("attempt 2"), "402 is not retried\n{timeline}");
}

#[test]
fn a_wait_that_times_out_by_script_is_moved_on_by_its_timer() {
    for fate in ["timeout", "never"] {
        let (status, step, _) = ends(CALLBACK, "wait", fate);
        assert_eq!((status.as_str(), step.as_str()), ("failed", "timeout"), "{fate}");
        let (status, step, _) = ends(HELLO, "gate", fate);
        assert_eq!((status.as_str(), step.as_str()), ("completed", "denied"), "{fate}");
    }
}

#[test]
fn a_call_that_never_ends_is_moved_on_by_a_timer() {
    for calm in [&["--calm"][..], &[]] {
        let output = simulate(HELLO, &[&["--on", "ask=never"], calm].concat()).expect(0);
        assert!(output.out.contains("run timeout") || output.out.contains("ask timeout"), "{}", output.out);
    }
}

#[test]
fn a_scripted_answer_is_given_whatever_the_seed() {
    let check = |definition: &str, step: &str, fate: &str, status: &str| {
        let output = simulate(definition, &["--json", "--runs", "40", "--on", &format!("{step}={fate}")]).expect(0).out;
        for line in output.lines() {
            let run: Value = serde_json::from_str(line).unwrap();
            let found = &run["steps"][step]["status"];
            assert!(found == status || found.is_null() || found == "skipped", "{step}={fate}: {run}");
        }
    };
    check(CALLBACK, "wait", "call:{\"state\":\"paid\"}", "success");
    check(HELLO, "gate", "approve", "success");
}

#[test]
fn an_input_is_json_a_file_or_pairs() {
    let path = file("input.json", r#"{"who": "ann"}"#);
    let at = format!("@{path}");
    for given in [&[r#"{"who": "ann"}"#][..], &[&at], &["who=ann"], &["who=bob", "who=ann", "n=1"], &[&at, "n=[1]"]] {
        let flags: Vec<&str> = given.iter().flat_map(|one| ["--input", *one]).collect();
        let run = simulate(HELLO, &[&["--json", "--calm"], &flags[..]].concat()).expect(0).json();
        assert_eq!(run["output"]["who"], "ann", "{given:?}");
    }
    for json in ["[1,2]", "\"text\"", "{\"a\":{\"b\":null}}"] {
        let run = simulate(ECHO, &["--json", "--calm", "--input", json]).expect(0).json();
        assert_eq!(run["output"], serde_json::from_str::<Value>(json).unwrap());
    }
}

#[test]
fn numbers_and_true_are_json_too() {
    for json in ["5", "true", "null"] {
        let run = simulate(ECHO, &["--json", "--calm", "--input", json]).expect(0).json();
        assert_eq!(run["output"].to_string(), json);
    }
}

#[test]
fn a_bad_script_or_input_is_refused_with_help() {
    let check = |flag: &str, given: &str, help: &str| {
        let output = simulate(HELLO, &[flag, given]).expect(2);
        assert!(output.out.is_empty() && output.err.contains(help), "{flag} {given}: {}", output.err);
    };
    check("--on", "gat=deny", "did you mean \"gate\"?");
    check("--on", "gate", "STEP=OUTCOME");
    check("--on", "gate=aprove", "approve");
    check("--on", "ask=ok:{", "is not JSON");
    check("--on", "ask=fail:often", "status");
    check("--input", "nonsense", "key=value");
    check("--input", "{broken", "is not JSON");
    check("--input", "@no-such-input.json", "no-such-input.json");
    check("--runs", "0", "--runs");
    check("--seed", "x", "--seed");
}

#[test]
fn the_largest_number_in_a_condition_can_be_simulated() {
    let definition = "name: n\ntasks: {a: {tool: t}, b: {needs: a, tool: t, if: tasks.a.body == 9223372036854775807}}";
    stepwell(&["check", "-"], definition).expect(0);
    simulate(definition, &["--runs", "5"]).expect(0);
}

#[test]
fn a_long_list_is_walked_to_its_end() {
    let definition = "name: e\ntasks:\n  each: {for_each: \"{{input}}\", max_parallel: 50, tasks: {a: {tool: t}}}\n";
    let items = file("items.json", format!("[{}]", vec!["1"; 3_000].join(",")));
    let run = simulate(definition, &["--json", "--calm", "--input", &format!("@{items}")]).expect(0).json();
    assert_eq!((&run["status"], &run["steps"]["each[2999].a"]["status"]), (&json!("completed"), &json!("success")));
}
