//! Carries out commands: through a server if there is one, else directly on the data directory or database. Both return
//! the views of the API, so that printing does not depend on the backend.

mod approvals;
mod channels;
mod find;
mod identity;
mod mcp_servers;
mod nodes;
mod policies;
mod queries;
mod reviews;
mod runs;
mod secrets;
mod tools;
mod workflows;

pub use find::RunRef;
pub use workflows::Current;

use crate::client::{Client, Refusal, Target};
use crate::commands::Exit;
use crate::{embedded, logging};
use std::time::Duration;
use stepwell_engine::{Caller, Engine, Error};

/// How long to wait for follow-up work of a command, such as cancelling child runs.
const GRACE: Duration = Duration::from_secs(10);

pub enum Backend {
    Server(Client),
    Directory(Directory),
}

/// An engine that executes nothing, and the local user.
pub struct Directory {
    engine: Engine,
    caller: Caller,
}

/// What to do if the data directory does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Refuse,
    Create,
}

impl Backend {
    async fn open(at: &Target, missing: Missing) -> anyhow::Result<Backend> {
        if let Some(client) = at.server_or_data().await? {
            return Ok(Backend::Server(client));
        }
        let home = match missing {
            Missing::Refuse => at.data.open_existing().await?,
            Missing::Create => at.data.open().await?,
        };
        Ok(Backend::Directory(Directory { engine: embedded::at_rest(&home)?, caller: embedded::caller() }))
    }

    /// A backend on an engine of this process, which may execute steps.
    pub fn of(engine: &Engine, caller: &Caller) -> Backend {
        Backend::Directory(Directory { engine: engine.clone(), caller: caller.clone() })
    }

    /// Whether no node is alive, so that runs make no progress until one starts.
    pub async fn is_idle(&self) -> anyhow::Result<bool> {
        match self {
            Backend::Server(_) => Ok(false),
            Backend::Directory(Directory { engine, caller }) => Ok(engine.nodes(caller).await?.is_empty()),
        }
    }
}

/// Runs a command on a server or on the data directory.
pub fn with(
    at: &Target,
    missing: Missing,
    command: impl AsyncFnOnce(&Backend) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        let backend = Backend::open(at, missing).await?;
        let result = command(&backend).await;
        if let Backend::Directory(directory) = &backend {
            directory.engine.shutdown(GRACE).await;
        }
        logging::end();
        result
    })
}

/// Runs a command that needs a server.
pub fn with_server(at: &Target, command: impl AsyncFnOnce(&Client) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        let Some(client) = at.server().await? else {
            let directory = at.data.directory()?;
            let text = format!(
                "no server uses {}: start one with `stepwell serve`, or name one with STEPWELL_URL",
                directory.display()
            );
            return Err(Refusal::new(Exit::Failed, text).into());
        };
        command(&client).await
    })
}

/// Converts the engine's errors to refusals with exit codes.
fn or_refusal<T>(result: Result<T, Error>) -> anyhow::Result<T> {
    result.map_err(|error| Refusal::from(error).into())
}
