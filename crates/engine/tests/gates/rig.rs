//! An engine on a store in memory, with people, policies and tools that the test controls.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_core::time::{Millis, Time};
use stepwell_engine::commands::{Approval, Decision, NewKey, NewPolicy, NewUser, RunView, Source, Trigger, UserChange};
use stepwell_engine::{
    Caller, Config, Engine, Error, Kinds, PolicyEffect, SecretSource, StepCall, StepKind, TokioClock,
};
use stepwell_store::OrgId;
use stepwell_store::memory::MemoryStore;

/// 2026-01-01T00:00:00Z.
const START: Time = Time(1_767_225_600_000);
const ADMIN: &str = "sw_admin-of-the-default-organisation";
const AGENT: &str = "sw_agent-of-the-default-organisation";
/// What people who run and approve things are given.
pub const PERSON: &[&str] = &["workflow.run", "workflow.read", "workflow.approve", "tool:*"];

/// `ok` and `safe` give their arguments back, `flaky` fails once per step, `lost` may have happened, `hang` never ends,
/// `reach` asks whether it may request a URL; a request to `/lost` may have happened.
/// A repeated `safe…` does no harm.
#[derive(Clone, Default)]
pub struct Tools {
    /// When what was called, in order: the step and its arguments.
    calls: Arc<Mutex<Vec<(tokio::time::Instant, String, Value)>>>,
}

#[async_trait]
impl StepKind for Tools {
    async fn run(&self, call: StepCall) -> Outcome {
        let before = {
            let mut calls = self.calls.lock().unwrap();
            let before = calls.iter().filter(|(_, path, _)| *path == call.path).count();
            calls.push((tokio::time::Instant::now(), call.path.clone(), call.input["args"].clone()));
            before
        };
        let failed = |failure| Outcome::Failure { failure, reply: None };
        if call.input["url"].as_str().is_some_and(|url| url.ends_with("/lost")) && before == 0 {
            return failed(Failure { may_have_happened: true, ..Failure::retryable("lost", "no answer came") });
        }
        match call.input["tool"].as_str().unwrap_or_default() {
            "flaky" if before == 0 => failed(Failure::retryable("flaky", "try again")),
            "lost" | "safe_lost" if before == 0 => {
                failed(Failure { may_have_happened: true, ..Failure::retryable("lost", "no answer came") })
            }
            "fail" => failed(Failure::new("failed", "as asked")),
            "reach" => {
                let rules = call.guard.unwrap().rules().await.unwrap();
                match rules.check(&call.input["args"]["url"].as_str().unwrap().parse().unwrap()) {
                    Ok(()) => Outcome::Success(Reply::default()),
                    Err(failure) => failed(failure),
                }
            }
            "hang" => std::future::pending().await,
            _ => Outcome::Success(Reply::body(call.input["args"].clone())),
        }
    }

    fn is_idempotent(&self, input: &Value) -> bool {
        input["tool"].as_str().is_some_and(|tool| tool.starts_with("safe"))
    }
}

pub struct Rig {
    pub engine: Engine,
    pub store: MemoryStore,
    pub admin: Caller,
    tools: Tools,
    clock: TokioClock,
}

impl Rig {
    pub async fn new() -> Rig {
        let (tools, store) = (Tools::default(), MemoryStore::default());
        let clock = TokioClock::starting_at(START);
        let engine = Engine::start(Arc::new(store.clone()), config(&tools, clock)).await.unwrap();
        assert!(engine.identity().bootstrap(ADMIN, AGENT).await.unwrap());
        let admin = engine.identity().authenticate(ADMIN).await.unwrap();
        Rig { engine, store, admin, tools, clock }
    }

    /// With one workflow, defined by the administrator.
    pub async fn with(name: &str, tasks: Value) -> Rig {
        let rig = Rig::new().await;
        rig.define(name, tasks).await;
        rig
    }

    /// As another process would be after this one's.
    pub async fn restarted(&self) -> Rig {
        let Rig { store, admin, tools, clock, .. } = self;
        let engine = Engine::start(Arc::new(store.clone()), config(tools, *clock)).await.unwrap();
        Rig { engine, store: store.clone(), admin: admin.clone(), tools: tools.clone(), clock: *clock }
    }

    pub async fn define(&self, name: &str, tasks: Value) {
        let text = json!({"name": name, "tasks": tasks}).to_string();
        self.engine.workflows(&self.admin).define(Source { text: &text, file: None }).await.unwrap();
    }

    pub async fn user(&self, name: &str, roles: &[&str], grants: &[&str]) -> Caller {
        let new = NewUser { name: name.into(), roles: list(roles), grants: list(grants) };
        self.engine.users(&self.admin).create(new).await.unwrap();
        self.person(name).await
    }

    /// Someone in their browser, as of now.
    pub async fn person(&self, name: &str) -> Caller {
        let mut caller = self.key(NewKey { user: Some(name.into()), name: "own".into(), ..NewKey::default() }).await;
        caller.key = None;
        caller
    }

    /// Someone by a key.
    pub async fn key(&self, new: NewKey) -> Caller {
        self.engine.identity().authenticate(&self.secret(new).await).await.unwrap()
    }

    pub async fn secret(&self, new: NewKey) -> String {
        self.engine.keys(&self.admin).create(new).await.unwrap().1
    }

    pub async fn change(&self, user: &str, to: UserChange) {
        self.engine.users(&self.admin).change(user, to).await.unwrap();
    }

    pub async fn start_as(&self, caller: &Caller, workflow: &str, input: Value) -> String {
        self.engine.runs(caller).trigger(Trigger::new(workflow, input)).await.unwrap().run
    }

    pub async fn start(&self, workflow: &str) -> String {
        self.start_as(&self.admin, workflow, json!({})).await
    }

    pub async fn view(&self, run: &str) -> RunView {
        self.engine.runs(&self.admin).get(run).await.unwrap()
    }

    pub async fn ended(&self, run: &str) -> RunView {
        self.engine.runs(&self.admin).wait(run).await.unwrap();
        self.view(run).await
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
        self.tools.calls.lock().unwrap().iter().map(|(_, path, _)| path.clone()).collect()
    }

    pub fn called_with(&self) -> Vec<Value> {
        self.tools.calls.lock().unwrap().iter().map(|(_, _, args)| args.clone()).collect()
    }

    pub fn called_at(&self) -> Vec<tokio::time::Instant> {
        self.tools.calls.lock().unwrap().iter().map(|(at, ..)| *at).collect()
    }
}

fn config(tools: &Tools, clock: TokioClock) -> Config {
    let kinds = Kinds::default().with("tool", tools.clone()).with("http", tools.clone()).with("query", tools.clone());
    Config { clock: Arc::new(clock), secrets: Arc::new(Hook), ..Config::new(kinds) }
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

pub fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

/// A policy that holds these calls until anyone who may approves them.
pub fn hold(calls: &str) -> NewPolicy {
    NewPolicy {
        calls: calls.into(),
        effect: PolicyEffect::RequireApproval,
        approvers: Vec::new(),
        approvals: 1,
        allow_self: true,
        timeout: None,
        at_most_once: None,
        rate: None,
        reason: None,
    }
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
