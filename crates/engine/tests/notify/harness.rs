//! Engines on a store, and a courier that records messages and answers as it was told.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::commands::{Decision, NewChannel, With};
use stepwell_engine::notify::{Channel, Courier, Delivery, Medium, Parcel, Settings, Undelivered};
use stepwell_engine::{Caller, Config, Engine, Kinds, TokioClock, Vault};
use stepwell_testing::{EngineHarness, START, Tools, VirtualStore};
use tokio::sync::watch;

/// How a channel takes messages.
#[derive(Clone, Copy, PartialEq)]
pub enum Mood {
    Good,
    /// Worth another attempt.
    Busy,
    Closed,
    /// Says nothing at all.
    Silent,
}

/// A message that was handed over, and when.
#[derive(Clone)]
pub struct Sent {
    pub parcel: Parcel,
    pub channel: String,
    pub at: Time,
}

#[derive(Clone, Default)]
pub struct Recorder {
    pub sent: Arc<watch::Sender<Vec<Sent>>>,
    moods: Arc<Mutex<HashMap<String, Mood>>>,
}

impl Recorder {
    pub fn mood(&self, channel: &str, mood: Mood) {
        self.moods.lock().unwrap().insert(channel.into(), mood);
    }

    /// What went through a channel: `gate_opened ask`.
    pub fn through(&self, channel: &str) -> Vec<String> {
        let told = |sent: &Sent| {
            let message = &sent.parcel.message;
            format!("{} {}", message.topic.name(), message.step.as_deref().unwrap_or("-"))
        };
        self.sent.borrow().iter().filter(|sent| sent.channel == channel).map(told).collect()
    }

    pub fn times(&self, channel: &str) -> Vec<Time> {
        self.sent.borrow().iter().filter(|sent| sent.channel == channel).map(|sent| sent.at).collect()
    }

    pub async fn until(&self, many: usize) {
        self.sent.subscribe().wait_for(|sent| sent.len() >= many).await.unwrap();
    }
}

#[async_trait]
impl Courier for Recorder {
    fn check(&self, _settings: &Settings) -> Result<(), (&'static str, String)> {
        Ok(())
    }

    async fn send(&self, parcel: &Parcel) -> Result<(), Undelivered> {
        let Settings::Slack { url } = &parcel.to else { panic!("channels of this test are Slack's") };
        let channel = url.trim_start_matches("https://").to_string();
        let mood = self.moods.lock().unwrap().get(&channel).copied().unwrap_or(Mood::Good);
        self.sent.send_modify(|sent| sent.push(Sent { parcel: parcel.clone(), channel, at: parcel.now }));
        match mood {
            Mood::Good => Ok(()),
            Mood::Busy => Err(Undelivered::for_now("busy")),
            Mood::Closed => Err(Undelivered::for_good("closed")),
            Mood::Silent => std::future::pending().await,
        }
    }
}

pub struct Harness {
    inner: EngineHarness,
    pub recorder: Recorder,
    pub store: VirtualStore,
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
        let (store, clock, recorder) = (VirtualStore::shared(), TokioClock::starting_at(START), Recorder::default());
        let inner = EngineHarness::bootstrapped(Arc::new(store.clone()), config(clock, &recorder)).await;
        inner.define_tasks("asks", json!({"ask": {"approval": {"message": "well?"}}})).await;
        inner.define_tasks("fails", json!({"it": {"tool": "fail"}})).await;
        Harness { inner, recorder, store, clock }
    }

    /// Another node on the same store, with the same courier.
    pub async fn another(&self) -> Engine {
        self.inner.another(Arc::new(self.store.clone()), config(self.clock, &self.recorder)).await.engine
    }

    /// Another node, whose clock is this much ahead of the start of the test.
    pub async fn later(&self, ahead: Millis) -> Engine {
        let config = config(TokioClock::starting_at(START + ahead), &self.recorder);
        self.inner.another(Arc::new(self.store.clone()), config).await.engine
    }

    /// One with these master keys.
    pub async fn with_keys(&self, keys: &str) -> Engine {
        let vault = Arc::new(Vault::read(keys).unwrap_or_else(|why| panic!("{why}")));
        let config = Config { vault, ..config(self.clock, &self.recorder) };
        self.inner.another(Arc::new(self.store.clone()), config).await.engine
    }

    /// One that executes nothing.
    pub fn at_rest(&self) -> Engine {
        Engine::at_rest(Arc::new(self.store.clone()), config(self.clock, &self.recorder))
    }

    pub async fn define(&self, document: Value) {
        self.define_as(&self.admin, &document).await;
    }

    pub async fn start(&self, caller: &Caller, workflow: &str) -> String {
        self.start_as(caller, workflow, json!({})).await
    }

    pub async fn answer(&self, caller: &Caller, run: &str, approve: bool) {
        self.engine.gates(caller).answer(run, "ask", Decision { approve, ..Decision::default() }).await.unwrap();
    }

    /// A user with these grants or roles, by a key.
    pub async fn user(&self, name: &str, grants: &[&str], roles: &[&str]) -> Caller {
        self.new_user(name, roles, grants).await;
        self.by_key(name).await
    }

    /// A channel of the caller's own, which the recorder knows by its name.
    pub async fn own(&self, caller: &Caller, name: &str) -> With<Channel> {
        self.engine.channels(caller).create(channel(name)).await.unwrap().0
    }

    pub async fn of_organisation(&self, name: &str) -> With<Channel> {
        let new = NewChannel { organisation: true, ..channel(name) };
        self.engine.channels(&self.admin).create(new).await.unwrap().0
    }

    pub async fn notifications(&self, caller: &Caller) -> Vec<Delivery> {
        let (found, _) = self.engine.channels(caller).notifications(None, 1_000).await.unwrap();
        found.into_iter().map(|delivery| delivery.is).collect()
    }

    /// Until every message is sent, given up or dropped.
    pub async fn settled(&self) {
        loop {
            let all = self.notifications(&self.admin).await;
            if all.iter().all(|delivery| delivery.done.is_some()) {
                return;
            }
            // On a database each look takes its time, and what is waited for may be an hour away.
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }

    /// Long enough for everything that is going to happen by itself to have happened.
    pub async fn quiet(&self) {
        tokio::time::sleep(Duration::from_secs(30)).await;
        self.settled().await;
    }
}

pub fn channel(name: &str) -> NewChannel {
    let url = Some(format!("https://{name}"));
    NewChannel { name: name.into(), medium: Some(Medium::Slack), url, ..NewChannel::default() }
}

fn config(clock: TokioClock, recorder: &Recorder) -> Config {
    let courier: Arc<dyn Courier> = Arc::new(recorder.clone());
    let kinds = Kinds::default().with("tool", Tools::default());
    // What opens a channel is sealed.
    let vault = Arc::new(Vault::read(&"07".repeat(32)).unwrap());
    Config { clock: Arc::new(clock), courier: Some(courier), vault, ..Config::new(kinds) }
}
