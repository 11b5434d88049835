//! The server's configuration as one typed value, from a file (`read`), the environment and defaults.
//!
//! | part | file |
//! | --- | --- |
//! | all keys and how they are read | `read.rs` |
//! | objects, field by field, and unknown keys | `fields.rs` |
//! | MCP servers | `servers.rs` |
//! | single values: a size, a duration, a URL | `values.rs` |
//!
//! All errors are reported at once. This module reads neither the process environment nor files, except the master keys
//! that the configuration names: callers pass both in. The keys are documented in `docs/configuration.md`.

mod fields;
mod read;
mod servers;
#[cfg(test)]
mod tests;
mod values;

pub use servers::{McpServer, McpTransport};

use axum::http::uri::{Authority, Uri};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stepwell_core::time::Millis;
use stepwell_engine::Vault;
use stepwell_store::tls::Authorities;
use stepwell_store::{Location, PostgresOptions, without_password};

/// The validated configuration.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Config {
    pub listen: SocketAddr,
    pub data: Option<PathBuf>,
    /// Used in place of the embedded store. See [`Config::location`].
    pub database: Option<Database>,
    pub node: Node,
    /// Without a trailing slash. See [`Config::public_url`].
    #[serde(rename = "public_url")]
    pub given_public_url: Option<String>,
    pub insecure_remote: bool,
    pub hosts: Vec<String>,
    pub cors: Cors,
    pub log: Log,
    pub slots: NonZeroU32,
    pub slots_per_organisation: Option<NonZeroU32>,
    pub descendants_per_run: NonZeroU32,
    #[serde(serialize_with = "shown")]
    pub drain: Millis,
    /// See [`Config::private_addresses`].
    #[serde(rename = "private_addresses")]
    pub given_private_addresses: Option<bool>,
    /// Whether steps may call this server itself.
    pub own_address: bool,
    /// See [`Config::authorities`].
    pub extra_ca_file: Option<PathBuf>,
    pub javascript: Javascript,
    /// How many times in a row the process may end while a step runs or a run is recovered, before a person decides.
    pub quarantine_after: u8,
    pub limits: Limits,
    /// Includes the built-in plans.
    pub plans: BTreeMap<String, Plan>,
    /// Always one of `plans`.
    pub default_plan: String,
    pub otlp: Option<Otlp>,
    pub anchor: Option<Anchor>,
    pub smtp: Option<Smtp>,
    #[serde(rename = "mcpServers")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    pub metrics: Metrics,
    /// An administrator's key created elsewhere. Read only from the environment, because files get copied and shown.
    #[serde(skip)]
    pub admin_key: Option<Secret>,
    /// The key that seals secrets. Also read only from the environment.
    #[serde(skip)]
    pub master_key: Option<Secret>,
    pub master_key_file: Option<PathBuf>,
}

/// A PostgreSQL database, and how many connections one node uses.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Database {
    pub url: DatabaseUrl,
    pub listen_url: Option<DatabaseUrl>,
    pub writers: NonZeroU32,
    pub readers: NonZeroU32,
    pub prepared: bool,
    pub unsafe_settings: bool,
    pub ca_file: Option<PathBuf>,
}

/// A URL that is displayed without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

/// This process among the nodes that share a database.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Node {
    pub name: Option<String>,
    #[serde(serialize_with = "shown")]
    pub lease: Millis,
}

impl Node {
    pub fn give(&self, engine: &mut stepwell_engine::Config) {
        engine.lease = Duration::from_millis(self.lease.0);
        if let Some(name) = &self.name {
            engine.node_name = name.clone();
        }
    }
}

#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Cors {
    /// As browsers write them: scheme, host, and the port unless it is the default.
    pub origins: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Log {
    pub format: LogFormat,
    pub level: Level,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Human,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How code is evaluated. `None` leaves the number of workers to the number of cores.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Javascript {
    pub workers: Option<NonZeroU32>,
    /// The longest timeout of a step.
    #[serde(serialize_with = "shown")]
    pub timeout: Millis,
    /// The most memory of a step, in bytes.
    pub memory: u64,
}

impl Default for Javascript {
    fn default() -> Javascript {
        Javascript { workers: None, timeout: Millis::from_secs(300), memory: 256 << 20 }
    }
}

/// Limits per client and for all clients together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limits {
    /// Maximum size of a request body in bytes.
    pub body: u64,
    /// Maximum nesting of a request body.
    pub depth: NonZeroU32,
    /// Maximum number of values in a request body.
    pub values: NonZeroU32,
    /// Per API key.
    pub requests_per_second: Option<NonZeroU32>,
    /// Burst of requests that one key may send after a pause. See [`Limits::burst`].
    #[serde(rename = "burst")]
    pub given_burst: Option<NonZeroU32>,
    pub connections: NonZeroU32,
    #[serde(serialize_with = "shown")]
    pub header_timeout: Millis,
    #[serde(serialize_with = "shown")]
    pub body_timeout: Millis,
    pub live_streams: NonZeroU32,
    /// Of one organisation. `None`: all, as long as no other needs some.
    pub live_streams_per_organisation: Option<NonZeroU32>,
    /// Of one API key, or of one user signed in with a browser.
    pub live_streams_per_key: NonZeroU32,
    /// Maximum size of the payloads of one run, in bytes.
    pub run_bytes: u64,
    pub long_callbacks: LongCallbacks,
}

