//! Policies: an organisation's rules about calls, which apply to all its workflows. Without changing a workflow, an
//! administrator can require approval of a tool, deny it, limit its rate, or ensure that it is never called twice.
//!
//! A policy selects calls by a kind and a pattern: `tool:mail.*`, `host:*.example.com`, `connection:crm`; and by a
//! condition on the call. A condition that cannot be decided counts as met: a policy fails closed. If several policies
//! match, `deny` takes precedence over `require_approval`, which takes precedence over `allow`. A policy in the mode
//! `log` is evaluated and has no effect.
//!
//! `unreviewed:WORKFLOW` selects calls with side effects in runs of a version that no person has accepted. The policy
//! [`AGENTS_UNREVIEWED`] holds them in every organisation, until an administrator writes another one under its name.

use super::Executor;
use super::conditions::{CallFacts, Condition, Who, args};
use super::policy_log::Verdict;
use super::step::Kinds;
use crate::access::matches;
use crate::error::Error;
use crate::records::{Kept, body};
use crate::run::{CallRules, Live};
use crate::secrets::host_of;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::approval::ALLOW_CHANGES;
use stepwell_core::graph::OnUnknown;
use stepwell_core::plan::Transition;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{NewAudit, OrgId, RecordFilter};

/// Maximum number of policies of one organisation.
pub const MAX_POLICIES: u32 = 500;
/// Kinds of subjects that a policy can select.
pub const SUBJECT_KINDS: [&str; 4] = ["tool", "host", "connection", UNREVIEWED];
/// The kind of subject that calls with side effects in unreviewed runs have; its name is the workflow's.
pub const UNREVIEWED: &str = "unreviewed";
/// The policy that every organisation has from the start.
pub const AGENTS_UNREVIEWED: &str = "agents-unreviewed";

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Policy {
    pub name: String,
    /// `tool:mail.*`.
    pub calls: String,
    /// Calls that it does not apply to, in the same form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// A condition on the call, see [`Condition`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(default, skip_serializing_if = "Mode::is_default")]
    pub mode: Mode,
    pub effect: Effect,
    /// Users or roles. If empty, all users with the right to approve.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// Number of approvals that are required.
    #[serde(default = "one")]
    pub approvals: u32,
    /// Whether the user who started the run may approve.
    #[serde(default = "yes")]
    pub allow_self: bool,
    /// Whether an approver may change the arguments of the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_changes: bool,
    /// The call is denied if it is not approved in this time.
    #[serde(default)]
    pub timeout: Option<Millis>,
    /// A call whose outcome is unknown is not repeated, unless its tool declares it idempotent.
    #[serde(default)]
    pub at_most_once: Option<UnknownOutcome>,
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Shown to users whose call the policy stops.
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

/// Whether a policy has an effect.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Enforce,
    /// What it would do is counted, see [`super::PolicyLog`].
    Log,
}

impl Mode {
    fn is_default(&self) -> bool {
        *self == Mode::default()
    }
}

/// How a step continues when the outcome of its call is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownOutcome {
    Fail,
    Ask,
}

/// At most `calls` calls per period `per`, over all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    pub calls: u32,
    pub per: Millis,
}

impl Kept for Policy {
    const KIND: &'static str = "policy";
}

impl Policy {
    /// The policy [`AGENTS_UNREVIEWED`] as long as no administrator has changed it.
    pub fn agents_unreviewed() -> Policy {
        Policy {
            name: AGENTS_UNREVIEWED.into(),
            calls: format!("{UNREVIEWED}:*"),
            except: Vec::new(),
            when: None,
            mode: Mode::Enforce,
            effect: Effect::RequireApproval,
            approvers: Vec::new(),
            approvals: one(),
            allow_self: yes(),
            allow_changes: false,
            timeout: None,
            at_most_once: None,
            rate: None,
            reason: Some("an agent wrote this version, and no person has accepted it".into()),
            created: Time(0),
            by: "stepwell".into(),
        }
    }

