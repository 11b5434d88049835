//! Secrets for a step that is under way: its code asks for them by name when it makes a request, so they cannot be filled
//! into its input beforehand. Whatever was lent is masked in what comes of the step.

use crate::permit::rights;
use crate::engine::Inner;
use crate::mask::Mask;
use crate::rights::Need;
use crate::step::Principal;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use stepwell_core::event::{Failure, Outcome};

#[async_trait]
pub trait Lend: Send + Sync {
    /// For a request to this host; refused unless everyone in whose name the step runs has the right to it, now.
    async fn secret(&self, name: &str, host: &str) -> Result<String, Failure>;

    /// Puts their names in the place of secrets.
    fn mask(&self, value: &mut Value);
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
    async fn secret(&self, name: &str, _host: &str) -> Result<String, Failure> {
        permit(&self.inner, &self.caller, &[Need::Secret(name)]).await?;
        let secret = self.inner.secrets.secret(self.caller.org, name).await;
        let secret =
            secret.ok_or_else(|| Failure::new("unknown_secret", format!("there is no secret named {name}")))?;
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).hide(name, &secret);
        Ok(secret)
    }

    fn mask(&self, value: &mut Value) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).value(value);
    }
}
