//! `stepwell test` from outside: what passes, what fails and how it is reported.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

const FLOW: &str = "name: pay
tasks:
  ask: {approval: {message: Pay?, timeout: 1h}}
  send: {needs: ask, url: https://bank.example/pay, body: {amount: \"{{input.amount}}\"}, retries: 2}
output: {receipt: \"{{tasks.send.body.id ?? 'none'}}\"}
";

/// Runs the cases against [`FLOW`] and returns the exit code and the output.
fn check(cases: &str, more: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pay.yaml"), FLOW).unwrap();
    std::fs::write(folder.path().join("pay.test.yaml"), cases).unwrap();
    run(folder.path(), more)
}

fn run(folder: &Path, more: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    let output = command.arg("test").args(more).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_case_passes_when_the_run_does_what_it_says() {
    let cases = "cases:
  - name: paid at the second attempt
    input: {amount: 5}
    calls: {send: [{status: 503}, {body: {id: r1}}]}
    answers: {ask: {answer: approve, after: 10m}}
    expect: {path: [ask, send], output: {receipt: r1}, calls: {send: {body: {amount: 5}}}}
  - name: no answer arrives
    answers: {ask: timeout}
    expect: {status: cancelled, error: expired, steps: {ask: denied}, took: 1h}
";
    let (code, text) = check(cases, &[]);
    assert_eq!((code, text.contains("2 passed, 0 failed")), (0, true), "{text}");
}

#[test]
fn a_failed_case_shows_each_difference_and_goes_into_the_junit_file() {
    let cases = "cases:
  - name: wrong <on> purpose
    input: {amount: 5}
    calls: {send: {body: {id: r1}}}
    answers: {ask: approve}
    expect: {path: [send], output: {receipt: r2}, calls: {send: {body: {amount: 6}}}}
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pay.yaml"), FLOW).unwrap();
    std::fs::write(folder.path().join("pay.test.yaml"), cases).unwrap();
    let (code, text) = run(folder.path(), &["--junit", "out.xml"]);
    assert_eq!(code, 1, "{text}");
    for part in ["+ask", "-  \"receipt\": \"r2\"", "+  \"receipt\": \"r1\"", "-    \"amount\": 6", "0 passed, 1 failed"]
    {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let junit = std::fs::read_to_string(folder.path().join("out.xml")).unwrap();
    assert!(junit.contains("<testsuites tests=\"1\" failures=\"1\">"), "{junit}");
    assert!(junit.contains("name=\"wrong &lt;on&gt; purpose\" classname=\"pay\""), "{junit}");
}

#[test]
fn a_call_that_the_case_says_nothing_about_is_named() {
    let (code, text) = check("cases: [{name: a, input: {amount: 5}, answers: {ask: approve}}]\n", &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("step \"send\" makes a call") && text.contains("calls: {send: {body: …}}"), "{text}");
}

#[test]
fn a_wrong_test_file_is_refused_with_the_place() {
    let refused = |cases: &str, part: &str| {
        let (code, text) = check(cases, &[]);
        assert_eq!((code, text.contains(part)), (2, true), "{text}");
    };
    refused("cases: [{name: a, calls: {sned: timeout}}]\n", "did you mean \"send\"?");
    refused("cases: [{name: a, calls: {ask: timeout}}]\n", "step \"ask\" makes no call");
    refused("cases: [{name: a, expcet: {}}]\n", "unknown field `expcet`");
    refused("cases: [{name: a}, {name: a}]\n", "two cases are named");
}

#[test]
fn code_in_a_test_makes_no_requests() {
    // Refused with not_in_tests before the name is resolved.
    let flow = "name: look\nallow_hosts: bank.example\n\
                tasks:\n  a: {javascript: \"return (await fetch('https://bank.example/')).status\"}\n";
    let cases = "cases:\n  - {name: fetches, expect: {status: success}}\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("look.yaml"), flow).unwrap();
    std::fs::write(folder.path().join("look.test.yaml"), cases).unwrap();
    let (code, text) = run(folder.path(), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("code makes no requests in a test: fake the step instead"), "{text}");
}
