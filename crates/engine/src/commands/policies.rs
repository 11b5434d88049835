//! An organisation's policies: what it says about calls, whatever its workflows say.

use super::Policies;
use super::change::{auth, change, new_named, settled};
use super::input::{bad, check_name};
use crate::access::Right;
use crate::error::Error;
use crate::execute::{Effect, MAX_POLICIES, Policy, Rate, SUBJECT_KINDS, UnknownOutcome};
use crate::records::{Kept, body, find, json as json_text, list, name_key};
use crate::secrets::host_pattern;
use serde_json::{Value, json};
use stepwell_core::time::Millis;
use stepwell_store::{Change, Record, RecordChange};

const MAX_APPROVERS: usize = 100;
const MAX_REASON: usize = 1_000;

/// A policy as somebody writes it.
#[derive(Clone, PartialEq, Debug)]
pub struct NewPolicy {
    /// `tool:mail.*`, `host:*.example.com`, `connection:crm`.
    pub calls: String,
    pub effect: Effect,
    pub approvers: Vec<String>,
    pub approvals: u32,
    pub allow_self: bool,
    pub timeout: Option<Millis>,
    pub at_most_once: Option<UnknownOutcome>,
    pub rate: Option<Rate>,
    pub reason: Option<String>,
}

impl Policies<'_> {
    /// All who may read runs see why their calls are stopped.
    pub async fn list(&self) -> Result<Vec<Policy>, Error> {
        self.caller.check(Right::Read)?;
        let all = list::<Policy>(&*self.rooms.cluster.store, self.caller.org).await?;
        Ok(all.into_iter().map(|policy| policy.is).collect())
    }

    pub async fn get(&self, name: &str) -> Result<Policy, Error> {
        self.caller.check(Right::Read)?;
        body(&find::<Policy>(&*self.rooms.cluster.store, self.caller.org, name).await?)
    }

    /// Makes a policy, or gives it another content. Counts for every call that is made from now on.
    pub async fn put(&self, name: &str, new: NewPolicy) -> Result<Policy, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", name)?;
        check(&new)?;
        let new = NewPolicy { calls: normal(&new.calls)?, ..new };
        settled(|| self.put_once(name, new.clone())).await
    }

    async fn put_once(&self, name: &str, new: NewPolicy) -> Result<Policy, Error> {
        let decided = auth(self.rooms, self.caller.org).await?;
        let now = self.rooms.cluster.clock.now();
        let before = self.rooms.cluster.store.record_with_key(Policy::KIND, &name_key(self.caller.org, name)).await?;
        let made = before.as_ref().map(body::<Policy>).transpose()?.map(|policy| (policy.created, policy.by));
        let (created, by) = made.unwrap_or_else(|| (now, self.caller.name.to_string()));
        let NewPolicy { calls, effect, approvers, approvals, allow_self, timeout, at_most_once, rate, reason } = new;
        let name = name.to_string();
        let policy = Policy {
            name,
            calls,
            effect,
            approvers,
            approvals,
            allow_self,
            timeout,
            at_most_once,
            rate,
            reason,
            created,
            by,
        };
        let record = match before {
            Some(record) => RecordChange::Replace(Record { body: json_text(&policy), ..record }),
            None if self.list().await?.len() >= MAX_POLICIES as usize => {
                let message = format!("an organisation has at most {MAX_POLICIES} policies");
                return Err(Error::Limit { limit: "policies", message });
            }
            None => RecordChange::Create(new_named(self.rooms, self.caller.org, "pol", &policy.name, &policy)),
        };
        let audit = vec![self.caller.audit(now, "policy.put", &policy.name, json!(policy))];
        let done = Change { records: vec![record], audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, done, "policy", &policy.name).await?;
        Ok(policy)
    }

    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        let record = find::<Policy>(&*self.rooms.cluster.store, self.caller.org, name).await?;
        let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), "policy.remove", name, Value::Null)];
        let records = vec![RecordChange::Remove { kind: Policy::KIND.into(), id: record.id }];
        let done = Change { records, audit, grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, done, "policy", name).await
    }
}

/// Hosts are written in many ways, and compared in one.
fn normal(calls: &str) -> Result<String, Error> {
    match calls.strip_prefix("host:") {
        Some(pattern) => host_pattern(pattern).map(|host| format!("host:{host}")).map_err(|why| bad("calls", &why)),
        None => Ok(calls.to_string()),
    }
}

fn check(new: &NewPolicy) -> Result<(), Error> {
    let known =
        new.calls.split_once(':').is_some_and(|(sort, pattern)| SUBJECT_KINDS.contains(&sort) && !pattern.is_empty());
    if !known || new.calls.len() > 300 {
        let forms = SUBJECT_KINDS.map(|sort| format!("{sort}:PATTERN")).join(", ");
        return Err(bad("calls", &format!("say which calls it is about: one of {forms}")));
    }
    if new.approvals == 0 || new.approvals as usize > MAX_APPROVERS {
        return Err(bad("approvals", &format!("between 1 and {MAX_APPROVERS}")));
    }
    if new.approvers.len() > MAX_APPROVERS || new.approvers.iter().any(|name| name.trim().is_empty()) {
        return Err(bad("approvers", &format!("at most {MAX_APPROVERS} users or roles, none of them empty")));
    }
    if new.rate.is_some_and(|rate| rate.calls == 0 || rate.per.0 == 0 || rate.per > Millis::DAY) {
        return Err(bad("rate", "at least one call, in at most a day"));
    }
    if new.timeout.is_some_and(|timeout| timeout.0 == 0) {
        return Err(bad("timeout", "this must be more than nothing"));
    }
    if new.reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
        return Err(bad("reason", &format!("at most {MAX_REASON} bytes")));
    }
    Ok(())
}
