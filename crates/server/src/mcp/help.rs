//! `workflow_help`: how to write definitions, a topic at a time. Models cannot fetch prompts by themselves, so it is a
//! tool; the prompt has the same text.

use crate::error::Problem;

const DIALECTS: &str = include_str!("help/dialects.md");
const STEPS: &str = include_str!("help/steps.md");
const EXPRESSIONS: &str = include_str!("help/expressions.md");
const GATES: &str = include_str!("help/gates.md");
const EXAMPLES: &str = include_str!("help/examples.md");

/// The topics, in the order in which they are best read.
pub const TOPICS: [(&str, &str); 5] =
    [("dialects", DIALECTS), ("steps", STEPS), ("expressions", EXPRESSIONS), ("gates", GATES), ("examples", EXAMPLES)];

/// The text about a topic.
pub fn about(topic: &str) -> Result<&'static str, Problem> {
    let found = TOPICS.iter().find(|(name, _)| *name == topic);
    found
        .map(|(_, text)| *text)
        .ok_or_else(|| Problem::input("topic", "one of dialects, steps, expressions, gates, examples"))
}

/// All that is needed to write a definition, without the other dialects if one is chosen.
pub fn all(dialect: Option<&str>) -> String {
    let mut kept = String::new();
    let (mut keeps, mut in_code) = (true, false);
    for line in TOPICS.iter().flat_map(|(_, text)| text.lines().chain([""])) {
        in_code ^= line.starts_with("```");
        if !in_code && let Some(title) = line.strip_prefix('#').map(|title| title.trim_start_matches('#').trim()) {
            keeps = !["tasks", "flow", "graph"].contains(&title) || dialect.is_none_or(|dialect| dialect == title);
        }
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::Named;
    use stepwell_core::graph::{Call, Kind};
    use stepwell_engine::upstream::BUILT_IN_TOOLS;

    /// A token of English and code is about 3.5 bytes for the models in use; most count fewer.
    const BYTES_PER_TOKEN: f64 = 3.5;

    /// The definitions in a text, and what each is refused for if it is marked.
    fn definitions(text: &str) -> Vec<(String, Option<String>)> {
        let (mut found, mut mark) = (Vec::new(), None);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            match line.strip_prefix("Refused [").and_then(|rest| rest.strip_suffix("]:")) {
                Some(code) => mark = Some(code.to_string()),
                None if line.starts_with("```") => {
                    let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
                    found.push((block.join("\n"), mark.take()));
                }
                None => {}
            }
        }
        found
    }

    #[test]
    fn every_definition_in_the_help_is_valid_or_marked_as_refused() {
        for (topic, text) in TOPICS {
            for (definition, mark) in definitions(text) {
                let checked = stepwell_formats::check(definition.as_bytes(), None);
                match (checked.definition, mark) {
                    (Ok(_), None) => {
                        assert!(checked.warnings.is_empty(), "{topic}: {:?}\n{definition}", checked.warnings)
                    }
                    (Err(faults), Some(code)) => {
                        assert_eq!(faults.list[0].code, code, "{topic}: {faults}\n{definition}")
                    }
                    (Ok(_), Some(code)) => panic!("{topic}: marked as {code}, but valid:\n{definition}"),
                    (Err(faults), None) => panic!("{topic}: {faults}\n{definition}"),
                }
            }
        }
    }

    #[test]
    fn a_topic_has_less_than_2000_tokens() {
        for (topic, text) in TOPICS {
            let tokens = text.len() as f64 / BYTES_PER_TOKEN;
            println!("workflow_help {topic}: {} bytes, about {tokens:.0} tokens", text.len());
            assert!(tokens < 2_000.0, "{topic}: about {tokens:.0} tokens");
        }
    }

    #[test]
    fn the_help_names_only_tools_that_exist() {
        let own: Vec<&str> = Named::ALL.into_iter().map(Named::name).collect();
        for (topic, text) in TOPICS {
            for (definition, mark) in definitions(text) {
                let Ok(definition) = stepwell_formats::read(definition.as_bytes(), None) else {
                    assert!(mark.is_some());
                    continue;
                };
                for step in &definition.graph.steps {
                    if let Kind::Call { call: Call::Tool, input } = &step.def.kind {
                        let known = input.known();
                        let tool = known["tool"].as_str().unwrap();
                        assert!(BUILT_IN_TOOLS.contains(&tool), "{topic}: {tool}");
                    }
                }
            }
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            for word in words.filter(|word| word.starts_with("workflow_") || word.ends_with("_list")) {
                assert!(own.contains(&word), "{topic} names {word}");
            }
        }
    }

    #[test]
    fn the_prompt_explains_a_dialect_without_the_others() {
        let (tasks, every) = (all(Some("tasks")), all(None));
        assert!(tasks.contains("\n## tasks\n") && !tasks.contains("\n## flow\n") && !tasks.contains("\n## graph\n"));
        assert!(TOPICS.iter().all(|(_, text)| every.contains(text.trim())));
        assert_eq!(tasks.matches("```").count() % 2, 0);
    }
}
