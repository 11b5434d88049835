//! Confines a worker before it accepts code: it gives up files, processes, the network, and memory and CPU time beyond
//! what an evaluation may use. A compromised JavaScript engine then has nothing to attack with.
//!
//! Linux only. Elsewhere a worker still has no environment, dies with its pipe and is killed at the deadline.

use super::protocol::Job;

/// A confined worker.
pub struct Confined {
    /// The restrictions that could not be applied.
    pub missing: Option<String>,
    #[cfg(target_os = "linux")]
    base: linux::Base,
}

#[cfg(not(target_os = "linux"))]
pub fn start() -> Confined {
    Confined { missing: Some("system calls and memory are not limited on this system".into()) }
}

#[cfg(not(target_os = "linux"))]
impl Confined {
    pub fn limit(&self, _job: &Job) {}
}

#[cfg(target_os = "linux")]
pub use linux::start;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Confined, Job};
    use rustix::process::{self, Resource, Rlimit, Signal};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };
    use std::collections::BTreeMap;

    /// Address space beyond the code's memory: messages and allocator overhead.
    const SLACK: u64 = 192 << 20;
    /// Standard input, output and error; no others can be opened.
    const DESCRIPTORS: u64 = 3;
    /// The server has priority for the processor.
    const NICE: i32 = 5;

    /// The user and group "nobody", which own nothing.
    const UNPRIVILEGED: u32 = 65_534;

    /// Bytes of address space that the process uses before it runs code.
    pub struct Base(u64);

    pub fn start() -> Confined {
        close_inherited();
        let _ = std::env::set_current_dir("/");
        let _ = process::nice(NICE);
        // When memory is short, the system kills workers first.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        let base = Base(address_space());
        let root = drop_root();
        // After the change of user, which clears it. A server that has died by now has closed the pipe, which ends the
        // worker as well.
        let _ = process::set_parent_process_death_signal(Some(Signal::KILL));
        for (resource, most) in [
            (Resource::Core, 0),
            (Resource::Fsize, 0),
            (Resource::Nproc, 0),
            (Resource::Nofile, DESCRIPTORS),
            (Resource::Memlock, 0),
        ] {
            // A lower limit stays in place.
            let _ = process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
        }
        let seccomp = seccomp().err().map(|why| format!("system calls are not limited: {why}"));
        let missing: Vec<String> = root.err().into_iter().chain(seccomp).collect();
        Confined { missing: (!missing.is_empty()).then(|| missing.join("; ")), base }
    }

    impl Confined {
        /// Sets the limits of one evaluation. They are a second line of defence behind the server's deadline and the
        /// runtime's own limits.
        pub fn limit(&self, job: &Job) {
            let memory = self.base.0.saturating_add(job.memory.saturating_mul(2)).saturating_add(SLACK);
            let seconds = spent().saturating_add(job.timeout_ms.div_ceil(1_000)).saturating_add(1);
            for (resource, most) in [(Resource::As, memory), (Resource::Cpu, seconds)] {
                let maximum = process::getrlimit(resource).maximum;
                let current = Some(maximum.map_or(most, |maximum| most.min(maximum)));
                let _ = process::setrlimit(resource, Rlimit { current, maximum });
            }
        }
    }

    /// Closes descriptors that the server inherited from its parent and passed on.
    #[allow(unsafe_code, reason = "an inherited descriptor has no owner here and can only be closed by number")]
    fn close_inherited() {
        let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return };
        let numbers: Vec<i32> = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        for number in numbers.into_iter().filter(|number| *number > 2) {
            // SAFETY: the process has one thread and has not opened anything that it still uses; the directory above is
            // closed by now.
            unsafe { libc::close(number) };
        }
    }

    /// Becomes an unprivileged user if the server runs as root. All capabilities go with it.
    #[allow(unsafe_code, reason = "the standard library can change the user of a child only, not of this process")]
    fn drop_root() -> Result<(), String> {
        if !process::geteuid().is_root() {
            return Ok(());
        }
        let failed = || format!("the worker runs as root: {}", std::io::Error::last_os_error());
        // SAFETY: the process has one thread, and the calls take no pointers but an empty list.
        let changed = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0
                && libc::setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) == 0
                && libc::setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED) == 0
        };
        if changed { Ok(()) } else { Err(failed()) }
    }

    fn address_space() -> u64 {
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        pages.unwrap_or(0) * rustix::param::page_size() as u64
    }

    /// CPU time used so far, in seconds.
    fn spent() -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        u64::try_from(time.tv_sec).unwrap_or(0)
    }

    /// Allows only what computing needs: memory, time and the two pipes. Any other system call fails with `EPERM`.
    fn seccomp() -> Result<(), Box<dyn std::error::Error>> {
        let is = |argument, value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
        let without =
            |argument, bits| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), 0);
        let only = |condition| SeccompRule::new(vec![condition]);
        let executable = libc::PROT_EXEC as u64;
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = [
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_brk,
            libc::SYS_futex,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_rt_sigreturn,
            libc::SYS_rt_sigprocmask,
            libc::SYS_sigaltstack,
            libc::SYS_restart_syscall,
            libc::SYS_clock_gettime,
            libc::SYS_gettimeofday,
            libc::SYS_getrandom,
            libc::SYS_sched_yield,
            libc::SYS_getpid,
            libc::SYS_gettid,
        ]
        .into_iter()
        .map(|call| (call, Vec::new()))
        .collect();
        rules.insert(libc::SYS_read, vec![only(is(0, 0)?)?]);
        rules.insert(libc::SYS_write, vec![only(is(0, 1)?)?]);
        rules.insert(libc::SYS_mmap, vec![only(without(2, executable)?)?]);
        rules.insert(libc::SYS_mprotect, vec![only(without(2, executable)?)?]);
        // Its own limits, within the hard limits, which it can no longer raise.
        rules.insert(libc::SYS_prlimit64, vec![only(is(0, 0)?)?]);
        let refuse = SeccompAction::Errno(libc::EPERM as u32);
        let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
        let program: BpfProgram = filter.try_into()?;
        Ok(seccompiler::apply_filter(&program)?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    /// Set in the process that confines itself, because it does so for good.
    const PROBE: &str = "STEPWELL_TEST_CONFINED";
    const CALLS: [&str; 4] = ["openat", "socket", "kill", "uname"];

    #[test]
    fn a_confined_process_is_refused_the_system_calls_that_it_does_not_need() {
        if std::env::var_os(PROBE).is_some() {
            probe();
        }
        let name = std::thread::current().name().unwrap().to_string();
        let mut probing = Command::new(std::env::current_exe().unwrap());
        let done = probing.args(["--exact", &name, "--nocapture"]).env(PROBE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        for call in CALLS {
            assert!(said.contains(&format!("{call}: refused")), "{call}: {said}");
        }
    }

    /// Makes calls that change nothing even if they are allowed.
    #[allow(unsafe_code, reason = "the standard library has no single system calls")]
    fn probe() -> ! {
        let confined = super::start();
        assert_eq!(confined.missing, None);
        for call in CALLS {
            // SAFETY: the path is a constant and the buffer is as large as the kernel's answer.
            let answer = unsafe {
                let mut system: libc::utsname = std::mem::zeroed();
                match call {
                    "openat" => {
                        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, c"/etc/passwd".as_ptr(), libc::O_RDONLY)
                    }
                    "socket" => libc::syscall(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0),
                    "kill" => libc::syscall(libc::SYS_kill, libc::getpid(), 0),
                    _ => libc::syscall(libc::SYS_uname, &raw mut system),
                }
            };
            let error = std::io::Error::last_os_error().raw_os_error();
            println!("{call}: {}", if (answer, error) == (-1, Some(libc::EPERM)) { "refused" } else { "allowed" });
        }
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) }
    }
}
