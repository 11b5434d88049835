//! The watchers: their limit, when the log is followed for them, and their shutdown.

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

/// Number of runs whose workflow is cached.
const MOST_KNOWN: usize = 10_000;
/// How long the first watcher waits until the log is being followed.
const START_WITHIN: Duration = Duration::from_secs(5);

/// Limits and timeouts of streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Open streams at a time.
    pub streams: u32,
    /// How long a client may accept no data before it is dropped.
    pub patience: Duration,
    /// How often an idle stream sends a keep-alive.
    pub keep_alive: Duration,
    /// How often the caller's rights are checked again.
    pub recheck: Duration,
    pub ping: Duration,
    /// How long a socket may be silent, including pongs.
    pub silence: Duration,
    /// How often the log is polled when no hint arrives.
    pub poll: Duration,
    /// How many batches a watcher may lag behind before it reads the store itself.
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

/// Follows the log while there are watchers, and forwards it to them.
pub struct Hub {
    pub(super) engine: Engine,
    pub(super) settings: Settings,
    pub(super) batches: broadcast::Sender<Arc<Batch>>,
    pub(super) state: watch::Sender<State>,
    stopped: watch::Sender<bool>,
    places: Arc<Semaphore>,
    known: Mutex<HashMap<RunId, Arc<About>>>,
}

/// One value, so that following does not stop just as a watcher arrives.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct State {
    pub watchers: u32,
    /// The log is followed: everything committed from now on is forwarded.
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

    /// Returns false if there are watchers.
    pub fn rest(&mut self) -> bool {
        self.following &= self.watchers > 0;
        self.watchers == 0
    }
}

/// The attributes of a run that decide which watchers receive its events.
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
        let followed = hub.clone();
        hub.engine.supervisor().spawn("live events", move || follow::run(followed.clone()));
        hub
    }

    /// Resolves when the server stops.
    pub async fn stopping(&self) {
        // An error means that the hub is gone, and the server with it.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// Ends all streams and refuses new ones.
    pub fn stop(&self) {
        self.stopped.send_replace(true);
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Resolves when all streams must end.
    pub(super) fn end(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopped = self.stopped.subscribe();
        async move {
            // An error means that the hub is gone.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    }

    /// The number of open streams.
    pub fn streams(&self) -> u32 {
        self.state.borrow().watchers
    }

    /// Registers a watcher. Everything committed after this returns is forwarded to it.
    pub(crate) async fn watch(self: &Arc<Hub>) -> Result<Watch, Problem> {
        let unavailable = |detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        let permit = self.places.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("the limit of {} live streams is reached", self.settings.streams);
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
                Err(_) => Err(unavailable("the log cannot be read at the moment")),
            },
        }
    }

    /// Returns `None` if the run is gone.
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

    /// The run continues under another version, with other gates.
    pub(super) fn forget(&self, run: RunId) {
        self.known().remove(&run);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<About>>> {
        self.known.lock().expect("nothing panics while it holds what is known")
    }
}

/// A registered watcher. Dropping it unregisters it.
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
