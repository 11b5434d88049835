//! The documents and the command line agree: every command that a page shows can be parsed, and `docs/cli.md` has every
//! option and no others.
//!
//! Not here: carrying commands out. `tests/server/documents.rs` does that for most pages.

use super::tests::{leaves, words};
use crate::cli::Cli;
use clap::{Command, CommandFactory};
use std::path::{Path, PathBuf};

/// Options that `docs/cli.md` explains once for all commands.
const COMMON: [&str; 8] = ["help", "version", "json", "data", "url", "api-key", "database", "config"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = ["README.md", "SECURITY.md", "CONTRIBUTING.md"].map(|name| root().join(name)).into();
    paths.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The command lines of a page: lines of its shell blocks, and code in its text that has an argument.
fn command_lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<bool> = None;
    let mut unfinished = String::new();
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(["sh", "console"].contains(&language)) };
        } else if block == Some(true) {
            unfinished.push_str(line.strip_suffix('\\').unwrap_or(line));
            if !line.ends_with('\\') {
                found.push(std::mem::take(&mut unfinished));
            }
        } else if block.is_none() && !line.starts_with('#') {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_string));
        }
    }
    found
}

/// What a shell passes to `stepwell`, if the line has it and no placeholders.
fn own(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next()?;
    let part = line.split(" | ").flat_map(|part| part.split("&& ")).find(|part| {
        let part = part.trim_start().trim_start_matches("sudo -u stepwell ");
        part.starts_with("stepwell ")
    })?;
    let own = part.trim_start().trim_start_matches("sudo -u stepwell ").split(['<', '>', ';']).next()?.trim();
    let own = words(own);
    let is_form = |word: &String| word.contains(['[', '…', '|']) || word == "COMMAND";
    (own.len() > 1 && !own.iter().any(is_form)).then_some(own)
}

#[test]
fn every_command_that_a_page_shows_can_be_parsed() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (page, text) in pages() {
        for words in command_lines(&text).iter().filter_map(|line| own(line)) {
            count += 1;
            // A command without its arguments names it, as in "see `stepwell secret set`".
            let parsed = Cli::command().try_get_matches_from(&words);
            let error = parsed.err().filter(|error| !is_short(error.kind()));
            wrong.extend(error.map(|error| format!("{page}: {}: {error}", words.join(" "))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} commands were found");
}

fn is_short(kind: clap::error::ErrorKind) -> bool {
    use clap::error::ErrorKind::*;
    matches!(
        kind,
        MissingRequiredArgument
            | MissingSubcommand
            | DisplayHelp
            | DisplayVersion
            | DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The sections of `docs/cli.md` that describe commands, with the names of the commands.
fn sections() -> Vec<(Vec<String>, String)> {
    let text = std::fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let mut found = Vec::new();
    for section in text.split("\n## ").filter(|section| section.starts_with("`stepwell ")) {
        let heading = section.lines().next().unwrap_or_default();
        let spans = heading.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("stepwell "));
        let names = spans.filter_map(|span| span.split(' ').next()).flat_map(|names| names.split('|'));
        found.push((names.map(str::to_string).collect(), section.to_string()));
    }
    found
}

fn options(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(|option| option.get_long());
    let mut all: Vec<String> = own.map(str::to_string).collect();
    all.extend(command.get_subcommands().filter(|inner| !inner.is_hide_set()).flat_map(options));
    all
}

#[test]
fn the_reference_has_every_command_and_option_and_no_others() {
    let command = Cli::command();
    let sections = sections();
    let mut wrong = Vec::new();
    for one in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let name = one.get_name();
        let of: Vec<&String> =
            sections.iter().filter(|(names, _)| names.iter().any(|n| n == name)).map(|(_, text)| text).collect();
        if of.is_empty() {
            wrong.push(format!("`stepwell {name}` has no section"));
        }
        let shown = |option: &String| of.iter().any(|text| text.contains(&format!("--{option}")));
        let missing = options(one).into_iter().filter(|option| !COMMON.contains(&&**option) && !shown(option));
        wrong.extend(missing.map(|option| format!("`stepwell {name}`: --{option} is not described")));
        let mut inner = Vec::new();
        leaves(one, "", &mut inner);
        let unnamed = inner.iter().filter(|path| !path.is_empty() && !of.iter().any(|text| text.contains(&***path)));
        wrong.extend(unnamed.map(|path| format!("`stepwell {name} {path}` is not described")));
    }
    let known = options(&command);
    for (names, text) in &sections {
        let shown = text.split("--").skip(1).map(|rest| {
            rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default().trim_end_matches('-')
        });
        let unknown = shown.filter(|option| !option.is_empty() && !known.iter().any(|known| known == option));
        wrong.extend(unknown.map(|option| format!("{names:?}: there is no --{option}")));
    }
    assert!(wrong.is_empty(), "docs/cli.md:\n{}", wrong.join("\n"));
}
