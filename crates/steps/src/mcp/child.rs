//! Servers that are child processes: starts them, reads their output, and ends them with all processes they started.
//! With a keeper (`keeper`) those that left the process group are found too.

use super::stderr::{self, Tail};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;
use stepwell_engine::Mask;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How long a process may take to exit after its input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// How long a process may take to end after it was killed.
const KILLED: Duration = Duration::from_secs(10);
/// Variables that a process inherits; others may hold secrets that it must not see.
const INHERITED: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TMPDIR", "TZ"];

pub struct Program {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    /// The program and the arguments that start a keeper.
    pub keeper: Vec<OsString>,
}

/// A running process, the leader of its own process group. Dropping it kills the group.
pub struct Process {
    child: Child,
    /// Whether the child is a keeper, which ends the server and all that it started.
    kept: bool,
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
    let kept = !program.keeper.is_empty();
    let mut child = start_process(program).await.map_err(broken)?;
    let group = child.id();
    let tail = Arc::new(Tail::default());
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process { child, kept, group, tail: tail.clone() };
    let (Some(stdin), Some(stdout), Some(errors)) = pipes else { return Err(format!("`{name}` has no pipes")) };
    tokio::spawn(stderr::follow(errors, tail, mask, server.to_owned()));
    Ok(Started { process, stdin, stdout })
}

impl Process {
    pub async fn exited(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Waits briefly for a process whose input is closed, then kills its group. Returns how it ended, with its last
    /// output.
    pub async fn end(mut self) -> String {
        let ended = tokio::time::timeout(GRACE, self.child.wait()).await;
        self.kill();
        let how = match ended {
            Ok(Ok(status)) => format!("the process ended ({status})"),
            Ok(Err(error)) => format!("the process cannot be waited for: {error}"),
            Err(_) => {
                let _ = tokio::time::timeout(KILLED, self.child.wait()).await;
                "the process was killed".to_owned()
            }
        };
        // A separate task reads the last output from the pipe.
        tokio::task::yield_now().await;
        let output = self.tail.text();
        if output.is_empty() { how } else { format!("{how}; last output: {output}") }
    }

    fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(group) = self.group.take().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // The group's id stays in use while it has members, and is not reused at once.
            let _ = match self.kept {
                true => rustix::process::kill_process(group, rustix::process::Signal::TERM),
                false => rustix::process::kill_process_group(group, rustix::process::Signal::KILL),
            };
        }
        if !self.kept {
            let _ = self.child.start_kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct SpawnRequest {
    program: Program,
    runtime: Handle,
    to: oneshot::Sender<io::Result<Child>>,
}

async fn start_process(program: Program) -> io::Result<Child> {
    let gone = || io::Error::other("the thread that starts processes has ended");
    let (to, start_process) = oneshot::channel();
    spawner().send(SpawnRequest { program, runtime: Handle::current(), to }).map_err(|_| gone())?;
    start_process.await.map_err(|_| gone())?
}

/// The one thread that starts all processes. It never ends, because the system kills a child when that thread ends.
fn spawner() -> &'static mpsc::Sender<SpawnRequest> {
    static SPAWNER: OnceLock<mpsc::Sender<SpawnRequest>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (sender, requests) = mpsc::channel::<SpawnRequest>();
        let begun = std::thread::Builder::new().name("mcp-servers".into()).spawn(move || {
            for SpawnRequest { program, runtime, to } in requests {
                let _inside = runtime.enter();
                let _ = to.send(spawn(program));
            }
        });
        if let Err(error) = begun {
            tracing::warn!(%error, "cannot start a thread for MCP servers");
        }
        sender
    })
}

fn spawn(program: Program) -> io::Result<Child> {
    let line: Vec<&OsStr> = { program.keeper.iter().map(OsString::as_os_str) }
        .chain([OsStr::new(&program.command)])
        .chain(program.args.iter().map(OsStr::new))
        .collect();
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(&program.env);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A keeper must not die before it has done its work.
    command.kill_on_drop(program.keeper.is_empty());
    #[cfg(unix)]
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        use rustix::process::Signal;
        let signal = if program.keeper.is_empty() { Signal::KILL } else { Signal::TERM };
        dies_with_us(command.as_std_mut(), signal);
    }
    command.spawn()
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "only the child itself can request to die with its parent, between fork and exec")]
pub fn dies_with_us(command: &mut std::process::Command, signal: rustix::process::Signal) {
    use rustix::process::{getppid, set_parent_process_death_signal};
    use std::os::unix::process::CommandExt;
    let parent = std::process::id();
    let ask = move || {
        set_parent_process_death_signal(Some(signal))?;
        // The parent may have died before the request.
        let orphan = getppid().is_none_or(|pid| pid.as_raw_nonzero().get().cast_unsigned() != parent);
        if orphan { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    };
    // SAFETY: the closure makes two system calls and neither allocates nor locks.
    unsafe { command.pre_exec(ask) };
}
