//! An engine inside this process, for the commands that execute runs.

use crate::commands::Exit;
use crate::home::Home;
use crate::source::Source;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::run::{RunStatus, Snapshot};
use stepwell_engine::commands as define;
use stepwell_engine::upstream::Pins;
use stepwell_engine::{Caller, Config, Engine, EnvironmentSecrets, SealedStore, SystemClock};
use stepwell_server::config::{Javascript, McpServer, McpTransport, Secret};
use stepwell_steps::mcp::{KEEPER, ServerConfig, Transport, Upstreams};
use stepwell_steps::{Egress, OwnAddress};
use stepwell_store::{LoadedRun, OrgId, RunFilter, RunId, Store};

/// The organisation of local runs.
pub const ORG: OrgId = OrgId(1);
/// Rows read per page.
const PAGE: u32 = 500;
/// The statuses of unfinished runs.
const UNFINISHED: [&str; 3] = ["queued", "running", "paused"];

pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the async runtime")
}

/// In a data directory only the local user can start runs, so steps may reach private addresses, as the user's own
/// programs may. In a shared database this process also executes definitions that others have written.
fn config(home: &Home, servers: Connect) -> anyhow::Result<Config> {
    let local = !home.store.is_shared();
    let private = home.config.given_private_addresses.unwrap_or(local);
    let mut config = engine(home, Reach { private, ..Reach::default() }, servers)?;
    home.config.node.give(&mut config);
    Ok(config)
}

/// Whether to connect to MCP servers. An engine that executes nothing needs no connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Connect {
    Yes,
    No,
}

/// What the steps of an engine may reach.
#[derive(Clone, Default)]
pub struct Reach {
    /// Whether they may reach private addresses.
    pub private: bool,
    /// The server's own address, which they may not call.
    pub own: OwnAddress,
}

/// The configuration of an engine with everything its steps need. Must be called within a runtime.
pub fn engine(home: &Home, reach: Reach, servers: Connect) -> anyhow::Result<Config> {
    let vault = home.vault()?;
    let sealed = SealedStore::new(home.store.clone(), vault.clone(), Arc::new(EnvironmentSecrets));
    let egress = Egress { allow_private: reach.private };
    let authorities = home.config.authorities().map_err(anyhow::Error::msg)?;
    let configured = home.config.mcp_servers.iter();
    let configured = configured
        .map(|(name, server)| ServerConfig { authorities: authorities.clone(), ..server_config(name, server) });
    let upstreams = match configured.collect::<Vec<_>>() {
        configured if configured.is_empty() || servers == Connect::No => None,
        configured => {
            let pins = Pins::new(home.store.clone());
            Some(Upstreams::start(configured, sealed.clone(), pins, egress, Arc::new(SystemClock)))
        }
    };
    let steps = stepwell_steps::Config {
        egress,
        own_address: reach.own,
        authorities,
        javascript: javascript(&home.config.javascript),
        smtp: home.config.smtp.as_ref().map(smtp),
        connections: Arc::new(sealed),
        upstreams: upstreams.clone(),
        ..stepwell_steps::Config::default()
    };
    let mut config = Config::new(stepwell_steps::kinds(steps.clone()));
    config.max_losses = home.config.quarantine_after;
    config.courier = Some(stepwell_steps::courier(&steps));
    config.vault = vault;
    if let Some(upstreams) = upstreams {
        config.supervisor = upstreams.supervisor.clone();
        config.servers = upstreams;
    }
    Ok(config)
}

fn javascript(given: &Javascript) -> stepwell_steps::javascript::Config {
    let default = stepwell_steps::javascript::Config::default();
    stepwell_steps::javascript::Config {
        workers: given.workers.map_or(default.workers, |workers| workers.get() as usize),
        max_timeout: Duration::from_millis(given.timeout.0),
        max_memory: given.memory,
        ..default
    }
}

/// Converts the configuration of an MCP server to that of `stepwell_steps`.
fn server_config(name: &str, server: &McpServer) -> ServerConfig {
    let revealed = |texts: &BTreeMap<String, Secret>| {
        texts.iter().map(|(name, text)| (name.clone(), text.reveal().to_string())).collect()
    };
    let transport = match &server.transport {
        McpTransport::Stdio { command, args, env, cwd } => {
            Transport::Stdio { command: command.clone(), args: args.clone(), env: revealed(env), cwd: cwd.clone() }
        }
        McpTransport::Http { url, headers } => Transport::Http { url: url.clone(), headers: revealed(headers) },
    };
    ServerConfig {
        name: name.to_string(),
        organisation: server.organisation.clone(),
        transport,
        plain_names: server.plain_names,
        connect_timeout: Duration::from_millis(server.timeout.0),
        authorities: Default::default(),
        keeper: if cfg!(target_os = "linux") { vec!["/proc/self/exe".into(), KEEPER.into()] } else { Vec::new() },
    }
}