    /// Adds [`AGENTS_UNREVIEWED`] to the stored policies, unless it is one.
    pub fn with_built_in(mut stored: Vec<Policy>) -> Vec<Policy> {
        if !stored.iter().any(|policy| policy.name == AGENTS_UNREVIEWED) {
            stored.push(Policy::agents_unreviewed());
            stored.sort_by(|a, b| a.name.cmp(&b.name));
        }
        stored
    }

    /// Whether one of the exceptions is certain to match.
    fn excepts(&self, subjects: &[Subject]) -> bool {
        let patterns = || self.except.iter().filter_map(|except| except.split_once(':'));
        let known = |subject: &Subject, (kind, pattern): (&str, &str)| {
            subject.kind == kind && !subject.unknown && matches(pattern, &subject.name)
        };
        subjects.iter().any(|subject| patterns().any(|except| known(subject, except)))
    }

    /// The subject of a call that the policy matches. `None` if it does not match.
    pub fn subject<'s>(&self, subjects: &'s [Subject]) -> Option<&'s Subject> {
        if self.excepts(subjects) {
            return None;
        }
        let (kind, pattern) = self.calls.split_once(':')?;
        let is_match =
            |subject: &&Subject| subject.kind == kind && (subject.unknown || matches(pattern, &subject.name));
        subjects.iter().find(is_match)
    }

    /// The approval request for a call that this policy holds.
    pub fn ask(&self, what: &str) -> Value {
        let reason = self.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let mut ask = json!({
            "message": format!("The policy {} requires approval of {what}{reason}", self.name),
            "policy": self.name,
            "approvals": self.approvals,
            "allow_self": self.allow_self,
        });
        if self.allow_changes {
            ask[ALLOW_CHANGES] = true.into();
        }
        if !self.approvers.is_empty() {
            ask["approvers"] = json!(self.approvers);
        }
        ask
    }
}

/// A property of a call that policies match: its tool, and its host or connection if it has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    pub kind: &'static str,
    pub name: String,
    /// The name is in a secret that is not filled in, so every pattern matches.
    pub unknown: bool,
}

impl Subject {
    pub fn new(kind: &'static str, name: String) -> Subject {
        Subject { kind, name, unknown: false }
    }

    /// A call with side effects in a run that is unreviewed because of this workflow.
    pub fn unreviewed(workflow: String) -> Subject {
        Subject::new(UNREVIEWED, workflow)
    }
}

/// The subjects of a call with this input.
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

/// The host of a URL. `None` if the text is not a URL: then the call fails anyway.
fn host(url: &str) -> Option<Subject> {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    match authority.contains("{{secrets.") {
        true => Some(Subject { unknown: true, ..Subject::new("host", "(in a secret)".into()) }),
        false => host_of(url).map(|host| Subject::new("host", host)),
    }
}

/// A policy that applies to a call.
#[derive(Clone, Debug)]
pub struct Match<'p> {
    pub policy: &'p Policy,
    /// Why its condition could not be decided, so that it counts as met.
    pub undecided: Option<String>,
}

impl Match<'_> {
    /// What the policy's effect on the call is, unless it was approved.
    pub fn verdict(&self) -> Verdict {
        match self.policy.effect {
            Effect::Deny => Verdict::Denied,
            Effect::RequireApproval => Verdict::Held,
            Effect::Allow => Verdict::Allowed,
        }
    }

    /// The end of a message about the call.
    pub fn doubt(&self) -> String {
        let doubt = |why| format!(" (its condition counts as met, because it cannot be decided: {why})");
        self.undecided.as_deref().map(doubt).unwrap_or_default()
    }
}

/// A policy with its parsed condition.
struct Rule {
    policy: Policy,
    when: Option<Result<Condition, String>>,
}

