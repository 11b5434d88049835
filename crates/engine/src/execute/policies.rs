//! Policies: what an organisation says about calls, whatever its workflows say. An administrator can put a gate before a
//! tool without touching a workflow, forbid it, slow it down, or demand that it is never called twice.
//!
//! A policy names calls by a sort and a pattern: `tool:mail.*`, `host:*.example.com`, `connection:crm`. Of several that fit,
//! `deny` goes over `require_approval`, and that over `allow`.

use super::Executor;
use super::step::Kinds;
use crate::access::matches;
use crate::error::Error;
use crate::records::{Kept, body};
use crate::run::{CallRules, Live};
use crate::secrets::host_of;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::graph::OnUnknown;
use stepwell_core::plan::Transition;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{NewAudit, OrgId, RecordFilter};

/// Policies of one organisation.
pub const MOST: u32 = 500;
/// Sorts of things that a policy can name.
pub const SORTS: [&str; 3] = ["tool", "host", "connection"];

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Policy {
    pub name: String,
    /// `tool:mail.*`.
    pub calls: String,
    pub effect: Effect,
    /// Users or roles; anyone who may approve if there are none.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// How many of them.
    #[serde(default = "one")]
    pub approvals: u32,
    /// Whether whoever started the run may approve.
    #[serde(default = "yes")]
    pub allow_self: bool,
    /// An approval that nobody gives in this time is denied.
    #[serde(default)]
    pub timeout: Option<Millis>,
    /// A call that may have happened is not made again, unless its tool says that it can be.
    #[serde(default)]
    pub at_most_once: Option<Unknown>,
    #[serde(default)]
    pub rate: Option<Rate>,
    /// For those who are stopped by it.
    #[serde(default)]
    pub reason: Option<String>,
    pub created: Time,
    pub by: String,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// From the weakest to the strongest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Allow,
    RequireApproval,
    Deny,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    Fail,
    Ask,
}

/// So many calls in so much time, over all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    pub calls: u32,
    pub per: Millis,
}

impl Kept for Policy {
    const KIND: &'static str = "policy";
}

impl Policy {
    /// What of a call it speaks of, if it does.
    pub fn subject<'s>(&self, subjects: &'s [Subject]) -> Option<&'s Subject> {
        let (sort, pattern) = self.calls.split_once(':')?;
        let fits = |subject: &&Subject| subject.sort == sort && (subject.unknown || matches(pattern, &subject.name));
        subjects.iter().find(fits)
    }

    /// What is asked of people before a call that this policy holds.
    pub fn ask(&self, what: &str) -> Value {
        let reason = self.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let mut ask = json!({
            "message": format!("The policy {} asks for approval of {what}{reason}", self.name),
            "policy": self.name,
            "approvals": self.approvals,
            "allow_self": self.allow_self,
        });
        if !self.approvers.is_empty() {
            ask["approvers"] = json!(self.approvers);
        }
        ask
    }
}

/// What a call is to policies. A request is known by its host, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    pub sort: &'static str,
    pub name: String,
    /// A secret that is not filled in says which it is: it may be any.
    pub unknown: bool,
}

impl Subject {
    pub fn new(sort: &'static str, name: String) -> Subject {
        Subject { sort, name, unknown: false }
    }
}

pub fn subjects(kind: &str, input: &Value) -> Vec<Subject> {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_string();
    let tool = match kind {
        "tool" => text(input, "tool"),
        kind => kind.to_string(),
    };
    let other = match (kind, &*tool) {
        ("http", _) => host(&text(input, "url")),
        ("tool", "http_request") => input.get("args").and_then(|args| host(&text(args, "url"))),
        ("query", _) => Some(Subject::new("connection", text(input, "connection"))),
        _ => None,
    };
    [Subject::new("tool", tool)].into_iter().chain(other).collect()
}

/// What is no URL is called by nobody.
fn host(url: &str) -> Option<Subject> {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    match authority.contains("{{secrets.") {
        true => Some(Subject { unknown: true, ..Subject::new("host", "(in a secret)".into()) }),
        false => host_of(url).map(|host| Subject::new("host", host)),
    }
}

/// All policies of an organisation.
#[derive(Default)]
pub struct Policies {
    all: Vec<Policy>,
    kinds: Kinds,
}

