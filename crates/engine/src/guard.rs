//! Policies on hosts for requests that are made in the middle of a call: by code, by a redirect, by a tool that has an
//! address of its own. They are asked of the URL that is really requested.
//!
//! Nobody can be asked there, so a policy that wants an approval refuses.

use crate::engine::Inner;
use crate::hosts::host_name;
use crate::permit::{denied, paces};
use crate::policies::{Effect, Policies, Policy, Subject, policies};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::time::Millis;
use stepwell_store::OrgId;
use url::Url;

#[async_trait]
pub trait Guard: Send + Sync {
    /// What holds now, for one request and wherever it is redirected to.
    async fn rules(&self) -> Result<Arc<dyn Rules>, Failure>;
}

pub trait Rules: Send + Sync {
    /// To be asked of every URL before anything is sent there.
    fn check(&self, url: &Url) -> Result<(), Failure>;
}

impl fmt::Debug for dyn Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// For one attempt.
pub struct HostGuard {
    pub inner: Arc<Inner>,
    pub org: OrgId,
    /// The host that was looked at before the call.
    pub passed: Option<Arc<str>>,
}

#[async_trait]
impl Guard for HostGuard {
    async fn rules(&self) -> Result<Arc<dyn Rules>, Failure> {
        let HostGuard { inner, org, passed } = self;
        let unknown = |error: crate::Error| Failure::retryable("unavailable", error.to_string());
        let policies = policies(inner, *org).await.map_err(unknown)?;
        Ok(Arc::new(HostRules { inner: inner.clone(), org: *org, passed: passed.clone(), policies }))
    }
}

struct HostRules {
    inner: Arc<Inner>,
    org: OrgId,
    passed: Option<Arc<str>>,
    policies: Arc<Policies>,
}

impl Rules for HostRules {
    fn check(&self, url: &Url) -> Result<(), Failure> {
        let Some(host) = host_name(url).filter(|host| self.passed.as_deref() != Some(host)) else { return Ok(()) };
        let subjects = [Subject::new("host", host)];
        let fitting = self.policies.on(&subjects);
        match fitting.first() {
            Some(policy) if policy.effect == Effect::Deny => return Err(denied(policy, &subjects)),
            Some(policy) if policy.effect == Effect::RequireApproval => return Err(unasked(policy, &subjects[0])),
            Some(_) | None => {}
        }
        let now = self.inner.clock.now();
        self.inner.paces.admit(paces(&self.inner, self.org, &fitting, &subjects), now).map_err(|due| {
            let pause = Millis(due.0.abs_diff(now.0));
            let message = format!("a policy lets no more requests through to {} now, but in {pause}", subjects[0].name);
            Failure { retry_after: Some(pause), ..Failure::retryable("rate_limited", message) }
        })
    }
}

fn unasked(policy: &Policy, host: &Subject) -> Failure {
    let message = format!(
        "the policy {} asks for approval of requests to {}, and in the middle of a call nobody can be asked: call it in an \
         http step of its own",
        policy.name, host.name
    );
    Failure::new("approval_required", message)
}
