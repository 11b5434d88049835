//! Secrets for a running step. Its code requests them by name when it makes a request, so they cannot be filled into
//! its input beforehand. All secrets that it accessed are masked in the step's result.

use super::Executor;
use super::permit::rights;
use super::step::{Principal, StepCall};
use crate::access::Need;
use crate::error::Error;
use crate::secrets::{Bound, Mask, Opened, SIGNING};
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use stepwell_core::event::{Failure, Outcome};
use url::Url;

/// Gives the code of a step access to secrets.
#[async_trait]
pub trait SecretAccess: Send + Sync {
    /// Returns a secret. Refused unless all actors of the run currently have the right to it.
    async fn secret(&self, name: &str) -> Result<AccessedSecret, Failure>;

    /// Replaces secrets with their names.
    fn mask(&self, value: &mut Value);
}

/// A secret for one request.
pub struct AccessedSecret {
    pub value: Arc<str>,
    /// The hosts it may be sent to. `None`: all hosts.
    pub bound: Option<Bound>,
}

impl fmt::Debug for dyn SecretAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretAccess")
    }
}

/// The secret access of one attempt.
pub struct CallSecrets {
    executor: Arc<Executor>,
    caller: Principal,
    accessed: Mutex<Mask>,
}

impl CallSecrets {
    pub fn new(executor: &Arc<Executor>, caller: &Principal) -> CallSecrets {
        CallSecrets { executor: executor.clone(), caller: caller.clone(), accessed: Mutex::default() }
    }

    /// Masks the accessed secrets in an outcome.
    pub fn outcome(&self, outcome: Outcome) -> Outcome {
        self.accessed.lock().unwrap_or_else(PoisonError::into_inner).outcome(outcome)
    }
}

#[async_trait]
impl SecretAccess for CallSecrets {
    async fn secret(&self, name: &str) -> Result<AccessedSecret, Failure> {
        rights(&self.executor.access, &self.caller, &[Need::Secret(name)]).await?;
        let found = self.executor.secrets.secret(self.caller.org, name).await.map_err(locked)?;
        let Opened { value, hosts, .. } =
            found.ok_or_else(|| Failure::new("unknown_secret", format!("there is no secret named {name}")))?;
        self.accessed.lock().unwrap_or_else(PoisonError::into_inner).hide(name, &value);
        let bound = Bound { secret: name.into(), hosts, left_behind: false };
        Ok(AccessedSecret { value, bound: (!bound.hosts.is_empty()).then_some(bound) })
    }

    fn mask(&self, value: &mut Value) {
        self.accessed.lock().unwrap_or_else(PoisonError::into_inner).value(value);
    }
}

fn locked(error: Error) -> Failure {
    match error {
        Error::Unavailable(why) => Failure::retryable("unavailable", why),
        error => Failure::new("secret_locked", error.to_string()),
    }
}

/// Lets a call sign its request with the organisation's signing secret, if there is one, the run may use it, and it may be
/// used for the request's host. Other requests are sent without a signature.
pub async fn sign(executor: &Executor, call: &mut StepCall) -> Result<(), Failure> {
    let Some(Opened { value, hosts, .. }) = executor.secrets.secret(call.caller.org, SIGNING).await.map_err(locked)?
    else {
        return Ok(());
    };
    match rights(&executor.access, &call.caller, &[Need::Secret(SIGNING)]).await {
        Ok(()) => {}
        Err(failure) if failure.retryable => return Err(failure),
        Err(_) => return Ok(()),
    }
    if !hosts.is_empty() {
        let bound = Bound { secret: SIGNING.into(), hosts, left_behind: false };
        let url = call.input.get("url").and_then(Value::as_str).and_then(|url| Url::parse(url.trim()).ok());
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        if !bound.allows(host, url.as_ref().and_then(Url::port_or_known_default)) {
            return Ok(());
        }
        // A redirect would carry the signature to another host.
        call.secrets.bound = call.secrets.bound.iter().cloned().chain([bound]).collect();
    }
    call.secrets.signing = Some(value);
    Ok(())
}
