//! Tries policies on calls of the past: what they would have denied, held or let through.
//!
//! A call is looked at once, however often it was repeated. Rates and `at_most_once` are not tried.

use super::Executor;
use super::conditions::{CallFacts, args};
use super::dispatch::principal;
use super::permit::{Approved, CallRequest, GateApprovals, describe, is_approved, who};
use super::policies::{Policies, Policy, Subject, subjects};
use super::policy_log::{Counts, PolicyLog, Sample, Verdict, shown_args};
use crate::error::Error;
use crate::run::Live;
use async_trait::async_trait;
use std::collections::{BTreeMap, HashMap};
use stepwell_core::graph::Kind;
use stepwell_core::run::StepState;
use stepwell_core::time::Time;
use stepwell_core::value::Payload;

/// The policies on trial, and what they would have done so far.
pub struct Trial {
    policies: Policies,
    pub calls: u64,
    /// What all policies together would have done. A call counts once, with the strongest effect.
    pub counts: Counts,
    pub tried: BTreeMap<String, PolicyLog>,
}

/// A call of the past.
struct PastCall<'a> {
    path: String,
    kind: &'static str,
    payload: &'a Payload,
    state: &'a StepState,
    at: Time,
}

impl Trial {
    pub fn new(executor: &Executor, policies: Vec<Policy>) -> Trial {
        let tried = policies.iter().map(|policy| (policy.name.clone(), PolicyLog::default())).collect();
        let policies = Policies::new(policies, executor.kinds.clone());
        Trial { policies, calls: 0, counts: Counts::default(), tried }
    }

    /// Adds the calls of a run, as long as there are fewer than `most`. False if there are more.
    pub async fn add(&mut self, executor: &Executor, live: &Live, most: u64) -> Result<bool, Error> {
        let graph = &live.compiled.definition.graph;
        let rows = executor.cluster.store.attempts(live.id).await?;
        // The newest attempt has the input that is in memory.
        let begun: HashMap<String, Time> = rows.into_iter().map(|row| (row.path, row.since)).collect();
        for (at, state) in live.run.steps(graph) {
            let Kind::Call { call, .. } = &graph.step(at.step).def.kind else { continue };
            let Some(payload) = state.input.and_then(|input| live.run.values.payload(input)) else { continue };
            if self.calls >= most {
                return Ok(false);
            }
            let path = live.run.path(graph, at);
            let at = begun.get(&path).copied().unwrap_or_default();
            self.add_call(executor, live, PastCall { path, kind: call.name(), payload, state, at }).await?;
        }
        Ok(true)
    }

    async fn add_call(&mut self, executor: &Executor, live: &Live, call: PastCall<'_>) -> Result<(), Error> {
        self.calls += 1;
        let workflows = &executor.runner.workflows;
        let saved = match call.kind {
            "query" => workflows.saved_query(live.org, call.payload).await.ok().flatten(),
            _ => None,
        };
        let sent = saved.as_ref().unwrap_or(call.payload);
        let (caller, origin) = (principal(live), live.origin());
        let mut subjects = subjects(call.kind, &sent.value);
        let reads = executor.kinds.get(call.kind).is_some_and(|kind| kind.is_read_only(&sent.value));
        if !reads && let Some(workflow) = workflows.unreviewed(&origin).await? {
            subjects.push(Subject::unreviewed(workflow));
        }
        let who = who(executor, &caller, &origin).await?;
        let facts = CallFacts::new(&who, &subjects, args(call.kind, &sent.value), call.at);
        let approved = Approved::of_held(live, call.state);
        let request = CallRequest {
            path: &call.path,
            kind: call.kind,
            payload: call.payload,
            sent,
            input: &sent.value,
            caller: &caller,
            origin: &origin,
            approved: approved.as_ref(),
            note: None,
            deferred: false,
        };
        let (enforced, logged) = self.policies.matching(&subjects, &facts);
        let (mut strongest, mut undecided) = (None, false);
        for matched in enforced.into_iter().chain(logged) {
            let verdict = match matched.verdict() {
                Verdict::Held if is_approved(executor, &request, matched.policy, &Gates(live)).await? => {
                    Verdict::Allowed
                }
                verdict => verdict,
            };
            undecided |= matched.undecided.is_some();
            strongest = strongest.max(Some(verdict));
            let sample = Sample {
                at: call.at,
                verdict,
                run: Some(live.run.id.to_string()),
                step: Some(call.path.clone()),
                workflow: who.workflow.as_deref().map(str::to_string),
                user: who.user.as_deref().map(str::to_string),
                call: describe(&subjects),
                args: shown_args(&args(call.kind, &sent.value)),
                undecided: matched.undecided,
            };
            self.tried.entry(matched.policy.name.clone()).or_default().add_older(sample);
        }
        strongest.into_iter().for_each(|verdict| self.counts.add(verdict, undecided));
        Ok(())
    }
}

/// The gates of a run that is in memory.
struct Gates<'a>(&'a Live);

#[async_trait]
impl GateApprovals for Gates<'_> {
    async fn approvals(&self) -> Result<Vec<Approved>, Error> {
        Ok(Approved::of_gates(self.0))
    }
}
