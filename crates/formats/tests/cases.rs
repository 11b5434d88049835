//! Golden tests: `cases/**/*.{yaml,json}` with their `.expected` files, which contain the graph of a valid document or
//! the rendered faults of an invalid one. Those in `warned` are valid; their expectations are the rendered warnings.
//!
//! `UPDATE=1 cargo test -p stepwell-formats` rewrites the expectations; read the diff before you commit it.

mod dump;
mod guesses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use stepwell_formats::{Checked, Severity, check, code, read, read_value, render_warnings};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder of cases") {
            let path = entry.expect("an entry").path();
            match path.extension().and_then(|e| e.to_str()) {
                None if path.is_dir() => folders.push(path),
                Some("yaml" | "json") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn outcome(path: &Path) -> (bool, String) {
    let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
    let text = std::fs::read(path).expect("a readable case");
    let Checked { definition, warnings } = check(&text, Some(name));
    let warned = !warnings.is_empty();
    assert_eq!(warned, path.parent().is_some_and(|p| p.ends_with("warned")), "{name}: {warnings:#?}");
    assert!(warnings.iter().all(|warning| warning.severity == Severity::Warning));
    match definition {
        Ok(_) if warned => (true, render_warnings(&warnings, name, &String::from_utf8_lossy(&text))),
        Ok(definition) => (true, dump::dump(&definition)),
        Err(faults) => (false, faults.render(name, &String::from_utf8_lossy(&text))),
    }
}

#[test]
fn every_case_matches_its_expectation() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for path in documents() {
        let expected_path = path.with_extension("expected");
        let (valid, found) = outcome(&path);
        let in_bad = path.parent().is_some_and(|p| p.ends_with("bad"));
        assert_eq!(valid, !in_bad, "{}:\n{found}", path.display());
        if update {
            std::fs::write(&expected_path, &found).expect("a writable folder");
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{}\n--- found\n{found}--- expected\n{expected}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ (UPDATE=1 accepts them):\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_document_means_the_same_as_text_and_as_a_value() {
    for path in documents().iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
        let text = std::fs::read(path).expect("a readable case");
        let (Ok(value), Ok(from_text)) = (serde_json::from_slice(&text), read(&text, Some("x.json"))) else { continue };
        let from_value = read_value(&value).expect("valid as text, so valid as a value");
        assert_eq!(dump::dump(&from_value), dump::dump(&from_text), "{}", path.display());
    }
}

#[test]
fn every_code_is_documented_and_shown_by_some_case() {
    let shown: BTreeSet<String> = documents()
        .iter()
        .filter(|path| path.parent().is_some_and(|p| p.ends_with("bad") || p.ends_with("warned")))
        .filter_map(|path| std::fs::read_to_string(path.with_extension("expected")).ok())
        .flat_map(|text| text.lines().filter_map(code_of).collect::<Vec<_>>())
        .collect();
    let known: BTreeMap<&str, &str> = code::ALL.iter().chain(code::CORE).copied().collect();
    assert_eq!(known.len(), code::ALL.len() + code::CORE.len(), "a code is listed twice");
    let unknown: Vec<&String> = shown.iter().filter(|code| !known.contains_key(code.as_str())).collect();
    assert!(unknown.is_empty(), "codes that src/code.rs does not list: {unknown:?}");
    // Too large for a case (`hostile.rs` generates them), or caught by an earlier check before the builder runs.
    let elsewhere = [
        "limit-bytes",
        "limit-nodes",
        "limit-steps",
        "not-utf8",
        "crosses-body",
        "no-steps",
        "if-with-any",
        "duplicate-step",
        // Reported by the command line, which opens the files.
        "unreadable",
        // Reported by the engine, which knows what an organisation has.
        "missing-here",
        // Reported by the engine, which has the code parsed.
        "bad-code",
        // Reported by the engine, which compiles schemas.
        "limit-schema",
        // Reported by the engine, which knows what else there is.
        "missing-here",
        "tool-name-taken",
    ];
    let missing: Vec<&&str> =
        known.keys().filter(|code| !shown.contains(**code) && !elsewhere.contains(code)).collect();
    assert!(missing.is_empty(), "no case in cases/bad shows {missing:?}");
}

fn code_of(line: &str) -> Option<String> {
    let code = line.strip_suffix(']')?.rsplit_once("  [")?.1;
    Some(code.to_owned())
}

#[test]
fn the_documentation_of_faults_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md");
    let mut all: Vec<(&str, &str)> = code::ALL.iter().chain(code::CORE).copied().collect();
    all.sort_unstable();
    let rows: String = all.iter().map(|(code, meaning)| format!("| `{code}` | {meaning} |\n")).collect();
    let text = format!(
        "# Faults\n\n\
         The faults that `stepwell check` and the API report for a definition. The codes are stable: tools may rely on \
         them.\n\
         This list is generated from `crates/formats/src/code.rs` \
         (`UPDATE=1 cargo test -p stepwell-formats --test cases`).\n\n\
         | code | meaning |\n| --- | --- |\n{rows}"
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("a writable docs folder");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "docs/faults.md is out of date");
}

/// A limit is checked both while reading and by the graph builder: both must report it with the same code.
#[test]
fn one_fault_has_one_code() {
    let all: Vec<(&str, &str)> = code::ALL.iter().chain(code::CORE).copied().collect();
    for (n, (code, meaning)) in all.iter().enumerate() {
        let same = all[..n].iter().find(|(_, other)| other == meaning);
        assert!(same.is_none(), "{code} and {same:?} have the same meaning");
        let limit = meaning.contains("too many") || meaning.contains("too deeply") || meaning.contains("too much");
        assert_eq!(code.starts_with("limit-"), limit || *code == "limit-bytes", "{code}: {meaning}");
    }
}

/// The builder's codes are plain strings in its source: every hyphenated one must be known here.
#[test]
fn every_code_of_the_graph_builder_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/graph");
    let known: BTreeSet<&str> = code::ALL.iter().chain(code::CORE).map(|(code, _)| *code).collect();
    let mut used = BTreeSet::new();
    for file in ["build.rs", "names.rs"] {
        let text = std::fs::read_to_string(folder.join(file)).expect("the builder's source");
        let quoted = text.split('"').skip(1).step_by(2).map(str::to_owned);
        used.extend(quoted.filter(|s| s.contains('-') && s.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }
    let unlisted: Vec<&String> = used.iter().filter(|code| !known.contains(code.as_str())).collect();
    assert!(unlisted.is_empty(), "codes that src/code.rs does not list: {unlisted:?}");
    let gone: Vec<&str> = code::CORE.iter().map(|(code, _)| *code).filter(|code| !used.contains(*code)).collect();
    assert!(gone.is_empty(), "codes that the builder no longer uses: {gone:?}");
}
