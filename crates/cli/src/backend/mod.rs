//! Where commands are carried out: by a server if there is one, else on the data directory or the database itself. Either
//! way what comes back are the views of the API, so that whoever prints them need not know.

mod channels;
mod gates;
mod nodes;
mod people;
mod queries;
mod runs;
mod secrets;
mod servers;
mod workflows;

pub use workflows::Current;

use crate::client::{At, Client, Refusal};
use crate::commands::Exit;
use crate::{embedded, logging};
use std::time::Duration;
use stepwell_engine::{Caller, Engine, Error};

/// What was decided may lead to more, such as the cancelling of children.
const PATIENCE: Duration = Duration::from_secs(10);

pub enum Backend {
    Server(Client),
    Directory(Directory),
}

/// An engine that executes nothing, for whoever sits at this machine.
pub struct Directory {
    engine: Engine,
    caller: Caller,
}

/// What is done about a directory that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Refuse,
    Make,
}

impl Backend {
    async fn open(at: &At, missing: Missing) -> anyhow::Result<Backend> {
        if let Some(client) = at.server_or_data().await? {
            return Ok(Backend::Server(client));
        }
        let home = match missing {
            Missing::Refuse => at.data.open_existing().await?,
            Missing::Make => at.data.open().await?,
        };
        Ok(Backend::Directory(Directory { engine: embedded::at_rest(&home)?, caller: embedded::caller() }))
    }

    /// An engine of this process, which may well execute.
    pub fn of(engine: &Engine, caller: &Caller) -> Backend {
        Backend::Directory(Directory { engine: engine.clone(), caller: caller.clone() })
    }

    /// What is written leads to nothing until somebody runs it.
    pub async fn rests(&self) -> anyhow::Result<bool> {
        match self {
            Backend::Server(_) => Ok(false),
            Backend::Directory(Directory { engine, caller }) => Ok(engine.nodes(caller).await?.is_empty()),
        }
    }
}

/// Does something, here or there.
pub fn with(
    at: &At,
    missing: Missing,
    what: impl AsyncFnOnce(&Backend) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        let backend = Backend::open(at, missing).await?;
        let result = what(&backend).await;
        if let Backend::Directory(directory) = &backend {
            directory.engine.shutdown(PATIENCE).await;
        }
        logging::end();
        result
    })
}

/// Does something that needs a server.
pub fn with_server(at: &At, what: impl AsyncFnOnce(&Client) -> anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        let Some(client) = at.server().await? else {
            let directory = at.data.directory()?;
            let text = format!(
                "no server runs on {}: `stepwell serve` starts one, and STEPWELL_URL names one elsewhere",
                directory.display()
            );
            return Err(Refusal::new(Exit::Failed, text).into());
        };
        what(&client).await
    })
}

/// The engine's errors with their exit codes.
fn told<T>(result: Result<T, Error>) -> anyhow::Result<T> {
    result.map_err(|error| Refusal::from(error).into())
}
