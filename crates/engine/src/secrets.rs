//! Secrets at the moment of a call, and what is hidden of what comes back. They are never part of a run's state.

use crate::connections::Connections;
use crate::engine::Inner;
use crate::error::Error;
use crate::hosts::Bound;
use crate::mask::Mask;
use crate::people::{Kept, body};
use crate::safe::{CHECK, CHECK_OWNER, Check, Opened};
use crate::step::Used;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::event::Failure;
use stepwell_core::template::{Resolved, SecretSlot};
use stepwell_core::value::Payload;
use stepwell_store::OrgId;

/// Secrets that are kept outside of the store.
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

/// Headers that no client takes along to another host.
const LEFT_BEHIND: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// A secret of an organisation, remembered for as long as its epoch stands.
pub async fn secret(inner: &Inner, org: OrgId, name: &str) -> Result<Option<Opened>, Error> {
    let (key, epoch) = ((org, name.to_string()), inner.epoch(org).await?);
    if let Some(known) = inner.opened.get(&key, epoch) {
        return Ok(known);
    }
    let found = inner.safe.secret(org, name).await?;
    inner.opened.put(key, epoch, found.clone());
    Ok(found)
}

/// Refuses to go on with a master key that is not the one everything is sealed with.
pub async fn check(inner: &Inner) -> Result<(), Error> {
    let Some(record) = inner.store.record(Check::KIND, CHECK).await? else { return Ok(()) };
    let Check { sealed } = body(&record)?;
    inner.safe.vault.open(CHECK_OWNER, &sealed).map(|_| ()).map_err(|_| {
        let has = match inner.safe.vault.ids() {
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

/// The secret that an organisation's requests are signed with, as Standard Webhooks say. Without it they are not.
const SIGNING: &str = "WEBHOOK_SIGNING_SECRET";

pub async fn signing(inner: &Inner, org: OrgId) -> Result<Option<Arc<str>>, Failure> {
    match secret(inner, org, SIGNING).await {
        Ok(found) => Ok(found.map(|opened| opened.value)),
        Err(Error::Unavailable(why)) => Err(Failure::retryable("unavailable", why)),
        Err(why) => Err(Failure::new("secret_locked", why.to_string())),
    }
}

/// One call, as far as its secrets are concerned.
pub struct Use<'a> {
    pub org: OrgId,
    pub kind: &'a str,
    /// All that the workflow uses anywhere: what one step has sent may come back in another.
    pub named: &'a [Box<str>],
}

/// The input as it is sent, with secrets in their places, and what must be seen to because of them.
pub async fn reveal(inner: &Inner, call: Use<'_>, payload: &Payload) -> Result<(Arc<Value>, Used), Failure> {
    let connection = payload.value.get("connection").and_then(Value::as_str).filter(|_| call.kind == "query");
    if payload.secrets.is_empty() && call.named.is_empty() && connection.is_none() {
        return Ok((payload.value.clone(), Used::default()));
    }
    let mut mask = Mask::default();
    if let Some(name) = connection {
        let url = match inner.safe.connection(call.org, name).await {
            Ok(found) => found.map(|found| found.url),
            Err(Error::Unavailable(why)) => return Err(Failure::retryable("unavailable", why)),
            // The executor finds none either, and says so.
            Err(_) => None,
        };
        for password in url.as_deref().into_iter().flat_map(passwords) {
            mask.replace(password, &format!("(the password of {name})"));
            mask.replace(&decoded(password), &format!("(the password of {name})"));
        }
    }
    let mut known: BTreeMap<&str, Opened> = BTreeMap::new();
    let slots = payload.secrets.iter().map(|slot| &slot.name);
    for name in call.named.iter().chain(slots) {
        if known.contains_key(&**name) {
            continue;
        }
        match secret(inner, call.org, name).await {
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
    Ok((input, Used { mask: Arc::new(mask), bound: bound.into(), signing: None }))
}

/// The secrets of the call that may be sent to some hosts only. Refused where nobody would look where they go.
fn bound(call: &Use<'_>, payload: &Payload, known: &BTreeMap<&str, Opened>) -> Result<Vec<Bound>, Failure> {
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

/// Of a URL, as they stand there: before the host and among the options.
fn passwords(url: &str) -> Vec<&str> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (address, options) = rest.split_once('?').unwrap_or((rest, ""));
    let user = address.split('/').next().unwrap_or_default().rsplit_once('@').map(|(user, _)| user);
    let before = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    before.into_iter().chain(options.split('&').filter_map(|option| option.strip_prefix("password="))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut left = text.as_bytes();
    while let [first, rest @ ..] = left {
        let digits =
            if *first == b'%' { rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()) } else { None };
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                left = &rest[2..];
            }
            None => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What hides the secrets that a workflow uses, for what comes in from outside.
pub async fn mask(inner: &Inner, org: OrgId, named: &[Box<str>]) -> Mask {
    let mut mask = Mask::default();
    for name in named {
        if let Ok(Some(opened)) = secret(inner, org, name).await {
            mask.hide(name, &opened.value);
        }
    }
    mask
}
