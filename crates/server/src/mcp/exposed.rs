//! Workflows as tools: each workflow with `expose_as_tool`, under its name and with its `input_schema`.

use super::tools::{Named, object, run_schema};
use crate::app::App;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use stepwell_engine::{Caller, Compiled, Error};

/// Maximum length of a tool name that all clients accept.
const LONGEST: usize = 64;
/// The argument for an input that is not an object.
const INPUT: &str = "input";

pub struct Exposed {
    /// The name of the tool.
    pub name: String,
    pub compiled: Arc<Compiled>,
}

impl Exposed {
    pub fn tool(&self) -> Tool {
        let definition = &self.compiled.definition;
        let description = match &definition.description {
            Some(text) => text.clone(),
            None => format!("Runs the workflow {:?}.", definition.name),
        };
        let mut tool = Tool::new(self.name.clone(), description, object(self.schema().0));
        tool.title = Some(definition.name.clone());
        tool.output_schema = Some(object(run_schema()));
        tool.annotations = Some(ToolAnnotations::new().read_only(false).open_world(true));
        tool
    }

    /// The schema of the arguments, and whether the input is under `input`: arguments are always an object, inputs need
    /// not be.
    fn schema(&self) -> (Value, bool) {
        match &self.compiled.definition.input_schema {
            None | Some(Value::Bool(true)) => (json!({"type": "object"}), false),
            Some(Value::Object(schema)) if schema.get("type").is_some_and(|kind| kind == "object") => {
                (Value::Object(schema.clone()), false)
            }
            Some(Value::Object(schema)) if !schema.contains_key("type") && schema.contains_key("properties") => {
                let mut schema = schema.clone();
                schema.insert("type".into(), "object".into());
                (Value::Object(schema), false)
            }
            Some(other) => (json!({"type": "object", "properties": {INPUT: other}, "required": [INPUT]}), true),
        }
    }

    /// The run's input from the arguments of a call.
    pub fn input(&self, mut arguments: Value) -> Value {
        if self.schema().1 { arguments[INPUT].take() } else { arguments }
    }
}

/// The workflows that are tools, with unique names.
pub async fn list(app: &App, caller: &Caller) -> Result<Vec<Exposed>, Error> {
    let mut taken: BTreeSet<String> = Named::ALL.iter().map(|tool| tool.name().to_string()).collect();
    let exposed = app.engine.workflows(caller).exposed().await?;
    Ok(exposed.into_iter().map(|compiled| Exposed { name: free(&compiled.row.name, &mut taken), compiled }).collect())
}

pub async fn find(app: &App, caller: &Caller, name: &str) -> Result<Option<Exposed>, Error> {
    Ok(list(app, caller).await?.into_iter().find(|exposed| exposed.name == name))
}

fn free(workflow: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = plain(workflow);
    let mut name = plain.clone();
    for n in 2.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{plain}_{n}");
    }
    name
}

/// A name that clients accept. A double underscore separates servers from their tools, so workflow tools have none.
fn plain(workflow: &str) -> String {
    let mut name = String::new();
    for c in workflow.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        if !(c == '_' && name.ends_with('_')) && name.len() < LONGEST - 4 {
            name.push(c);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workflow_gets_a_unique_name_that_clients_accept() {
        let mut taken = BTreeSet::from(["workflow_start".to_string()]);
        let mut name = |workflow: &str| free(workflow, &mut taken);
        assert_eq!(name("deploy-it"), "deploy-it");
        assert_eq!(name("Send mail, please"), "Send_mail_please");
        assert_eq!(name("Send mail; please"), "Send_mail_please_2");
        assert_eq!(name("workflow_start"), "workflow_start_2");
        assert_eq!(name("a__b"), "a_b");
        assert_eq!(name("日本"), "_");
        assert_eq!(name("日"), "__2");
        assert!(name(&"x".repeat(128)).len() <= LONGEST);
    }
}
