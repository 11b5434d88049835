//! A process between this one and a server: it starts the server and, when the server or this process ends, kills
//! everything that the server started.
//!
//! A process group is not enough: any process can leave it. The keeper is the parent of all orphans below it
//! (`PR_SET_CHILD_SUBREAPER`), so it finds every one. It has no other task and keeps no pipe open.

use std::ffi::OsString;
use std::io;
use std::process::Command;

/// The hidden command of the binary that runs a keeper.
pub const KEEPER: &str = "mcp-server-keeper";

/// The exit status of a keeper whose program cannot be started, as in a shell.
const NOT_STARTED: i32 = 127;

/// Runs a program with its arguments until it ends, or until the keeper is told to end it. Returns the exit status.
#[cfg(target_os = "linux")]
pub fn keep(command: &[OsString]) -> io::Result<i32> {
    let Some((program, arguments)) = command.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let signals = linux::block()?;
    let mut command = Command::new(program);
    command.args(arguments);
    super::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
    let server = match command.spawn() {
        Ok(server) => server.id().cast_signed(),
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::NotFound => "there is no such program in PATH".to_owned(),
                _ => error.to_string(),
            };
            eprintln!("`{}` cannot be started: {why}", program.display());
            return Ok(NOT_STARTED);
        }
    };
    linux::release_pipes()?;
    let status = loop {
        if linux::next(&signals)? == libc::SIGTERM {
            break None;
        }
        if let Some(status) = linux::reap(server) {
            break Some(status);
        }
    };
    linux::end_all();
    Ok(status.unwrap_or(128 + libc::SIGTERM))
}

#[cfg(not(target_os = "linux"))]
pub fn keep(command: &[OsString]) -> io::Result<i32> {
    let Some((program, arguments)) = command.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
    Ok(Command::new(program).args(arguments).status()?.code().unwrap_or(NOT_STARTED))
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "waiting for signals and replacing standard streams have no safe interface here")]
mod linux {
    use rustix::process::{self, Pid, Signal, WaitOptions};
    use std::io;
    use std::mem::MaybeUninit;

    /// Blocks the signals that [`next`] waits for. A started program gets its own, empty mask.
    pub fn block() -> io::Result<libc::sigset_t> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the set; this process has one thread.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
            Ok(set)
        }
    }

    pub fn next(set: &libc::sigset_t) -> io::Result<libc::c_int> {
        let mut signal = 0;
        // SAFETY: both pointers are valid for the call.
        match unsafe { libc::sigwait(set, &raw mut signal) } {
            0 => Ok(signal),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// The server must be the only one that holds its pipes.
    pub fn release_pipes() -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        for number in 0..=2 {
            // SAFETY: replaces a standard stream, which nothing here uses any more.
            checked(unsafe { libc::dup2(nothing.as_raw_fd(), number) })?;
        }
        Ok(())
    }

    /// Reaps all children that have ended. Returns the exit status of the server if it is among them.
    pub fn reap(server: i32) -> Option<i32> {
        let mut found = None;
        while let Some((pid, status)) = wait(WaitOptions::NOHANG) {
            if pid == server {
                found = Some(status);
            }
        }
        found
    }

    /// Kills all children, and theirs as they become orphans, until there are none.
    pub fn end_all() {
        loop {
            for pid in children().into_iter().filter_map(Pid::from_raw) {
                let _ = process::kill_process(pid, Signal::KILL);
            }
            if wait(WaitOptions::empty()).is_none() {
                return;
            }
        }
    }

    /// Waits for any child. `None` if there is none to wait for.
    fn wait(options: WaitOptions) -> Option<(i32, i32)> {
        let (pid, status) = process::wait(options).ok()??;
        let code = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal));
        Some((pid.as_raw_nonzero().get(), code.unwrap_or_default()))
    }

    fn children() -> Vec<i32> {
        let own = std::process::id().to_string();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1).map(str::to_owned);
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &i32| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                parent(&stat).as_deref() == Some(&*own)
            })
            .collect()
    }

    fn checked(result: libc::c_int) -> io::Result<()> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
