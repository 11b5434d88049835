//! Which server is meant, and with which key. One that was named must answer; one that a file names may be gone.

use super::Client;
use crate::home::{Data, variable};
use anyhow::Context;
use reqwest::Url;
use std::path::{Path, PathBuf};

/// Written by a server for as long as it runs.
const ADDRESS: &str = "server.url";
/// Made by the first start of a server: one for people, one for agents.
const ADMIN: &str = "admin.key";
const AGENT: &str = "agent.key";

#[derive(clap::Args, Clone)]
pub struct At {
    /// The server; without it $STEPWELL_URL, else the one that runs on the data directory, if there is one
    #[arg(long, value_name = "URL", conflicts_with = "database")]
    url: Option<String>,
    /// The key to show it; without it $STEPWELL_KEY, else the one in the data directory
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    #[command(flatten)]
    pub data: Data,
}

impl At {
    /// The server that was named, or one that answers where the data directory says.
    pub async fn server(&self) -> anyhow::Result<Option<Client>> {
        self.server_with(ADMIN).await
    }

    /// The same, with the key for agents.
    pub async fn server_of_agents(&self) -> anyhow::Result<Option<Client>> {
        self.server_with(AGENT).await
    }

    /// A server that was named must answer; without one the data directory itself is meant.
    pub fn is_named(&self) -> bool {
        self.url.is_some() || variable("STEPWELL_URL").is_some()
    }

    async fn server_with(&self, file_of_key: &str) -> anyhow::Result<Option<Client>> {
        let key = self.api_key.clone().or_else(|| variable("STEPWELL_KEY"));
        if let Some(url) = self.url.clone().or_else(|| variable("STEPWELL_URL")) {
            let url = read(&url)?;
            // The key of this directory is nobody else's business.
            let own = if is_local(&url) {
                self.data.directory().ok().and_then(|home| own_key(&home, file_of_key))
            } else {
                None
            };
            return Client::new(url, key.or(own), None).map(Some);
        }
        let Ok(directory) = self.data.directory() else { return Ok(None) };
        let file = directory.join(ADDRESS);
        let Some(url) = written(&file) else { return Ok(None) };
        let client = Client::new(url, key.or_else(|| own_key(&directory, file_of_key)), Some(file))?;
        Ok(client.answers().await.then_some(client))
    }

    /// The same, unless the command line names a database: then that itself is meant.
    pub async fn server_or_data(&self) -> anyhow::Result<Option<Client>> {
        if self.data.database().is_some() { Ok(None) } else { self.server().await }
    }

    /// How the server or the directory is to be named in a command that is suggested, if it has to be.
    pub fn option(&self) -> String {
        let url = self.url.as_ref().map(|url| format!(" --url {}", crate::home::quoted(url))).unwrap_or_default();
        format!("{url}{}", self.data.option())
    }
}

/// What the file says, if it says anything that can be used.
pub fn written(file: &Path) -> Option<Url> {
    read(std::fs::read_to_string(file).ok()?.trim()).ok()
}

fn read(text: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.with_context(|| format!("{text:?} is not the address of a server, such as http://127.0.0.1:7070"))
}

/// Where the server was given a key from outside, there is no file.
fn own_key(directory: &Path, file: &str) -> Option<String> {
    let path: PathBuf = directory.join(file);
    let given = || variable("STEPWELL_ADMIN_KEY").filter(|_| file == ADMIN);
    let text = std::fs::read_to_string(path).ok().or_else(given)?;
    Some(text.trim().to_string()).filter(|key| !key.is_empty())
}

/// On this machine.
pub fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        let check = |url: &str, expected| assert_eq!(is_local(&read(url).unwrap()), expected, "{url}");
        check("http://127.0.0.1:7070", true);
        check("http://[::1]:7070", true);
        check("http://localhost/", true);
        check("https://localhost.example.com", false);
        check("http://10.0.0.1", false);
        assert!(read("127.0.0.1:7070").is_err());
        assert!(read("file:///etc").is_err());
    }
}
