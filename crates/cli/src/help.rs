//! The help of the command line: commands by topic, and examples under each command.

#[cfg(test)]
mod documents;
mod examples;

use crate::cli::Cli;
use clap::builder::{StyledStr, Styles};
use clap::{ArgMatches, Command, CommandFactory};
use examples::EXAMPLES;
use std::fmt::Write;

/// The topics of the help, and their commands in the order in which they are listed.
const TOPICS: [(&str, &[&str]); 9] = [
    ("Write definitions", &["check", "test", "simulate", "graph", "schema"]),
    ("Run without a server", &["run", "pipe"]),
    ("Workflows", &["apply", "workflows", "workflow", "enable", "disable", "pause", "resume", "schedule"]),
    ("Runs", &["trigger", "rerun", "runs", "show", "watch", "events", "cancel", "retry", "release"]),
    ("Approvals", &["approvals", "approve", "deny", "review"]),
    ("What steps use", &["secret", "connection", "query", "mcp-server", "tool", "policy"]),
    ("Server and users", &["serve", "mcp", "config", "login", "nodes", "key", "user", "grant", "channel"]),
    ("Stored data", &["doctor", "audit", "backup", "restore", "migrate"]),
    ("This program", &["completion", "man", "bench", "help"]),
];

/// Commands that this program starts itself, many times. They need no help.
const INTERNAL: [&str; 2] = [stepwell_steps::javascript::WORKER, stepwell_steps::mcp::KEEPER];

/// The command line with its help.
pub fn command() -> Command {
    let command = Cli::command();
    if std::env::args_os().nth(1).is_some_and(|first| INTERNAL.iter().any(|name| first == *name)) {
        return command;
    }
    let topics = topics(&command);
    let command = command.subcommand_help_heading("Commands").help_template(topics);
    with_examples(command, "")
}

/// Whether the command that was named is asked for JSON.
pub fn wants_json(matches: &ArgMatches) -> bool {
    let mut inner = matches;
    while let Some((_, more)) = inner.subcommand() {
        inner = more;
    }
    matches!(inner.try_get_one::<bool>("json"), Ok(Some(true)))
}

/// The template of the help of the program. Nothing in a description may look like a placeholder of the template.
fn topics(command: &Command) -> StyledStr {
    let header = Styles::styled();
    let (header, literal) = (*header.get_header(), *header.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (topic, names) in TOPICS {
        let _ = write!(text, "\n{header}{topic}:{header:#}\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_else(|| "Print the help of a command".into());
            let _ = writeln!(text, "  {literal}{name:<11}{literal:#} {about}");
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}\n\n");
    text.push_str("`stepwell help COMMAND` shows the options of a command, and examples.\n");
    text.into()
}

/// Adds the examples of a command and those of its subcommands.
fn with_examples(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_string()).collect();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(name, |inner| with_examples(inner, &path));
    }
    let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == path) else { return command };
    let header = *Styles::styled().get_header();
    let mut text = format!("{header}Examples:{header:#}");
    examples.iter().for_each(|example| text.push_str(&format!("\n  {example}")));
    command.after_help(StyledStr::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;
    use std::collections::BTreeSet;

    pub(super) fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        let inner: Vec<&Command> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
        if inner.is_empty() {
            found.push(path.to_string());
        }
        for command in inner {
            leaves(command, format!("{path} {}", command.get_name()).trim(), found);
        }
    }

    /// Splits a command line as a shell does, as far as the examples need it.
    pub(super) fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
        for c in line.chars() {
            match quote {
                Some(end) if c == end => quote = None,
                Some(_) => word.push(c),
                None if c == '\'' || c == '"' => (quote, any) = (Some(c), true),
                None if c == ' ' => {
                    if any || !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                    any = false;
                }
                None => word.push(c),
            }
        }
        words.push(word);
        words
    }

    #[test]
    fn every_command_has_a_topic() {
        let listed: Vec<&str> = TOPICS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(listed.len(), unique.len(), "a command is in two topics");
        let command = Cli::command();
        let mut visible: BTreeSet<&str> =
            command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(Command::get_name).collect();
        visible.insert("help");
        assert_eq!(unique, visible);
    }

    #[test]
    fn every_command_has_examples_that_can_be_parsed() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "", &mut commands);
        for path in &commands {
            let examples = EXAMPLES.iter().find(|(of, _)| of == path).map(|(_, examples)| *examples);
            let examples = examples.unwrap_or_else(|| panic!("{path} has no example"));
            for example in examples {
                // What comes before a pipe and after a redirection is the shell's.
                let own = example.split(" | ").find(|part| part.starts_with("stepwell ")).unwrap_or_default();
                let own = own.split([';', '>', '<']).next().unwrap_or_default().trim();
                assert!(own.starts_with(&format!("stepwell {path}")), "{path}: {example}");
                let matches = Cli::command().try_get_matches_from(words(own));
                let matches = matches.unwrap_or_else(|error| panic!("{example}: {error}"));
                assert!(Cli::from_arg_matches(&matches).is_ok());
            }
        }
        for (of, _) in EXAMPLES {
            assert!(commands.iter().any(|path| path == of), "there is no command {of}");
        }
    }

    fn undescribed(command: &Command, path: &str, found: &mut Vec<String>) {
        let bare = command.get_arguments().filter(|argument| !argument.is_hide_set() && argument.get_help().is_none());
        found.extend(bare.map(|argument| format!("stepwell{path}: {}", argument.get_id())));
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            undescribed(inner, &format!("{path} {}", inner.get_name()), found);
        }
    }

    #[test]
    fn every_argument_is_described() {
        let mut found = Vec::new();
        undescribed(&Cli::command(), "", &mut found);
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn the_list_of_commands_fits_a_terminal() {
        let text = topics(&Cli::command()).to_string();
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        // What a template would replace.
        let holes = text.matches('{').count();
        assert_eq!(holes, 4, "{text}");
    }
}
