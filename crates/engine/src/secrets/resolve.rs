//! Secrets at the moment of a call, and what is hidden of what comes back. They are never part of a run's state.

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

/// Secrets kept outside the store.
#[async_trait]
pub trait SecretSource: Send + Sync {
    async fn secret(&self, org: OrgId, name: &str) -> Option<String>;
}

/// Secrets from the environment of the process: `secrets.API_KEY` is `STEPWELL_SECRET_API_KEY`. They belong
/// to the default organisation, the one of the person who runs the server; others never see them.
#[derive(Clone, Copy, Default, Debug)]
pub struct EnvironmentSecrets;

#[async_trait]
impl SecretSource for EnvironmentSecrets {
    async fn secret(&self, org: OrgId, name: &str) -> Option<String> {
        if org != OrgId(1) {
            return None;
        }
        std::env::var(format!("STEPWELL_SECRET_{name}")).ok()
    }
}

/// Headers that no client takes along to another host.
const LEFT_BEHIND: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The secret that an organisation's requests are signed with, as Standard Webhooks say. Without it they are not.
const SIGNING: &str = "WEBHOOK_SIGNING_SECRET";

/// The secrets that a call uses.
#[derive(Clone, Default, Debug)]
pub struct UsedSecrets {
    /// For what a step kind logs. The engine masks what it returns.
    pub mask: Arc<Mask>,
    /// Those that may be sent to some hosts only: checked before anything is sent, and at every redirect.
    pub bound: Arc<[Bound]>,
    /// Signs the organisation's requests, if it has a secret for that.
    pub signing: Option<Arc<str>>,
}

/// A call whose secrets are to be revealed.
pub struct Reveal<'a> {
    pub org: OrgId,
    pub kind: &'a str,
    /// All secrets that the workflow uses: what one step sends may come back in another.
    pub named: &'a [Box<str>],
    /// Hides more than the secrets, if there is more to hide.
    pub mask: Option<Mask>,
}

impl Secrets {
    /// A secret of an organisation, cached for as long as its epoch stands.
    pub async fn secret(&self, org: OrgId, name: &str) -> Result<Option<Opened>, Error> {
        let (key, epoch) = ((org, name.to_string()), self.access.epoch(org).await?);
        if let Some(known) = self.opened.get(&key, epoch) {
            return Ok(known);
        }
        let found = self.sealed.secret(org, name).await?;
        self.opened.put(key, epoch, found.clone());
        Ok(found)
    }

    /// Fails unless this node has the master key that everything is sealed with.
    pub async fn check(&self) -> Result<(), Error> {
        let Some(record) = self.access.cluster.store.record(Check::KIND, CHECK).await? else { return Ok(()) };
        let Check { sealed } = body(&record)?;
        self.sealed.vault.open(CHECK_OWNER, &sealed).map(|_| ()).map_err(|_| {
            let has = match self.sealed.vault.ids() {
                ids if ids.is_empty() => "and there is none here".to_string(),
                ids => format!("and here is {}", ids.join(", ")),
            };
            Error::Broken(format!(
                "this node's master key is not the one secrets were sealed with: they need the key {}, {has}. Give it with \
                 STEPWELL_MASTER_KEY or STEPWELL_MASTER_KEY_FILE, or put it back as master.key in the data directory",
                sealed.key
            ))
        })
    }

    pub async fn signing(&self, org: OrgId) -> Result<Option<Arc<str>>, Failure> {
        match self.secret(org, SIGNING).await {
            Ok(found) => Ok(found.map(|opened| opened.value)),
            Err(Error::Unavailable(why)) => Err(Failure::retryable("unavailable", why)),
            Err(why) => Err(Failure::new("secret_locked", why.to_string())),
        }
    }

    /// The input as it is sent, with its secrets filled in, and what using them entails.
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
                // One that cannot be opened concerns only those who need it.
                Err(_) if !payload.secrets.iter().any(|slot| slot.name == *name) => {}
                Err(why) => return Err(Failure::new("secret_locked", why.to_string())),
            }
        }
        let bound = bound(&call, payload, &known)?;
        let Payload { value, secrets } = payload.clone();
        let unknown = |name: String| {
            let message = format!("there is no secret named {name}; `stepwell secret set {name}` makes one");
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

    /// What hides the secrets that a workflow uses, for what comes in from outside.
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

/// The secrets of the call that may be sent to some hosts only. Refused where nobody would look where they go.
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
                "the secret {name} may be sent only to {}: it can be used in http steps and the tool http_request, not here",
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