/// Converts the SMTP configuration to that of `stepwell_steps`.
fn smtp(config: &stepwell_server::config::Smtp) -> stepwell_steps::Smtp {
    use stepwell_server::config::Encryption;
    stepwell_steps::Smtp {
        host: config.host.clone(),
        port: config.port(),
        encryption: match config.encryption {
            Encryption::Tls => stepwell_steps::Encryption::Tls,
            Encryption::StartTls => stepwell_steps::Encryption::StartTls,
            Encryption::None => stepwell_steps::Encryption::None,
        },
        username: config.username.clone(),
        password: config.password.as_ref().map(|password| password.reveal().to_string()),
        from: config.from.clone(),
    }
}

pub async fn start(home: &Home) -> anyhow::Result<Engine> {
    Ok(Engine::start(home.store.clone(), config(home, Connect::Yes)?).await?)
}

/// An engine for queries and commands that executes nothing.
pub fn at_rest(home: &Home) -> anyhow::Result<Engine> {
    Ok(Engine::at_rest(home.store.clone(), config(home, Connect::No)?))
}

/// The local user.
pub fn caller() -> Caller {
    let names = ["USER", "LOGNAME", "USERNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    Caller::local(names.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| "local".into()))
}

/// Stores the definitions, each as the newest version of its workflow if it changed. Returns their names.
pub async fn define(engine: &Engine, caller: &Caller, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for source in sources {
        let text = std::str::from_utf8(&source.bytes).with_context(|| format!("{} is not text", source.name))?;
        let define = define::Source { text, file: Some(&source.name) };
        let defined = engine.workflows(caller).define(define).await.with_context(|| source.name.clone())?;
        names.push(defined.compiled.row.name.clone());
    }
    Ok(names)
}

/// An existing run and its current version.
pub struct Found {
    pub id: RunId,
    pub public: String,
    pub version: i64,
}

pub async fn find(store: &dyn Store, run: &str) -> anyhow::Result<Found> {
    let stored = match store.find_run(run).await? {
        Some(id) => store.load(id).await?,
        None => None,
    };
    let stored = stored.with_context(|| format!("there is no run {run:?} here; `stepwell runs` lists them"))?;
    Ok(Found { id: stored.row.id, public: stored.row.public, version: stored.version.0 })
}

/// Unfinished runs, without child runs.
pub async fn unfinished(store: &dyn Store) -> anyhow::Result<Vec<RunId>> {
    let mut found = Vec::new();
    for status in UNFINISHED {
        let mut before = None;
        loop {
            let page = store.runs(of_status(status, before, PAGE)).await?;
            before = page.last().map(|run| run.id);
            let whole = page.len() < PAGE as usize;
            found.extend(page.into_iter().filter(|run| run.parent.is_none()).map(|run| run.id));
            if whole {
                break;
            }
        }
    }
    Ok(found)
}

/// Counts unfinished runs other than `but`, up to `most`.
pub async fn count_unfinished(store: &dyn Store, most: u32, but: Option<RunId>) -> anyhow::Result<u32> {
    let mut count = 0;
    for status in UNFINISHED {
        let page = store.runs(of_status(status, None, most)).await?;
        count += page.iter().filter(|run| run.parent.is_none() && Some(run.id) != but).count() as u32;
    }
    Ok(count.min(most))
}

fn of_status(status: &str, before: Option<RunId>, limit: u32) -> RunFilter {
    RunFilter { status: vec![status.to_string()], before, ..RunFilter::all(ORG, limit) }
}

/// How a run ended.
pub struct Ended {
    pub run: String,
    pub status: RunStatus,
    pub output: Value,
    pub error: Option<Value>,
}

impl Ended {
    pub fn exit(&self) -> Exit {
        match self.status {
            RunStatus::Completed => Exit::Success,
            RunStatus::Cancelled | RunStatus::Timeout => Exit::Stopped,
            RunStatus::Failed | RunStatus::New | RunStatus::Scheduled | RunStatus::Queued | RunStatus::Running => {
                Exit::Failed
            }
        }
    }
}

/// Reads how a run ended, or its current state.
pub async fn ended(store: &dyn Store, id: RunId) -> anyhow::Result<Option<Ended>> {
    let Some(stored) = store.load(id).await? else { return Ok(None) };
    let state: Snapshot = serde_json::from_str(&stored.state).context("the stored run cannot be read")?;
    let output = value(&stored, &state)?;
    let error = state.failure.as_ref().map(stepwell_core::run::error);
    Ok(Some(Ended { run: stored.row.public, status: state.status, output, error }))
}

fn value(stored: &LoadedRun, state: &Snapshot) -> anyhow::Result<Value> {
    let Some(output) = state.output else { return Ok(Value::Null) };
    let Some(row) = stored.values.iter().find(|row| row.id == output) else { return Ok(Value::Null) };
    let payload: stepwell_core::value::Payload =
        serde_json::from_str(&row.payload).context("the output cannot be read")?;
    Ok(Arc::unwrap_or_clone(payload.value))
}
