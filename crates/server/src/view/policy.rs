//! Policies: request and response types.

use super::{Instant, Length};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{NewPolicy, PolicyTest};
use stepwell_engine::{
    Policy, PolicyCounts, PolicyEffect, PolicyLog, PolicyMode, PolicySample, PolicyVerdict, Rate, UnknownOutcome,
};
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
    /// A condition that the call must meet, over `args`, `caller`, `time`, `workflow`, `reviewed`, `tool`, `host` and
    /// `connection`: `args.amount > 500 && caller.agent`. If it cannot be decided, it counts as met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(default)]
    pub mode: ModeName,
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
    /// Whether an approver may change the arguments of the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub allow_changes: bool,
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
    #[serde(default)]
    pub when: Option<String>,
    #[serde(default)]
    pub mode: ModeName,
    pub effect: EffectName,
    pub approvers: Vec<String>,
    pub approvals: u32,
    pub allow_self: bool,
    #[serde(default)]
    pub allow_changes: bool,
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

/// Whether a policy has an effect. With `log`, what it would do is only counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModeName {
    #[default]
    Enforce,
    Log,
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
            when: request.when,
            mode: match request.mode {
                ModeName::Enforce => PolicyMode::Enforce,
                ModeName::Log => PolicyMode::Log,
            },
            effect: match request.effect {
                EffectName::Allow => PolicyEffect::Allow,
                EffectName::RequireApproval => PolicyEffect::RequireApproval,
                EffectName::Deny => PolicyEffect::Deny,
            },
            approvers: request.approvers,
            approvals: request.approvals,
            allow_self: request.allow_self,
            allow_changes: request.allow_changes,
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
            when: policy.when,
            mode: match policy.mode {
                PolicyMode::Enforce => ModeName::Enforce,
                PolicyMode::Log => ModeName::Log,
            },
            effect: match policy.effect {
                PolicyEffect::Allow => EffectName::Allow,
                PolicyEffect::RequireApproval => EffectName::RequireApproval,
                PolicyEffect::Deny => EffectName::Deny,
            },
            approvers: policy.approvers,
            approvals: policy.approvals,
            allow_self: policy.allow_self,
            allow_changes: policy.allow_changes,
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

/// What a policy in the mode `log` would have done since it was set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyLogView {
    pub counts: PolicyCountsView,
    /// The newest calls that it would have stopped, newest first; at most 20.
    pub samples: Vec<PolicySampleView>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyCountsView {
    pub denied: u64,
    /// Calls that would have waited for an approval.
    pub held: u64,
    /// Calls over the rate.
    pub delayed: u64,
    /// Calls that it matches and lets through.
    pub allowed: u64,
    /// Calls on which its condition could not be decided, so that it counted as met.
    pub undecided: u64,
}

/// A call that a policy stops.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicySampleView {
    pub at: Instant,
    pub verdict: PolicyVerdictName,
    #[serde(default)]
    pub run: Option<String>,
    #[serde(default)]
    pub step: Option<String>,
    #[serde(default)]
    pub workflow: Option<String>,
    /// The user who started the run.
    #[serde(default)]
    pub user: Option<String>,
    /// What is called: `tool pay`.
    pub call: String,
    /// The arguments as JSON, without secrets, cut off after 1,000 bytes.
    pub args: String,
    /// Why the condition could not be decided.
    #[serde(default)]
    pub undecided: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdictName {
    Denied,
    Held,
    Delayed,
    Allowed,
}

impl From<PolicyCounts> for PolicyCountsView {
    fn from(counts: PolicyCounts) -> PolicyCountsView {
        let PolicyCounts { denied, held, delayed, allowed, undecided } = counts;
        PolicyCountsView { denied, held, delayed, allowed, undecided }
    }
}

impl From<PolicyLog> for PolicyLogView {
    fn from(log: PolicyLog) -> PolicyLogView {
        PolicyLogView { counts: log.counts.into(), samples: log.samples.into_iter().map(Into::into).collect() }
    }
}

impl From<PolicySample> for PolicySampleView {
    fn from(sample: PolicySample) -> PolicySampleView {
        PolicySampleView {
            at: sample.at.into(),
            verdict: match sample.verdict {
                PolicyVerdict::Denied => PolicyVerdictName::Denied,
                PolicyVerdict::Held => PolicyVerdictName::Held,
                PolicyVerdict::Delayed => PolicyVerdictName::Delayed,
                PolicyVerdict::Allowed => PolicyVerdictName::Allowed,
            },
            run: sample.run,
            step: sample.step,
            workflow: sample.workflow,
            user: sample.user,
            call: sample.call,
            args: sample.args,
            undecided: sample.undecided,
        }
    }
}

/// Policies to try on the calls of past runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyTestRequest {
    /// The policies by name; by default those that are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, PolicyRequest>, required = false)]
    pub policies: Option<BTreeMap<String, PolicyRequest>>,
    /// How far back the runs were created: 7d by default, at most 90d.
    #[serde(default = "week")]
    pub since: Length,
}

fn week() -> Length {
    Length(Millis::from_secs(7 * 24 * 3600))
}

/// What policies would have done with past calls.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PolicyTestView {
    pub since: Instant,
    pub runs: u64,
    pub calls: u64,
    /// Runs whose payloads were erased: their calls are not known.
    pub erased: u64,
    /// False if there are more runs or calls than one test looks at: the newest 2,000 and 20,000.
    pub is_complete: bool,
    /// What all policies together would have done: each call counts once, with the strongest effect.
    pub counts: PolicyCountsView,
    pub policies: Vec<TriedPolicyView>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TriedPolicyView {
    pub name: String,
    pub counts: PolicyCountsView,
    /// The newest calls that it would have stopped, newest first; at most 20.
    pub samples: Vec<PolicySampleView>,
}

impl From<PolicyTest> for PolicyTestView {
    fn from(test: PolicyTest) -> PolicyTestView {
        let policies = test.policies.into_iter().map(|(name, log)| {
            let PolicyLogView { counts, samples } = log.into();
            TriedPolicyView { name, counts, samples }
        });
        PolicyTestView {
            since: test.since.into(),
            runs: test.runs,
            calls: test.calls,
            erased: test.erased,
            is_complete: test.is_complete,
            counts: test.counts.into(),
            policies: policies.collect(),
        }
    }
}
