//! The documents are tested: every complete definition goes through the real binary, every example of an expression
//! is evaluated, and every file in `examples/` is checked and simulated.
//!
//! A definition is a fenced yaml or json block with a top-level name. Directly after ``Refused with `CODE`:`` it must be
//! refused with that code, anywhere else accepted. A table whose first column is one of [`EXAMPLES`] is a list of examples.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Output, Stdio};
use stepwell_core::expr::{Expr, Found, Grammar, Names, Path, functions, walk};
use stepwell_core::template::Template;

const REFUSED: &str = "Refused with `";

fn root() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README.md and docs/*.md, with their names.
fn documents() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = folder.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    paths.push(root().join("README.md"));
    paths.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn document(name: &str) -> String {
    documents().into_iter().find(|(found, _)| found == name).unwrap().1
}

fn report(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// A definition in a document.
struct Example {
    /// `file:line` of its fence.
    place: String,
    text: String,
    /// The code it must be refused with.
    refused: Option<String>,
}

fn examples(file: &str, document: &str) -> Vec<Example> {
    let lines: Vec<&str> = document.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(language) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let length = lines[at + 1..].iter().position(|line| line.starts_with("```"));
        let length = length.unwrap_or_else(|| panic!("{file}:{}: the block is not closed", at + 1));
        let text = lines[at + 1..][..length].join("\n") + "\n";
        let before = at.checked_sub(1).and_then(|n| lines[n].strip_prefix(REFUSED));
        let refused = before.map(|rest| rest.trim_end_matches("`:").to_owned());
        let place = format!("{file}:{}", at + 1);
        if is_definition(language, &text) {
            found.push(Example { place, text, refused });
        } else {
            assert!(refused.is_none(), "{place}: to be refused, a block needs a language and a name");
        }
        at += length + 2;
    }
    found
}

/// Told from the text alone, so that one that cannot be parsed is not overlooked.
fn is_definition(language: &str, text: &str) -> bool {
    match language {
        "yaml" => text.lines().any(|line| line.starts_with("name:")),
        "json" => text.starts_with("{\"name\"") || text.lines().any(|line| line.starts_with("  \"name\"")),
        _ => false,
    }
}

fn stepwell(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwell"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// What is wrong if the command does not exit with 0.
fn complaint(what: &str, output: &Output) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = || format!("{what}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    (output.status.code() != Some(0)).then(said)
}

fn refusal(example: &Example, code: &str) -> Option<String> {
    let output = stepwell(&["check", "--json", "-"], &example.text);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let faults = result["faults"].as_array().cloned().unwrap_or_default();
    let refused = output.status.code() == Some(2) && faults.iter().any(|fault| fault["code"] == code);
    (!refused).then(|| format!("{}: expected {code}, found {:#}", example.place, result))
}

#[test]
fn every_definition_in_the_documents_is_accepted_or_refused_as_it_says() {
    let mut faults = Vec::new();
    let mut checked = Vec::new();
    for (file, text) in documents() {
        for example in examples(&file, &text) {
            checked.push(file.clone());
            match &example.refused {
                Some(code) => faults.extend(refusal(&example, code)),
                None => {
                    let check = stepwell(&["check", "-"], &example.text);
                    let fault = complaint(&example.place, &check).or_else(|| {
                        let simulate = stepwell(&["simulate", "-", "--runs", "50"], &example.text);
                        complaint(&format!("{}: simulated", example.place), &simulate)
                    });
                    faults.extend(fault);
                }
            }
        }
    }
    report(faults);
    for file in ["README.md", "definitions.md", "expressions.md"] {
        assert!(checked.iter().any(|name| name == file), "no definition was found in {file}");
    }
}

#[test]
fn every_example_file_can_be_checked_and_simulated() {
    let mut faults = Vec::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files.iter().filter(|file| !file.to_str().unwrap().contains(".test.")) {
        let file = file.to_str().unwrap();
        faults.extend(complaint(file, &stepwell(&["check", file], "")));
        faults.extend(complaint(file, &stepwell(&["simulate", file, "--runs", "200"], "")));
    }
    report(faults);
}

#[test]
fn the_tests_of_the_examples_pass() {
    let folder = root().join("examples");
    let output = stepwell(&["test", folder.to_str().unwrap()], "");
    report(complaint("examples", &output).into_iter().collect());
    assert!(String::from_utf8_lossy(&output.stdout).contains("deploy.test.yaml"));
}

#[test]
fn blocks_are_told_apart() {
    let text = "\n```yaml\nname: a\n```\n```sh\nname: b\n```\nRefused with `cycle`:\n```json\n{\n  \"name\": 1}\n```\n\
                ```yaml\nstep:\n  name: c\n```\n";
    let found: Vec<(String, Option<String>)> =
        examples("x.md", text).into_iter().map(|example| (example.place, example.refused)).collect();
    assert_eq!(found, [("x.md:2".into(), None), ("x.md:9".into(), Some("cycle".into()))]);
}

/// What the first column of a table of examples is called: how its cells are read.
const EXAMPLES: [&str; 6] =
    ["expression", "condition", "template", "flow template", "flow branch", "not an expression"];

/// The data of the second column: `input`, or in a branch `result`.
struct Data(Value);

impl Names for Data {
    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        if path.begins_with("secrets") { Found::Secret } else { walk(&self.0, &path.segments).into() }
    }
}

/// The cells of a row of a table: `\|` is a bar, and code loses its quotes.
fn cells(line: &str) -> Vec<String> {
    const BAR: &str = "\u{0}";
    let line = line.replace("\\|", BAR);
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| code(&cell.replace(BAR, "|"))).collect()
}

fn code(cell: &str) -> String {
    let cell = cell.trim();
    let inner = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
    inner.filter(|inner| !inner.contains('`')).unwrap_or(cell).to_owned()
}

/// The result of the first cell, in the notation of the last one.
fn outcome(kind: &str, source: &str, data: &Data) -> String {
    let grammar = if kind.starts_with("flow") { Grammar::Flow } else { Grammar::Standard };
    match kind {
        "template" | "flow template" => {
            let template = match Template::parse(&json!(source), grammar) {
                Ok(template) => template,
                Err(faults) => return format!("refused: {}", faults[0]),
            };
            template.resolve(data).map_or_else(|missing| format!("fails: {missing}"), |found| found.value.to_string())
        }
        _ => match Expr::parse(source, grammar) {
            Err(error) => error.to_string(),
            Ok(expr) if kind == "expression" => {
                let value = expr.value(data).map(|value| value.to_json().to_string());
                assert_eq!(value, expr.read(data).map(|value| value.to_json().to_string()), "{source}");
                value.unwrap()
            }
            Ok(expr) => expr.holds(data).unwrap().to_string(),
        },
    }
}

#[test]
fn every_example_of_an_expression_gives_what_the_table_says() {
    let text = document("expressions.md");
    let mut kind: Option<String> = None;
    let mut seen: Vec<String> = Vec::new();
    let mut faults = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        if !line.starts_with('|') {
            kind = None;
            continue;
        }
        let row = cells(line);
        let Some(kind) = &kind else {
            // A heading and the rule under it; other tables are read past.
            lines.next();
            kind = Some(row[0].clone());
            seen.push(row[0].clone());
            continue;
        };
        if !EXAMPLES.contains(&kind.as_str()) {
            continue;
        }
        let name = if kind == "flow branch" { "result" } else { "input" };
        let data = if row.len() == 3 { row[1].as_str() } else { "null" };
        let data: Value = serde_json::from_str(data).unwrap_or_else(|error| panic!("line {}: {data}: {error}", n + 1));
        let (found, expected) = (outcome(kind, &row[0], &Data(json!({ name: data }))), row.last().unwrap());
        let same = match serde_json::from_str::<Value>(expected) {
            Ok(expected) => serde_json::from_str(&found).is_ok_and(|found: Value| found == expected),
            Err(_) => found == *expected,
        };
        if !same {
            faults.push(format!("expressions.md:{}: {}: expected {expected}, found {found}", n + 1, row[0]));
        }
    }
    report(faults);
    for kind in EXAMPLES {
        assert!(seen.iter().any(|seen| seen == kind), "expressions.md has no table of the kind {kind:?}");
    }
}

#[test]
fn every_function_is_documented() {
    let text = document("expressions.md");
    let missing = functions::NAMES.iter().filter(|name| !text.contains(&format!("`{name}(")));
    report(missing.map(|name| format!("expressions.md does not mention {name}")).collect());
}

/// The codes that the source of a crate gives to failures.
fn failure_codes(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let calls = text.split("Failure::new(").skip(1).chain(text.split("Failure::retryable(").skip(1));
    let code = |rest: &str| rest.trim_start().strip_prefix('"')?.split('"').next().map(str::to_owned);
    calls.filter_map(code).collect()
}

#[test]
fn every_code_of_a_failed_step_is_documented() {
    let documents: String = documents().into_iter().map(|(_, text)| text).collect();
    let mut folders: Vec<PathBuf> = ["core", "engine", "steps"].map(|name| root().join("crates").join(name)).into();
    let (mut known, mut missing) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                let tests = path.ends_with("tests") || path.ends_with("benches");
                folders.extend((!tests).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let codes = failure_codes(&std::fs::read_to_string(&path).unwrap());
                known += codes.len();
                let unknown = codes.iter().filter(|code| !documents.contains(&format!("`{code}`")));
                missing.extend(unknown.map(|code| format!("{}: no page has `{code}`", path.display())));
            }
        }
    }
    report(missing);
    assert!(known > 60, "only {known} codes were found");
}
