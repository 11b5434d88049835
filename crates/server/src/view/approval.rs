//! Questions that wait for a person.

use super::run::step_id;
use super::{ApprovalKind, Instant, OnTimeout, StepKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_core::time::Time;
use stepwell_engine::commands::Approval;
use utoipa::ToSchema;

/// A gate that waits for a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApprovalView {
    /// For `POST /api/v1/steps/{id}/ready`.
    pub id: String,
    pub run_id: String,
    pub step: String,
    pub workflow: String,
    #[serde(default)]
    pub version: u32,
    pub attempt: u32,
    /// The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
    /// denial (`on_denial`).
    #[schema(value_type = Question)]
    pub asks: Value,
    /// Digest of everything shown. An answer refers to it.
    #[serde(default)]
    pub digest: Option<String>,
    /// Number of approvals required.
    #[serde(default)]
    pub approvals: u32,
    /// Who has approved so far, if several approvals are required.
    #[serde(default)]
    pub approved_by: Vec<String>,
    pub since: Instant,
    /// When it is decided without an answer.
    #[serde(default)]
    pub until: Option<Instant>,
    /// What happens then: approve or deny. Null if it waits as long as the run lasts.
    #[serde(default)]
    #[schema(value_type = Option<OnTimeout>)]
    pub on_timeout: Option<String>,
    /// Why it may not reach anyone who can answer it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// When `escalate_to` are asked as well, unless it is answered before.
    #[serde(default)]
    pub escalates_at: Option<Instant>,
    /// Whether it has been escalated.
    #[serde(default)]
    pub escalated: bool,
    pub created_by: String,
    /// Who asked for the run, in words: the user, or an agent's key with its user and what its client calls itself.
    #[serde(default)]
    #[schema(required = true)]
    pub asked_by: String,
    #[schema(value_type = ApprovalKind)]
    pub kind: String,
    /// Whether you may answer it.
    pub mine: bool,
}

/// What a gate or a held call asks. Of a verdict: the input of the call, with fields of its own.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes a value that is passed on as it is")]
pub struct Question {
    #[schema(required = false)]
    message: String,
    /// Users or roles who may answer; if there are none, everyone with the right.
    #[schema(required = false)]
    approvers: Vec<String>,
    /// Users or roles who may answer as well once it has escalated.
    #[schema(required = false)]
    escalate_to: Vec<String>,
    /// Whether the user who started the run may answer.
    #[schema(required = false)]
    allow_self: bool,
    /// Whether an approval may change the call.
    #[schema(required = false)]
    allow_changes: bool,
    /// What the call was before approvers changed it, oldest first.
    #[schema(required = false)]
    changed: Vec<EarlierCall>,
    /// JSON Schema of the data to give with an approval.
    #[schema(value_type = Form, required = false)]
    form: Value,
    /// The calls that an approval allows.
    #[schema(required = false)]
    calls: Vec<AskedCall>,
    /// Number of further calls, which are not covered.
    #[schema(required = false)]
    more_calls: u32,
    /// The calls that may follow a denial.
    #[schema(required = false)]
    on_denial: Vec<AskedCall>,
    #[schema(required = false)]
    more_on_denial: u32,
    /// What happens without an answer in time.
    #[schema(value_type = OnTimeout, required = false)]
    on_timeout: String,
    /// The policy that holds the call.
    #[schema(required = false)]
    policy: String,
    /// The MCP server that asks.
    #[schema(required = false)]
    server: String,
    /// The tool that asks.
    #[schema(required = false)]
    tool: String,
    #[schema(required = false)]
    digest: String,
    #[schema(required = false)]
    asked_at: Instant,
}

/// A held call as it was before an approver changed it.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes a value that is passed on as it is")]
pub struct EarlierCall {
    /// Who changed it.
    by: String,
    #[schema(value_type = serde_json::Value)]
    input: Value,
    digest: String,
}

/// A call that an answer allows or leads to.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes a value that is passed on as it is")]
pub struct AskedCall {
    /// Path of the step.
    step: String,
    #[schema(value_type = StepKind)]
    kind: String,
    #[schema(required = false)]
    tool: String,
    #[schema(required = false)]
    workflow: String,
    /// The arguments, as far as they are known.
    #[schema(value_type = serde_json::Value, required = false)]
    input: Value,
    /// Binds the approval to exactly this call; only if the call is covered.
    #[schema(required = false)]
    digest: String,
    /// The call depends on results that are not known yet, so it is not covered.
    #[schema(required = false)]
    not_yet_known: bool,
    /// JSON Pointers to the unknown parts of the arguments.
    #[schema(required = false)]
    unknown: Vec<String>,
    /// The call is also made if it is approved.
    #[schema(required = false)]
    also_if_approved: bool,
    /// The arguments are too long to be shown, so the call is not covered.
    #[schema(required = false)]
    too_large_to_show: bool,
}

/// A JSON Schema, usually of an object whose properties are the fields of a form.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes a value that is passed on as it is")]
pub struct Form {
    #[schema(required = false, rename = "type")]
    kind: String,
    #[schema(required = false)]
    title: String,
    #[schema(required = false)]
    description: String,
    /// Schemas by the name of the field.
    #[schema(value_type = std::collections::BTreeMap<String, Object>, required = false)]
    properties: Value,
    #[schema(required = false)]
    required: Vec<String>,
}

/// The question in one shape: definitions give a name where a list is meant, and a message of any type.
fn shown(mut asks: Value) -> Value {
    let Some(fields) = asks.as_object_mut() else { return asks };
    for name in ["approvers", "escalate_to"] {
        if let Some(one @ Value::String(_)) = fields.get_mut(name) {
            *one = Value::Array(vec![one.take()]);
        }
    }
    if let Some(at) = fields.get_mut("asked_at")
        && let Some(time) = at.as_i64()
    {
        *at = Value::String(Time(time).to_string());
    }
    if let Some(message) = fields.get_mut("message").filter(|message| !message.is_string()) {
        *message = Value::String(message.to_string());
    }
    asks
}

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> ApprovalView {
        ApprovalView {
            id: step_id(&approval.run, &approval.step),
            run_id: approval.run,
            step: approval.step,
            workflow: approval.workflow,
            version: approval.version,
            attempt: approval.attempt,
            asks: if approval.verdict { approval.asks } else { shown(approval.asks) },
            digest: approval.digest,
            approvals: approval.approvals,
            approved_by: approval.approved_by,
            since: approval.since.into(),
            until: approval.until.map(Instant),
            on_timeout: approval.on_timeout.map(str::to_string),
            warnings: approval.warnings,
            escalates_at: approval.escalates.map(Instant),
            escalated: approval.escalated,
            created_by: approval.created_by,
            asked_by: approval.asked_by.to_string(),
            kind: if approval.verdict { "verdict" } else { "approval" }.into(),
            mine: approval.mine,
        }
    }
}
