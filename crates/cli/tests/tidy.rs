//! Tidiness is a test: what a reader relies on in every file, and which crate may know which.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// Past this a file has a seam somewhere.
const MAX_LINES: usize = 600;
const MAX_WIDTH: usize = 125;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of the project with one of these endings, without built and installed ones.
fn files(endings: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut todo = vec![root()];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "node_modules", "dist"].contains(&name.as_str()) && !name.starts_with(".git") {
                    todo.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty());
    found.sort();
    found
}

fn report(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let faults = files(&[".rs"]).into_iter().filter(|(_, text)| !text.starts_with("//! "));
    report(faults.map(|(path, _)| format!("{}: no //! at the top", path.display())).collect());
}

#[test]
fn no_file_is_too_long_or_too_wide() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs", ".sh", "Makefile"]) {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            faults.push(format!("{}: {lines} lines; look for the seam", path.display()));
        }
        for (n, line) in text.lines().enumerate() {
            if line.chars().count() > MAX_WIDTH && !line.contains("http") && !line.trim_start().starts_with('"') {
                faults.push(format!("{}:{}: {} columns", path.display(), n + 1, line.chars().count()));
            }
        }
    }
    report(faults);
}

#[test]
fn text_files_are_clean() {
    // Put together here, so that this file does not find itself.
    let banned = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["/wo", "rk/"].concat(), ["XX", "X"].concat()];
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs", ".md", ".toml", ".yaml", ".sh", "Makefile"]) {
        // Hostile inputs of tests have what no other file may.
        if path.components().any(|part| part.as_os_str() == "cases") {
            continue;
        }
        if !text.ends_with('\n') || text.ends_with("\n\n") {
            faults.push(format!("{}: does not end in one line break", path.display()));
        }
        for (n, line) in text.lines().enumerate() {
            let tab = line.contains('\t') && !path.ends_with("Makefile");
            if line.ends_with([' ', '\t']) || tab {
                faults.push(format!("{}:{}: stray white space", path.display(), n + 1));
            }
            for word in banned.iter().filter(|word| line.contains(word.as_str())) {
                faults.push(format!("{}:{}: {word}", path.display(), n + 1));
            }
        }
    }
    report(faults);
}

/// What people read of a line: all of a document or of a source file, in tests and scripts the comment or the test's name.
fn prose<'a>(path: &Path, line: &'a str) -> &'a str {
    let within = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    let is = |ending: &str| path.extension().is_some_and(|e| e == ending);
    if is("md") || is("rs") && within("src") {
        return line;
    }
    let comment = if is("py") || is("sh") { "#" } else { "//" };
    let name = line.find("fn ").map(|at| line[at..].split('(').next().unwrap_or_default());
    line.find(comment).map(|at| &line[at..]).or(name).unwrap_or_default()
}

/// The stilted word or phrase of a text. The words are split here, so that this file does not find itself.
fn stilted(text: &str) -> Option<String> {
    let words = [["who", "ever"], ["whom", "ever"], ["no", "body"], ["me", "nd"], ["me", "nds"], ["men", "ded"]];
    let phrases = [["of them ", "no"], ["sees ", "to it"], ["see ", "to it"]];
    // The user that owns nothing is called so by the system.
    let text = text.to_lowercase().replace(&format!("\"{}\"", words[2].concat()), "");
    let plain: String = text.chars().map(|c| if c.is_alphabetic() { c } else { ' ' }).collect();
    let padded = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
    let all = words.iter().chain(&phrases).map(|parts| parts.concat());
    all.into_iter().find(|one| padded.contains(&format!(" {one} ")))
}

#[test]
fn texts_use_plain_words() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs", ".md", ".py", ".sh", ".ts", ".tsx"]) {
        if path.components().any(|part| part.as_os_str() == "cases") {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            let found = stilted(prose(&path, line));
            faults.extend(found.map(|word| format!("{}:{}: \"{word}\"", path.display(), n + 1)));
        }
    }
    report(faults);
}

#[test]
fn a_stilted_word_is_noticed() {
    for text in
        ["the run of who_ever started it", "No_body answers.", "Of them no event tells", "it is men_ded", "a_no_body_b"]
    {
        assert!(stilted(&text.replace("o_e", "oe").replace("o_b", "ob").replace("n_d", "nd")).is_some(), "{text}");
    }
    for text in ["amend", "recommended", "no body is sent", "see the page"] {
        assert_eq!(stilted(text), None);
    }
}

