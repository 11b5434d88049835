//! The watchers: their limit, when the log is followed for them, and their shutdown.

use super::follow::{self, Batch};
use super::stream::Over;
use crate::config::Limits;
use crate::error::Problem;
use crate::shares::{Capacity, Hold, Payer, Shares};
use axum::http::StatusCode;
use metrics::gauge;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_engine::notify::Gates;
use stepwell_engine::{Caller, Engine, Error};
use stepwell_store::{OrgId, RunId};
use tokio::sync::{broadcast, watch};
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
    /// The same, of one organisation.
    pub per_organisation: u32,
    /// The same, of one key.
    pub per_key: u32,
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
            per_organisation: streams,
            per_key: streams,
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
    places: Arc<Shares>,
    /// Open streams by organisation and key.
    by_key: Mutex<HashMap<(OrgId, String), u32>>,
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
    pub name: String,
    pub test: bool,
    pub gates: Gates,
}

impl Hub {
    /// Must be called within a runtime.
    pub fn start(engine: Engine, limits: &Limits) -> Arc<Hub> {
        let settings = Settings::new(limits.live_streams.get());
        let per_organisation = limits.live_streams_per_organisation.map_or(settings.streams, Into::into);
        Hub::with(engine, Settings { per_organisation, per_key: limits.live_streams_per_key.get(), ..settings })
    }

    pub fn with(engine: Engine, settings: Settings) -> Arc<Hub> {
        let hub = Arc::new(Hub {
            engine,
            settings,
            batches: broadcast::channel(settings.behind).0,
            state: watch::Sender::default(),
            stopped: watch::Sender::default(),
            places: Shares::new(Capacity {
                total: settings.streams.into(),
                reserve: 0,
                most: settings.per_organisation.into(),
            }),
            by_key: Mutex::default(),
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
    pub(crate) async fn watch(self: &Arc<Hub>, caller: &Caller) -> Result<Watch, Problem> {
        let unavailable = |detail| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail);
        let key = self.count(caller)?;
        let place = self.places.enter(Payer::Organisation(caller.org));
        place.try_grow(1).map_err(|_| {
            let Settings { streams, per_organisation, .. } = self.settings;
            let detail = match per_organisation < streams {
                true => format!("the limit of {per_organisation} live streams of one organisation is reached"),
                false => format!("the limit of {streams} live streams is reached"),
            };
            self.too_many(detail)
        })?;
        let batches = self.batches.subscribe();
        self.state.send_modify(State::enter);
        let watch = Watch { batches, hub: self.clone(), place, _key: key };
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

    /// Counts a stream of the caller's key.
    fn count(self: &Arc<Hub>, caller: &Caller) -> Result<OfKey, Problem> {
        let key = (caller.org, caller.key.as_deref().unwrap_or(&caller.name).to_string());
        let mut by_key = self.by_key();
        let open = by_key.entry(key.clone()).or_default();
        if *open >= self.settings.per_key {
            return Err(self.too_many(format!("the limit of {} live streams of one key is reached", open)));
        }
        *open += 1;
        Ok(OfKey { hub: self.clone(), key })
    }

    fn too_many(&self, detail: String) -> Problem {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail);
        Problem { retry_after: Some(self.settings.keep_alive), ..problem }
    }

    fn by_key(&self) -> std::sync::MutexGuard<'_, HashMap<(OrgId, String), u32>> {
        self.by_key.lock().expect("nothing panics while it counts streams")
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
        let about = Arc::new(About { workflow: definition.workflow, name: definition.name, test: row.test, gates });
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
    place: Hold,
    _key: OfKey,
}

/// A stream counted for its key.
struct OfKey {
    hub: Arc<Hub>,
    key: (OrgId, String),
}

impl Drop for OfKey {
    fn drop(&mut self) {
        let mut by_key = self.hub.by_key();
        if let Some(open) = by_key.get_mut(&self.key) {
            *open -= 1;
            if *open == 0 {
                by_key.remove(&self.key);
            }
        }
    }
}

impl Watch {
    /// Resolves when all streams must end, or when another organisation needs the place of this one.
    pub fn end(&self) -> impl Future<Output = Over> + Send + use<> {
        let (end, reclaimed) = (self.hub.end(), self.place.reclaimed());
        async move {
            tokio::select! {
                () = end => Over::Stopped,
                () = reclaimed => Over::Reclaimed,
            }
        }
    }

    /// The same, at once.
    pub fn is_over(&self) -> Result<(), Over> {
        match (self.hub.is_stopped(), self.place.is_reclaimed()) {
            (true, _) => Err(Over::Stopped),
            (_, true) => Err(Over::Reclaimed),
            (false, false) => Ok(()),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.state.send_modify(State::leave);
    }
}
