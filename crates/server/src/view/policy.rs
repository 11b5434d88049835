//! Policies: request and response types.

use super::{Instant, Length};
use serde::{Deserialize, Serialize};
use stepwell_engine::commands::NewPolicy;
use stepwell_engine::{Policy, PolicyEffect, Rate, UnknownOutcome};
use utoipa::ToSchema;

/// An organisation's rule for calls. Applies regardless of the workflow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRequest {
    /// The calls it applies to: `tool:PATTERN`, `host:PATTERN` or `connection:PATTERN`; `unreviewed:WORKFLOW` are calls
    /// with side effects in runs of a version that an agent wrote and no person has accepted.
    pub calls: String,
    /// Calls that it does not apply to, in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    pub effect: EffectName,
    /// Users or roles whose approval counts; if empty, anyone who may approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Number of approvals required.
    #[serde(default = "one")]
    pub approvals: u32,
    /// Whether the user who started the run may approve.
    #[serde(default = "yes")]
    pub allow_self: bool,
    /// An approval not given within this time counts as denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Length>,
    /// A tool call that may have happened is not repeated, unless the tool declares itself idempotent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = UnknownName, required = false)]
    pub at_most_once: Option<UnknownName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = RateView, required = false)]
    pub rate: Option<RateView>,
    /// Explanation for the people it stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyView {
    pub name: String,
    pub calls: String,
    #[serde(default)]
    pub except: Vec<String>,
    pub effect: EffectName,
    pub approvers: Vec<String>,
    pub approvals: u32,
    pub allow_self: bool,
    #[serde(default)]
    pub timeout: Option<Length>,
    #[serde(default)]
    pub at_most_once: Option<UnknownName>,
    #[serde(default)]
    pub rate: Option<RateView>,
    #[serde(default)]
    pub reason: Option<String>,
    pub created_at: Instant,
    pub created_by: String,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectName {
    Allow,
    RequireApproval,
    Deny,
}

/// What to do if it is unknown whether a call was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownName {
    Fail,
    Ask,
}

/// A number of calls in a period.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RateView {
    #[schema(minimum = 1)]
    pub calls: u32,
    pub per: Length,
}

impl From<PolicyRequest> for NewPolicy {
    fn from(request: PolicyRequest) -> NewPolicy {
        NewPolicy {
            calls: request.calls,
            except: request.except,
            effect: match request.effect {
                EffectName::Allow => PolicyEffect::Allow,
                EffectName::RequireApproval => PolicyEffect::RequireApproval,
                EffectName::Deny => PolicyEffect::Deny,
            },
            approvers: request.approvers,
            approvals: request.approvals,
            allow_self: request.allow_self,
            timeout: request.timeout.map(|length| length.0),
            at_most_once: request.at_most_once.map(|unknown| match unknown {
                UnknownName::Fail => UnknownOutcome::Fail,
                UnknownName::Ask => UnknownOutcome::Ask,
            }),
            rate: request.rate.map(|rate| Rate { calls: rate.calls, per: rate.per.0 }),
            reason: request.reason,
        }
    }
}

impl From<Policy> for PolicyView {
    fn from(policy: Policy) -> PolicyView {
        PolicyView {
            name: policy.name,
            calls: policy.calls,
            except: policy.except,
            effect: match policy.effect {
                PolicyEffect::Allow => EffectName::Allow,
                PolicyEffect::RequireApproval => EffectName::RequireApproval,
                PolicyEffect::Deny => EffectName::Deny,
            },
            approvers: policy.approvers,
            approvals: policy.approvals,
            allow_self: policy.allow_self,
            timeout: policy.timeout.map(Length),
            at_most_once: policy.at_most_once.map(|unknown| match unknown {
                UnknownOutcome::Fail => UnknownName::Fail,
                UnknownOutcome::Ask => UnknownName::Ask,
            }),
            rate: policy.rate.map(|rate| RateView { calls: rate.calls, per: Length(rate.per) }),
            reason: policy.reason,
            created_at: policy.created.into(),
            created_by: policy.by,
        }
    }
}