#[test]
fn crates_depend_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("core", &[]),
        ("formats", &["core"]),
        ("store", &["core"]),
        ("engine", &["core", "formats", "store"]),
        ("steps", &["core", "engine", "store"]),
        ("server", &["core", "engine", "formats", "store"]),
        // The engine inside other programs: without the server.
        ("embedded", &["core", "engine", "steps", "store"]),
        // Only for tests: no other crate may depend on it outside of those.
        ("testing", &["core", "engine", "store"]),
        // Programs of others use it: it must not bring the engine or the server along.
        ("client", &[]),
        ("cli", &["client", "core", "engine", "formats", "server", "steps", "store"]),
    ];
    let mut faults = Vec::new();
    for (name, may) in allowed {
        let text = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for line in dependencies.lines().filter_map(|line| line.strip_prefix("stepwell-")) {
            let other = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !may.contains(&other) {
                faults.push(format!("crates/{name} must not depend on {other}"));
            }
        }
    }
    let known: Vec<&str> = allowed.iter().map(|(name, _)| *name).collect();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if !known.contains(&name.as_str()) {
            faults.push(format!("crates/{name}: say here what it may depend on"));
        }
    }
    report(faults);
}

#[test]
fn the_core_is_pure() {
    let banned =
        ["std::fs", "std::net", "std::env", "std::process", "std::thread", "SystemTime", "Instant::now", "tokio"];
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs"]).into_iter().filter(|(path, _)| path.starts_with(root().join("crates/core/src")))
    {
        for word in banned.iter().filter(|word| text.contains(**word)) {
            faults.push(format!("{}: {word}", path.display()));
        }
    }
    report(faults);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Vec::new();
    for (path, text) in files(&[".md"]) {
        for part in text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !outside && !path.parent().unwrap().join(target).exists() {
                faults.push(format!("{}: {target} does not exist", path.display()));
            }
        }
    }
    report(faults);
}

/// The rooms of the engine, lowest first. A room may import from rooms before its own line, and from itself.
const ROOMS: [&[&str]; 12] = [
    &["error"],
    &["records", "schema"],
    &["cluster"],
    &["access"],
    &["secrets"],
    &["workflows"],
    &["run"],
    &["execute", "notify", "triggers"],
    &["rooms"],
    &["upkeep", "doctor", "log"],
    &["engine"],
    &["commands"],
];

fn level(room: &str) -> Option<usize> {
    ROOMS.iter().position(|rooms| rooms.contains(&room))
}

/// The imports of a file of this room that lead up, sideways or to a room that is not listed.
fn upward(room: &str, text: &str) -> Vec<String> {
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let mut faults = Vec::new();
    for (n, line) in code {
        for rest in line.split("crate::").skip(1) {
            let to = rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default();
            let allowed = to == room || level(to).zip(level(room)).is_some_and(|(to, from)| to < from);
            if !allowed {
                faults.push(format!("{}: {room} imports {to}", n + 1));
            }
        }
    }
    faults
}

#[test]
fn rooms_of_the_engine_import_downwards_only() {
    let source = root().join("crates/engine/src");
    let mut faults = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let Ok(inside) = path.strip_prefix(&source) else { continue };
        let room = inside.components().next().unwrap().as_os_str().to_string_lossy().replace(".rs", "");
        if room == "lib" {
            continue;
        }
        if level(&room).is_none() {
            faults.push(format!("{}: the room {room} has no level", path.display()));
        }
        faults.extend(upward(&room, &text).into_iter().map(|fault| format!("{}:{fault}", path.display())));
    }
    report(faults);
}

#[test]
fn an_upward_import_is_noticed() {
    let planted = [
        ("run", "use crate::execute::Executor;\n"),
        ("run", "    crate::commands::Caller::local(\"x\");\n"),
        ("notify", "use crate::triggers::Hook;\n"),
        ("access", "use crate::attic::Box;\n"),
        // Several rooms in one line cannot be checked line by line.
        ("execute", "use crate::{run::Live, access};\n"),
    ];
    for (room, text) in planted {
        assert_eq!(upward(room, text).len(), 1, "{room}: {text}");
    }
    assert_eq!(upward("run", "use crate::workflows::Compiled;\n// crate::commands is above\n"), Vec::<String>::new());
    assert_eq!(upward("execute", "use crate::run::Live;\nuse crate::execute::Kinds;\n"), Vec::<String>::new());
}
