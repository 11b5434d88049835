//! Steps that wait for people or for webhooks.

use crate::{Approval, Call, Client, Error, Pages, Run};
use serde::Serialize;
use serde_json::{Value, json};

/// What is said with an answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Answer {
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The filled form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The digest of what you saw. The answer is refused if the question has changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Client {
    /// Open approvals, oldest first.
    pub fn approvals(&self) -> Pages<'_, Approval> {
        Pages::new(self, &["approvals"], Vec::new())
    }

    /// Approves what a step asks.
    pub async fn approve(&self, run: &str, step: &str, answer: Answer) -> Result<Run, Error> {
        self.data(Call::post(&["runs", run, "steps", step, "approve"]).json(json!(answer))).await
    }

    /// Denies what a step asks.
    pub async fn deny(&self, run: &str, step: &str, answer: Answer) -> Result<Run, Error> {
        self.data(Call::post(&["runs", run, "steps", step, "deny"]).json(json!(answer))).await
    }

    /// Delivers a call to a step that waits for a webhook. See [`answer_wait`](crate::webhooks::answer_wait) for callers
    /// that have the address of the step and no key.
    pub async fn deliver(&self, run: &str, step: &str, body: Value) -> Result<Value, Error> {
        let body = crate::client::or_empty(body);
        self.data(Call::post(&["runs", run, "steps", step, "deliver"]).json(body)).await
    }
}