impl Policies {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that speak of a call, the strongest first.
    pub fn on<'a>(&'a self, subjects: &[Subject]) -> Vec<&'a Policy> {
        let mut fitting: Vec<&Policy> = self.all.iter().filter(|policy| policy.subject(subjects).is_some()).collect();
        fitting.sort_by_key(|policy| std::cmp::Reverse(policy.effect));
        fitting
    }

    /// Whether a call may not be made twice.
    fn demand_at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown> {
        if self.is_empty() {
            return None;
        }
        let demands = self.on(&subjects(kind, input)).into_iter().filter_map(|policy| policy.at_most_once);
        // Of two, the one that lets nothing happen again by itself.
        let words: Vec<Unknown> = demands.collect();
        match words.contains(&Unknown::Fail) {
            true => Some(OnUnknown::Fail),
            false => words.first().map(|_| OnUnknown::Ask),
        }
    }
}

impl CallRules for Policies {
    fn at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown> {
        let demanded = self.demand_at_most_once(kind, input)?;
        // A call that can be made again without harm may be.
        let idempotent = self.kinds.get(kind).is_some_and(|kind| kind.is_idempotent(input));
        (!idempotent).then_some(demanded)
    }

    fn audit(&self, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit> {
        super::call_audit::calls(self, live, transition, now)
    }
}

impl Executor {
    /// The organisation's policies, cached for as long as its epoch stands.
    pub async fn policies(&self, org: OrgId) -> Result<Arc<Policies>, Error> {
        let epoch = self.access.epoch(org).await?;
        if let Some(known) = self.policies.get(&org, epoch) {
            return Ok(known);
        }
        let filter =
            RecordFilter { kind: Policy::KIND.into(), org: Some(org), prefix: String::new(), after: None, limit: MOST };
        let records = self.cluster.store.records(filter).await?;
        let all = records.iter().map(body::<Policy>).collect::<Result<_, _>>()?;
        let found = Arc::new(Policies { all, kinds: self.kinds.clone() });
        self.policies.put(org, epoch, found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, calls: &str, effect: Effect) -> Policy {
        Policy {
            name: name.into(),
            calls: calls.into(),
            effect,
            approvers: Vec::new(),
            approvals: 1,
            allow_self: true,
            timeout: None,
            at_most_once: None,
            rate: None,
            reason: None,
            created: Time(0),
            by: "root".into(),
        }
    }

    #[test]
    fn of_several_policies_the_strongest_comes_first() {
        let all = vec![
            policy("open", "tool:*", Effect::Allow),
            policy("gate", "tool:mail.*", Effect::RequireApproval),
            policy("never", "tool:mail.delete_all", Effect::Deny),
            policy("site", "host:*.example.com", Effect::RequireApproval),
        ];
        let policies = Policies { all, ..Policies::default() };
        let check = |kind: &str, input: Value, expected: &[&str]| {
            let names: Vec<&str> = policies.on(&subjects(kind, &input)).iter().map(|policy| &*policy.name).collect();
            assert_eq!(names, expected, "{input}");
        };
        check("tool", json!({"tool": "echo"}), &["open"]);
        check("tool", json!({"tool": "mail.send"}), &["gate", "open"]);
        check("tool", json!({"tool": "mail.delete_all"}), &["never", "gate", "open"]);
        check("http", json!({"url": "https://API.example.com/x"}), &["site", "open"]);
        check("tool", json!({"tool": "http_request", "args": {"url": "http://a.example.com"}}), &["site", "open"]);
        check("query", json!({"connection": "crm"}), &["open"]);
        check("tool", json!({"tool": "echo", "args": {"url": "http://a.example.com"}}), &["open"]);
        check("http", json!({"url": "\u{a0}http://a.example.com./"}), &["site", "open"]);
        check("http", json!({"url": "{{secrets.HOOK}}"}), &["site", "open"]);
        check("http", json!({"url": "http://a{{secrets.P}}.x/"}), &["site", "open"]);
        check("http", json!({"url": "http://a.x/{{secrets.P}}"}), &["open"]);
    }

    #[test]
    fn what_may_not_happen_twice_fails_rather_than_asks() {
        let with = |at_most_once| Policy { at_most_once, ..policy("once", "tool:pay*", Effect::Allow) };
        let said = |all: Vec<Policy>, tool: &str| {
            Policies { all, ..Policies::default() }.at_most_once("tool", &json!({"tool": tool}))
        };
        assert_eq!(said(vec![], "pay"), None);
        assert_eq!(said(vec![with(Some(Unknown::Ask))], "echo"), None);
        assert_eq!(said(vec![with(Some(Unknown::Ask))], "pay"), Some(OnUnknown::Ask));
        assert_eq!(said(vec![with(Some(Unknown::Ask)), with(Some(Unknown::Fail))], "pay"), Some(OnUnknown::Fail));
    }
}
