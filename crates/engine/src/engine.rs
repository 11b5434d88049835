//! The engine itself: what its parts share, and how it starts and stops.

use crate::cache::ByEpoch;
use crate::clock::{Clock, SharedClock, SystemClock};
use crate::definitions::Definitions;
use crate::epochs::Epochs;
use crate::error::Error;
use crate::ids::Ids;
use crate::nodes::{self, Node};
use crate::notify::{self, Channels, Courier};
use crate::pace::Paces;
use crate::people::People;
use crate::plans::{Limits, Plans};
use crate::policies::Policies;
use crate::runs::{Letter, Runs, What};
use crate::safe::{Opened, Safe};
use crate::secrets::{EnvironmentSecrets, Secrets};
use crate::slots::Slots;
use crate::switches::Switches;
use crate::timers::Timers;
use crate::upstream::{NoServers, Pins, Servers};
use crate::vault::Vault;
use crate::{Kinds, children, dispatch, drive, hints, secrets, timers, triggers, upkeep};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_store::{NewAudit, OrgId, Position, RunId, Store, Version};
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

/// What an engine can be told at its start.
pub struct Config {
    /// What this node is called among others.
    pub node_name: String,
    /// How long a node on a shared store may be silent before others take over what it does.
    pub lease: Duration,
    /// Attempts that run at a time on this node.
    pub slots: u32,
    /// Attempts of one organisation that run at a time.
    pub slots_per_org: Option<u32>,
    /// Runs with steps under way whose state stays in memory. The others are read again when something happens to them.
    pub live_runs: usize,
    /// How long one attempt of a call may take when its definition does not say.
    pub call_timeout: Millis,
    /// How often the engine looks whether it missed anything.
    pub poll: Duration,
    /// What callback URLs begin with.
    pub base_url: String,
    pub kinds: Kinds,
    pub clock: Arc<dyn Clock>,
    pub ids: Ids,
    /// Those that are not in the store.
    pub secrets: Arc<dyn Secrets>,
    /// What secrets in the store are sealed with.
    pub vault: Arc<Vault>,
    pub plans: Plans,
    /// Takes messages to people; without one this process sends none.
    pub courier: Option<Arc<dyn Courier>>,
    /// MCP servers that steps of kind `tool` can call.
    pub servers: Arc<dyn Servers>,
    /// Calls tell services which trace they belong to.
    pub traced: bool,
}

impl Config {
    pub fn new(kinds: Kinds) -> Config {
        Config {
            node_name: nodes::host_name(),
            lease: Duration::from_secs(10),
            slots: 1_000,
            slots_per_org: None,
            live_runs: 10_000,
            call_timeout: Millis::from_secs(300),
            poll: Duration::from_secs(5),
            base_url: "http://127.0.0.1:7070".into(),
            kinds,
            clock: Arc::new(SystemClock),
            ids: Ids::system(),
            secrets: Arc::new(EnvironmentSecrets),
            vault: Arc::default(),
            plans: Plans::default(),
            courier: None,
            servers: Arc::new(NoServers),
            traced: false,
        }
    }
}

/// What those who watch hear. A hint: the log has the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happened {
    Here(Committed),
    /// Another process wrote something.
    Elsewhere,
}

/// A commit of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Committed {
    pub run: RunId,
    pub org: OrgId,
    pub version: Version,
    pub position: Position,
    pub ended: bool,
    /// When this process knew that it was on disk.
    pub at: std::time::Instant,
}

