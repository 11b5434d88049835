//! A harness with servers, an in-memory store and the `tool` kind that calls them.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_engine::upstream::{Pins, Server, Servers, State};
use stepwell_engine::{
    EnvironmentSecrets, Resumed, SealedStore, StepCall, StepKind, Suspended, SystemClock, Until, Vault,
};
use stepwell_steps::mcp::{ServerConfig, Transport, Upstreams};
use stepwell_steps::{Config, Egress, kinds};
use stepwell_store::OrgId;
use stepwell_store::memory::MemoryStore;
use stepwell_testing::step_call;
pub use stepwell_testing::{failure, success};

pub const ORG: OrgId = OrgId(1);
/// Turns a hang into a failure.
const TIMEOUT: Duration = Duration::from_secs(180);

pub struct Harness {
    pub store: MemoryStore,
    pub upstreams: Arc<Upstreams>,
    pub kind: Arc<dyn StepKind>,
}

pub fn vault() -> Arc<Vault> {
    Arc::new(Vault::read(&"5a".repeat(32)).unwrap())
}

impl Harness {
    pub fn new(servers: Vec<ServerConfig>) -> Harness {
        Harness::on(MemoryStore::default(), servers)
    }

    pub fn on(store: MemoryStore, servers: Vec<ServerConfig>) -> Harness {
        Harness::within(Egress { allow_private: true }, store, servers)
    }

    pub fn within(egress: Egress, store: MemoryStore, servers: Vec<ServerConfig>) -> Harness {
        let safe = SealedStore::new(Arc::new(store.clone()), vault(), Arc::new(EnvironmentSecrets));
        let pins = Pins::new(Arc::new(store.clone()));
        let upstreams = Upstreams::start(servers, safe, pins, egress, Arc::new(SystemClock));
        let config = Config { upstreams: Some(upstreams.clone()), ..Config::default() };
        let kind = kinds(config).get("tool").unwrap().clone();
        Harness { store, upstreams, kind }
    }

    /// One attempt, which may end because the server is not there yet.
    pub async fn once(&self, call: StepCall) -> Result<Outcome, Suspended> {
        soon(self.kind.attempt(call)).await
    }

    /// A call that nothing can resume.
    pub async fn run(&self, call: StepCall) -> Outcome {
        soon(self.kind.run(call)).await
    }

    /// Makes attempts as the engine does, until the server is there.
    pub async fn attempt(&self, mut call: StepCall) -> Result<Outcome, Suspended> {
        loop {
            match self.once(call.clone()).await {
                Err(Suspended { note, until: Until::Available { pause, .. } }) => {
                    tokio::time::sleep(pause).await;
                    call.resumed = Some(Resumed { note: Arc::new(note), answers: Vec::new() });
                }
                end => return end,
            }
        }
    }

    pub async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.attempt(call(tool, args)).await.unwrap_or_else(|waits| panic!("{tool} waits: {waits:?}"))
    }

    /// The body of a successful call.
    pub async fn ok(&self, tool: &str, args: Value) -> Value {
        Value::clone(&success(self.call(tool, args).await).body)
    }

    pub async fn fails(&self, tool: &str, args: Value) -> Failure {
        failure(self.call(tool, args).await).0
    }

    /// The failure of a call that hardly waits for its server.
    pub async fn away(&self, tool: &str) -> Failure {
        self.away_with(tool, json!({})).await
    }

    /// With arguments that the tool takes: others are refused, whether or not the server is there.
    pub async fn away_with(&self, tool: &str, args: Value) -> Failure {
        let hasty = StepCall { timeout: Duration::from_millis(200), ..call(tool, args) };
        failure(self.attempt(hasty).await.unwrap_or_else(|waits| panic!("{waits:?}"))).0
    }

    pub async fn waits(&self, call: StepCall) -> Suspended {
        match self.attempt(call).await {
            Err(waits) => waits,
            Ok(outcome) => panic!("{outcome:?}"),
        }
    }

    pub fn server(&self, name: &str) -> Server {
        self.upstreams.servers().into_iter().find(|server| server.name == name).unwrap()
    }

    pub async fn ready(&self, name: &str) -> Server {
        self.until(name, |server| server.state == State::Ready).await
    }

    /// Waits until the server is down and returns the reason.
    pub async fn down(&self, name: &str) -> String {
        match self.until(name, |server| matches!(server.state, State::Down { .. })).await.state {
            State::Down { why, .. } => why,
            State::Connecting | State::Ready => unreachable!(),
        }
    }

    pub async fn until(&self, name: &str, good: impl Fn(&Server) -> bool) -> Server {
        until(name, || Some(self.server(name)).filter(|server| good(server))).await
    }
}

pub async fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let asked = async {
        loop {
            match ask() {
                Some(answer) => return answer,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("this takes too long")
}

pub fn call(tool: &str, args: Value) -> StepCall {
    StepCall {
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01".into()),
        timeout: TIMEOUT,
        ..step_call("use", json!({"tool": tool, "args": args}))
    }
}

/// The next attempt of a suspended step.
pub fn resumed(tool: &str, args: Value, waits: &Suspended, answers: Vec<Value>) -> StepCall {
    StepCall { resumed: Some(Resumed { note: Arc::new(waits.note.clone()), answers }), ..call(tool, args) }
}

/// The question that the step waits for.
pub fn asked(waits: &Suspended) -> &Value {
    match &waits.until {
        Until::Answered { ask, .. } => ask,
        Until::Later { .. } | Until::Available { .. } => panic!("{waits:?}"),
    }
}

pub fn later(waits: &Suspended) -> Duration {
    match &waits.until {
        Until::Later { pause, .. } => *pause,
        Until::Answered { .. } | Until::Available { .. } => panic!("{waits:?}"),
    }
}

fn target() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_owned();
    assert!(
        target.join("mcp-node/pinned").exists(),
        "run `scripts/mcp-install.sh` to install the servers that this test calls"
    );
    target
}

pub fn python() -> String {
    target().join("mcp-python/bin/python").display().to_string()
}

pub fn script(name: &str) -> String {
    format!("{}/../../scripts/mcp/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub fn npm(package: &str) -> String {
    target()
        .join("mcp-node/node_modules/@modelcontextprotocol")
        .join(package)
        .join("dist/index.js")
        .display()
        .to_string()
}

pub fn stdio(name: &str, command: &str, args: &[&str]) -> ServerConfig {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let transport = Transport::Stdio { command: command.into(), args, env: BTreeMap::new(), cwd: None };
    let (plain_names, keeper) = (false, Vec::new());
    let (organisation, authorities) = (None, Default::default());
    ServerConfig {
        name: name.into(),
        organisation,
        transport,
        plain_names,
        connect_timeout: TIMEOUT,
        authorities,
        keeper,
    }
}

pub fn http(name: &str, url: &str) -> ServerConfig {
    let transport = Transport::Http { url: url.into(), headers: BTreeMap::new() };
    ServerConfig { transport, ..stdio(name, "", &[]) }
}

/// The misbehaving server, over stdio.
pub fn bad(variables: &[(&str, &str)]) -> ServerConfig {
    let mut config = stdio("bad", &python(), &[&script("bad_server.py")]);
    if let Transport::Stdio { env, .. } = &mut config.transport {
        env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
    config
}
