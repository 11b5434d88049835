//! The built-in tools and a helper for those that are a single function.

mod echo;
mod fail;
mod http_request;
mod log;
mod now;
mod pushover;
mod random;
mod text;

use crate::Config;
use crate::http::Client;
use crate::tool::{Tool, ToolSpec, Tools, failed};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::StepCall;

pub fn built_in(config: &Config, client: &Arc<Client>) -> Tools {
    Tools::default()
        .with(echo::Echo::new())
        .with(log::log())
        .with(now::now())
        .with(fail::fail())
        .with(random::uuid())
        .with(random::random())
        .with(text::json_parse())
        .with(text::base64_encode())
        .with(text::base64_decode())
        .with(text::hash_sha256())
        .with(http_request::HttpRequest::new(Arc::clone(client)))
        .with(pushover::PushoverSend::new(config, Arc::clone(client)))
}

/// A tool that is one synchronous function.
struct FunctionTool {
    spec: ToolSpec,
    run: fn(&Value, &StepCall) -> Result<Value, Failure>,
}

#[async_trait]
impl Tool for FunctionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Arc<Value>, ctx: &StepCall) -> Outcome {
        match (self.run)(&args, ctx) {
            Ok(body) => Outcome::Success(Reply::body(body)),
            Err(failure) => failed(failure),
        }
    }
}

/// Builds a spec whose schema has these `properties` and refuses all others.
fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let input_schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    // Tools with external effects override this.
    ToolSpec { name: name.into(), description: description.into(), input_schema, idempotent: true }
}

/// A text argument; empty if absent.
fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_all_built_in_tools_are_reserved() {
        let tools = crate::tools(&Config::default());
        let names: Vec<&str> = tools.specs().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, stepwell_engine::upstream::BUILT_IN_TOOLS);
    }
}
