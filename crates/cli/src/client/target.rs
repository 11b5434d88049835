//! Finds the server and the key to use. A server named by the user must answer; one named in a file may be gone.

use super::Client;
use crate::home::{Data, variable};
use anyhow::Context;
use reqwest::Url;
use std::path::{Path, PathBuf};

/// Written by a server while it runs.
const ADDRESS: &str = "server.url";
/// Created by the first start of a server: one for people, one for agents.
const ADMIN: &str = "admin.key";
const AGENT: &str = "agent.key";

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
        self.server_with(ADMIN).await
    }

    /// Like [`Target::server`], with the key for agents.
    pub async fn server_for_agents(&self) -> anyhow::Result<Option<Client>> {
        self.server_with(AGENT).await
    }

    /// Whether the user named a server, which then must answer.
    pub fn is_named(&self) -> bool {
        self.url.is_some() || variable("STEPWELL_URL").is_some()
    }

    async fn server_with(&self, key_file: &str) -> anyhow::Result<Option<Client>> {
        let key = self.api_key.clone().or_else(|| variable("STEPWELL_KEY"));
        if let Some(url) = self.url.clone().or_else(|| variable("STEPWELL_URL")) {
            let url = parse(&url)?;
            // The key in the data directory is sent only to servers on this machine.
            let own = if is_local(&url) {
                self.data.directory().ok().and_then(|home| own_key(&home, key_file))
            } else {
                None
            };
            return Client::new(url, key.or(own), None).map(Some);
        }
        let Ok(directory) = self.data.directory() else { return Ok(None) };
        let file = directory.join(ADDRESS);
        let Some(url) = read_address(&file) else { return Ok(None) };
        let client = Client::new(url, key.or_else(|| own_key(&directory, key_file)), Some(file))?;
        Ok(client.answers().await.then_some(client))
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

/// The URL in an address file, if it is valid.
pub fn read_address(file: &Path) -> Option<Url> {
    parse(std::fs::read_to_string(file).ok()?.trim()).ok()
}

fn parse(text: &str) -> anyhow::Result<Url> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.with_context(|| format!("{text:?} is not a server URL such as http://127.0.0.1:7070"))
}

/// The key in the data directory. There is no file if the server was given its key in a variable.
fn own_key(directory: &Path, file: &str) -> Option<String> {
    let path: PathBuf = directory.join(file);
    let given = || variable("STEPWELL_ADMIN_KEY").filter(|_| file == ADMIN);
    let text = std::fs::read_to_string(path).ok().or_else(given)?;
    Some(text.trim().to_string()).filter(|key| !key.is_empty())
}

/// Whether the URL points to this machine.
pub fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        let check = |url: &str, expected| assert_eq!(is_local(&parse(url).unwrap()), expected, "{url}");
        check("http://127.0.0.1:7070", true);
        check("http://[::1]:7070", true);
        check("http://localhost/", true);
        check("https://localhost.example.com", false);
        check("http://10.0.0.1", false);
        assert!(parse("127.0.0.1:7070").is_err());
        assert!(parse("file:///etc").is_err());
    }
}
