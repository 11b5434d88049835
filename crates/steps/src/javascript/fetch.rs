//! The server's side of `fetch`: makes the requests of user code, within the egress rules and to the hosts that the
//! workflow allows. Secrets are inserted here, so the code never sees them.

use super::protocol::FetchResponse;
use crate::http::{Client, Hosts, Outgoing, TextResponse};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_engine::{Bound, HostGuard, Mask, SecretAccess, StepCall};
use tokio::sync::Semaphore;

/// Concurrent requests per evaluation; others wait.
const MAX_CONCURRENT: usize = 8;
/// Total requests per evaluation.
pub const MAX_REQUESTS: u32 = 1_000;

pub struct Fetcher {
    client: Arc<Client>,
    hosts: Arc<Hosts>,
    secret_access: Arc<dyn SecretAccess>,
    /// Masks secrets that other steps may have sent.
    mask: Arc<Mask>,
    guard: Option<Arc<dyn HostGuard>>,
    idempotency_key: String,
    traceparent: Option<String>,
    slots: Semaphore,
    /// The prefix of secret placeholders. It is unguessable, so data cannot forge a placeholder.
    pub placeholder: String,
}

impl Fetcher {
    /// `None` if the workflow allows no hosts.
    pub fn new(client: &Arc<Client>, call: &StepCall) -> Result<Option<Fetcher>, Failure> {
        if call.allow_hosts.is_empty() {
            return Ok(None);
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|_| Failure::retryable("unavailable", "the system returned no random bytes"))?;
        Ok(Some(Fetcher {
            client: client.clone(),
            hosts: Arc::new(Hosts::new(&call.allow_hosts)),
            secret_access: call.secret_access.clone(),
            mask: call.secrets.mask.clone(),
            guard: call.guard.clone(),
            idempotency_key: call.idempotency_key.clone(),
            traceparent: call.traceparent.clone(),
            slots: Semaphore::new(MAX_CONCURRENT),
            placeholder: format!("secret-{:032x}", u128::from_le_bytes(random)),
        }))
    }

    /// Makes one request. The code reads the errors, so they are masked as well.
    pub async fn fetch(&self, id: u32, request: Value) -> Result<FetchResponse, String> {
        let Ok(_slot) = self.slots.acquire().await else { return Err("the step has ended".into()) };
        let response = self.response(id, request).await.map_err(|failure| failure.message.to_string());
        match response {
            Ok(mut response) => {
                self.hide(&mut response.headers);
                response.text = self.masked(response.text);
                response.base64 = response.base64.map(|bytes| self.masked(bytes));
                Ok(response)
            }
            Err(message) => Err(self.masked(message)),
        }
    }

    fn masked(&self, text: String) -> String {
        let mut value = Value::String(text);
        self.hide(&mut value);
        if let Value::String(text) = value { text } else { String::new() }
    }

    fn hide(&self, value: &mut Value) {
        self.secret_access.mask(value);
        self.mask.value(value);
    }

    async fn response(&self, id: u32, mut request: Value) -> Result<FetchResponse, Failure> {
        // Checked before any secret is revealed; the client checks the final URL and each redirect again.
        self.hosts.host_of(&request)?;
        let mut bound = Vec::new();
        for field in ["url", "headers", "body"] {
            if let Some(value) = request.get_mut(field) {
                self.fill(value, &mut bound).await?;
            }
        }
        let key = format!("{}:{id}", self.idempotency_key);
        let outgoing =
            Outgoing::from_input(&request, &key)?.traced(self.traceparent.as_deref()).within(self.hosts.clone());
        let outgoing = outgoing.bound(&bound.into()).guarded(&self.guard);
        let TextResponse { status, headers, text, base64 } = self.client.fetch(outgoing).await?;
        Ok(FetchResponse { status, headers, text, base64 })
    }

    /// Replaces placeholders by their secrets.
    async fn fill(&self, value: &mut Value, bound: &mut Vec<Bound>) -> Result<(), Failure> {
        match value {
            Value::String(text) => {
                while let Some(start) = text.find(&self.placeholder) {
                    let rest = &text[start + self.placeholder.len()..];
                    let Some(name) = rest.strip_prefix('.').and_then(|rest| rest.split('.').next()) else {
                        return Err(Failure::new("bad_request", "a secret's placeholder was split"));
                    };
                    let end = (start + self.placeholder.len() + name.len() + 2).min(text.len());
                    let secret = self.secret_access.secret(name).await?;
                    bound.extend(secret.bound);
                    text.replace_range(start..end, &secret.value);
                }
            }
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    Box::pin(self.fill(field, bound)).await?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    Box::pin(self.fill(item, bound)).await?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }
}
