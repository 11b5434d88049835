//! Which server to talk to, and with which key.
//!
//! The server on this machine may be gone and come back at another address; a server that was named must answer.

use crate::{Client, Error};
use reqwest::Url;
use std::path::{Path, PathBuf};

/// Written by a server while it runs.
const ADDRESS: &str = "server.url";

/// A file in the data directory that has a key, created by the first start of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyFile {
    /// `admin.key`, for people and their programs.
    #[default]
    Admin,
    /// `agent.key`, for agents: it cannot administer.
    Agent,
}

impl KeyFile {
    fn name(self) -> &'static str {
        match self {
            KeyFile::Admin => "admin.key",
            KeyFile::Agent => "agent.key",
        }
    }
}

/// How to find a server. What is not set comes from the environment, else from the data directory.
#[derive(Clone, Default)]
pub struct Options {
    /// The server's URL; by default `STEPWELL_URL`, else the server that uses the data directory.
    pub url: Option<String>,
    /// The API key; by default `STEPWELL_KEY`, else the one in the data directory, which is sent only to this machine.
    pub key: Option<String>,
    /// The data directory; by default `STEPWELL_DATA`, else `stepwell` in `$XDG_DATA_HOME` or `~/.local/share`.
    pub data: Option<PathBuf>,
    /// Which key of the data directory to use.
    pub key_file: KeyFile,
}

impl Options {
    /// The client. It has not talked to the server yet.
    pub fn find(self) -> Result<Client, Error> {
        let key = self.key.or_else(|| variable("STEPWELL_KEY"));
        let data = self.data.or_else(directory);
        if let Some(url) = self.url.or_else(|| variable("STEPWELL_URL")) {
            let url = parse(&url)?;
            let own = || data.filter(|_| is_local(&url)).and_then(|data| own_key(&data, self.key_file));
            let key = key.or_else(own);
            return Client::at(url, key, None);
        }
        let none =
            |place: String| Error::NoServer(format!("no server: set STEPWELL_URL, or start `stepwell serve`{place}"));
        let Some(data) = data else { return Err(none(String::new())) };
        let file = data.join(ADDRESS);
        let url = read_address(&file).ok_or_else(|| none(format!(" (looked in {})", data.display())))?;
        let own = || own_key(&data, self.key_file).filter(|_| is_local(&url));
        let key = key.or_else(own);
        Client::at(url, key, Some(file))
    }
}

/// The URL in an address file, if it is valid.
pub(crate) fn read_address(file: &Path) -> Option<Url> {
    parse(std::fs::read_to_string(file).ok()?.trim()).ok()
}

pub(crate) fn parse(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| Error::Invalid(format!("{text:?} is not a server URL such as http://127.0.0.1:7070")))
}

/// The key in the data directory. There is no file if the server was given its key in a variable.
fn own_key(directory: &Path, file: KeyFile) -> Option<String> {
    let given = || variable("STEPWELL_ADMIN_KEY").filter(|_| file == KeyFile::Admin);
    let text = std::fs::read_to_string(directory.join(file.name())).ok().or_else(given)?;
    Some(text.trim().to_string()).filter(|key| !key.is_empty())
}

/// Whether the URL points to this machine.
pub fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn directory() -> Option<PathBuf> {
    let given = variable("STEPWELL_DATA").map(PathBuf::from);
    let given = given.or_else(|| Some(PathBuf::from(variable("XDG_DATA_HOME")?).join("stepwell")));
    given.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share/stepwell")))
}

/// An environment variable; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
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

    #[test]
    fn the_key_of_the_data_directory_stays_on_this_machine() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(ADDRESS), "http://127.0.0.1:7071\n").unwrap();
        std::fs::write(home.path().join("admin.key"), "own\n").unwrap();
        let key = |url: Option<&str>, key: Option<&str>| {
            let data = Some(home.path().to_path_buf());
            let options = Options { url: url.map(Into::into), key: key.map(Into::into), data, ..Options::default() };
            options.find().unwrap().key
        };
        assert_eq!(key(Some("http://127.0.0.1:7071"), None).as_deref(), Some("own"));
        assert_eq!(key(Some("https://stepwell.example.com"), None), None);
        assert_eq!(key(Some("https://stepwell.example.com"), Some("given")).as_deref(), Some("given"));
    }
}
