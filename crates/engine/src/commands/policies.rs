//! An organisation's policies: rules about calls, which apply to all its workflows.

use super::Policies;
use super::change::{change, current_auth, new_named, retry_on_conflict};
use super::input::{check_name, invalid};
use crate::access::Right;
use crate::error::Error;
use crate::execute::{
    AGENTS_UNREVIEWED, Condition, Effect, MAX_POLICIES, Mode, Policy, PolicyLog, Rate, SUBJECT_KINDS, UNREVIEWED,
    UnknownOutcome,
};
use crate::records::{Kept, body, find, json as json_text, list, name_key};
use crate::secrets::host_pattern;
use serde_json::{Value, json};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Change, Record, RecordChange};

const MAX_APPROVERS: usize = 100;
const MAX_EXCEPTIONS: usize = 100;
const MAX_REASON: usize = 1_000;

/// The settings of a policy.
#[derive(Clone, PartialEq, Debug)]
pub struct NewPolicy {
    /// `tool:mail.*`, `host:*.example.com`, `connection:crm`.
    pub calls: String,
    /// Calls that it does not apply to, in the same form.
    pub except: Vec<String>,
    /// A condition on the call: `args.amount > 500 && caller.agent`.
    pub when: Option<String>,
    pub mode: Mode,
    pub effect: Effect,
    pub approvers: Vec<String>,
    pub approvals: u32,
    pub allow_self: bool,
    pub allow_changes: bool,
    pub timeout: Option<Millis>,
    pub at_most_once: Option<UnknownOutcome>,
    pub rate: Option<Rate>,
    pub reason: Option<String>,
}

impl Policies<'_> {
    /// All policies. Needs only the right to read, so that users can see why a call was stopped.
    pub async fn list(&self) -> Result<Vec<Policy>, Error> {
        self.caller.check(Right::Read)?;
        let all = list::<Policy>(&*self.rooms.cluster.store, self.caller.org).await?;
        Ok(Policy::with_built_in(all.into_iter().map(|policy| policy.is).collect()))
    }

    /// Returns a policy by name. Needs the right to read.
    pub async fn get(&self, name: &str) -> Result<Policy, Error> {
        self.caller.check(Right::Read)?;
        match find::<Policy>(&*self.rooms.cluster.store, self.caller.org, name).await {
            Err(Error::NotFound { .. }) if name == AGENTS_UNREVIEWED => Ok(Policy::agents_unreviewed()),
            found => body(&found?),
        }
    }

    /// Creates or replaces a policy. Takes effect with the next call. Needs the right to administer.
    pub async fn put(&self, name: &str, new: NewPolicy) -> Result<Policy, Error> {
        self.caller.check(Right::Admin)?;
        let new = new.checked(name)?;
        retry_on_conflict(|| self.put_once(name, new.clone())).await
    }

    async fn put_once(&self, name: &str, new: NewPolicy) -> Result<Policy, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let now = self.rooms.cluster.clock.now();
        let before = self.rooms.cluster.store.record_with_key(Policy::KIND, &name_key(self.caller.org, name)).await?;
        let existing = before.as_ref().map(body::<Policy>).transpose()?.map(|policy| (policy.created, policy.by));
        let (created, by) = existing.unwrap_or_else(|| (now, self.caller.name.to_string()));
        let policy = new.named(name, created, by);
        let record = match before {
            Some(record) => RecordChange::Replace(Record { body: json_text(&policy), ..record }),
            None if self.list().await?.len() >= MAX_POLICIES as usize => {
                let message = format!("an organisation has at most {MAX_POLICIES} policies");
                return Err(Error::Limit { limit: "policies", message });
            }
            None => RecordChange::Create(new_named(self.rooms, self.caller.org, "pol", &policy.name, &policy)),
        };
        let audit = vec![self.caller.audit(now, "policy.put", &policy.name, json!(policy))];
        // What it would have stopped until now says nothing about the new one.
        let records = vec![record, PolicyLog::removal(self.caller.org, &policy.name)];
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "policy", &policy.name).await?;
        self.rooms.executor.policy_logs.forget(self.caller.org, &policy.name);
        Ok(policy)
    }

    /// Removes a policy; `agents-unreviewed` becomes again what it was at first. Needs the right to administer.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        let record = find::<Policy>(&*self.rooms.cluster.store, self.caller.org, name).await?;
        let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), "policy.remove", name, Value::Null)];
        let policy: Policy = body(&record)?;
        let records = vec![
            RecordChange::Remove { kind: Policy::KIND.into(), id: record.id },
            PolicyLog::removal(self.caller.org, &policy.name),
        ];
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: None };
        change(self.rooms, update, "policy", name).await?;
        self.rooms.executor.policy_logs.forget(self.caller.org, &policy.name);
        Ok(())
    }

    /// What a policy in the mode `log` would have done since it was set. Needs the right to read.
    pub async fn log(&self, name: &str) -> Result<PolicyLog, Error> {
        let policy = self.get(name).await?;
        self.rooms.executor.policy_logs.read(self.caller.org, &policy.name).await
    }
}

