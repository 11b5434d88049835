//! The settings of an engine, and how it is opened.

use crate::engine::Engine;
use crate::error::Error;
use crate::tool::{Call, Registered, ToolError, ToolSpec};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepwell_engine::{Config, EnvironmentSecrets, SealedStore, Vault};
use stepwell_steps::javascript::WORKER;
use stepwell_steps::tool::ToolKind;
use stepwell_steps::{Egress, Tools};
use stepwell_store::{Location, PostgresOptions};

/// The settings of an engine.
#[derive(Default)]
pub struct Builder {
    tools: BTreeMap<String, Registered>,
    private_addresses: bool,
    javascript: Option<PathBuf>,
    master_key: Option<String>,
    base_url: Option<String>,
    slots: Option<u32>,
}

impl Builder {
    /// Registers an async function as a tool that takes any arguments.
    pub fn tool<F, A>(self, name: &str, function: F) -> Builder
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.tool_with(ToolSpec::new(name), function)
    }

    /// Registers an async function as a tool. It replaces one with the same name, also a built-in one.
    pub fn tool_with<F, A>(mut self, spec: ToolSpec, function: F) -> Builder
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.tools.insert(spec.name.clone(), Registered::new(spec, function));
        self
    }

    /// Allows HTTP steps and queries to reach private addresses. They never reach link-local ones.
    pub fn private_addresses(self) -> Builder {
        Builder { private_addresses: true, ..self }
    }

    /// Evaluates steps of kind `javascript` in processes of this program, which must be a `stepwell` binary. Without one,
    /// definitions with such steps are refused.
    pub fn javascript(self, program: impl Into<PathBuf>) -> Builder {
        Builder { javascript: Some(program.into()), ..self }
    }

    /// The master key that secrets are sealed with: 32 bytes as base64. By default a directory has one in `master.key`, and
    /// a database has none, so that no secrets can be stored there.
    pub fn master_key(self, key: &str) -> Builder {
        Builder { master_key: Some(key.to_string()), ..self }
    }

    /// What the addresses of steps that wait for webhooks begin with. Your program takes those calls and passes them on with
    /// [`Engine::deliver`].
    pub fn base_url(self, url: &str) -> Builder {
        Builder { base_url: Some(url.to_string()), ..self }
    }

    /// How many calls run at a time; 1,000 by default.
    pub fn slots(self, slots: u32) -> Builder {
        Builder { slots: Some(slots), ..self }
    }

    /// Opens a directory, which is created if necessary, and continues the runs in it.
    pub async fn open(self, directory: impl AsRef<Path>) -> Result<Engine, Error> {
        let directory = directory.as_ref().to_path_buf();
        let vault = match &self.master_key {
            Some(key) => Vault::read(key),
            None => Vault::made_when_needed(&directory.join("master.key")),
        };
        self.start(Location::Directory(directory), vault).await
    }

    /// Connects to a PostgreSQL database (`postgres://…`), and continues the runs in it. Other processes can use the same
    /// database; their tools should be the same.
    pub async fn connect(self, url: &str) -> Result<Engine, Error> {
        let vault = self.master_key.as_deref().map_or_else(|| Ok(Vault::default()), Vault::read);
        self.start(Location::Postgres(PostgresOptions::new(url)), vault).await
    }

    async fn start(self, location: Location, vault: Result<Vault, String>) -> Result<Engine, Error> {
        let vault = Arc::new(vault.map_err(Error::Invalid)?);
        let store = location.open().await?;
        let sealed = SealedStore::new(store.clone(), vault.clone(), Arc::new(EnvironmentSecrets));
        sealed.unlock().await?;
        let mut steps = stepwell_steps::Config {
            egress: Egress { allow_private: self.private_addresses },
            connections: Arc::new(sealed),
            ..stepwell_steps::Config::default()
        };
        if let Some(program) = &self.javascript {
            steps.javascript.worker = vec![program.into(), WORKER.into()];
        }
        let tools: Tools = self.tools.into_values().fold(stepwell_steps::tools(&steps), |tools, tool| tools.with(tool));
        let kinds = stepwell_steps::kinds(steps).with("tool", ToolKind::new(Arc::new(tools), None));
        // By default, workers are this same program: it would start itself.
        let kinds = if self.javascript.is_some() { kinds } else { kinds.without("javascript") };
        let mut config = Config { vault, ..Config::new(kinds) };
        config.base_url = self.base_url.unwrap_or(config.base_url);
        config.slots = self.slots.unwrap_or(config.slots);
        let engine = stepwell_engine::Engine::start(store, config).await?;
        Ok(Engine::new(engine))
    }
}
