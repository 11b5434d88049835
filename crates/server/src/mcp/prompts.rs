//! The prompt for writing a definition: the goal, and the text of `workflow_help`.

use super::help;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use std::fmt::Write;

const DEFINE: &str = "define_workflow";
const DIALECTS: [&str; 3] = ["tasks", "flow", "graph"];

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
    if let Some(unknown) = dialect.filter(|name| !DIALECTS.contains(name)) {
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
    prompt += &help::all(dialect);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, prompt)]))
}