/// A running engine. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Arc<dyn Store>,
    /// Whether other processes use the store, too.
    pub shared: bool,
    pub clock: Arc<dyn Clock>,
    pub ids: Ids,
    pub kinds: Kinds,
    pub safe: Safe,
    pub opened: ByEpoch<(OrgId, String), Option<Opened>>,
    pub node: Node,
    pub call_timeout: Millis,
    pub poll: Duration,
    pub base_url: String,
    pub definitions: Definitions,
    pub people: People,
    pub plans: Plans,
    pub traced: bool,
    /// Schedules have changed.
    pub rescheduled: tokio::sync::Notify,
    pub courier: Option<Arc<dyn Courier>>,
    pub servers: Arc<dyn Servers>,
    pub pins: Pins,
    /// There is something to deliver.
    pub parcels: tokio::sync::Notify,
    pub channels: ByEpoch<OrgId, Arc<Channels>>,
    pub limits: ByEpoch<OrgId, (String, Limits)>,
    pub switches: ByEpoch<String, Arc<Switches>>,
    pub policies: ByEpoch<OrgId, Arc<Policies>>,
    pub paces: Paces,
    pub runs: Runs,
    pub slots: Slots,
    pub timers: Timers,
    pub happened: broadcast::Sender<Happened>,
    pub epochs: Epochs,
    waiters: Mutex<BTreeMap<RunId, Vec<oneshot::Sender<()>>>>,
    /// What runs for as long as the engine does.
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    /// No new work is begun.
    draining: AtomicBool,
    /// Everything ends.
    pub stop: CancellationToken,
}

impl Engine {
    /// Starts on a store and takes up what is unfinished in it.
    pub async fn start(store: Arc<dyn Store>, config: Config) -> Result<Engine, Error> {
        let inner = Inner::new(store, config);
        secrets::check(&inner).await?;
        nodes::join(&inner, inner.node.id()).await?;
        if inner.shared {
            nodes::learn(&inner).await?;
        }
        let tasks = [
            tokio::spawn(nodes::run(inner.clone())),
            tokio::spawn(hints::listen(inner.clone())),
            tokio::spawn(timers::run(inner.clone())),
            tokio::spawn(dispatch::claim(inner.clone())),
            tokio::spawn(upkeep::run(inner.clone())),
            tokio::spawn(triggers::run(inner.clone())),
            tokio::spawn(notify::run(inner.clone())),
        ];
        inner.tasks.lock().expect("nothing panics while it holds the tasks").extend(tasks);
        Ok(Engine { inner })
    }

    /// An engine that executes nothing, fires no timers and starts no runs. It can be asked about runs, and told what
    /// moves them on (an answer, a cancellation): the next one that is started goes on from there.
    pub fn at_rest(store: Arc<dyn Store>, config: Config) -> Engine {
        let inner = Inner::new(store, config);
        inner.draining.store(true, Ordering::SeqCst);
        inner.slots.close();
        Engine { inner }
    }

    /// The run that a step of another started, if it has.
    pub async fn child(&self, parent: RunId, path: &str, attempt: u32) -> Result<Option<RunId>, Error> {
        let key = children::unique(parent, path, attempt);
        Ok(self.inner.store.keyed(children::SCOPE, &key).await?)
    }

    /// Takes no new work, lets what runs come to its end for as long as `patience`, then stops. What is cut off counts
    /// as lost at the next start, and is then taken up again unless it may run at most once.
    pub async fn shutdown(&self, patience: Duration) {
        let inner = &self.inner;
        self.drain();
        let _ = tokio::time::timeout(patience, inner.quiet()).await;
        inner.stop.cancel();
        inner.runs.abort_all();
        // Commits that are under way end by themselves.
        let _ = tokio::time::timeout(Duration::from_secs(5), inner.quiet()).await;
        let tasks = std::mem::take(&mut *inner.tasks.lock().expect("nothing panics while it holds the tasks"));
        for task in tasks {
            // They end when they notice that the engine has stopped; one that panicked has ended.
            let _ = tokio::time::timeout(Duration::from_secs(5), task).await;
        }
        if let Err(error) = inner.store.leave(inner.node.id()).await {
            tracing::warn!(%error, "the node could not sign off");
        }
    }

    /// Takes no new work from now on; what runs goes on.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
        self.inner.slots.close();
    }

    pub fn is_draining(&self) -> bool {
        self.inner.is_draining()
    }

    /// A new name for a request: `req_…`.
    pub fn request_id(&self) -> String {
        self.inner.ids.public("req", self.inner.clock.now())
    }

    /// Stops at once, as a crash would: nothing is written any more.
    pub fn kill(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
        self.inner.stop.cancel();
        self.inner.runs.abort_all();
    }

    /// Everything that is committed from now on. Whoever is too slow misses some and must read the log.
    pub fn watch(&self) -> broadcast::Receiver<Happened> {
        self.inner.happened.subscribe()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }
}

