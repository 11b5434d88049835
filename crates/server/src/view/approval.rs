//! Questions that wait for a person.

use super::Instant;
use super::run::step_id;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    #[schema(value_type = serde_json::Value)]
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
    /// approval, or verdict on a call that may have happened.
    pub kind: String,
    /// Whether you may answer it.
    pub mine: bool,
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
            asks: approval.asks,
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
            kind: if approval.verdict { "verdict" } else { "approval" }.into(),
            mine: approval.mine,
        }
    }
}
