//! Step kinds that call the outside world, the built-in tools, and the delivery of notifications.
//!
//! Sleeps, waits, approvals, `for_each` and child workflows are not implemented here. The planner and the engine
//! model them as timers, messages and rows, so they cost nothing while they wait and survive a crash.

pub mod egress;
pub mod http;
pub mod javascript;
pub mod mcp;
mod notify;
mod query;
mod text;
pub mod tool;
mod tools;

pub use egress::{Egress, OwnAddress};
pub use notify::{Encryption, Smtp, courier};
pub use tool::{Tool, ToolSpec, Tools};

use std::sync::Arc;
use std::time::Duration;
use stepwell_engine::{Connections, Kinds};
use stepwell_store::tls::Authorities;

/// The operator's settings for outgoing calls. Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub struct Config {
    pub egress: Egress,
    /// The server's own address, which steps may not call. Left unset if they may.
    pub own_address: OwnAddress,
    /// Limit for establishing a connection, including DNS and TLS. The engine limits the attempt as a whole.
    pub connect_timeout: Duration,
    /// Certificate authorities to trust besides the system's.
    pub authorities: Authorities,
    /// Base URL of the Pushover service, without the API path.
    pub pushover_url: String,
    /// Default recipient of `pushover_send`, used if the arguments name none.
    pub pushover_user: Option<String>,
    pub pushover_token: Option<String>,
    /// Whether `pushover_send` uses these credentials for every organisation, not only for the operator's.
    pub pushover_shared: bool,
    pub javascript: javascript::Config,
    /// Mail server for email notifications.
    pub smtp: Option<Smtp>,
    /// Databases that `query` steps can use.
    pub connections: Arc<dyn Connections>,
    /// MCP servers whose tools `tool` steps can call.
    pub upstreams: Option<Arc<mcp::Upstreams>>,
}

/// Allows public addresses only. Reads Pushover's credentials from `PUSHOVER_USER` and `PUSHOVER_TOKEN`, whether all
/// organisations may use them from `PUSHOVER_SHARED`, and the service's address from `PUSHOVER_URL`.
impl Default for Config {
    fn default() -> Config {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Config {
            egress: Egress::default(),
            own_address: OwnAddress::default(),
            connect_timeout: Duration::from_secs(10),
            authorities: Authorities::default(),
            pushover_url: variable("PUSHOVER_URL").unwrap_or_else(|| "https://api.pushover.net".into()),
            pushover_user: variable("PUSHOVER_USER"),
            pushover_token: variable("PUSHOVER_TOKEN"),
            pushover_shared: variable("PUSHOVER_SHARED").is_some_and(|value| value == "true"),
            javascript: javascript::Config::default(),
            smtp: None,
            connections: Arc::new(query::NoConnections),
            upstreams: None,
        }
    }
}

/// The step kinds `http`, `javascript`, `tool` and `query`. The first three share one HTTP client.
pub fn kinds(config: Config) -> Kinds {
    let client = client(&config);
    let tools = tools::built_in(&config, &client);
    let query = query::QueryKind::new(&config);
    Kinds::default()
        .with("http", http::HttpKind::new(client.clone()))
        .with("javascript", javascript::JavascriptKind::new(config.javascript, client))
        .with("query", query)
        .with("tool", tool::ToolKind::new(Arc::new(tools), config.upstreams))
}

/// The built-in tools, for listing or for calls outside a run. Creates its own HTTP client.
pub fn tools(config: &Config) -> Tools {
    tools::built_in(config, &client(config))
}

fn client(config: &Config) -> Arc<http::Client> {
    Arc::new(http::Client::new(config))
}
