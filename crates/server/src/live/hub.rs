//! Who watches: how many may, when the log must be followed for them, and when all of it ends.

use super::follow::{self, Batch};
use crate::error::Problem;
use axum::http::StatusCode;
use metrics::gauge;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_engine::notify::Gates;
use stepwell_engine::{Engine, Error};
use stepwell_store::RunId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};
use tokio::time::timeout;

/// Runs whose workflow is remembered.
const MOST_KNOWN: usize = 10_000;
/// From the first watcher to when the log is being followed.
const START_WITHIN: Duration = Duration::from_secs(5);

/// How patient streams are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Open at a time.
    pub streams: u32,
    /// How long a reader may take nothing before it is dropped.
    pub patience: Duration,
    /// How often a stream says that it is there, when nothing happens.
    pub keep_alive: Duration,
    /// How often it is looked whether the caller still may.
    pub recheck: Duration,
    pub ping: Duration,
    /// How long a socket may say nothing, not even that it got a ping.
    pub silence: Duration,
    /// How often the log is looked at when no hint comes.
    pub poll: Duration,
    /// Batches that a watcher can be behind before it has to read the store itself.
    pub behind: usize,
}

impl Settings {
    pub fn new(streams: u32) -> Settings {
        Settings {
            streams,
            patience: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            recheck: Duration::from_secs(30),
            ping: Duration::from_secs(20),
            silence: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            behind: 256,
        }
    }
}

/// Follows the log while somebody watches, and passes it on.
pub struct Hub {
    pub(super) engine: Engine,
    pub(super) settings: Settings,
    pub(super) batches: broadcast::Sender<Arc<Batch>>,
    pub(super) state: watch::Sender<State>,
    stopped: watch::Sender<bool>,
    places: Arc<Semaphore>,
    known: Mutex<HashMap<RunId, Arc<About>>>,
}

/// One value, so that the log is not left the moment somebody comes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct State {
    pub watchers: u32,
    /// Everything that is committed from now on will be passed on.
    pub following: bool,
}

impl State {
    fn enter(&mut self) {
        self.watchers += 1;
        gauge!("stepwell_live_streams").set(self.watchers);
    }

    fn leave(&mut self) {
        self.watchers -= 1;
        gauge!("stepwell_live_streams").set(self.watchers);
    }

    /// False if somebody watches.
    pub fn rest(&mut self) -> bool {
        self.following &= self.watchers > 0;
        self.watchers == 0
    }
}

/// What of a run decides who wants its events.
pub(super) struct About {
    pub workflow: String,
    pub test: bool,
    pub gates: Gates,
}

impl Hub {
    /// Must be called within a runtime.
    pub fn start(engine: Engine, most_streams: u32) -> Arc<Hub> {
        Hub::with(engine, Settings::new(most_streams))
    }

    pub fn with(engine: Engine, settings: Settings) -> Arc<Hub> {
        let hub = Arc::new(Hub {
            engine,
            settings,
            batches: broadcast::channel(settings.behind).0,
            state: watch::Sender::default(),
            stopped: watch::Sender::default(),
            places: Arc::new(Semaphore::new(settings.streams as usize)),
            known: Mutex::default(),
        });
        tokio::spawn(follow::run(hub.clone()));
        hub
    }

    /// Ends all streams, and lets no new ones begin.
    /// Comes when the server stops.
    pub async fn stopping(&self) {
        // An error says that the hub is gone, and the server with it.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    pub fn stop(&self) {
        self.stopped.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Comes when all streams must end.
    pub(super) fn end(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopped = self.stopped.subscribe();
        async move {
            // An error says that the hub is gone.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    }

    /// Streams that are open.
    pub fn streams(&self) -> u32 {
        self.state.borrow().watchers
    }

    /// A place among the streams. What is committed after this returns is heard of.
    pub(crate) async fn watch(self: &Arc<Hub>) -> Result<Watch, Problem> {
        let unavailable = |detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        let permit = self.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("{} live streams are open, and no more are allowed", self.settings.streams);
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail);
            Problem { retry_after: Some(self.settings.keep_alive), ..problem }
        })?;
        let batches = self.batches.subscribe();
        self.state.send_modify(State::enter);
        let watch = Watch { batches, hub: self.clone(), _permit: permit };
        let mut state = self.state.subscribe();
        let following = timeout(START_WITHIN, follow::until(&mut state, |state| state.following));
        tokio::select! {
            biased;
            () = self.end() => Err(unavailable("the server is stopping")),
            following = following => match following {
                Ok(()) => Ok(watch),
                Err(_) => Err(unavailable("the log cannot be read now")),
            },
        }
    }

    /// `None` if the run is gone.
    pub(super) async fn about(&self, run: RunId) -> Result<Option<Arc<About>>, Error> {
        if let Some(about) = self.known().get(&run) {
            return Ok(Some(about.clone()));
        }
        let log = self.engine.log();
        let Some(row) = log.run(run).await? else { return Ok(None) };
        let Some(definition) = log.definition(row.definition).await? else { return Ok(None) };
        let gates = log.gates_of(&row).await?;
        let about = Arc::new(About { workflow: definition.workflow, test: row.test, gates });
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(run, about.clone());
        Ok(Some(about))
    }

    /// The run goes on under another version, with other gates.
    pub(super) fn forget(&self, run: RunId) {
        self.known().remove(&run);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<About>>> {
        self.known.lock().expect("nothing panics while it holds what is known")
    }
}

/// One who watches, for as long as this lives.
pub(crate) struct Watch {
    pub batches: broadcast::Receiver<Arc<Batch>>,
    pub hub: Arc<Hub>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.state.send_modify(State::leave);
    }
}