impl Rule {
    fn new(policy: Policy) -> Rule {
        let when = policy.when.as_deref().map(Condition::parse);
        Rule { policy, when }
    }

    /// `None` if the policy does not apply.
    fn matched<'p>(&'p self, call: &CallFacts<'_>) -> Option<Match<'p>> {
        let undecided = match &self.when {
            None => None,
            Some(Ok(when)) => match when.decides(call) {
                Ok(false) => return None,
                Ok(true) => None,
                Err(why) => Some(why),
            },
            // Only if it was stored by a version with another language.
            Some(Err(why)) => Some(why.clone()),
        };
        Some(Match { policy: &self.policy, undecided })
    }
}

/// All policies of an organisation.
#[derive(Default)]
pub struct Policies {
    all: Vec<Rule>,
    kinds: Kinds,
}

impl Policies {
    /// Policies, strongest effect first.
    pub fn new(mut all: Vec<Policy>, kinds: Kinds) -> Policies {
        all.sort_by_key(|policy| std::cmp::Reverse(policy.effect));
        Policies { all: all.into_iter().map(Rule::new).collect(), kinds }
    }

    /// Whether there is any policy besides the built-in one.
    pub fn has_stored(&self) -> bool {
        self.all.iter().any(|rule| rule.policy.name != AGENTS_UNREVIEWED)
    }

    fn selecting<'a>(&'a self, subjects: &[Subject]) -> impl Iterator<Item = &'a Rule> {
        self.all.iter().filter(|rule| rule.policy.subject(subjects).is_some())
    }

    /// The policies that select a call, whatever their condition and mode, strongest effect first.
    pub fn on<'a>(&'a self, subjects: &[Subject]) -> Vec<&'a Policy> {
        self.selecting(subjects).map(|rule| &rule.policy).collect()
    }

    /// Whether one of the policies that select a call asks for its arguments and for who makes it.
    pub fn ask_who(&self, subjects: &[Subject]) -> bool {
        self.selecting(subjects).any(|rule| rule.when.is_some() || rule.policy.mode == Mode::Log)
    }

    /// The policies that apply to a call: those to enforce, strongest effect first, and those to log.
    pub fn matching<'a>(&'a self, subjects: &[Subject], call: &CallFacts<'_>) -> (Vec<Match<'a>>, Vec<Match<'a>>) {
        let matching = self.selecting(subjects).filter_map(|rule| rule.matched(call));
        matching.partition(|matched| matched.policy.mode == Mode::Enforce)
    }

    /// What the policies demand for a call that must not be made twice. Its caller is not known here, nor its secrets.
    fn demand_at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown> {
        let subjects = subjects(kind, input);
        let call = CallFacts::new(&Who::default(), &subjects, args(kind, input), Time(0));
        let could_apply = |rule: &&Rule| match &rule.when {
            Some(Ok(when)) => rule.policy.mode == Mode::Enforce && when.could_hold(&call),
            Some(Err(_)) | None => rule.policy.mode == Mode::Enforce,
        };
        let demands = self.selecting(&subjects).filter(could_apply).filter_map(|rule| rule.policy.at_most_once);
        // `Fail` takes precedence: it never repeats the call.
        let demands: Vec<UnknownOutcome> = demands.collect();
        match demands.contains(&UnknownOutcome::Fail) {
            true => Some(OnUnknown::Fail),
            false => demands.first().map(|_| OnUnknown::Ask),
        }
    }
}

impl CallRules for Policies {
    fn at_most_once(&self, kind: &str, input: &Value) -> Option<OnUnknown> {
        let demanded = self.demand_at_most_once(kind, input)?;
        // An idempotent call may be repeated.
        let idempotent = self.kinds.get(kind).is_some_and(|kind| kind.is_idempotent(input));
        (!idempotent).then_some(demanded)
    }

    fn audit(&self, live: &Live, transition: &Transition, now: Time) -> Vec<NewAudit> {
        super::call_audit::calls(self, live, transition, now)
    }
}