impl Inner {
    fn new(store: Arc<dyn Store>, config: Config) -> Arc<Inner> {
        let shared = store.is_shared();
        let clock = config.clock;
        let clock = if shared { Arc::new(SharedClock::new(clock, store.clone())) } else { clock };
        // A node cannot know how much of an organisation's work others execute.
        let knows_limits = !shared || config.slots_per_org.is_none();
        Arc::new(Inner {
            safe: Safe::new(store.clone(), config.vault, config.secrets),
            opened: ByEpoch::default(),
            pins: Pins::new(store.clone()),
            store,
            shared,
            clock,
            kinds: config.kinds,
            node: Node::new(config.ids.node(), config.node_name, config.slots, config.lease),
            call_timeout: config.call_timeout,
            poll: config.poll,
            base_url: config.base_url,
            definitions: Definitions::default(),
            people: People::default(),
            plans: config.plans,
            traced: config.traced,
            rescheduled: tokio::sync::Notify::new(),
            courier: config.courier,
            servers: config.servers,
            parcels: tokio::sync::Notify::new(),
            channels: ByEpoch::default(),
            limits: ByEpoch::default(),
            switches: ByEpoch::default(),
            policies: ByEpoch::default(),
            paces: Paces::default(),
            runs: Runs::new(config.live_runs),
            slots: Slots::new(config.slots, config.slots_per_org, knows_limits),
            timers: Timers::default(),
            happened: broadcast::channel(4_096).0,
            epochs: Epochs::new(shared),
            waiters: Mutex::default(),
            tasks: Mutex::default(),
            draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
            ids: config.ids,
        })
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    async fn quiet(&self) {
        while !self.runs.is_quiet() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits, or less if the engine stops.
    pub async fn pause(&self, length: Duration) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(length) => {}
        }
    }

    /// Hands something to a run and goes on.
    pub fn send(self: &Arc<Inner>, run: RunId, letter: impl Into<Letter>) {
        if self.runs.post(run, letter.into()) {
            drive::spawn(self.clone(), run, None);
        }
    }

    /// Hands something to a run and waits until it is on disk.
    pub async fn ask(self: &Arc<Inner>, run: RunId, what: What) -> Result<(), Error> {
        self.command(run, what, None).await
    }

    /// The same for what somebody asked for: the audit trail says so in the same write.
    pub async fn command(self: &Arc<Inner>, run: RunId, what: What, audit: Option<NewAudit>) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.send(run, Letter { what, reply: Some(reply), audit });
        answer.await.unwrap_or_else(|_| Err(Error::Unavailable("the engine is stopping".into())))
    }

    /// The epoch of an organisation's grants, as last seen.
    pub async fn epoch(&self, org: OrgId) -> Result<i64, Error> {
        let asked = match self.epochs.get(org) {
            Ok(epoch) => return Ok(epoch),
            Err(asked) => asked,
        };
        let none = || Error::NotFound { what: "organisation", name: org.0.to_string() };
        let number = self.store.epoch(org).await?.ok_or_else(none)?;
        self.epochs.learn(asked, number);
        Ok(number)
    }

    /// Fires when the run ends from now on.
    pub fn end_of(&self, run: RunId) -> oneshot::Receiver<()> {
        let (ended, end) = oneshot::channel();
        self.tell_end(run, ended);
        end
    }

    /// Fires this when the run ends. The run must be there: one that is not counts as ended.
    pub fn tell_end(&self, run: RunId, ended: oneshot::Sender<()>) {
        let mut waiters = self.waiters.lock().expect("nothing panics while it holds the waiters");
        let list = waiters.entry(run).or_default();
        list.retain(|waiter| !waiter.is_closed());
        list.push(ended);
    }

    /// Runs whose end someone waits for.
    pub fn awaited(&self) -> Vec<RunId> {
        let mut waiters = self.waiters.lock().expect("nothing panics while it holds the waiters");
        waiters.retain(|_, list| list.iter().any(|waiter| !waiter.is_closed()));
        waiters.keys().copied().collect()
    }

    pub fn ended(&self, run: RunId) {
        let waiters = self.waiters.lock().expect("nothing panics while it holds the waiters").remove(&run);
        for waiter in waiters.into_iter().flatten() {
            // Whoever waited may have given up.
            let _ = waiter.send(());
        }
    }
}