impl NewPolicy {
    /// With normalised patterns, if it is valid under this name.
    pub(super) fn checked(self, name: &str) -> Result<NewPolicy, Error> {
        check_name("name", name)?;
        check(name, &self)?;
        let except = self.except.iter().map(|except| normalised("except", except)).collect::<Result<_, _>>()?;
        Ok(NewPolicy { calls: normalised("calls", &self.calls)?, except, ..self })
    }

    pub(super) fn named(self, name: &str, created: Time, by: String) -> Policy {
        Policy {
            name: name.to_string(),
            calls: self.calls,
            except: self.except,
            when: self.when,
            mode: self.mode,
            effect: self.effect,
            approvers: self.approvers,
            approvals: self.approvals,
            allow_self: self.allow_self,
            allow_changes: self.allow_changes,
            timeout: self.timeout,
            at_most_once: self.at_most_once,
            rate: self.rate,
            reason: self.reason,
            created,
            by,
        }
    }
}

fn check_selector(field: &str, calls: &str) -> Result<(), Error> {
    let known =
        calls.split_once(':').is_some_and(|(kind, pattern)| SUBJECT_KINDS.contains(&kind) && !pattern.is_empty());
    if known && calls.len() <= 300 {
        return Ok(());
    }
    let forms = SUBJECT_KINDS.map(|kind| format!("{kind}:PATTERN")).join(", ");
    Err(invalid(field, &format!("must select calls by one of {forms}")))
}

/// Normalises a host pattern, so that patterns and hosts can be compared.
fn normalised(field: &str, calls: &str) -> Result<String, Error> {
    match calls.strip_prefix("host:") {
        Some(pattern) => host_pattern(pattern).map(|host| format!("host:{host}")).map_err(|why| invalid(field, &why)),
        None => Ok(calls.to_string()),
    }
}

fn check(name: &str, new: &NewPolicy) -> Result<(), Error> {
    check_selector("calls", &new.calls)?;
    new.except.iter().try_for_each(|except| check_selector("except", except))?;
    if new.except.len() > MAX_EXCEPTIONS {
        return Err(invalid("except", &format!("must be at most {MAX_EXCEPTIONS} exceptions")));
    }
    if let Some(when) = &new.when {
        Condition::parse(when).map_err(|why| invalid("when", &why))?;
    }
    if name == AGENTS_UNREVIEWED && !new.calls.starts_with(UNREVIEWED) {
        let message =
            format!("must be {UNREVIEWED}:PATTERN in the policy {AGENTS_UNREVIEWED}: relax it with exceptions");
        return Err(invalid("calls", &message));
    }
    if new.approvals == 0 || new.approvals as usize > MAX_APPROVERS {
        return Err(invalid("approvals", &format!("must be between 1 and {MAX_APPROVERS}")));
    }
    if new.approvers.len() > MAX_APPROVERS || new.approvers.iter().any(|name| name.trim().is_empty()) {
        return Err(invalid(
            "approvers",
            &format!("must be at most {MAX_APPROVERS} users or roles, without empty names"),
        ));
    }
    if new.rate.is_some_and(|rate| rate.calls == 0 || rate.per.0 == 0 || rate.per > Millis::DAY) {
        return Err(invalid("rate", "must be at least one call, per at most one day"));
    }
    if new.timeout.is_some_and(|timeout| timeout.0 == 0) {
        return Err(invalid("timeout", "must be longer than zero"));
    }
    if new.reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
        return Err(invalid("reason", &format!("must be at most {MAX_REASON} bytes")));
    }
    Ok(())
}
