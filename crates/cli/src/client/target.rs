//! The server of a command: the one that the command line names, which must answer, or the one that uses the data
//! directory, which may be gone.

use super::Client;
use crate::home::{Data, variable};
use stepwell_client::{Error, KeyFile, Options};

#[derive(clap::Args, Clone)]
pub struct Target {
    /// Server URL (default: $STEPWELL_URL, else the server that uses the data directory, if any)
    #[arg(long, value_name = "URL", conflicts_with = "database")]
    url: Option<String>,
    /// API key (default: $STEPWELL_KEY, else the one in the data directory)
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    #[command(flatten)]
    pub data: Data,
}

impl Target {
    /// The server that was named, or the one in the data directory's address file if it answers.
    pub async fn server(&self) -> anyhow::Result<Option<Client>> {
        self.server_with(KeyFile::Admin).await
    }

    /// Like [`Target::server`], with the key for agents.
    pub async fn server_for_agents(&self) -> anyhow::Result<Option<Client>> {
        self.server_with(KeyFile::Agent).await
    }

    /// Whether the user named a server, which then must answer.
    pub fn is_named(&self) -> bool {
        self.url.is_some() || variable("STEPWELL_URL").is_some()
    }

    async fn server_with(&self, key_file: KeyFile) -> anyhow::Result<Option<Client>> {
        let (url, key, data) = (self.url.clone(), self.api_key.clone(), self.data.directory().ok());
        match (Options { url, key, data, key_file }).find() {
            Ok(client) if self.is_named() || client.answers().await => Ok(Some(Client(client))),
            Ok(_) | Err(Error::NoServer(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Like [`Target::server`], but `None` if the command line names a database: commands then use it directly.
    pub async fn server_or_data(&self) -> anyhow::Result<Option<Client>> {
        if self.data.database().is_some() { Ok(None) } else { self.server().await }
    }

    /// The options that name the server or directory in a suggested command, if needed.
    pub fn option(&self) -> String {
        let url = self.url.as_ref().map(|url| format!(" --url {}", crate::home::quoted(url))).unwrap_or_default();
        format!("{url}{}", self.data.option())
    }
}
