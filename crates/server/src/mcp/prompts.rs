//! The prompt for writing a definition: the goal, and the documentation of the format.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use std::fmt::Write;

const DEFINE: &str = "define_workflow";
const DEFINITIONS: &str = include_str!("../../../../docs/definitions.md");
const EXPRESSIONS: &str = include_str!("../../../../docs/expressions.md");
/// Sections that do not help with writing a definition for workflow_define.
const NEEDLESS: [&str; 2] = ["Limits", "Size"];
/// The dialects and the sections that document them.
const DIALECTS: [(&str, &str); 3] = [("tasks", "Tasks"), ("flow", "Flow"), ("graph", "Graph")];

pub fn list() -> Vec<Prompt> {
    let goal = PromptArgument::new("goal").with_description("What the workflow should do").with_required(true);
    let dialect = "tasks (the default choice), flow or graph; if omitted, all three are documented";
    let dialect = PromptArgument::new("dialect").with_description(dialect).with_required(false);
    let about = "Write a workflow definition and store it; includes the documentation of the format";
    vec![Prompt::new(DEFINE, Some(about), Some(vec![goal, dialect])).with_title("Define a workflow")]
}

pub fn get(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    if name != DEFINE {
        return Err(ErrorData::invalid_params(
            format!("there is no prompt {name:?}; the only one is {DEFINE:?}"),
            None,
        ));
    }
    let text = |name: &str| arguments.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
    let goal =
        text("goal").ok_or_else(|| ErrorData::invalid_params("goal: describe what the workflow should do", None))?;
    let dialect = text("dialect");
    if let Some(unknown) = dialect.filter(|name| DIALECTS.iter().all(|(known, _)| known != name)) {
        let message = format!("dialect: {unknown:?} is not one of tasks, flow, graph");
        return Err(ErrorData::invalid_params(message, None));
    }
    let mut prompt = format!("Write a Stepwell workflow that does this:\n\n{goal}\n\n");
    prompt += "Check it with workflow_define and check_only, fix the reported errors, then store it with \
               workflow_define. Put an approval gate before irreversible actions. ";
    if let Some(dialect) = dialect {
        let _ = write!(prompt, "Write it in the {dialect} dialect. ");
    }
    prompt += "The format:\n\n";
    prompt += &trimmed(DEFINITIONS, dialect);
    prompt.push('\n');
    prompt += &trimmed(EXPRESSIONS, dialect);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, prompt)]))
}

/// A document without the sections that are not needed.
fn trimmed(document: &str, dialect: Option<&str>) -> String {
    let mut kept = String::new();
    let mut keeps = true;
    let mut in_code = false;
    for line in document.lines() {
        in_code ^= line.starts_with("```");
        if let Some(title) = line.strip_prefix("## ").filter(|_| !in_code) {
            let other = DIALECTS.iter().any(|(name, part)| *part == title && dialect.is_some_and(|one| one != *name));
            keeps = !other && !NEEDLESS.contains(&title);
        }
        if keeps {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_explained_without_the_others() {
        let tasks = trimmed(DEFINITIONS, Some("tasks"));
        let all = trimmed(DEFINITIONS, None);
        assert!(tasks.contains("\n## Tasks\n") && !tasks.contains("\n## Flow\n") && !tasks.contains("\n## Graph\n"));
        assert!(DIALECTS.iter().all(|(_, part)| all.contains(&format!("\n## {part}\n"))));
        assert!(NEEDLESS.iter().all(|part| !all.contains(&format!("\n## {part}\n"))));
        assert!(all.contains("## Approval gates") && all.contains("## Step kinds"));
        assert_eq!(all.matches("```").count() % 2, 0);
        // Examples that are refused are marked, or an agent would take them for right.
        assert!(all.contains("\nRefused with `cycle`:\n```yaml\nname: circle\n") && !all.contains("<!--"));
    }
}
