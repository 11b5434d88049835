//! Where secrets come from at the moment of a call. They are never part of a run's state.

use async_trait::async_trait;
use stepwell_store::OrgId;

#[async_trait]
pub trait Secrets: Send + Sync {
    async fn secret(&self, org: OrgId, name: &str) -> Option<String>;
}

/// Secrets from the environment of the process: `secrets.API_KEY` is `STEPWELL_SECRET_API_KEY`. They are the default
/// organisation's: whoever runs the server is in it, and others are not to see them.
#[derive(Clone, Copy, Default, Debug)]
pub struct EnvironmentSecrets;

#[async_trait]
impl Secrets for EnvironmentSecrets {
    async fn secret(&self, org: OrgId, name: &str) -> Option<String> {
        if org != OrgId(1) {
            return None;
        }
        std::env::var(format!("STEPWELL_SECRET_{name}")).ok()
    }
}
