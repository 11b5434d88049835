//! Reveals secrets for a call, and prepares the mask for its response. Secrets are never part of a run's state.

use super::Secrets;
use super::hosts::Bound;
use super::mask::Mask;
use super::sealed::{CHECK, CHECK_OWNER, Check, Opened};
use crate::error::Error;
use crate::records::{Kept, body};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::template::{Resolved, SecretSlot};
use stepwell_core::value::Payload;
use stepwell_store::OrgId;

/// A source of secrets outside the store.
#[async_trait]
pub trait SecretSource: Send + Sync {
    async fn secret(&self, org: OrgId, name: &str) -> Option<String>;
}

/// Secrets from the environment of the process: `secrets.API_KEY` is `STEPWELL_SECRET_API_KEY`. They belong
/// to the default organisation, that of the server's operator. Other organisations cannot use them.
#[derive(Clone, Copy, Default, Debug)]
pub struct EnvironmentSecrets;

#[async_trait]
impl SecretSource for EnvironmentSecrets {
    async fn secret(&self, org: OrgId, name: &str) -> Option<String> {
        if org != OrgId::OPERATOR {
            return None;
        }
        std::env::var(format!("STEPWELL_SECRET_{name}")).ok()
    }
}

/// Headers that every client drops at a redirect to another host.
const LEFT_BEHIND: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The secret that signs an organisation's requests, as Standard Webhooks defines. Without it they are not signed.
pub const SIGNING: &str = "WEBHOOK_SIGNING_SECRET";

/// The secrets that a call uses.
#[derive(Clone, Default, Debug)]
pub struct UsedSecrets {
    /// For the log lines of a step kind. The engine itself masks the outcome.
    pub mask: Arc<Mask>,
    /// Secrets that may only be sent to certain hosts. Checked before each request and at every redirect.
    pub bound: Arc<[Bound]>,
    /// The secret that signs the organisation's requests, if there is one.
    pub signing: Option<Arc<str>>,
}

/// A call that needs its secrets.
pub struct Reveal<'a> {
    pub org: OrgId,
    /// The kind of the step.
    pub kind: &'a str,
    /// All secrets of the workflow: the response of one step may contain a secret that another step sent.
    pub named: &'a [Box<str>],
    /// Hides values other than the secrets, if there are any.
    pub mask: Option<Mask>,
}

impl Secrets {
    /// A secret of an organisation, cached until its epoch changes.
    pub async fn secret(&self, org: OrgId, name: &str) -> Result<Option<Opened>, Error> {
        let (key, epoch) = ((org, name.to_string()), self.access.epoch(org).await?);
        if let Some(known) = self.opened.get(&key, epoch) {
            return Ok(known);
        }
        let found = self.sealed.secret(org, name).await?;
        self.opened.put(key, epoch, found.clone());
        Ok(found)
    }

    /// Fails unless this node has the master key that secrets are sealed with.
    pub async fn check(&self) -> Result<(), Error> {
        let Some(record) = self.access.cluster.store.record(Check::KIND, CHECK).await? else { return Ok(()) };
        let Check { sealed } = body(&record)?;
        self.sealed.vault.open(CHECK_OWNER, &sealed).map(|_| ()).map_err(|_| {
            let has = match self.sealed.vault.ids() {
                ids if ids.is_empty() => "and there is none here".to_string(),
                ids => format!("but this node has {}", ids.join(", ")),
            };
            Error::Broken(format!(
                "this node's master key is not the one secrets were sealed with: they need the key {}, {has}. Set it \
                 with STEPWELL_MASTER_KEY or STEPWELL_MASTER_KEY_FILE, or put it back as master.key in the data directory",
                sealed.key
            ))
        })
    }

    /// Fills the secrets into the input of a call. Also returns the mask and the host restrictions that apply to the
    /// call.
    pub async fn reveal(&self, mut call: Reveal<'_>, payload: &Payload) -> Result<(Arc<Value>, UsedSecrets), Failure> {
        if payload.secrets.is_empty() && call.named.is_empty() && call.mask.is_none() {
            return Ok((payload.value.clone(), UsedSecrets::default()));
        }
        let mut mask = call.mask.take().unwrap_or_default();
        let mut known: BTreeMap<&str, Opened> = BTreeMap::new();
        let slots = payload.secrets.iter().map(|slot| &slot.name);
        for name in call.named.iter().chain(slots) {
            if known.contains_key(&**name) {
                continue;
            }
            match self.secret(call.org, name).await {
                Ok(Some(opened)) => {
                    mask.hide(name, &opened.value);
                    known.insert(name, opened);
                }
                Ok(None) => {}
                Err(Error::Unavailable(why)) => return Err(Failure::retryable("unavailable", why)),
                // A secret that cannot be opened fails only the calls that use it.
                Err(_) if !payload.secrets.iter().any(|slot| slot.name == *name) => {}
                Err(why) => return Err(Failure::new("secret_locked", why.to_string())),
            }
        }
        let bound = bound(&call, payload, &known)?;
        let Payload { value, secrets } = payload.clone();
        let unknown = |name: String| {
            let message = format!("there is no secret named {name}; create it with `stepwell secret set {name}`");
            Failure::new("unknown_secret", message)
        };
        let input = match secrets.is_empty() {
            true => value,
            false => {
                let filled = Resolved { value, secrets }.reveal(|name| Some(known.get(name)?.value.to_string()));
                Arc::new(filled.map_err(unknown)?)
            }
        };
        Ok((input, UsedSecrets { mask: Arc::new(mask), bound: bound.into(), signing: None }))
    }

    /// The mask for a workflow's secrets, for data that does not come from a call.
    pub async fn mask(&self, org: OrgId, named: &[Box<str>]) -> Mask {
        let mut mask = Mask::default();
        for name in named {
            if let Ok(Some(opened)) = self.secret(org, name).await {
                mask.hide(name, &opened.value);
            }
        }
        mask
    }
}

/// The secrets of the call that may only be sent to certain hosts. Refused for step kinds that do not check hosts.
fn bound(call: &Reveal<'_>, payload: &Payload, known: &BTreeMap<&str, Opened>) -> Result<Vec<Bound>, Failure> {
    let headers = match call.kind {
        "http" => Some("/headers/"),
        "tool" if payload.value["tool"] == "http_request" => Some("/args/headers/"),
        _ => None,
    };
    let mut bound: Vec<Bound> = Vec::new();
    for SecretSlot { pointer, name, .. } in &payload.secrets {
        let Some(Opened { hosts, .. }) = known.get(&**name).filter(|opened| !opened.hosts.is_empty()) else { continue };
        let Some(headers) = headers else {
            let message = format!(
                "the secret {name} may be sent only to {}: only http steps and the tool http_request can use it",
                hosts.join(", ")
            );
            return Err(Failure::new("secret_bound", message));
        };
        let header = pointer.strip_prefix(headers).map(str::to_ascii_lowercase);
        let left_behind = header.is_some_and(|header| LEFT_BEHIND.contains(&header.as_str()));
        match bound.iter_mut().find(|bound| *bound.secret == **name) {
            Some(other) => other.left_behind &= left_behind,
            None => bound.push(Bound { secret: (&**name).into(), hosts: hosts.clone(), left_behind }),
        }
    }
    Ok(bound)
}
