//! The `http` kind: one request, its answer as the step's result.
//!
//! `request` reads a resolved input, `client` sends it, `answer` turns the response into a reply and `failure` says
//! what went wrong, if the effect may be there, and if another attempt is worth it. The same path serves the tools
//! that make requests.
//!
//! Not here: attempts, pauses and the timeout of an attempt (the engine's); dropping the future ends the request.

mod answer;
mod client;
mod failure;
mod hosts;
mod request;

pub use answer::{MAX_BODY_DEPTH, deeper_than};
pub use client::Client;
pub(crate) use client::builder;
pub(crate) use failure::cause;
pub use failure::shown;
pub use hosts::Hosts;
pub use request::{METHODS, Outgoing};

use async_trait::async_trait;
use std::sync::Arc;
use stepwell_core::event::Outcome;
use stepwell_engine::{StepCall, StepKind};

/// Input: `{url, method?, headers?, body?}`.
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
    async fn run(&self, call: StepCall) -> Outcome {
        match Outgoing::read(&call.input, &call.idempotency_key) {
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
