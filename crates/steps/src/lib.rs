//! What steps do to the world: the kinds that make calls, the tools that are built in, and how notifications reach people.
//!
//! Sleeps, waits, approvals, `for_each` and child workflows have no file here. The planner and the engine do them with
//! timers, messages and rows, so that they cost nothing while they wait and survive a crash; nothing is executed.

pub mod egress;
pub mod http;
pub mod javascript;
pub mod mcp;
mod notify;
mod query;
pub mod tool;
mod tools;

pub use egress::Egress;
pub use notify::{Encryption, Smtp, courier};
pub use tool::{Tool, ToolSpec, Tools};

use std::sync::Arc;
use std::time::Duration;
use stepwell_engine::{Connections, Kinds};

/// What whoever runs the server decides about calls. Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub struct Config {
    pub egress: Egress,
    /// How long making a connection may take, name and TLS included. The time of a whole attempt is the engine's.
    pub connect_timeout: Duration,
    /// Where `pushover_send` finds the service; the path is added to it.
    pub pushover_url: String,
    /// Used by `pushover_send` where the arguments name none.
    pub pushover_user: Option<String>,
    pub pushover_token: Option<String>,
    pub javascript: javascript::Config,
    /// Where notifications by email are handed over.
    pub smtp: Option<Smtp>,
    /// Where `query` steps find their databases.
    pub connections: Arc<dyn Connections>,
    /// MCP servers whose tools `tool` steps can call.
    pub upstreams: Option<Arc<mcp::Upstreams>>,
}

/// Public addresses only; Pushover's credentials from `PUSHOVER_USER` and `PUSHOVER_TOKEN`.
impl Default for Config {
    fn default() -> Config {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Config {
            egress: Egress::default(),
            connect_timeout: Duration::from_secs(10),
            pushover_url: "https://api.pushover.net".into(),
            pushover_user: variable("PUSHOVER_USER"),
            pushover_token: variable("PUSHOVER_TOKEN"),
            javascript: javascript::Config::default(),
            smtp: None,
            connections: Arc::new(query::NoConnections),
            upstreams: None,
        }
    }
}

/// The kinds `http`, `javascript` and `tool`, which share one client, and `query`.
pub fn kinds(config: Config) -> Kinds {
    let client = client(&config);
    let tools = tools::built_in(&config, &client);
    let query = query::QueryKind::new(config.connections, config.egress, config.connect_timeout);
    Kinds::default()
        .with("http", http::HttpKind::new(client.clone()))
        .with("javascript", javascript::JavascriptKind::new(config.javascript, client))
        .with("query", query)
        .with("tool", tool::ToolKind::new(Arc::new(tools), config.upstreams))
}

/// The built-in tools, to list them or to call them outside of a run. Makes a client of its own.
pub fn tools(config: &Config) -> Tools {
    tools::built_in(config, &client(config))
}

fn client(config: &Config) -> Arc<http::Client> {
    Arc::new(http::Client::new(config.egress, config.connect_timeout))
}
