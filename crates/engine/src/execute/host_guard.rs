//! Host policies for requests during a call: by code, by a redirect, or by a tool with an address of its own. They are
//! checked against the URL that is actually requested.
//!
//! A call cannot wait for approval at that point, so a policy that requires approval refuses the request.

use super::Executor;
use super::permit::{denied, rate_limits};
use super::policies::{Effect, Policies, Policy, Subject};
use crate::error::Error;
use crate::secrets::host_name;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;
use url::Url;

/// Gives a step access to the organisation's host policies.
#[async_trait]
pub trait HostGuard: Send + Sync {
    /// The current rules, for one request and its redirects.
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure>;
}

/// The host policies at one point in time.
pub trait HostRules: Send + Sync {
    /// Checks a URL. Must be called before any data is sent there.
    fn check(&self, url: &Url) -> Result<(), Failure>;
}

impl fmt::Debug for dyn HostGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostGuard")
    }
}

/// The host guard of one attempt.
pub struct PolicyGuard {
    pub executor: Arc<Executor>,
    pub org: OrgId,
    /// The host that was checked before the call.
    pub checked_host: Option<Arc<str>>,
}

#[async_trait]
impl HostGuard for PolicyGuard {
    async fn rules(&self) -> Result<Arc<dyn HostRules>, Failure> {
        let PolicyGuard { executor, org, checked_host } = self;
        let unavailable = |error: Error| Failure::retryable("unavailable", error.to_string());
        let policies = executor.policies(*org).await.map_err(unavailable)?;
        Ok(Arc::new(PolicyRules {
            executor: executor.clone(),
            org: *org,
            checked_host: checked_host.clone(),
            policies,
        }))
    }
}

struct PolicyRules {
    executor: Arc<Executor>,
    org: OrgId,
    checked_host: Option<Arc<str>>,
    policies: Arc<Policies>,
}

impl HostRules for PolicyRules {
    fn check(&self, url: &Url) -> Result<(), Failure> {
        let Some(host) = host_name(url).filter(|host| self.checked_host.as_deref() != Some(host)) else {
            return Ok(());
        };
        let subjects = [Subject::new("host", host)];
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

fn needs_approval(policy: &Policy, host: &Subject) -> Failure {
    let message = format!(
        "the policy {} requires approval of requests to {}, which is not possible during a call: \
         use a separate http step",
        policy.name, host.name
    );
    Failure::new("approval_required", message)
}