impl Executor {
    /// The organisation's policies, cached until its epoch changes.
    pub async fn policies(&self, org: OrgId) -> Result<Arc<Policies>, Error> {
        let epoch = self.access.epoch(org).await?;
        if let Some(cached) = self.policies.get(&org, epoch) {
            return Ok(cached);
        }
        let filter = RecordFilter {
            kind: Policy::KIND.into(),
            org: Some(org),
            prefix: String::new(),
            after: None,
            limit: MAX_POLICIES,
        };
        let records = self.cluster.store.records(filter).await?;
        let all = records.iter().map(body::<Policy>).collect::<Result<_, _>>()?;
        let all = Policy::with_built_in(all);
        let found = Arc::new(Policies::new(all, self.kinds.clone()));
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
            except: Vec::new(),
            when: None,
            mode: Mode::Enforce,
            effect,
            approvers: Vec::new(),
            approvals: 1,
            allow_self: true,
            allow_changes: false,
            timeout: None,
            at_most_once: None,
            rate: None,
            reason: None,
            created: Time(0),
            by: "root".into(),
        }
    }

    #[test]
    fn the_strongest_policy_comes_first() {
        let all = vec![
            policy("open", "tool:*", Effect::Allow),
            policy("gate", "tool:mail.*", Effect::RequireApproval),
            policy("never", "tool:mail.delete_all", Effect::Deny),
            policy("site", "host:*.example.com", Effect::RequireApproval),
        ];
        let policies = Policies::new(all, Kinds::default());
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
    fn fail_takes_precedence_over_ask_for_unknown_outcomes() {
        let with = |at_most_once| Policy { at_most_once, ..policy("once", "tool:pay*", Effect::Allow) };
        let demanded = |all: Vec<Policy>, tool: &str| {
            Policies::new(all, Kinds::default()).at_most_once("tool", &json!({"tool": tool}))
        };
        assert_eq!(demanded(vec![], "pay"), None);
        assert_eq!(demanded(vec![with(Some(UnknownOutcome::Ask))], "echo"), None);
        assert_eq!(demanded(vec![with(Some(UnknownOutcome::Ask))], "pay"), Some(OnUnknown::Ask));
        assert_eq!(
            demanded(vec![with(Some(UnknownOutcome::Ask)), with(Some(UnknownOutcome::Fail))], "pay"),
            Some(OnUnknown::Fail)
        );
    }

    #[test]
    fn a_call_that_could_meet_the_condition_is_not_made_twice() {
        let check = |when: &str, input: Value, expected: bool| {
            let once = Policy { when: Some(when.into()), ..policy("once", "tool:pay", Effect::Allow) };
            let once = Policy { at_most_once: Some(UnknownOutcome::Fail), ..once };
            let policies = Policies::new(vec![once], Kinds::default());
            assert_eq!(policies.at_most_once("tool", &input).is_some(), expected, "{when} {input}");
        };
        let pay = |amount: Value| json!({"tool": "pay", "args": {"amount": amount}});
        check("args.amount > 5", pay(json!(6)), true);
        check("args.amount > 5", pay(json!(5)), false);
        check("args.amount > 5", pay(json!("{{secrets.SUM}}")), true);
        check("args.amount > 5 && caller.agent", pay(json!(5)), true);
    }

    #[test]
    fn a_policy_of_an_earlier_version_reads_and_one_without_a_condition_is_stored_as_before() {
        let stored = json!({"name": "p", "calls": "tool:a", "effect": "deny", "created": 0, "by": "root"});
        let read: Policy = serde_json::from_value(stored).unwrap();
        assert_eq!((&read.when, read.mode), (&None, Mode::Enforce));
        let written = serde_json::to_value(&read).unwrap();
        assert!(written.get("when").is_none() && written.get("mode").is_none(), "{written}");
    }
}
