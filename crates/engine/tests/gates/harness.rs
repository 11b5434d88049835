//! An engine on a store, with users, policies and tools that the test controls.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::time::Millis;
use stepwell_engine::commands::{Approval, Decision, NewKey, NewPolicy, RunView, UserChange};
use stepwell_engine::{
    Caller, Config, Error, Kinds, PolicyEffect, SecretSource, StepCall, StepKind, TokioClock, Vault,
};
use stepwell_store::OrgId;
pub use stepwell_testing::list;
use stepwell_testing::{EngineHarness, START, VirtualStore, policy};

/// A master key.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// The grants of a user who runs and approves things.
pub const PERSON: &[&str] = &["workflow.run", "workflow.read", "workflow.approve", "tool:*"];

/// `flaky` fails once per step, `lost` may have happened, `hang` never ends, `reach` asks whether it may request a URL; a
/// request to `/lost` may have happened. A repeated `safe…` does no harm.
#[derive(Clone, Default)]
pub struct Tools(stepwell_testing::Tools);

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        let before = self.0.called().into_iter().filter(|path| *path == call.path).count();
        self.0.record(&call);
        let failed = |failure| Outcome::Failure { failure, reply: None };
        let lost = Failure { may_have_happened: true, ..Failure::retryable("lost", "no answer came") };
        if call.input["url"].as_str().is_some_and(|url| url.ends_with("/lost")) && before == 0 {
            return failed(lost);
        }
        match call.input["tool"].as_str().unwrap_or_default() {
            "flaky" if before == 0 => failed(Failure::retryable("flaky", "try again")),
            "lost" | "safe_lost" if before == 0 => failed(lost),
            "reach" => {
                let rules = call.guard.unwrap().rules().await.unwrap();
                match rules.check(
                    &call.input["args"]["url"].as_str().unwrap().parse().unwrap(),
                    if call.input["args"]["write"] == true { "POST" } else { "GET" },
                ) {
                    Ok(()) => Outcome::Success(Reply::default()),
                    Err(failure) => failed(failure),
                }
            }
            "hang" => std::future::pending().await,
            _ => self.0.answer(&call).await,
        }
    }

    fn is_read_only(&self, input: &Value) -> bool {
        let reads = |tool: &str| tool.starts_with("read") || tool == "reach";
        input["tool"].as_str().is_some_and(reads)
            || input["method"] == "GET"
            || input["sql"].is_string() && input["write"] != true
    }

    fn is_idempotent(&self, input: &Value) -> bool {
        input["tool"].as_str().is_some_and(|tool| tool.starts_with("safe"))
    }
}

pub struct Harness {
    inner: EngineHarness,
    pub store: VirtualStore,
    tools: Tools,
    clock: TokioClock,
}

impl Deref for Harness {
    type Target = EngineHarness;

    fn deref(&self) -> &EngineHarness {
        &self.inner
    }
}

impl Harness {
    pub async fn new() -> Harness {
        let (tools, store) = (Tools::default(), VirtualStore::default());
        let clock = TokioClock::starting_at(START);
        let inner = EngineHarness::bootstrapped(Arc::new(store.clone()), config(&tools, clock)).await;
        Harness { inner, store, tools, clock }
    }

    /// With one workflow, defined by the administrator.
    pub async fn with(name: &str, tasks: Value) -> Harness {
        let harness = Harness::new().await;
        harness.define(name, tasks).await;
        harness
    }

    /// As another process would be after this one's.
    pub async fn restarted(&self) -> Harness {
        let Harness { inner, store, tools, clock } = self;
        let inner = inner.another(Arc::new(store.clone()), config(tools, *clock)).await;
        Harness { inner, store: store.clone(), tools: tools.clone(), clock: *clock }
    }

    pub async fn define(&self, name: &str, tasks: Value) {
        self.define_tasks(name, tasks).await;
    }

    pub async fn user(&self, name: &str, roles: &[&str], grants: &[&str]) -> Caller {
        self.new_user(name, roles, grants).await;
        self.person(name).await
    }

