//! Servers that are child processes: started, listened to, and ended with all that they started themselves.

use super::stderr::{self, Tail};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;
use stepwell_engine::Mask;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// What a process gets to end by itself once its input has ended.
const GRACE: Duration = Duration::from_secs(2);
/// Of our own environment; the rest may hold secrets that are none of its business.
const INHERITED: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "TZ"];

pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

/// A running process, the leader of a group of its own. Dropping it kills the group.
pub struct Process {
    child: Child,
    group: Option<u32>,
    tail: Arc<Tail>,
}

pub struct Started {
    pub process: Process,
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
}

pub async fn start(program: Program, mask: Arc<Mask>, server: &str) -> Result<Started, String> {
    let name = program.command.clone();
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("`{name}` cannot be started: there is no such program in PATH"),
        _ => format!("`{name}` cannot be started: {error}"),
    };
    let mut child = born(program).await.map_err(broken)?;
    let group = child.id();
    let tail = Arc::new(Tail::default());
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process { child, group, tail: tail.clone() };
    let (Some(stdin), Some(stdout), Some(errors)) = pipes else { return Err(format!("`{name}` has no pipes")) };
    tokio::spawn(stderr::follow(errors, tail, mask, server.to_owned()));
    Ok(Started { process, stdin, stdout })
}

impl Process {
    /// Waits a moment for a process whose input has ended, then kills what is left. How it ended, and its last words.
    pub async fn end(mut self) -> String {
        let ended = tokio::time::timeout(GRACE, self.child.wait()).await;
        self.kill();
        let how = match ended {
            Ok(Ok(status)) => format!("the process ended ({status})"),
            Ok(Err(error)) => format!("the process is lost: {error}"),
            Err(_) => {
                let _ = self.child.wait().await;
                "the process had to be killed".to_owned()
            }
        };
        // What it wrote last is in the pipe, and read by a task of its own.
        tokio::task::yield_now().await;
        let said = self.tail.text();
        if said.is_empty() { how } else { format!("{how}; its last words: {said}") }
    }

    fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(group) = self.group.take().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // Its number stays taken while anyone of the group lives, and is not given out again at once.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Birth {
    program: Program,
    runtime: Handle,
    to: oneshot::Sender<io::Result<Child>>,
}

async fn born(program: Program) -> io::Result<Child> {
    let gone = || io::Error::other("there is no thread to start it from");
    let (to, born) = oneshot::channel();
    nursery().send(Birth { program, runtime: Handle::current(), to }).map_err(|_| gone())?;
    born.await.map_err(|_| gone())?
}

/// One thread starts all of them and lives as long as we do: the system kills a child when the thread that started it ends.
fn nursery() -> &'static mpsc::Sender<Birth> {
    static NURSERY: OnceLock<mpsc::Sender<Birth>> = OnceLock::new();
    NURSERY.get_or_init(|| {
        let (sender, births) = mpsc::channel::<Birth>();
        let begun = std::thread::Builder::new().name("mcp-servers".into()).spawn(move || {
            for Birth { program, runtime, to } in births {
                let _inside = runtime.enter();
                let _ = to.send(spawn(program));
            }
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "no thread for MCP servers");
        }
        sender
    })
}

fn spawn(program: Program) -> io::Result<Child> {
    let mut command = Command::new(&program.command);
    command.args(&program.args).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(&program.env);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(target_os = "linux")]
    dies_with_us(&mut command);
    command.spawn()
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "only the child itself can ask to be killed with its parent, between fork and exec")]
fn dies_with_us(command: &mut Command) {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let parent = std::process::id();
    let ask = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have died before it asked.
        let orphan = getppid().is_none_or(|pid| pid.as_raw_nonzero().get().cast_unsigned() != parent);
        if orphan { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    };
    // SAFETY: the closure makes two system calls and neither allocates nor takes a lock.
    unsafe { command.pre_exec(ask) };
}
