//! `fetch` on the server's side: the code asks, the server makes the request, within the egress rules and to the hosts that
//! the workflow names. A secret is filled in here, so that the code never sees it.

use super::wire::Answer;
use crate::http::{Client, Hosts, Outgoing};
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_engine::{Bound, HostGuard, Mask, SecretAccess, StepCall};
use tokio::sync::Semaphore;

/// Requests of one evaluation at a time; the others wait.
const AT_ONCE: usize = 8;
/// Requests of one evaluation.
pub const MOST: u32 = 1_000;

pub struct Fetcher {
    client: Arc<Client>,
    hosts: Arc<Hosts>,
    secret_access: Arc<dyn SecretAccess>,
    /// Of what other steps may have sent.
    mask: Arc<Mask>,
    guard: Option<Arc<dyn HostGuard>>,
    idempotency_key: String,
    traceparent: Option<String>,
    turns: Semaphore,
    /// Placeholders of secrets begin with it. Nobody can guess it, so data that looks like a placeholder is only data.
    pub mark: String,
}

impl Fetcher {
    /// None if the workflow names no hosts.
    pub fn new(client: &Arc<Client>, call: &StepCall) -> Result<Option<Fetcher>, Failure> {
        if call.allow_hosts.is_empty() {
            return Ok(None);
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| Failure::retryable("unavailable", "no random numbers"))?;
        Ok(Some(Fetcher {
            client: client.clone(),
            hosts: Arc::new(Hosts::new(&call.allow_hosts)),
            secret_access: call.secret_access.clone(),
            mask: call.secrets.mask.clone(),
            guard: call.guard.clone(),
            idempotency_key: call.idempotency_key.clone(),
            traceparent: call.traceparent.clone(),
            turns: Semaphore::new(AT_ONCE),
            mark: format!("secret-{:032x}", u128::from_le_bytes(random)),
        }))
    }

    /// Makes one request. Errors are for the code to read, so they hold no secret either.
    pub async fn fetch(&self, id: u32, request: Value) -> Result<Answer, String> {
        let Ok(_turn) = self.turns.acquire().await else { return Err("the step is over".into()) };
        let answer = self.answer(id, request).await.map_err(|failure| failure.message.to_string());
        match answer {
            Ok(mut answer) => {
                self.hide(&mut answer.headers);
                answer.text = self.masked(answer.text);
                Ok(answer)
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

    async fn answer(&self, id: u32, mut request: Value) -> Result<Answer, Failure> {
        // Before a secret is revealed; the client looks again at what came out and at each redirect.
        self.hosts.host_of(&request)?;
        let mut bound = Vec::new();
        for field in ["url", "headers", "body"] {
            if let Some(value) = request.get_mut(field) {
                self.fill(value, &mut bound).await?;
            }
        }
        let key = format!("{}:{id}", self.idempotency_key);
        let outgoing = Outgoing::read(&request, &key)?.traced(self.traceparent.as_deref()).within(self.hosts.clone());
        let outgoing = outgoing.bound(&bound.into()).guarded(&self.guard);
        let answer = self.client.fetch(outgoing).await?;
        Ok(Answer { status: answer.status, headers: answer.headers, text: answer.text })
    }

    /// Puts secrets in the places of their placeholders.
    async fn fill(&self, value: &mut Value, bound: &mut Vec<Bound>) -> Result<(), Failure> {
        match value {
            Value::String(text) => {
                while let Some(start) = text.find(&self.mark) {
                    let rest = &text[start + self.mark.len()..];
                    let Some(name) = rest.strip_prefix('.').and_then(|rest| rest.split('.').next()) else {
                        return Err(Failure::new("bad_request", "a placeholder of a secret was cut up"));
                    };
                    let end = (start + self.mark.len() + name.len() + 2).min(text.len());
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
