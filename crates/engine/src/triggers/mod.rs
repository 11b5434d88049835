//! Triggers that start runs without a caller: schedules and webhook addresses. Both are records of a workflow and are
//! written with its versions. The runs act as the author of the version.
//!
//! May use: `run` and below.

mod hooks;
mod incoming;
mod schedules;

pub use hooks::{Hook, hook};
pub use incoming::{Incoming, sign};
pub use schedules::{Owner, Scheduled, enabled, of_workflow, read_cron, removed, run, sync};

use crate::access::{Actor, Caller, Right};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::records;
use crate::run::Runner;
use crate::run::start::{KEY_LIFE, Start, Started, start};
use crate::secrets::Secrets;
use crate::workflows::labels;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_core::definition::Trigger;
use stepwell_store::{OrgId, UniqueKey};

/// The header of a scheduled run that names its schedule. Callers cannot set headers of this prefix.
pub const SCHEDULE: &str = "x-stepwell-schedule";
/// The header of a run that a webhook started.
pub const WEBHOOK: &str = "x-stepwell-webhook";
/// What the names of the server's own headers begin with.
const OWN_PREFIX: &str = "x-stepwell-";

pub struct Triggers {
    pub cluster: Arc<Cluster>,
    pub secrets: Arc<Secrets>,
    pub runner: Arc<Runner>,
    /// Notified when schedules have changed.
    pub rescheduled: tokio::sync::Notify,
}

impl Triggers {
    pub fn new(runner: Arc<Runner>, secrets: Arc<Secrets>) -> Triggers {
        Triggers { cluster: runner.cluster.clone(), secrets, runner, rescheduled: tokio::sync::Notify::new() }
    }
}

/// The text that is stored with a trigger's record. A trigger has changed if its text has.
fn stored_text(trigger: &Trigger) -> String {
    records::json(trigger)
}

/// A run to start for a trigger.
struct Triggered<'a> {
    /// `wf_…`.
    workflow: &'a str,
    /// The name of a local user who starts it; the author of the version if there is none.
    by: Option<&'a str>,
    input: Value,
    headers: Option<Value>,
    query: Option<Value>,
    /// The scope of the key. At most one run is started per key.
    scope: String,
    key: Option<String>,
    /// Written to the audit trail.
    how: &'static str,
}

/// Starts a run as this actor, with the actor's current rights.
async fn start_as(triggers: &Triggers, org: OrgId, actor: &Actor, triggered: Triggered<'_>) -> Result<Started, Error> {
    let workflows = &triggers.runner.workflows;
    let epoch = workflows.access.epoch(org).await?;
    let compiled = workflows.newest(org, triggered.workflow).await?;
    let caller = if actor.is_local() {
        Caller::local(triggered.by.unwrap_or(compiled.row.by.as_str()))
    } else {
        let gone = || Error::Refused(format!("the user {:?} is gone or disabled", actor.user));
        let grants = workflows.access.grants(org, actor).await?.ok_or_else(gone)?;
        let caller = Caller::new(org, actor.user.as_str(), (*grants).clone());
        actor.key.iter().fold(caller, |caller, key| caller.with_key(key.as_str()))
    };
    caller.check(Right::Run)?;
    let now = triggers.cluster.clock.now();
    let unique = triggered.key.map(|key| UniqueKey {
        scope: triggered.scope,
        key,
        digest: String::new(),
        expires: Some(now + KEY_LIFE),
    });
    let detail = json!({"workflow": compiled.row.name, "by": triggered.how});
    let request = Start {
        epoch,
        labels: labels(&compiled, BTreeMap::new())?,
        compiled,
        input: Arc::new(triggered.input),
        headers: triggered.headers.map(Arc::new),
        query: triggered.query.map(Arc::new),
        by: caller.name.clone(),
        client: None,
        acts_as: actor.to_string(),
        unique,
        parent: None,
        test: false,
        at: None,
        watch: false,
        audit: (!actor.is_local()).then(|| caller.audit(now, "run.start", "", detail)),
    };
    start(&triggers.runner, request).await.map(|(started, _)| started)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepwell_core::definition::{Cron, Dedupe, Encoding, Overlap, Scheme, Verify, Webhook};
    use stepwell_core::time::Time;

    #[test]
    fn the_stored_text_of_a_trigger_is_stable() {
        let cron = Trigger::Cron(Cron {
            expression: "0 9 * * 1".into(),
            timezone: Some("Europe/Berlin".into()),
            input: json!({"n": 1}),
            overlap: Overlap::Skip,
            ..Cron::default()
        });
        let expected = concat!(
            r#"{"cron":{"expression":"0 9 * * 1","timezone":"Europe/Berlin","input":{"n":1},"#,
            r#""skipped":"run","repeated":"by_hour","overlap":"skip","catch_up":"last"}}"#,
        );
        assert_eq!(stored_text(&cron), expected);
        let at = Trigger::At { at: Time(1_000), input: Value::Null };
        assert_eq!(stored_text(&at), r#"{"at":{"at":1000,"input":null}}"#);
        let scheme = Scheme::Header { header: "x-sig".into(), prefix: "sha256=".into(), encoding: Encoding::Hex };
        let webhook = Trigger::Webhook(Webhook {
            verify: Some(Verify { secret: "KEY".into(), scheme }),
            dedupe: Some(Dedupe::Header("x-id".into())),
        });
        let expected = concat!(
            r#"{"webhook":{"verify":{"secret":"KEY","#,
            r#""scheme":{"header":{"header":"x-sig","prefix":"sha256=","encoding":"hex"}}},"#,
            r#""dedupe":{"header":"x-id"}}}"#,
        );
        assert_eq!(stored_text(&webhook), expected);
    }
}
