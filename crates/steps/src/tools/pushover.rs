//! The `pushover_send` tool: sends a push notification through Pushover's message API.
//!
//! The recipient and the application token come from the arguments or from the server's configuration. The latter belong
//! to the operator, so other organisations get them only if the operator shares them.

use super::spec;
use crate::Config;
use crate::http::{Client, Outgoing};
use crate::tool::{Tool, ToolSpec, failed};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::StepCall;
use stepwell_store::OrgId;
use url::form_urlencoded::Serializer;

/// Emergency messages repeat until acknowledged. The API requires an interval and an expiry for them.
const EMERGENCY: i64 = 2;
const EMERGENCY_RETRY_SECS: &str = "60";
const EMERGENCY_EXPIRE_SECS: &str = "3600";

pub struct PushoverSend {
    spec: ToolSpec,
    client: Arc<Client>,
    url: String,
    user: Option<String>,
    token: Option<String>,
    shared: bool,
}

impl PushoverSend {
    pub fn new(config: &Config, client: Arc<Client>) -> PushoverSend {
        let properties = json!({
            "message": {"type": "string"},
            "title": {"type": "string"},
            "priority": {"type": "integer", "minimum": -2, "maximum": EMERGENCY, "description": "-2 (silent) to 2"},
            "url": {"type": "string"},
            "url_title": {"type": "string"},
            "sound": {"type": "string"},
            "device": {"type": "string"},
            "html": {"type": "boolean"},
            "timestamp": {"type": "integer", "description": "Unix time in seconds"},
            "ttl": {"type": "integer", "minimum": 1, "description": "seconds until the message is deleted"},
            "retry": {"type": "integer", "minimum": 30, "description": "priority 2: seconds between repetitions"},
            "expire": {"type": "integer", "minimum": 1, "maximum": 10800, "description": "priority 2: total seconds"},
            "user": {"type": "string", "description": "user or group key; default: the server's PUSHOVER_USER"},
            "token": {"type": "string", "description": "application token; default: the server's PUSHOVER_TOKEN"},
        });
        PushoverSend {
            spec: ToolSpec {
                idempotent: false,
                ..spec("pushover_send", "Sends a push notification with Pushover.", properties, &["message"])
            },
            client,
            url: format!("{}/1/messages.json", config.pushover_url.trim_end_matches('/')),
            user: config.pushover_user.clone(),
            token: config.pushover_token.clone(),
            shared: config.pushover_shared,
        }
    }

    fn form(&self, args: &Value, org: OrgId) -> Result<String, Failure> {
        let shared = self.shared || org == OrgId::OPERATOR;
        let credential = |name: &str, configured: &Option<String>| {
            let given = args.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let found = given.map(str::to_owned).or_else(|| configured.clone().filter(|_| shared));
            let variable = name.to_uppercase();
            let message = match shared {
                true => format!("set `args.{name}`, or start the server with PUSHOVER_{variable}"),
                false => format!("set `args.{name}`; the server's own is not shared with this organisation"),
            };
            found.ok_or_else(|| Failure::new("no_credentials", format!("Pushover needs a {name}: {message}")))
        };
        let mut form = Serializer::new(String::new());
        form.append_pair("token", &credential("token", &self.token)?);
        form.append_pair("user", &credential("user", &self.user)?);
        for (name, value) in args.as_object().into_iter().flatten() {
            let text = match value {
                Value::String(_) if matches!(name.as_str(), "user" | "token") => continue,
                Value::String(text) => text.clone(),
                Value::Bool(on) => u8::from(*on).to_string(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => continue,
            };
            form.append_pair(name, &text);
        }
        if args.get("priority").and_then(crate::tool::integer) == Some(EMERGENCY) {
            for (name, default) in [("retry", EMERGENCY_RETRY_SECS), ("expire", EMERGENCY_EXPIRE_SECS)] {
                if args.get(name).is_none_or(Value::is_null) {
                    form.append_pair(name, default);
                }
            }
        }
        Ok(form.finish())
    }
}

#[async_trait]
impl Tool for PushoverSend {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Arc<Value>, ctx: &StepCall) -> Outcome {
        let request = self.form(&args, ctx.caller.org).and_then(|form| {
            let headers = json!({"content-type": "application/x-www-form-urlencoded"});
            Outgoing::from_input(&json!({"url": self.url, "headers": headers, "body": form}), &ctx.idempotency_key)
        });
        let outgoing = match request {
            Ok(outgoing) => outgoing.guarded(&ctx.guard),
            Err(failure) => return failed(failure),
        };
        match self.client.send(outgoing).await {
            Outcome::Success(reply) => Outcome::Success(Reply { body: reply.body, ..Reply::default() }),
            Outcome::Failure { failure, reply } => Outcome::Failure { failure: explained(failure, &reply), reply },
        }
    }
}

/// Adds the error texts of the service's response to the failure.
fn explained(failure: Failure, reply: &Option<Reply>) -> Failure {
    let errors = reply.as_ref().and_then(|reply| reply.body.get("errors")).and_then(Value::as_array);
    let errors: Vec<&str> = errors.into_iter().flatten().filter_map(Value::as_str).take(5).collect();
    if errors.is_empty() {
        return failure;
    }
    let message = format!("{}: {}", failure.message, errors.join("; ")).into();
    Failure { message, ..failure }
}
