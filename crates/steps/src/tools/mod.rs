//! The tools that are built in, and how the small ones are made.

mod chance;
mod echo;
mod http_request;
mod pushover;
mod small;
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
        .with(small::log())
        .with(small::now())
        .with(small::fail())
        .with(chance::uuid())
        .with(chance::random())
        .with(text::json_parse())
        .with(text::base64_encode())
        .with(text::base64_decode())
        .with(text::hash_sha256())
        .with(http_request::HttpRequest::new(Arc::clone(client)))
        .with(pushover::PushoverSend::new(config, Arc::clone(client)))
}

/// A tool that is one function: it waits for nothing.
struct Small {
    spec: ToolSpec,
    run: fn(&Value, &StepCall) -> Result<Value, Failure>,
}

#[async_trait]
impl Tool for Small {
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

/// `properties` as JSON Schema has them; no others are taken.
fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let input_schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    // Those that reach out say otherwise.
    ToolSpec { name: name.into(), description: description.into(), input_schema, idempotent: true }
}

/// A text argument; one that is not given is empty.
fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}
