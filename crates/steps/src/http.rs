//! The `http` kind: sends one request and returns its response as the step's result.
//!
//! `request` parses a resolved input, `body` encodes what is sent, `client` sends it, `response` turns the response into
//! a reply, and `failure` classifies errors: what went wrong, whether the effect may have happened, whether a retry makes
//! sense. Tools that make requests use the same path.
//!
//! Not here: attempts, backoff and the timeout of an attempt (the engine). Dropping the future ends the request.

mod body;
mod client;
mod failure;
mod hosts;
mod request;
mod response;

pub use client::Client;
pub(crate) use client::builder;
pub(crate) use failure::cause;
pub use failure::redacted;
pub use hosts::Hosts;
pub use request::{METHODS, Outgoing, is_read_only};
pub use response::{MAX_BODY_DEPTH, TextResponse, deeper_than};

use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::Outcome;
use stepwell_engine::{StepCall, StepKind};

/// Input: `{url, method?, headers?, body?, form?}`.
pub struct HttpKind {
    client: Arc<Client>,
}

impl HttpKind {
    pub fn new(client: Arc<Client>) -> HttpKind {
        HttpKind { client }
    }
}

#[async_trait]
impl StepKind for HttpKind {
    fn is_read_only(&self, input: &Value) -> bool {
        is_read_only(input)
    }

    async fn run(&self, call: StepCall) -> Outcome {
        match Outgoing::from_input(&call.input, &call.idempotency_key) {
            Ok(outgoing) => {
                let outgoing =
                    outgoing.bound(&call.secrets.bound).guarded(&call.guard).traced(call.traceparent.as_deref());
                match outgoing.signed(call.secrets.signing.as_deref(), &call.idempotency_key) {
                    Ok(outgoing) => self.client.send(outgoing).await,
                    Err(failure) => Outcome::Failure { failure, reply: None },
                }
            }
            Err(failure) => Outcome::Failure { failure, reply: None },
        }
    }
}
