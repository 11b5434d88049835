//! A real PostgreSQL server in a temporary directory. What it acknowledges is on disk.

use crate::certificates::Identity;
use crate::programs::{self, User};
use crate::schema::{self, Schema};
use crate::{LOOK, PATIENCE};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Instant;

/// Waits until the process that started it is gone, however that came about; then ends the server and removes its directory.
const WATCH: &str = r#"
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
rm -rf "$1"
"#;

/// How often another port is tried: between finding one and using it somebody else may take it.
const TRIES: u32 = 5;

pub struct Cluster {
    url: String,
    /// None if somebody else runs it.
    own: Option<Own>,
}

struct Own {
    directory: PathBuf,
    port: u16,
    user: Option<User>,
    server: Mutex<Option<Child>>,
    watchdog: Mutex<(Child, Option<ChildStdin>)>,
}

impl Cluster {
    /// One for all tests of a process. It ends with the process.
    pub fn shared() -> &'static Cluster {
        static SHARED: LazyLock<Cluster> = LazyLock::new(|| match std::env::var("STEPWELL_TEST_DATABASE") {
            Ok(url) if !url.is_empty() => Cluster { url, own: None },
            _ => Cluster::start(),
        });
        &SHARED
    }

    /// One of a test's own, to be stopped and started.
    pub fn start() -> Cluster {
        let user = User::needed();
        let directory = tempfile::Builder::new().prefix("stepwell-pg-").tempdir().unwrap().keep();
        if let Some(user) = user {
            user.own(&directory);
        }
        let watchdog = Mutex::new(watch(&directory));
        let log = File::create(directory.join("log")).unwrap();
        let mut initdb = programs::command(&programs::find("initdb"), user, &directory);
        initdb.args(["-D", "data", "-N", "-A", "trust", "--no-locale", "-E", "UTF8", "-U", "postgres"]);
        let made = initdb.stdout(log.try_clone().unwrap()).stderr(log).status().unwrap();
        let said = || std::fs::read_to_string(directory.join("log")).unwrap_or_default();
        assert!(made.success(), "initdb: {made}\n{}", said());
        let mut own = Own { directory: directory.clone(), port: 0, user, server: Mutex::new(None), watchdog };
        for _ in 0..TRIES {
            own.port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            if own.begin() {
                return Cluster { url: own.url(), own: Some(own) };
            }
        }
        panic!("PostgreSQL does not start:\n{}", said());
    }

    /// One that also accepts TLS, under the name `localhost`.
    pub fn start_with_tls(identity: &Identity) -> Cluster {
        let cluster = Cluster::start();
        cluster.present(identity);
        cluster
    }

    /// Restarts it with this certificate.
    pub fn present(&self, identity: &Identity) {
        let own = self.own();
        self.stop();
        for (name, text) in [("server.crt", &identity.certificate), ("server.key", &identity.key)] {
            let path = own.directory.join("data").join(name);
            std::fs::write(&path, text).unwrap();
            // PostgreSQL refuses a key that others can read.
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            if let Some(user) = own.user {
                user.own(&path);
            }
        }
        let settings = own.directory.join("data/postgresql.auto.conf");
        std::fs::write(&settings, "ssl = on\n").unwrap();
        self.start_again();
    }

    /// Of the database `postgres`, as a user who may do everything.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.own().directory.join("log")).unwrap()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.own().port).into()
    }

    /// A schema of its own in the database: isolates as well as a database, and is created faster.
    pub fn schema(&self) -> Schema {
        Schema::new(&self.url)
    }

    /// As a power cut would, for the server; then it starts again and recovers.
    pub fn restart_immediate(&self) {
        self.end(Signal::QUIT);
        self.start_again();
    }

    /// Ends it as an operator would, without waiting for clients.
    pub fn stop(&self) {
        self.end(Signal::INT);
    }

    pub fn start_again(&self) {
        assert!(self.own().begin(), "PostgreSQL does not start again");
    }

    fn end(&self, signal: Signal) {
        let mut server = self.own().server();
        let mut child = server.take().expect("it runs");
        kill_process(Pid::from_child(&child), signal).unwrap();
        child.wait().unwrap();
    }

    fn own(&self) -> &Own {
        self.own.as_ref().expect("this server is not the test's own: use Cluster::start()")
    }
}

impl Own {
    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn server(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// False if it ends before it answers.
    fn begin(&self) -> bool {
        let log = File::options().append(true).open(self.directory.join("log")).unwrap();
        let mut postgres = programs::command(&programs::find("postgres"), self.user, &self.directory);
        postgres.arg("-D").arg("data").arg("-k").arg(&self.directory);
        postgres.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        let settings = ["shared_buffers=32MB", "max_connections=300", "log_min_messages=warning"];
        postgres.args(settings.iter().flat_map(|setting| ["-c", setting]));
        postgres.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = postgres.spawn().unwrap();
        let begun = Instant::now();
        while schema::execute(&self.url(), "SELECT 1").is_err() {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not answer");
            sleep(LOOK);
        }
        *self.server() = Some(child);
        true
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let child = self.server().take();
        if let Some(mut child) = child {
            let _ = kill_process(Pid::from_child(&child), Signal::QUIT);
            let _ = child.wait();
        }
        let (watchdog, input) = self.watchdog.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop(input.take());
        let _ = watchdog.wait();
    }
}

fn watch(directory: &Path) -> (Child, Option<ChildStdin>) {
    let mut shell = Command::new("sh");
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.args(["-c", WATCH, "sh"]).arg(directory).current_dir("/");
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let input = child.stdin.take();
    (child, input)
}
