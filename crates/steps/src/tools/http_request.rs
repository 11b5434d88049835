//! The `http_request` tool: an `http` step as a tool. Its result is one object: `{status_code, headers, body}`.

use super::spec;
use crate::http::{Client, METHODS, Outgoing, is_read_only};
use crate::tool::{Tool, ToolSpec, failed};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::{Outcome, Reply};
use stepwell_engine::StepCall;

pub struct HttpRequest {
    spec: ToolSpec,
    client: Arc<Client>,
}

impl HttpRequest {
    pub fn new(client: Arc<Client>) -> HttpRequest {
        let properties = json!({
            "url": {"type": "string", "description": "absolute http or https URL"},
            "method": {"type": "string", "enum": METHODS, "description": "default: POST"},
            "headers": {"type": "object"},
            "body": {"description": "text is sent unchanged, any other value as JSON"},
            "form": {"type": "object", "description": "sent as a form, instead of a body"},
        });
        let description = "Makes an HTTP request. Any 2xx status is a success. Returns status_code, headers and body.";
        let spec = spec("http_request", description, properties, &["url"]);
        HttpRequest { spec: ToolSpec { idempotent: false, ..spec }, client }
    }
}

#[async_trait]
impl Tool for HttpRequest {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self, args: &Value) -> bool {
        is_read_only(args)
    }

    async fn call(&self, args: Arc<Value>, ctx: &StepCall) -> Outcome {
        let outgoing = match Outgoing::from_input(&args, &ctx.idempotency_key) {
            Ok(outgoing) => outgoing.bound(&ctx.secrets.bound).guarded(&ctx.guard),
            Err(failure) => return failed(failure),
        };
        match self.client.send(outgoing).await {
            Outcome::Success(reply) => Outcome::Success(whole(reply)),
            Outcome::Failure { failure, reply } => Outcome::Failure { failure, reply: reply.map(whole) },
        }
    }
}

/// Wraps a reply into one object. The reply keeps its status because retry rules match on it. It is not marked as
/// truncated, so that status and headers stay readable if the body inside is cut.
fn whole(reply: Reply) -> Reply {
    let Reply { body, headers, status_code, truncated, log: _ } = reply;
    let mut result = json!({"status_code": status_code, "headers": headers, "body": body});
    if truncated {
        result["truncated"] = true.into();
    }
    Reply { status_code, ..Reply::body(result) }
}
