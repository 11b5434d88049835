//! `http_request`: what an `http` step does, as a tool. Its result is one object: `{status_code, headers, body}`.

use super::spec;
use crate::http::{Client, METHODS, Outgoing};
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
            "url": {"type": "string", "description": "absolute, http or https"},
            "method": {"type": "string", "enum": METHODS, "description": "POST if not given"},
            "headers": {"type": "object"},
            "body": {"description": "text is sent as it is, anything else as JSON"},
        });
        let description = "Makes an HTTP request. 2xx is success; the result has status_code, headers and body.";
        let spec = spec("http_request", description, properties, &["url"]);
        HttpRequest { spec: ToolSpec { idempotent: false, ..spec }, client }
    }
}

#[async_trait]
impl Tool for HttpRequest {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Arc<Value>, ctx: &StepCall) -> Outcome {
        let outgoing = match Outgoing::read(&args, &ctx.idempotency_key) {
            Ok(outgoing) => outgoing.bound(&ctx.secrets.bound).guarded(&ctx.guard),
            Err(failure) => return failed(failure),
        };
        match self.client.send(outgoing).await {
            Outcome::Success(reply) => Outcome::Success(whole(reply)),
            Outcome::Failure { failure, reply } => Outcome::Failure { failure, reply: reply.map(whole) },
        }
    }
}

/// The status stays beside the body as well: retries may be chosen by it. The reply as a whole is not cut off, so that
/// its status and headers can be read where the body inside it is.
fn whole(reply: Reply) -> Reply {
    let Reply { body, headers, status_code, truncated, log: _ } = reply;
    let mut result = json!({"status_code": status_code, "headers": headers, "body": body});
    if truncated {
        result["truncated"] = true.into();
    }
    Reply { status_code, ..Reply::body(result) }
}
