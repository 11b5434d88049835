//! Organisations, their plans and usage; and the audit trail.

use super::Organisations;
use super::change::change;
use super::identity::first_users;
use super::input::{check_label, invalid};
use super::{Audit, Identity};
use crate::access::{Limits, Right, Subscription, User, counter};
use crate::doctor::audit::Verdict;
use crate::doctor::{self, Anchor, Export, Lines, verify_audit};
use crate::error::Error;
use crate::records::{Kept, json as json_text, list};
use serde_json::json;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{AuditFilter, AuditRow, Change, NewAudit, OrgId, Record, RecordChange, Store};

/// Maximum number of audit rows in a page.
const MAX_PAGE: u32 = 1_000;

/// An organisation and its plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Organisation {
    pub id: OrgId,
    pub name: String,
    pub plan: String,
    pub limits: Limits,
}

/// An organisation's usage of its plan in one month.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    pub organisation: Organisation,
    /// `2026-11`.
    pub month: String,
    pub executions: u64,
    pub open_runs: u64,
    pub workflows: u64,
}

/// Which audit rows to list, newest first.
#[derive(Clone, Default, Debug)]
pub struct AuditQuery {
    pub by: Option<String>,
    pub action: Option<String>,
    pub target: Option<String>,
    pub before: Option<i64>,
    pub limit: u32,
}

impl Organisations<'_> {
    /// All organisations. Needs the operator's right.
    pub async fn list(&self) -> Result<Vec<Organisation>, Error> {
        self.caller.check(Right::Operate)?;
        let mut all = Vec::new();
        for (id, name) in self.rooms.cluster.store.organisations().await? {
            let (plan, limits) = self.rooms.access.limits(id).await?;
            all.push(Organisation { id, name, plan, limits });
        }
        Ok(all)
    }

    /// Creates an organisation with a first user `admin`. Also returns that user's key. Needs the operator's right.
    pub async fn create(&self, name: &str, plan: Option<String>) -> Result<(Organisation, String), Error> {
        self.caller.check(Right::Operate)?;
        check_label("name", name)?;
        self.check_plan(plan.as_deref())?;
        let now = self.rooms.cluster.clock.now();
        let exists = || Error::Exists { what: "organisation", name: name.to_string() };
        // An organisation that a crash left without users is completed.
        let id = match self.rooms.cluster.store.found(name, now).await? {
            Some(id) => id,
            None => self.without_users(name).await?.ok_or_else(exists)?,
        };
        let secret = Identity::new(self.rooms).new_secret();
        let mut records = first_users(self.rooms, id, &["admin"], &secret, None);
        records.push(RecordChange::Create(subscription(id, &Subscription { plan, limits: None })));
        let detail = json!({"id": id.0});
        let own = self.caller.audit(now, "organisation.create", name, detail.clone());
        let theirs = NewAudit { org: id, ..own.clone() };
        let update = Change { records, audit: vec![own, theirs], grants_of: Some(id), decided: None };
        change(self.rooms, update, "organisation", name).await?;
        let (plan, limits) = self.rooms.access.limits(id).await?;
        Ok((Organisation { id, name: name.to_string(), plan, limits }, secret))
    }

    /// An organisation of that name that has no users.
    async fn without_users(&self, name: &str) -> Result<Option<OrgId>, Error> {
        let all = self.rooms.cluster.store.organisations().await?;
        let Some((id, _)) = all.into_iter().find(|(_, taken)| taken == name) else { return Ok(None) };
        let users = list::<User>(&*self.rooms.cluster.store, id).await?;
        Ok(users.is_empty().then_some(id))
    }

    /// Changes the plan of an organisation, or sets its own limits. Needs the operator's right.
    pub async fn change_plan(&self, id: OrgId, to: Subscription) -> Result<Organisation, Error> {
        self.caller.check(Right::Operate)?;
        self.check_plan(to.plan.as_deref())?;
        let none = || Error::NotFound { what: "organisation", name: id.0.to_string() };
        let all = self.rooms.cluster.store.organisations().await?;
        let (_, name) = all.into_iter().find(|(other, _)| *other == id).ok_or_else(none)?;
        let before = self.rooms.cluster.store.record(Subscription::KIND, &id.0.to_string()).await?;
        let record = match before {
            Some(before) => RecordChange::Replace(Record { body: json_text(&to), ..before }),
            None => RecordChange::Create(subscription(id, &to)),
        };
        let detail = json!({"plan": to.plan, "limits": to.limits});
        let own = self.caller.audit(self.rooms.cluster.clock.now(), "organisation.plan", &name, detail);
        let theirs = NewAudit { org: id, ..own.clone() };
        let audit = if id == self.caller.org { vec![own] } else { vec![own, theirs] };
        change(
            self.rooms,
            Change { records: vec![record], audit, grants_of: Some(id), decided: None },
            "organisation",
            &name,
        )
        .await?;
        let (plan, limits) = self.rooms.access.limits(id).await?;
        Ok(Organisation { id, name, plan, limits })
    }

    fn check_plan(&self, plan: Option<&str>) -> Result<(), Error> {
        match plan {
            Some(plan) if !self.rooms.access.plans.by_name.contains_key(plan) => {
                let known = self.rooms.access.plans.by_name.keys().cloned().collect::<Vec<_>>().join(", ");
                Err(invalid("plan", &format!("there is no plan {plan:?}; known plans: {known}")))
            }
            _ => Ok(()),
        }
    }

    /// The usage of the caller's organisation. Needs no right.
    pub async fn usage(&self) -> Result<Usage, Error> {
        let all = self.rooms.cluster.store.organisations().await?;
        let name = all.into_iter().find(|(id, _)| *id == self.caller.org).map(|(_, name)| name).unwrap_or_default();
        let (plan, limits) = self.rooms.access.limits_of(self.caller.org).await?;
        let counter = counter(self.caller.org, self.rooms.cluster.clock.now());
        let executions = self.rooms.cluster.store.counted(&counter).await?.unsigned_abs();
        Ok(Usage {
            organisation: Organisation { id: self.caller.org, name, plan, limits },
            month: counter.rsplit(':').next().unwrap_or_default().to_string(),
            executions,
            open_runs: self.rooms.cluster.store.open_runs(self.caller.org).await?,
            workflows: self.rooms.cluster.store.definitions(self.caller.org).await?.len() as u64,
        })
    }
}

