//! Javascript steps of real workflows, through the command line and a server.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use stepwell_testing::{TestStore, eventually, listen};

const ORDERS: &str = r#"
name: orders
tasks:
  total:
    javascript: |
      console.log('counting', ctx.input.items.length, 'items');
      return { total: ctx.input.items.reduce((sum, item) => sum + item.price, 0) };
  check:
    needs: [total]
    javascript: |
      const { total } = ctx.tasks.total.body;
      console.warn('checking', total);
      if (total > 100)
        throw new Error('too much: ' + total);
      return total;
    retries: 0
output: "{{tasks.check.body}}"
"#;

fn stepwell(place: &TestStore, arguments: &[&str]) -> Command {
    let mut command = stepwell_testing::command(env!("CARGO_BIN_EXE_stepwell"));
    command.args(arguments).current_dir(place.directory()).env("STEPWELL_DATA", place.data()).envs(place.environment());
    command
}

fn file(place: &TestStore, text: &str) -> PathBuf {
    let path = place.directory().join("workflow.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

fn run(place: &TestStore, text: &str, input: &Value) -> Output {
    let path = file(place, text);
    stepwell(place, &["run", path.to_str().unwrap(), "--input", &input.to_string()]).output().unwrap()
}

fn show(place: &TestStore, json: bool) -> String {
    let listed = stepwell(place, &["runs", "--limit", "1", "--json"]).output().unwrap();
    let run: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut arguments = vec!["show", run["id"].as_str().unwrap()];
    arguments.extend(json.then_some("--json"));
    String::from_utf8(stepwell(place, &arguments).output().unwrap().stdout).unwrap()
}

#[test]
fn a_workflow_calculates_and_shows_what_its_code_logged() {
    let place = TestStore::new();
    let output = run(&place, ORDERS, &json!({"items": [{"price": 30}, {"price": 12}]}));
    assert!(output.status.success(), "{output:?}");
    let shown: Value = serde_json::from_str(&show(&place, true)).unwrap();
    assert_eq!((&shown["output"], &shown["tasks"]["total"]["output"]), (&json!(42), &json!({"total": 42})));
    assert_eq!(shown["tasks"]["total"]["log"], json!([{"level": "info", "text": "counting 2 items"}]));
    let page = show(&place, false);
    assert!(page.contains("  info counting 2 items\n") && page.contains("  warn checking 42\n"), "{page}");
}

#[test]
fn an_error_is_shown_with_its_line_and_column_beside_the_log() {
    let place = TestStore::new();
    let output = run(&place, ORDERS, &json!({"items": [{"price": 101}]}));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown: Value = serde_json::from_str(&show(&place, true)).unwrap();
    let check = &shown["tasks"]["check"];
    assert_eq!(check["error"], json!({"code": "javascript_error", "message": "Error: too much: 101 (4:34)"}));
    assert_eq!(check["log"], json!([{"level": "warn", "text": "checking 101"}]));
    assert_eq!((&check["attempt"], &check["output"]), (&json!(1), &Value::Null));
    assert!(!show(&place, false).contains("output null"));
}

#[test]
fn a_secret_of_a_request_is_nowhere_in_the_run() {
    let place = TestStore::new();
    let asked = Arc::new(Mutex::new(String::new()));
    let heard = asked.clone();
    let url = listen(move |request| {
        let body = String::from_utf8(request.body).unwrap();
        heard.lock().unwrap().push_str(&body);
        ("200 OK", json!({"you sent": body}).to_string())
    });
    let text = "
name: keys
allow_hosts: 127.0.0.1
tasks:
  ask:
    javascript: |
      const answer = await fetch(ctx.input.url, { method: 'POST', body: 'key ' + secrets.KEY });
      const text = await answer.text();
      console.log(text);
      return text;
    retries: 0
";
    let path = file(&place, text);
    let input = json!({"url": url}).to_string();
    let mut command = stepwell(&place, &["run", path.to_str().unwrap(), "--input", &input]);
    command.env("STEPWELL_SECRET_KEY", "s3cret-value").env("STEPWELL_PRIVATE_ADDRESSES", "true");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(*asked.lock().unwrap(), "key s3cret-value");
    let shown = show(&place, true);
    assert!(shown.contains("key {{secrets.KEY}}") && !shown.contains("s3cret-value"), "{shown}");
    let kept = place.rows().into_iter().any(|(_, row)| String::from_utf8_lossy(&row).contains("s3cret-value"));
    assert!(!kept && !format!("{output:?}").contains("s3cret-value"));
}

#[test]
fn a_process_that_is_killed_leaves_no_worker_behind() {
    let place = TestStore::new();
    let path = file(&place, "name: endless\ntasks:\n  a: {javascript: 'while (true) {}', timeout: 10m}\n");
    let mut command = stepwell(&place, &["run", path.to_str().unwrap()]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let worker = eventually("a worker", || children(child.id()).first().copied());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the end of the worker", || (!is_worker(worker)).then_some(()));
}

/// Workers that this process started.
fn children(parent: u32) -> Vec<u32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = format!("PPid:\t{parent}\n");
    let is_child = |pid: &u32| {
        is_worker(*pid)
            && std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| text.contains(&parent))
    };
    pids.filter(is_child).collect()
}

fn is_worker(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0javascript-worker\0"))
}
