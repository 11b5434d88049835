//! Workflows as tools: each accepted workflow with `expose_as_tool`, under its name and with its `input_schema`.

use super::tools::{object, run_schema};
use crate::app::App;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::unseen::{removed, rewrite};
use stepwell_engine::{Caller, Compiled, Error};

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
            Some(text) => removed(text).into_owned(),
            None => format!("Runs the workflow {:?}.", definition.name),
        };
        let mut schema = self.schema().0;
        rewrite(&mut schema, removed);
        let mut tool = Tool::new(self.name.clone(), description, object(schema));
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
    let exposed = app.engine.workflows(caller).exposed().await?;
    Ok(exposed.into_iter().map(|one| Exposed { name: one.tool, compiled: one.compiled }).collect())
}

pub async fn find(app: &App, caller: &Caller, name: &str) -> Result<Option<Exposed>, Error> {
    Ok(list(app, caller).await?.into_iter().find(|exposed| exposed.name == name))
}
