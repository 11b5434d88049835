//! The engine: its settings, and how it starts and stops.

use crate::access::{Access, Plans};
use crate::cluster::{self, Clock, Cluster, Ids, Node, SystemClock};
use crate::doctor;
use crate::error::Error;
use crate::execute::{self, Executor, Kinds};
use crate::log::LogReader;
use crate::notify::{self, Courier, Notifier};
use crate::records::json;
use crate::rooms::Rooms;
use crate::run::{Activity, Runner, RunnerSettings, Sink, children, recovery, timers};
use crate::secrets::{EnvironmentSecrets, SecretSource, Secrets, Vault};
use crate::triggers::{self, Triggers};
use crate::upkeep;
use crate::workflows::{NoServers, Servers, Workflows};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use stepwell_core::limits::MAX_LOSSES;
use stepwell_core::plan::Budget;
use stepwell_store::{RunId, Store, Supervisor};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

/// The settings of an engine.
pub struct Config {
    /// This node's name among others.
    pub node_name: String,
    /// How long a node on a shared store may be silent before others take over its work.
    pub lease: Duration,
    /// Attempts that run at a time on this node.
    pub slots: u32,
    /// Attempts of one organisation that run at a time.
    pub slots_per_org: Option<u32>,
    /// Runs with running attempts whose state stays in memory. Others are loaded when a message arrives.
    pub live_runs: usize,
    /// How often the engine polls the store for what it missed.
    pub poll: Duration,
    /// What callback URLs begin with.
    pub base_url: String,
    pub kinds: Kinds,
    pub clock: Arc<dyn Clock>,
    pub ids: Ids,
    /// Secrets that are not in the store.
    pub secrets: Arc<dyn SecretSource>,
    /// Master keys that secrets in the store are sealed with.
    pub vault: Arc<Vault>,
    pub plans: Plans,
    /// What one transition, and the payloads of one run, may cost.
    pub budget: Budget,
    /// Delivers notifications; without one this process sends none.
    pub courier: Option<Arc<dyn Courier>>,
    /// MCP servers that steps of kind `tool` can call.
    pub servers: Arc<dyn Servers>,
    /// Calls carry the trace they belong to.
    pub traced: bool,
    /// Restarts background tasks. Shared with the step kinds and the server.
    pub supervisor: Supervisor,
    /// How many times in a row the process may end while a step runs or a run is recovered, before a person decides.
    pub max_losses: u8,
}

impl Config {
    pub fn new(kinds: Kinds) -> Config {
        Config {
            node_name: cluster::host_name(),
            lease: Duration::from_secs(10),
            slots: 1_000,
            slots_per_org: None,
            live_runs: 10_000,
            poll: Duration::from_secs(5),
            base_url: "http://127.0.0.1:7070".into(),
            kinds,
            clock: Arc::new(SystemClock),
            ids: Ids::system(),
            secrets: Arc::new(EnvironmentSecrets),
            vault: Arc::default(),
            plans: Plans::default(),
            budget: Budget::default(),
            courier: None,
            servers: Arc::new(NoServers),
            traced: false,
            supervisor: Supervisor::default(),
            max_losses: MAX_LOSSES,
        }
    }
}