impl Audit<'_> {
    /// Rows of the organisation's audit trail. Needs the right to administer.
    pub async fn list(&self, query: AuditQuery) -> Result<Vec<AuditRow>, Error> {
        self.caller.check(Right::Admin)?;
        let AuditQuery { by, action, target, before, limit } = query;
        let filter = AuditFilter { org: self.caller.org, by, action, target, before, limit: limit.clamp(1, MAX_PAGE) };
        Ok(self.rooms.cluster.store.audit(filter).await?)
    }

    /// Verifies the hash chain of the organisation's audit trail. Needs the right to administer.
    pub async fn verify(&self) -> Result<Verdict, Error> {
        self.caller.check(Right::Admin)?;
        verify_audit(&*self.rooms.cluster.store, self.caller.org).await
    }

    /// An export of the audit trails of all organisations, or of their rows since a time. Needs the right to operate.
    pub async fn export(&self, since: Option<Time>) -> Result<AuditExport, Error> {
        self.caller.check(Right::Operate)?;
        let cluster = &self.rooms.cluster;
        Ok(AuditExport { store: cluster.store.clone(), now: cluster.clock.now(), since })
    }

    /// An anchor of the present evidence. Needs the right to operate.
    pub async fn anchor(&self) -> Result<Anchor, Error> {
        self.caller.check(Right::Operate)?;
        doctor::anchor(&*self.rooms.cluster.store, self.rooms.cluster.clock.now()).await
    }
}

/// An export that was permitted.
pub struct AuditExport {
    store: Arc<dyn Store>,
    now: Time,
    since: Option<Time>,
}

impl AuditExport {
    /// Writes it. Returns the number of rows.
    pub async fn write(self, out: &mut dyn Lines) -> Result<u64, Error> {
        Export::new(&*self.store, out).run(self.now, self.since).await
    }
}

fn subscription(id: OrgId, value: &Subscription) -> Record {
    let (kind, name) = (Subscription::KIND.to_string(), id.0.to_string());
    Record { kind, id: name.clone(), org: id, key: name, due: None, body: json_text(value), version: 0 }
}