/// What happens to the body of a call to a wait's URL that is longer than what expressions can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LongCallbacks {
    Truncate,
    Refuse,
}

/// The limits of an organisation. `None` means unlimited.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Plan {
    pub workflows: Option<u64>,
    pub tasks_per_workflow: Option<u64>,
    pub concurrent_runs: Option<u64>,
    pub executions_per_month: Option<u64>,
    pub descendants_per_run: Option<u64>,
    pub run_bytes: Option<u64>,
    pub cron: bool,
}

/// The destination of traces.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Otlp {
    /// Without `/v1/traces` and without a trailing slash.
    pub endpoint: String,
    pub headers: BTreeMap<String, Secret>,
    pub service_name: String,
}

/// Where the heads of the audit trail are noted, and how often.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Anchor {
    #[serde(serialize_with = "shown")]
    pub every: Millis,
    pub file: Option<PathBuf>,
    pub webhook: Option<String>,
    pub log: bool,
}

/// The mail server for email notifications.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Smtp {
    pub host: String,
    /// See [`Smtp::port`].
    #[serde(rename = "port")]
    pub given_port: Option<u16>,
    pub encryption: Encryption,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub from: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    Tls,
    StartTls,
    None,
}

impl Smtp {
    /// The default port of the encryption, unless the file sets one.
    pub fn port(&self) -> u16 {
        self.given_port.unwrap_or(match self.encryption {
            Encryption::Tls => 465,
            Encryption::StartTls => 587,
            Encryption::None => 25,
        })
    }
}

#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Metrics {
    pub token: Option<Secret>,
}

/// Text that is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(hidden)")
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&without_password(&self.0))
    }
}

fn shown<S: serde::Serializer>(length: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(length)
}

const fn positive(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("defaults are not zero")
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            data: None,
            database: None,
            node: Node { name: None, lease: Millis::from_secs(10) },
            given_public_url: None,
            insecure_remote: false,
            hosts: Vec::new(),
            cors: Cors::default(),
            log: Log { format: LogFormat::Human, level: Level::Info },
            slots: positive(1_000),
            slots_per_organisation: None,
            descendants_per_run: positive(stepwell_engine::Plans::default().descendants_per_run),
            drain: Millis::from_secs(30),
            given_private_addresses: None,
            own_address: false,
            extra_ca_file: None,
            javascript: Javascript::default(),
            quarantine_after: stepwell_core::limits::MAX_LOSSES,
            limits: Limits::default(),
            plans: Plan::built_in(),
            default_plan: "unlimited".into(),
            otlp: None,
            anchor: None,
            smtp: None,
            mcp_servers: BTreeMap::new(),
            metrics: Metrics::default(),
            admin_key: None,
            master_key: None,
            master_key_file: None,
        }
    }
}

impl Database {
    pub fn new(url: DatabaseUrl) -> Database {
        let PostgresOptions { writers, readers, prepared, unsafe_settings, .. } = PostgresOptions::default();
        let (writers, readers) = (positive(writers), positive(readers));
        Database { url, listen_url: None, writers, readers, prepared, unsafe_settings, ca_file: None }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 10 * 1024 * 1024,
            depth: positive(100),
            values: positive(250_000),
            requests_per_second: None,
            given_burst: None,
            connections: positive(10_000),
            header_timeout: Millis::from_secs(10),
            body_timeout: Millis::from_secs(30),
            live_streams: positive(1_000),
            live_streams_per_organisation: None,
            live_streams_per_key: positive(250),
            run_bytes: stepwell_core::limits::DEFAULT_RUN_BYTES,
            long_callbacks: LongCallbacks::Truncate,
        }
    }
}

impl Limits {
    /// One second's worth of requests, unless the file sets it.
    pub fn burst(&self) -> Option<NonZeroU32> {
        self.given_burst.or(self.requests_per_second)
    }
}

impl Plan {
    pub const UNLIMITED: Plan = Plan {
        workflows: None,
        tasks_per_workflow: None,
        concurrent_runs: None,
        executions_per_month: None,
        descendants_per_run: None,
        run_bytes: None,
        cron: true,
    };

    /// The plans built into the engine.
    fn built_in() -> BTreeMap<String, Plan> {
        let plan = |limits: stepwell_engine::Limits| Plan {
            workflows: limits.workflows.map(Into::into),
            tasks_per_workflow: limits.tasks_per_workflow.map(Into::into),
            concurrent_runs: limits.concurrent_runs.map(Into::into),
            executions_per_month: limits.executions_per_month,
            descendants_per_run: limits.descendants_per_run.map(Into::into),
            run_bytes: limits.run_bytes,
            cron: !limits.no_cron,
        };
        stepwell_engine::Plans::default().by_name.into_iter().map(|(name, limits)| (name, plan(limits))).collect()
    }
}