/// A running engine. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    pub(crate) rooms: Arc<Rooms>,
    /// Tasks that run for as long as the engine does.
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Engine {
    /// Starts on a store and continues what is unfinished in it.
    pub async fn start(store: Arc<dyn Store>, config: Config) -> Result<Engine, Error> {
        let poll = config.poll;
        let engine = Engine::new(store, config);
        let rooms = &engine.rooms;
        let cluster = &rooms.cluster;
        rooms.secrets.check().await?;
        rooms.secrets.start_chain().await?;
        cluster::join(cluster, cluster.node.id()).await?;
        if cluster.shared && cluster::refresh(cluster).await? {
            rooms.runner.timers.reload();
        }
        recovery::watch(&rooms.runner).await?;
        let tasks = [
            rooms.supervise("heartbeats", |rooms| cluster::beat(rooms.cluster.clone(), rooms)),
            rooms.supervise("hints", |rooms| cluster::listen(rooms.cluster.clone(), rooms)),
            rooms.supervise("timers", |rooms| timers::run(rooms.runner.clone())),
            rooms.supervise("claims", |rooms| execute::claim(rooms.executor.clone())),
            rooms.supervise("upkeep", move |rooms| upkeep::run(rooms, poll)),
            rooms.supervise("schedules", |rooms| triggers::run(rooms.triggers.clone())),
            rooms.supervise("notifications", |rooms| notify::run(rooms.notifier.clone())),
        ];
        engine.tasks.lock().expect("nothing panics while it holds the tasks").extend(tasks);
        Ok(engine)
    }

    /// An engine that executes nothing, fires no timers and starts no runs. It can read runs, and take what moves them on
    /// (an answer, a cancellation): the next engine that is started continues from there.
    pub fn at_rest(store: Arc<dyn Store>, config: Config) -> Engine {
        let engine = Engine::new(store, config);
        engine.drain();
        engine
    }

    fn new(store: Arc<dyn Store>, config: Config) -> Engine {
        let node = Node::new(config.ids.node(), config.node_name, config.slots, config.lease);
        let cluster = Arc::new(Cluster::new(store, config.clock, config.ids, node));
        let access = Arc::new(Access::new(cluster.clone(), config.plans));
        let secrets = Arc::new(Secrets::new(access.clone(), config.vault, config.secrets));
        let workflows = Arc::new(Workflows::new(access.clone(), config.servers));
        let runner_settings = RunnerSettings {
            live_runs: config.live_runs,
            base_url: config.base_url,
            budget: config.budget,
            max_losses: config.max_losses,
        };
        let runner = Arc::new(Runner::new(workflows.clone(), runner_settings));
        let settings =
            execute::Settings { slots: config.slots, slots_per_org: config.slots_per_org, traced: config.traced };
        let executor = Arc::new(Executor::new(runner.clone(), secrets.clone(), config.kinds, settings));
        let notifier = Arc::new(Notifier::new(runner.clone(), secrets.clone(), config.courier));
        let triggers = Arc::new(Triggers::new(runner.clone(), secrets.clone()));
        let supervisor = config.supervisor;
        let rooms = Rooms { cluster, access, secrets, workflows, runner, executor, notifier, triggers, supervisor };
        let rooms = Arc::new(rooms);
        let sink: Weak<dyn Sink> = Arc::downgrade(&(rooms.clone() as Arc<dyn Sink>));
        rooms.runner.connect(sink);
        Engine { rooms, tasks: Arc::default() }
    }

    /// The run that a step of another started, if it has.
    pub async fn child(&self, parent: RunId, path: &str, attempt: u32) -> Result<Option<RunId>, Error> {
        let key = children::unique(parent, path, attempt);
        Ok(self.rooms.cluster.store.keyed(children::SCOPE, &key, self.rooms.cluster.clock.now()).await?)
    }

    /// Takes no new work, lets running attempts end for as long as `patience`, then stops. What is cut off counts as lost
    /// at the next start, and is then retried unless it may run at most once.
    pub async fn shutdown(&self, patience: Duration) {
        self.drain();
        let _ = tokio::time::timeout(patience, self.quiet()).await;
        self.rooms.cluster.stop.cancel();
        self.rooms.runner.mailboxes.abort_all();
        // Commits in flight end by themselves.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.quiet()).await;
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("nothing panics while it holds the tasks"));
        for task in tasks {
            // They end when they notice that the engine has stopped; one that panicked has ended.
            let _ = tokio::time::timeout(Duration::from_secs(5), task).await;
        }
        let cluster = &self.rooms.cluster;
        if let Err(error) = recovery::end(&self.rooms.runner).await {
            tracing::warn!(%error, "cannot record that the node stops in an orderly way");
        }
        if let Err(error) = cluster.store.leave(cluster.node.id()).await {
            tracing::warn!(%error, "the node could not leave the cluster");
        }
    }

    async fn quiet(&self) {
        while !self.rooms.runner.mailboxes.is_quiet() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Takes no new work from now on; running attempts go on.
    pub fn drain(&self) {
        self.rooms.cluster.drain();
        self.rooms.executor.slots.close();
    }

    pub fn is_draining(&self) -> bool {
        self.rooms.cluster.is_draining()
    }

    /// Background tasks of this process that keep panicking and are not restarted. Only a restart of the process helps.
    pub fn gone_tasks(&self) -> Vec<Arc<str>> {
        let mut gone = self.rooms.supervisor.gone();
        gone.extend(self.rooms.cluster.store.gone_tasks());
        gone
    }

    /// Restarts background tasks, and reports those that are gone.
    pub fn supervisor(&self) -> &Supervisor {
        &self.rooms.supervisor
    }

    /// A new id for a request: `req_…`.
    pub fn request_id(&self) -> String {
        self.rooms.cluster.ids.public("req", self.rooms.cluster.clock.now())
    }

    /// Stops at once, as a crash would: nothing more is written.
    pub fn kill(&self) {
        self.rooms.cluster.drain();
        self.rooms.cluster.stop.cancel();
        self.rooms.runner.mailboxes.abort_all();
    }

    /// Signals every commit from now on. A receiver that is too slow misses some and must read the log.
    pub fn activity(&self) -> broadcast::Receiver<Activity> {
        self.rooms.runner.activity.subscribe()
    }

    /// An anchor of the present evidence as a line of JSON, if this is the node that writes anchors.
    pub async fn anchor(&self) -> Result<Option<String>, Error> {
        let cluster = &self.rooms.cluster;
        if !cluster.node.is_first() {
            return Ok(None);
        }
        Ok(Some(json(&doctor::anchor(&*cluster.store, cluster.clock.now()).await?)))
    }

    /// Reads the log, for callers whose right to it was checked.
    pub fn log(&self) -> LogReader {
        LogReader::new(self.rooms.clone())
    }
}
