//! Host policies for requests that are not a step of their own: by code, by a redirect, by a tool with an address of its
//! own, or by a notification channel. They are checked against the URL that is actually requested.
//!
//! Such a request cannot wait for approval, so a policy that requires approval refuses it.

use super::Executor;
use super::conditions::{CallFacts, Who, request_args};
use super::permit::{denied, describe, is_over_rate, rate_limits, who};
use super::policies::{Effect, Match, Policies, Subject};
use super::policy_log::{Sample, Verdict, shown_args};
use super::step::Principal;
use crate::error::Error;
use crate::run::{HostGuard, HostRules};
use crate::secrets::host_name;
use crate::workflows::Origin;
use async_trait::async_trait;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::time::{Millis, Time};
use stepwell_store::OrgId;
use url::Url;

/// The host guard of one attempt or delivery.
pub struct PolicyGuard {
    pub executor: Arc<Executor>,
    pub org: OrgId,
    /// The run, if one makes the requests, and the users it acts for.
    pub origin: Option<(Origin, Principal)>,
    /// The step of the run.
    pub step: Option<String>,
    /// What the requests count as besides their host: `tool:http` policies also apply to `fetch` in code.
    pub tools: &'static [&'static str],
    /// The host that was checked before the call.
    pub checked_host: Option<Arc<str>>,
}

impl Executor {
    /// The host policies for requests that are not made by a step.
    pub fn host_guard(self: &Arc<Executor>, org: OrgId) -> Arc<dyn HostGuard> {
        Arc::new(PolicyGuard { executor: self.clone(), org, origin: None, step: None, tools: &[], checked_host: None })
    }
}

#[async_trait]
impl HostGuard for PolicyGuard {
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure> {
        let PolicyGuard { executor, org, origin, step, tools, checked_host } = self;
        let unavailable = |error: Error| Failure::retryable("unavailable", error.to_string());
        let policies = executor.policies(*org).await.map_err(unavailable)?;
        let (mut unreviewed, mut made_by) = (None, Who::default());
        if let Some((origin, caller)) = origin {
            unreviewed = executor.runner.workflows.unreviewed(origin).await.map_err(unavailable)?;
            made_by = who(executor, caller, origin).await.map_err(unavailable)?;
        }
        Ok(Arc::new(PolicyRules {
            executor: executor.clone(),
            org: *org,
            tools,
            checked_host: checked_host.clone(),
            run: origin.as_ref().map(|(origin, _)| origin.run.to_string()),
            step: step.clone(),
            who: made_by,
            unreviewed,
            policies,
        }))
    }
}

struct PolicyRules {
    executor: Arc<Executor>,
    org: OrgId,
    tools: &'static [&'static str],
    checked_host: Option<Arc<str>>,
    run: Option<String>,
    step: Option<String>,
    who: Who,
    /// The workflow because of which writing requests are held.
    unreviewed: Option<String>,
    policies: Arc<Policies>,
}

impl HostRules for PolicyRules {
    fn check(&self, url: &Url, method: &str) -> Result<(), Failure> {
        let Some(host) = host_name(url).filter(|host| self.checked_host.as_deref() != Some(host)) else {
            return Ok(());
        };
        let tools = self.tools.iter().map(|tool| Subject::new("tool", (*tool).to_string()));
        let writes = !["GET", "HEAD"].contains(&method);
        let unreviewed = self.unreviewed.iter().filter(|_| writes).cloned().map(Subject::unreviewed);
        let subjects: Vec<Subject> = [Subject::new("host", host)].into_iter().chain(tools).chain(unreviewed).collect();
        let (args, now) = (request_args(url, method), self.executor.cluster.clock.now());
        let facts = CallFacts::new(&self.who, &subjects, Cow::Borrowed(&args), now);
        let (matching, logged) = self.policies.matching(&subjects, &facts);
        logged.into_iter().for_each(|matched| self.log(&matched, &subjects, method, now));
        match matching.first() {
            Some(matched) if matched.policy.effect == Effect::Deny => return Err(denied(matched, &subjects)),
            Some(matched) if matched.policy.effect == Effect::RequireApproval => {
                return Err(needs_approval(matched, &subjects[0]));
            }
            Some(_) | None => {}
        }
        self.executor.rates.admit(rate_limits(&self.executor, self.org, &matching, &subjects), now).map_err(|due| {
            let pause = Millis(due.0.abs_diff(now.0));
            let message = format!("a policy's rate limit for {} is reached: retry in {pause}", subjects[0].name);
            Failure { retry_after: Some(pause), ..Failure::retryable("rate_limited", message) }
        })
    }
}

impl PolicyRules {
    fn log(&self, matched: &Match<'_>, subjects: &[Subject], method: &str, now: Time) {
        let verdict = match matched.verdict() {
            Verdict::Allowed if is_over_rate(&self.executor, self.org, matched, subjects, now) => Verdict::Delayed,
            verdict => verdict,
        };
        let sample = Sample {
            at: now,
            verdict,
            run: self.run.clone(),
            step: self.step.clone(),
            workflow: self.who.workflow.as_deref().map(str::to_string),
            user: self.who.user.as_deref().map(str::to_string),
            call: describe(subjects),
            // The rest of the URL may contain a secret.
            args: shown_args(&json!({"method": method, "host": subjects[0].name})),
            undecided: None,
        };
        self.executor.policy_logs.add(self.org, matched, verdict, sample);
    }
}

/// The tools that requests of `fetch` count as.
pub const FETCH: &[&str] = &["fetch", "http"];

fn needs_approval(matched: &Match<'_>, host: &Subject) -> Failure {
    let message = format!(
        "the policy {} requires approval of requests to {}, which only an http step of its own can wait for{}",
        matched.policy.name,
        host.name,
        matched.doubt()
    );
    Failure::new("approval_required", message)
}
