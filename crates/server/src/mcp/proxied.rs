//! Tools of connected servers, offered within the caller's grants, and the results of calling them.

use super::exposed::{self, Exposed};
use super::runs::{Detail, RunState};
use super::tools::object;
use super::{bounds, resources};
use crate::app::App;
use rmcp::model::{CallToolResult, ContentBlock, Resource, Tool, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::unseen::{removed, rewrite};
use stepwell_engine::commands::CALLED;
use stepwell_engine::upstream::Offered;
use stepwell_engine::{Caller, Error};

/// A tool that is not one of the fixed ones.
pub enum Other {
    Workflow(Exposed),
    Tool(Arc<Offered>),
}

pub async fn find(app: &App, caller: &Caller, name: &str) -> Result<Option<Other>, Error> {
    if let Some(exposed) = exposed::find(app, caller, name).await? {
        return Ok(Some(Other::Workflow(exposed)));
    }
    let offered = app.engine.mcp_servers(caller).proxied().await?.into_iter().find(|offered| offered.name == name);
    Ok(offered.map(Other::Tool))
}

/// The tool as its server offers it, except for its name and for characters that a reader does not see. It has no output
/// schema, because a call may have to wait for approval.
pub fn tool(offered: &Offered) -> Tool {
    let mut schema = offered.input_schema.clone();
    rewrite(&mut schema, removed);
    let description = removed(&offered.description).into_owned();
    let mut tool = Tool::new(offered.name.clone(), description, object(schema));
    tool.title = offered.title.as_deref().map(|title| removed(title).into_owned());
    let mut annotations = offered.annotations.clone();
    annotations.iter_mut().for_each(|hints| rewrite(hints, removed));
    let given = annotations.and_then(|given| serde_json::from_value::<ToolAnnotations>(given).ok());
    tool.annotations = given;
    tool
}

/// Whether the run is a single call of a tool.
pub fn is_call(state: &RunState) -> bool {
    state.run.labels.get(CALLED) == Some(&state.run.workflow)
}

/// The tool's own result, or the state of the run if the call has not ended.
pub fn result(state: &RunState) -> CallToolResult {
    let run = &state.run;
    match run.status.as_str() {
        "completed" => {
            let output = run.output.clone().unwrap_or_default();
            let text = match &output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let cut = text.len() > bounds::TEXT || bounds::size(&output) > bounds::STRUCTURED;
            let mut result = CallToolResult::success(vec![ContentBlock::text(bounds::cut(&text, bounds::TEXT))]);
            if cut {
                let more = format!("The result is cut: read it with step_result, run_id {:?}.", run.id);
                result.content.push(ContentBlock::text(more));
                let link = Resource::new(resources::of_run(&run.id), format!("run {}", run.id));
                result.content.push(ContentBlock::resource_link(link.with_mime_type("application/json")));
            }
            result.structured_content = Some(bounds::fit(output, bounds::STRUCTURED)).filter(Value::is_object);
            result
        }
        "failed" | "timeout" | "cancelled" => state.outcome(),
        _ => state.shown(Detail::Brief),
    }
}
