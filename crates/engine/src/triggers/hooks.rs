//! Webhook addresses: a call to one starts a run of its workflow.

use super::incoming::{Incoming, dedupe_key, verify};
use super::{OWN_PREFIX, Triggered, Triggers, WEBHOOK, start_as, stored_text};
use crate::access::{Actor, Need, secret_hash};
use crate::error::Error;
use crate::records::{Kept, body, json};
use crate::run::start::Started;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::definition::{Definition, Trigger};
use stepwell_store::{OrgId, Record, RecordChange};

/// A webhook address of a workflow. Its record is found by the hash of its token.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Hook {
    pub workflow: String,
    /// The position of its trigger in the definition.
    pub index: usize,
    pub token: String,
    /// The stored text of its trigger. With it an address keeps its trigger when other triggers are inserted before.
    #[serde(default)]
    pub written: String,
}

impl Kept for Hook {
    const KIND: &'static str = "hook";
}

/// Matches the addresses of a workflow with the triggers of a new version: first with an equal trigger, then with the
/// one at the same position. Addresses that match no trigger stay in `hooks`.
pub fn sync_hooks(
    triggers: &Triggers,
    org: OrgId,
    workflow: &str,
    definition: &Definition,
    hooks: &mut Vec<Record>,
) -> Result<Vec<RecordChange>, Error> {
    let all = definition.triggers.iter().enumerate();
    let mut wanted: Vec<(usize, String)> = all
        .filter(|(_, trigger)| matches!(trigger, Trigger::Webhook(_)))
        .map(|(index, trigger)| (index, stored_text(trigger)))
        .collect();
    let mut changes = Vec::new();
    for by_position in [false, true] {
        let mut left = Vec::new();
        for (index, written) in wanted {
            let mut found = None;
            for (n, record) in hooks.iter().enumerate() {
                let was: Hook = body(record)?;
                let fits = if by_position { was.index == index } else { was.written == written };
                if fits {
                    found = Some((n, was));
                    break;
                }
            }
            let Some((n, was)) = found else {
                left.push((index, written));
                continue;
            };
            let record = hooks.swap_remove(n);
            if was.index != index || was.written != written {
                let body = json(&Hook { index, written, ..was });
                changes.push(RecordChange::Replace(Record { body, ..record }));
            }
        }
        wanted = left;
    }
    let new = |(index, written)| RecordChange::Create(hook(triggers, org, workflow, index, written));
    changes.extend(wanted.into_iter().map(new));
    Ok(changes)
}

/// A new address for the trigger at `index`.
pub fn hook(triggers: &Triggers, org: OrgId, workflow: &str, index: usize, written: String) -> Record {
    let token = BASE64.encode(triggers.cluster.ids.bytes::<24>());
    let key = secret_hash(&token);
    let id = format!("{workflow}.{}", BASE64.encode(triggers.cluster.ids.bytes::<9>()));
    let body = json(&Hook { workflow: workflow.into(), index, token, written });
    Record { kind: Hook::KIND.into(), id, org, key, due: None, body, version: 0 }
}

impl Triggers {
    /// The organisation of an address, if it exists. Asked before the body of a call is read.
    pub async fn hook_owner(&self, token: &str) -> Result<Option<OrgId>, Error> {
        let record = self.cluster.store.record_with_key(Hook::KIND, &secret_hash(token)).await?;
        Ok(record.map(|record| record.org))
    }

    /// Handles a call to a workflow's address. Returns the run that it started, or that an earlier call with the same
    /// dedupe key started. The run acts as the version's author.
    pub async fn receive(&self, token: &str, call: Incoming) -> Result<Started, Error> {
        let unknown = || Error::NotFound { what: "trigger", name: token.chars().take(60).collect() };
        let record = self.cluster.store.record_with_key(Hook::KIND, &secret_hash(token)).await?.ok_or_else(unknown)?;
        let hook: Hook = body(&record)?;
        let compiled = self.runner.workflows.newest(record.org, &hook.workflow).await?;
        let Some(Trigger::Webhook(webhook)) = compiled.definition.triggers.get(hook.index) else {
            return Err(unknown());
        };
        let author = Actor::parse(&compiled.row.author);
        if let Some(proof) = &webhook.verify {
            if !author.is_local() {
                let grants = self.runner.workflows.access.grants(record.org, &author).await?;
                if !grants.is_some_and(|grants| grants.allow(Need::Secret(&proof.secret))) {
                    let message = format!("the author may not use the secret {}", proof.secret);
                    return Err(Error::Refused(message));
                }
            }
            let secret = self.secrets.secret(record.org, &proof.secret).await?;
            let missing = || Error::Refused(format!("there is no secret {}, which verifies the call", proof.secret));
            let secret = secret.ok_or_else(missing)?;
            verify(&call, &proof.scheme, &secret.value, self.cluster.clock.now()).map_err(Error::Unauthorised)?;
        }
        let key = webhook.dedupe.as_ref().and_then(|dedupe| dedupe_key(&call, dedupe));
        let begin = Triggered {
            workflow: &hook.workflow,
            by: None,
            input: call.body,
            headers: Some(shown_headers(&call.headers, &record.id)),
            query: Some(json!(call.query)).filter(|_| !call.query.is_empty()),
            scope: format!("hook:{}", record.id),
            key,
            how: "webhook",
        };
        start_as(self, record.org, &author, begin).await
    }
}

/// The headers as the run sees them: the server's own ones tell what started it.
fn shown_headers(headers: &BTreeMap<String, String>, hook: &str) -> Value {
    let own = |name: &&String| name.starts_with(OWN_PREFIX);
    let mut shown: BTreeMap<&str, &str> =
        headers.iter().filter(|(name, _)| !own(name)).map(|(name, value)| (name.as_str(), value.as_str())).collect();
    shown.insert(WEBHOOK, hook);
    json!(shown)
}
