//! Secrets for a step that is under way: its code asks for them by name when it makes a request, so they cannot be filled
//! into its input beforehand. Whatever was lent is masked in what comes of the step.

use crate::engine::Inner;
use crate::error::Error;
use crate::hosts::Bound;
use crate::mask::Mask;
use crate::permit::rights;
use crate::rights::Need;
use crate::safe::Opened;
use crate::secrets::secret;
use crate::step::Principal;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use stepwell_core::event::{Failure, Outcome};

#[async_trait]
pub trait Lend: Send + Sync {
    /// Refused unless everyone in whose name the step runs has the right to it, now.
    async fn secret(&self, name: &str) -> Result<Lent, Failure>;

    /// Puts their names in the place of secrets.
    fn mask(&self, value: &mut Value);
}

/// A secret for one request.
pub struct Lent {
    pub value: Arc<str>,
    /// Where it may be sent, if not everywhere.
    pub bound: Option<Bound>,
}

impl fmt::Debug for dyn Lend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lend")
    }
}

/// For one attempt.
pub struct Lender {
    inner: Arc<Inner>,
    caller: Principal,
    lent: Mutex<Mask>,
}

impl Lender {
    pub fn new(inner: &Arc<Inner>, caller: &Principal) -> Lender {
        Lender { inner: inner.clone(), caller: caller.clone(), lent: Mutex::default() }
    }

    pub fn outcome(&self, outcome: Outcome) -> Outcome {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).outcome(outcome)
    }
}

#[async_trait]
impl Lend for Lender {
    async fn secret(&self, name: &str) -> Result<Lent, Failure> {
        rights(&self.inner, &self.caller, &[Need::Secret(name)]).await?;
        let locked = |error: Error| match error {
            Error::Unavailable(why) => Failure::retryable("unavailable", why),
            error => Failure::new("secret_locked", error.to_string()),
        };
        let found = secret(&self.inner, self.caller.org, name).await.map_err(locked)?;
        let Opened { value, hosts, .. } =
            found.ok_or_else(|| Failure::new("unknown_secret", format!("there is no secret named {name}")))?;
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).hide(name, &value);
        let bound = Bound { secret: name.into(), hosts, left_behind: false };
        Ok(Lent { value, bound: (!bound.hosts.is_empty()).then_some(bound) })
    }

    fn mask(&self, value: &mut Value) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).value(value);
    }
}
