//! Tests of quarantine: processes that die while they drive a run, and what people can do then.

use crate::access::Caller;
use crate::commands::{NewChannel, Source, Trigger};
use crate::engine::{Config, Engine};
use crate::error::Error;
use crate::execute::Kinds;
use crate::notify::{Courier, Medium, Parcel, Settings, Topic, Undelivered};
use crate::run::Runner;
use crate::run::recovery::{Entry, enter, left, quarantine, quarantined};
use crate::secrets::Vault;
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::run::Waiting;
use stepwell_store::memory::MemoryStore;
use stepwell_store::{RunId, Store};

const NAP: &str = r#"{"name": "nap", "tasks": {"nap": {"sleep": "1d"}}}"#;

/// Takes every message.
struct Messenger;

#[async_trait]
impl Courier for Messenger {
    fn check(&self, _: &Settings) -> Result<(), (&'static str, String)> {
        Ok(())
    }

    async fn send(&self, _: &Parcel) -> Result<(), Undelivered> {
        Ok(())
    }
}

fn config() -> Config {
    let vault = Arc::new(Vault::read(&"07".repeat(32)).unwrap());
    Config { courier: Some(Arc::new(Messenger)), vault, ..Config::new(Kinds::default()) }
}

struct Setup {
    store: MemoryStore,
    ann: Caller,
    engine: Engine,
}

impl Setup {
    async fn new() -> Setup {
        let store = MemoryStore::shared();
        let engine = Engine::start(Arc::new(store.clone()), config()).await.unwrap();
        let ann = Caller::local("ann");
        engine.workflows(&ann).define(Source { text: NAP, file: None }).await.unwrap();
        Setup { store, ann, engine }
    }

    async fn start(&self) -> (String, RunId) {
        let started = self.engine.runs(&self.ann).trigger(Trigger::new("nap", json!({}))).await.unwrap();
        (started.run, started.id)
    }

    /// The process dies, and another node takes over.
    async fn crashed(self) -> Setup {
        self.engine.kill();
        self.store.give_up(self.engine.rooms.cluster.node.id());
        let engine = Engine::start(Arc::new(self.store.clone()), config()).await.unwrap();
        Setup { engine, ..self }
    }

    fn runner(&self) -> &Arc<Runner> {
        &self.engine.rooms.runner
    }

    fn concerns(&self, run: RunId) -> bool {
        self.runner().recovery.concerns(run, self.runner().cluster.clock.now())
    }
}

#[tokio::test]
async fn a_run_that_is_driven_whenever_the_process_dies_is_quarantined_until_it_is_released() {
    let setup = Setup::new().await;
    let ((run, id), (other, other_id)) = (setup.start().await, setup.start().await);
    assert!(!setup.concerns(id), "nothing crashed");
    let setup = setup.crashed().await;
    assert!(setup.concerns(id));
    // Both are driven, and the process dies meanwhile.
    assert!(matches!(enter(setup.runner(), id).await, Entry::Watched(None)));
    assert!(matches!(enter(setup.runner(), other_id).await, Entry::Watched(None)));
    let setup = setup.crashed().await;
    // As suspects they are driven one at a time. The other one is harmless.
    let alone = enter(setup.runner(), other_id).await;
    assert!(matches!(alone, Entry::Watched(Some(_))));
    left(setup.runner(), other_id).await;
    drop(alone);
    assert!(!setup.concerns(other_id));
    assert!(matches!(enter(setup.runner(), id).await, Entry::Watched(Some(_))));
    let setup = setup.crashed().await;
    let runs = setup.engine.runs(&setup.ann);
    assert!(matches!(enter(setup.runner(), id).await, Entry::Quarantined));
    assert!(matches!(enter(setup.runner(), other_id).await, Entry::Watched(None)));
    left(setup.runner(), other_id).await;
    let view = runs.get(&run).await.unwrap();
    assert_eq!(view.waiting_for[0].what, Waiting::Quarantine, "{view:?}");
    let wake = setup.engine.steps(&setup.ann).ready(&run, "nap").await;
    assert!(matches!(wake, Err(Error::NotNow(why)) if why.contains("quarantined")));
    setup.engine.steps(&setup.ann).ready(&other, "nap").await.unwrap();
    // The next node knows it from the start.
    let setup = setup.crashed().await;
    let runs = setup.engine.runs(&setup.ann);
    assert!(matches!(setup.engine.steps(&setup.ann).ready(&run, "nap").await, Err(Error::NotNow(_))));
    runs.release(&run).await.unwrap();
    assert!(matches!(runs.release(&run).await, Err(Error::NotNow(_))));
    setup.engine.steps(&setup.ann).ready(&run, "nap").await.unwrap();
    runs.wait(&run).await.unwrap();
    assert_eq!(runs.get(&run).await.unwrap().status, "completed");
}

#[tokio::test]
async fn a_quarantined_run_can_be_cancelled() {
    let setup = Setup::new().await;
    let (run, id) = setup.start().await;
    let setup = setup.crashed().await;
    let row = setup.store.run(id).await.unwrap().unwrap();
    quarantine(setup.runner(), &row).await.unwrap();
    setup.engine.runs(&setup.ann).cancel(&run, None).await.unwrap();
    assert_eq!(setup.engine.runs(&setup.ann).get(&run).await.unwrap().status, "cancelled");
    assert_eq!(quarantined(setup.runner(), id).await.unwrap(), None);
}

#[tokio::test]
async fn people_who_hear_of_failed_runs_hear_of_a_quarantine_by_its_own_name() {
    let setup = Setup::new().await;
    let (_, id) = setup.start().await;
    let channels = setup.engine.channels(&setup.ann);
    for (name, events) in [("failures", Topic::RunFailed), ("gates", Topic::GateOpened)] {
        let (medium, url) = (Some(Medium::Webhook), Some("https://example.test/hook".into()));
        let (name, events) = (name.to_string(), Some(vec![events]));
        let new = NewChannel { name, medium, url, events, organisation: true, ..NewChannel::default() };
        channels.create(new).await.unwrap();
    }
    let row = setup.store.run(id).await.unwrap().unwrap();
    quarantine(setup.runner(), &row).await.unwrap();
    let (sent, _) = channels.notifications(None, 10).await.unwrap();
    let told = sent.iter().map(|sent| (sent.is.name.as_str(), sent.is.message.topic.name(), sent.is.message.title()));
    assert_eq!(told.collect::<Vec<_>>(), [("failures", "run_quarantined", "nap: run quarantined".to_string())]);
}

#[tokio::test]
async fn a_node_that_stops_in_an_orderly_way_leaves_no_suspicion() {
    let setup = Setup::new().await;
    let (_, id) = setup.start().await;
    setup.engine.shutdown(Duration::ZERO).await;
    let setup = setup.crashed().await;
    assert!(!setup.concerns(id));
}
