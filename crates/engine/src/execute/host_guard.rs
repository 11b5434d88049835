//! Host policies for requests that are not a step of their own: by code, by a redirect, by a tool with an address of its
//! own, or by a notification channel. They are checked against the URL that is actually requested.
//!
//! Such a request cannot wait for approval, so a policy that requires approval refuses it.

use super::Executor;
use super::permit::{denied, rate_limits};
use super::policies::{Effect, Policies, Policy, Subject};
use crate::error::Error;
use crate::run::{HostGuard, HostRules};
use crate::secrets::host_name;
use crate::workflows::Origin;
use async_trait::async_trait;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;
use url::Url;

/// The host guard of one attempt or delivery.
pub struct PolicyGuard {
    pub executor: Arc<Executor>,
    pub org: OrgId,
    /// The run, if one makes the requests.
    pub origin: Option<Origin>,
    /// What the requests count as besides their host: `tool:http` policies also apply to `fetch` in code.
    pub tools: &'static [&'static str],
    /// The host that was checked before the call.
    pub checked_host: Option<Arc<str>>,
}

impl Executor {
    /// The host policies for requests that are not made by a step.
    pub fn host_guard(self: &Arc<Executor>, org: OrgId) -> Arc<dyn HostGuard> {
        Arc::new(PolicyGuard { executor: self.clone(), org, origin: None, tools: &[], checked_host: None })
    }
}

#[async_trait]
impl HostGuard for PolicyGuard {
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure> {
        let PolicyGuard { executor, org, origin, tools, checked_host } = self;
        let unavailable = |error: Error| Failure::retryable("unavailable", error.to_string());
        let policies = executor.policies(*org).await.map_err(unavailable)?;
        let unreviewed = match origin {
            Some(origin) => executor.runner.workflows.unreviewed(origin).await.map_err(unavailable)?,
            None => None,
        };
        Ok(Arc::new(PolicyRules {
            executor: executor.clone(),
            org: *org,
            tools,
            checked_host: checked_host.clone(),
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
    /// The workflow because of which writing requests are held.
    unreviewed: Option<String>,
    policies: Arc<Policies>,
}

impl HostRules for PolicyRules {
    fn check(&self, url: &Url, writes: bool) -> Result<(), Failure> {
        let Some(host) = host_name(url).filter(|host| self.checked_host.as_deref() != Some(host)) else {
            return Ok(());
        };
        let tools = self.tools.iter().map(|tool| Subject::new("tool", (*tool).to_string()));
        let unreviewed = self.unreviewed.iter().filter(|_| writes).cloned().map(Subject::unreviewed);
        let subjects: Vec<Subject> = [Subject::new("host", host)].into_iter().chain(tools).chain(unreviewed).collect();
        let matching = self.policies.on(&subjects);
        match matching.first() {
            Some(policy) if policy.effect == Effect::Deny => return Err(denied(policy, &subjects)),
            Some(policy) if policy.effect == Effect::RequireApproval => {
                return Err(needs_approval(policy, &subjects[0]));
            }
            Some(_) | None => {}
        }
        let now = self.executor.cluster.clock.now();
        self.executor.rates.admit(rate_limits(&self.executor, self.org, &matching, &subjects), now).map_err(|due| {
            let pause = Millis(due.0.abs_diff(now.0));
            let message = format!("a policy's rate limit for {} is reached: retry in {pause}", subjects[0].name);
            Failure { retry_after: Some(pause), ..Failure::retryable("rate_limited", message) }
        })
    }
}

/// The tools that requests of `fetch` count as.
pub const FETCH: &[&str] = &["fetch", "http"];

fn needs_approval(policy: &Policy, host: &Subject) -> Failure {
    let message = format!(
        "the policy {} requires approval of requests to {}, which only an http step of its own can wait for",
        policy.name, host.name
    );
    Failure::new("approval_required", message)
}