impl Config {
    /// Reads the file alone, without the environment.
    pub fn read(text: impl AsRef<[u8]>, file: &str) -> Result<Config, Vec<String>> {
        Config::load(Some((text.as_ref(), file)), |_| None)
    }

    /// Reads the file, if there is one, and applies the environment on top. `variable` looks up a variable by name.
    pub fn load(file: Option<(&[u8], &str)>, variable: impl Fn(&str) -> Option<String>) -> Result<Config, Vec<String>> {
        let mut config = Config::default();
        let mut faults = Vec::new();
        if let Some((text, name)) = file {
            let found = read::file(&mut config, text, name);
            faults.extend(found.into_iter().map(|fault| format!("{name}{fault}")));
        }
        faults.extend(read::environment(&mut config, &variable));
        faults.extend(config.exposed());
        if faults.is_empty() { Ok(config) } else { Err(faults) }
    }

    /// The configuration file that the environment names, if any.
    pub fn file(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        read::variable(&variable, "STEPWELL_CONFIG").map(PathBuf::from)
    }

    /// The keys that seal secrets: from the environment, from the named file, or from a file in the data directory that
    /// is created on first use. Nodes that share a database must all be given the same keys.
    pub fn vault(&self, directory: Option<&Path>) -> Result<Vault, String> {
        match (&self.master_key, &self.master_key_file, directory) {
            (Some(key), _, _) => Vault::read(key.reveal()).map_err(|why| format!("STEPWELL_MASTER_KEY: {why}")),
            (None, Some(file), _) => {
                let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
                Vault::read(&text).map_err(|why| format!("{}: {why}", file.display()))
            }
            (None, None, Some(directory)) => Vault::made_when_needed(&directory.join("master.key")),
            (None, None, None) => Ok(Vault::default()),
        }
    }

    /// Certificate authorities that outgoing calls trust besides the system's.
    pub fn authorities(&self) -> Result<Authorities, String> {
        let read = self.extra_ca_file.as_deref().map(Authorities::read).transpose();
        read.map(Option::unwrap_or_default).map_err(|why| format!("extra_ca_file: {why}"))
    }

    /// Where the data is stored: in the database if one is configured, otherwise in this directory.
    pub fn location(&self, directory: PathBuf) -> Location {
        let Some(database) = &self.database else { return Location::Directory(directory) };
        Location::Postgres(PostgresOptions {
            url: database.url.0.clone(),
            listen_url: database.listen_url.as_ref().map(|url| url.0.clone()),
            writers: database.writers.get(),
            readers: database.readers.get(),
            lease: Duration::from_millis(self.node.lease.0),
            prepared: database.prepared,
            unsafe_settings: database.unsafe_settings,
            ca_file: database.ca_file.clone(),
        })
    }

    /// An error if other machines can reach the server: keys and callbacks would cross the network unencrypted.
    fn exposed(&self) -> Option<String> {
        let listen = self.listen;
        (!is_loopback(listen.ip()) && !self.insecure_remote).then(|| {
            format!(
                "listen: other machines can reach {listen}, and this server speaks plain HTTP; put a proxy with TLS in \
                 front of it and set `insecure_remote: true`, or listen on 127.0.0.1"
            )
        })
    }

    /// Prefix of callback and sign-in URLs, without a trailing slash. `bound` is the address the server listens on.
    pub fn public_url(&self, bound: SocketAddr) -> String {
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let own = || format!("http://{}", SocketAddr::new(ip, bound.port()));
        self.given_public_url.clone().unwrap_or_else(own)
    }

    /// Whether steps may reach private addresses. By default, only if no other machine can start runs here.
    pub fn private_addresses(&self) -> bool {
        let public = self.given_public_url.as_ref().and_then(|url| url.parse::<Uri>().ok());
        let shared = public.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback_name(host));
        self.given_private_addresses.unwrap_or_else(|| is_loopback(self.listen.ip()) && !shared)
    }

    /// Whether the `Host` header names this server. Protects against DNS rebinding.
    pub fn accepts_host(&self, header: &str) -> bool {
        let Some(host) = host_of(header) else { return false };
        let public = self.public_url(self.listen).parse::<Uri>().ok();
        let public = public.as_ref().and_then(Uri::authority).and_then(|authority| host_of(authority.as_str()));
        is_loopback_name(&host) || public.as_ref() == Some(&host) || self.hosts.contains(&host)
    }
}

/// The host of `host:port`, in lower case.
fn host_of(authority: &str) -> Option<String> {
    let authority = authority.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))?;
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

/// Whether a `Host` header names the local machine.
pub fn is_loopback_host(header: &str) -> bool {
    host_of(header).is_some_and(|host| is_loopback_name(&host))
}

fn is_loopback_name(host: &str) -> bool {
    let ip = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse::<IpAddr>();
    host == "localhost" || host.ends_with(".localhost") || ip.is_ok_and(is_loopback)
}

/// Also recognises IPv4-mapped IPv6 addresses.
pub fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
