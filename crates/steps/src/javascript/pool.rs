//! The workers: processes of this same program, started when there is work for them, used again and again, and killed when
//! an evaluation is given up.

use super::wire::{self, Word};
use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use tokio::io::BufReader;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Evaluations after which a worker is replaced, so that nothing a process gathers over time grows for ever.
const USES: u32 = 1_000;

pub struct Pool {
    command: Arc<[OsString]>,
    /// Whoever asks first is first.
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Worker>>,
    nursery: OnceLock<mpsc::Sender<Birth>>,
}

/// A process that waits for an evaluation, or is at one. Dropping it kills it.
pub struct Worker {
    child: Child,
    pub stdin: ChildStdin,
    pub stdout: BufReader<ChildStdout>,
    uses: u32,
}

impl Worker {
    /// Whether it has evaluated something before.
    pub fn is_used(&self) -> bool {
        self.uses > 0
    }

    /// How a worker ended that says nothing more.
    pub async fn died(mut self, error: &io::Error) -> String {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return format!("the process of the code broke down: {error}");
        }
        // One that only closed its pipe is not waited for.
        let _ = self.child.start_kill();
        let how = self.child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("the process of the code died ({how})")
    }
}

/// Who wants a worker, and where the runtime is that will talk to it.
struct Birth {
    runtime: Handle,
    to: oneshot::Sender<io::Result<Child>>,
}

impl Pool {
    pub fn new(command: Vec<OsString>, size: usize) -> Pool {
        Pool {
            command: command.into(),
            turns: Arc::new(Semaphore::new(size.max(1))),
            idle: Mutex::default(),
            nursery: OnceLock::new(),
        }
    }

    /// Waits until one more evaluation may run beside the others.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.turns.clone().acquire_owned().await.ok()
    }

    /// A worker for the holder of a turn.
    pub async fn worker(&self) -> io::Result<Worker> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(worker) => Ok(worker),
            None => self.fresh().await,
        }
    }

    /// Takes back a worker whose evaluation ended well.
    pub fn put_back(&self, mut worker: Worker) {
        worker.uses += 1;
        if worker.uses < USES {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }

    pub async fn fresh(&self) -> io::Result<Worker> {
        let gone = || io::Error::other("no thread to start workers from");
        let (to, born) = oneshot::channel();
        let nursery = self.nursery.get_or_init(|| nursery(self.command.clone()));
        nursery.send(Birth { runtime: Handle::current(), to }).map_err(|_| gone())?;
        let mut child = born.await.map_err(|_| gone())??;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            return Err(io::Error::other("a worker has no pipes"));
        };
        let mut worker = Worker { child, stdin, stdout: BufReader::new(stdout), uses: 0 };
        match wire::listen(&mut worker.stdout).await? {
            Word::Ready { lacks } => tell(lacks),
            Word::Log(_) | Word::Fetch { .. } | Word::Done(_) | Word::Failed(_) => {
                return Err(io::Error::other("what was started is not a worker"));
            }
        }
        Ok(worker)
    }
}

/// Starts workers from a thread of its own: the system kills a worker when the thread that started it ends, which is how
/// none outlives a server that was killed; the threads of the runtime come and go.
fn nursery(command: Arc<[OsString]>) -> mpsc::Sender<Birth> {
    let (sender, births) = mpsc::channel::<Birth>();
    let begun = std::thread::Builder::new().name("javascript".into()).spawn(move || {
        for Birth { runtime, to } in births {
            let _inside = runtime.enter();
            // Whoever wanted it may be gone: then it is dropped, and killed.
            let _ = to.send(start(&command));
        }
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "no thread for javascript workers");
    }
    sender
}

fn start(command: &[OsString]) -> io::Result<Child> {
    let Some((program, arguments)) = command.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir("/").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Once, whoever runs the server is told what does not hold workers here.
fn tell(lacks: Option<String>) {
    static TOLD: OnceLock<()> = OnceLock::new();
    if let Some(lacks) = lacks {
        TOLD.get_or_init(|| tracing::warn!(%lacks, "javascript steps are confined less than they could be"));
    }
}