    /// A user by a key.
    pub async fn key(&self, new: NewKey) -> Caller {
        self.with_key(&self.secret(new).await).await
    }

    pub async fn secret(&self, new: NewKey) -> String {
        self.new_key(new).await.1
    }

    pub async fn change(&self, user: &str, to: UserChange) {
        self.engine.users(&self.admin).change(user, to).await.unwrap();
    }

    pub async fn start(&self, workflow: &str) -> String {
        self.start_as(&self.admin, workflow, json!({})).await
    }

    /// Until a step asks.
    pub async fn asked(&self, run: &str, step: &str) -> Approval {
        loop {
            match self.engine.gates(&self.admin).get(run, step).await {
                Ok(approval) => return approval,
                Err(Error::Conflict(_) | Error::NotFound { .. }) => self.pass(1).await,
                Err(error) => panic!("{step}: {error}"),
            }
            assert!(!["completed", "failed"].contains(&self.view(run).await.status), "{:?}", self.view(run).await);
        }
    }

    /// Answers what is asked now.
    pub async fn answer(&self, by: &Caller, run: &str, step: &str, approve: bool) -> Result<(), Error> {
        let digest = self.asked(run, step).await.digest;
        self.engine.gates(by).answer(run, step, Decision { approve, digest, ..Decision::default() }).await
    }

    pub async fn approve(&self, by: &Caller, run: &str, step: &str) {
        self.answer(by, run, step, true).await.unwrap();
    }

    pub async fn policy(&self, name: &str, policy: NewPolicy) {
        self.engine.policies(&self.admin).put(name, policy).await.unwrap();
    }

    /// Lets virtual time pass, with all that happens in it.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// The steps that were called so far, in order.
    pub fn called(&self) -> Vec<String> {
        self.tools.0.called()
    }

    pub fn called_with(&self) -> Vec<Value> {
        self.tools.0.calls().into_iter().map(|call| call.args).collect()
    }

    pub fn called_at(&self) -> Vec<tokio::time::Instant> {
        self.tools.0.calls().into_iter().map(|call| call.at).collect()
    }
}

fn config(tools: &Tools, clock: TokioClock) -> Config {
    let kinds = Kinds::default().with("tool", tools.clone()).with("http", tools.clone()).with("query", tools.clone());
    let vault = Arc::new(Vault::read(KEY).unwrap_or_else(|why| panic!("{why}")));
    Config { clock: Arc::new(clock), secrets: Arc::new(Hook), vault, ..Config::new(kinds) }
}

/// `HOOK` is a whole URL, `REST` the end of one's host and its path.
struct Hook;

#[async_trait]
impl SecretSource for Hook {
    async fn secret(&self, _org: OrgId, name: &str) -> Option<String> {
        match name {
            "HOOK" => Some("https://Internal.example.com./x?token=s3cret".into()),
            "REST" => Some("ternal.example.com/".into()),
            _ => None,
        }
    }
}

/// A policy that holds these calls until anyone who may approves them.
pub fn hold(calls: &str) -> NewPolicy {
    policy(calls, PolicyEffect::RequireApproval)
}

pub fn within(policy: NewPolicy, seconds: u64) -> NewPolicy {
    NewPolicy { timeout: Some(Millis::from_secs(seconds)), ..policy }
}

/// How a step ended, and with which error.
pub fn status(view: &RunView, step: &str) -> (&'static str, Option<String>) {
    let task = view.tasks.iter().find(|task| task.path == step).unwrap_or_else(|| panic!("no step {step}: {view:?}"));
    (task.status, task.error.as_ref().and_then(|error| Some(error["code"].as_str()?.to_string())))
}

/// The code of a refusal.
pub fn refusal(answer: &Result<(), Error>) -> &'static str {
    match answer {
        Ok(()) => "taken",
        Err(Error::Forbidden { .. }) => "forbidden",
        Err(Error::Refused(_)) => "refused",
        Err(Error::Conflict(_)) => "conflict",
        Err(Error::Input { .. } | Error::Inputs(_)) => "input",
        Err(Error::NotFound { .. }) => "unknown",
        Err(other) => panic!("{other}"),
    }
}
