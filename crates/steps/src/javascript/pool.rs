//! The worker processes: started on demand from this same program, reused, and killed when an evaluation is abandoned.

use super::protocol::{self, FromWorker};
use super::turns::{Turn, Turns};
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use stepwell_store::OrgId;
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Evaluations after which a worker is replaced, to bound what a process accumulates over time.
const MAX_USES: u32 = 1_000;

pub struct Pool {
    command: Arc<[OsString]>,
    turns: Arc<Turns>,
    /// Workers that are kept for later.
    size: usize,
    idle: Mutex<Vec<Worker>>,
    spawner: OnceLock<mpsc::Sender<SpawnRequest>>,
}

/// An idle or busy worker process. Dropping it kills it.
pub struct Worker {
    child: Child,
    pub stdin: ChildStdin,
    pub stdout: BufReader<ChildStdout>,
    uses: u32,
}

impl Worker {
    /// Whether it has evaluated anything before.
    pub fn is_used(&self) -> bool {
        self.uses > 0
    }

    /// Describes how a worker died.
    pub async fn died(mut self, error: &io::Error) -> String {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return format!("the worker process failed: {error}");
        }
        // Do not wait for a worker that only closed its pipe.
        let _ = self.child.start_kill();
        let how = self.child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("the worker process died ({how})")
    }
}

/// A request to start a worker, with the runtime that will own its pipes.
struct SpawnRequest {
    runtime: Handle,
    to: oneshot::Sender<io::Result<Child>>,
}

impl Pool {
    pub fn new(command: Vec<OsString>, size: usize) -> Pool {
        Pool {
            command: command.into(),
            turns: Turns::new(size),
            size: size.max(1),
            idle: Mutex::default(),
            spawner: OnceLock::new(),
        }
    }

    /// Waits for the organisation's turn to run one more evaluation.
    pub async fn turn(&self, org: OrgId) -> Turn {
        self.turns.turn(org).await
    }

    /// Returns a worker for the holder of a turn.
    pub async fn worker(&self) -> io::Result<Worker> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(worker) => Ok(worker),
            None => self.start().await,
        }
    }

    /// Takes back a worker whose evaluation ended normally.
    pub fn put_back(&self, mut worker: Worker) {
        worker.uses += 1;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.uses < MAX_USES && idle.len() < self.size {
            idle.push(worker);
        }
    }

    pub async fn start(&self) -> io::Result<Worker> {
        let gone = || io::Error::other("the thread that starts workers has ended");
        let (to, started) = oneshot::channel();
        let spawner = self.spawner.get_or_init(|| spawner(self.command.clone()));
        spawner.send(SpawnRequest { runtime: Handle::current(), to }).map_err(|_| gone())?;
        let mut child = started.await.map_err(|_| gone())??;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("a worker has no pipes"));
        };
        let mut worker = Worker { child, stdin, stdout: BufReader::new(stdout), uses: 0 };
        match protocol::read_event(&mut worker.stdout).await? {
            FromWorker::Ready { missing } => warn_unconfined(missing),
            FromWorker::Log(_) | FromWorker::Fetch { .. } | FromWorker::Done(_) | FromWorker::Failed(_) => {
                return Err(io::Error::other("the started process is not a worker"));
            }
        }
        Ok(worker)
    }
}

/// Starts workers from a dedicated thread. The system kills a worker when the thread that started it ends, so that none
/// outlives a killed server; the runtime's threads are too short-lived for this.
fn spawner(command: Arc<[OsString]>) -> mpsc::Sender<SpawnRequest> {
    let (sender, requests) = mpsc::channel::<SpawnRequest>();
    let begun = std::thread::Builder::new().name("javascript".into()).spawn(move || {
        for SpawnRequest { runtime, to } in requests {
            let _inside = runtime.enter();
            // If the receiver is gone, the child is dropped and thereby killed.
            let _ = to.send(start(&command));
        }
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "cannot start a thread for javascript workers");
    }
    sender
}

fn start(command: &[OsString]) -> io::Result<Child> {
    let Some((program, arguments)) = command.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Warns once about missing confinement.
fn warn_unconfined(missing: Option<String>) {
    static WARNED: OnceLock<()> = OnceLock::new();
    if let Some(missing) = missing {
        WARNED.get_or_init(|| tracing::warn!(missing = %missing, "javascript workers are not fully confined"));
    }
}
