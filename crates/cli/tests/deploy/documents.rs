//! docs/deployment.md: every command of Stepwell that it shows exists, with these options.

use crate::harness::{stdout_of, text};
use std::collections::BTreeSet;

/// The lines of its shell blocks; continued lines are joined.
fn lines() -> Vec<String> {
    let document = text("docs/deployment.md");
    let blocks = document.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().replace("\\\n", " "));
    blocks.flat_map(|block| block.lines().map(str::to_string).collect::<Vec<_>>()).collect()
}

#[test]
fn every_command_in_the_document_exists_with_its_options() {
    let mut seen = BTreeSet::new();
    for line in lines() {
        let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
        // Ours is the last word of that name: before it may stand the user and the machine that run it.
        let Some(at) = words.iter().rposition(|word| *word == "stepwell") else { continue };
        let Some(command) = words.get(at + 1).filter(|word| word.chars().all(|c| c.is_ascii_lowercase())) else {
            continue;
        };
        let nested = words.get(at + 2).filter(|_| *command == "config" || *command == "key");
        let arguments: Vec<&str> = [Some(command), nested].into_iter().flatten().copied().chain(["--help"]).collect();
        let help = stdout_of(&arguments);
        for option in words[at + 2..].iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{line}: `stepwell {command}` has no {option}");
        }
        seen.insert(command.to_string());
    }
    for command in ["backup", "restore", "doctor"] {
        assert!(seen.contains(command), "the document does not show `stepwell {command}`");
    }
}
