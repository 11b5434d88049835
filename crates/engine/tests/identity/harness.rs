//! An engine on a store, with an administrator, other users, and tools that the test controls.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::commands::{NewKey, RunView, Source, Started, Trigger, UserChange};
use stepwell_engine::{Caller, Config, Engine, Error, Kinds, SecretSource, TokioClock};
use stepwell_store::{AuditFilter, AuditRow, OrgId, RunFilter, RunRow, Store};
pub use stepwell_testing::{ADMIN, AGENT, START, chain, list};
use stepwell_testing::{EngineHarness, Tools, VirtualStore};

/// Every organisation has one secret.
struct OneSecret;

#[async_trait]
impl SecretSource for OneSecret {
    async fn secret(&self, _org: OrgId, name: &str) -> Option<String> {
        (name == "HOOK").then(|| "secret".to_string())
    }
}

pub struct Harness {
    inner: EngineHarness,
    pub store: VirtualStore,
    pub tools: Tools,
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
        Harness::with(|config| config).await
    }

    pub async fn with(change: impl FnOnce(Config) -> Config) -> Harness {
        let (tools, store, clock) = (Tools::default(), VirtualStore::default(), TokioClock::starting_at(START));
        let inner = EngineHarness::bootstrapped(Arc::new(store.clone()), change(config(&tools, clock))).await;
        Harness { inner, store, tools, clock }
    }

    /// Another engine on the same store, as another process would be after this one's.
    pub async fn another(&self) -> Engine {
        self.inner.another(Arc::new(self.store.clone()), config(&self.tools, self.clock)).await.engine
    }

    /// Another engine on the same store, whose clock is this much ahead of the start of the test.
    pub async fn later(&self, ahead: Millis) -> Engine {
        let clock = TokioClock::starting_at(START + ahead);
        self.inner.another(Arc::new(self.store.clone()), config(&self.tools, clock)).await.engine
    }

    /// A user with these grants, in person.
    pub async fn user(&self, name: &str, grants: &[&str]) -> Caller {
        self.new_user(name, &[], grants).await;
        self.person(name).await
    }

    /// Creates a key of a user: its id and the key itself.
    pub async fn key(&self, user: &str, grants: Option<&[&str]>) -> (String, String) {
        let new =
            NewKey { user: Some(user.into()), name: "a key".into(), grants: grants.map(list), ..NewKey::default() };
        self.new_key(new).await
    }

    pub async fn grant(&self, user: &str, grants: &[&str]) {
        let to = UserChange { grants: Some(list(grants)), ..UserChange::default() };
        self.engine.users(&self.admin).change(user, to).await.unwrap();
    }

    pub async fn define(&self, caller: &Caller, document: Value) -> String {
        self.define_as(caller, &document).await
    }

    pub async fn try_define(&self, caller: &Caller, document: Value) -> Result<bool, Error> {
        let text = document.to_string();
        self.engine.workflows(caller).define(Source { text: &text, file: None }).await.map(|defined| defined.changed)
    }

    pub async fn try_start(&self, caller: &Caller, workflow: &str) -> Result<Started, Error> {
        self.engine.runs(caller).trigger(Trigger::new(workflow, json!({}))).await
    }

    pub async fn start(&self, caller: &Caller, workflow: &str) -> String {
        self.try_start(caller, workflow).await.unwrap().run
    }

    pub async fn until_holding(&self, many: i64) {
        self.tools.until_holding(many).await;
    }

    /// Lets virtual time pass, with all that happens in it.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Oldest first.
    pub async fn runs(&self) -> Vec<RunRow> {
        let mut rows = self.store.runs(RunFilter::all(OrgId(1), 10_000)).await.unwrap();
        rows.reverse();
        rows
    }

    pub async fn trail(&self, org: OrgId) -> Vec<AuditRow> {
        use stepwell_store::Registry;
        let filter = AuditFilter { org, by: None, action: None, target: None, before: None, limit: 10_000 };
        let mut rows = self.store.audit(filter).await.unwrap();
        rows.reverse();
        rows
    }

    pub fn called(&self) -> usize {
        self.tools.count()
    }
}

pub fn config(tools: &Tools, clock: TokioClock) -> Config {
    Config {
        clock: Arc::new(clock),
        secrets: Arc::new(OneSecret),
        ..Config::new(Kinds::default().with("tool", tools.clone()))
    }
}

/// The chain with more beside it.
pub fn with(mut document: Value, name: &str, value: Value) -> Value {
    document[name] = value;
    document
}

/// The code of the first failed step.
pub fn failure(view: &RunView) -> Option<String> {
    let failed = view.tasks.iter().find_map(|task| task.error.as_ref());
    failed.and_then(|error| error["code"].as_str()).map(str::to_string)
}
