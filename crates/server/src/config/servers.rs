//! `mcpServers`: the MCP servers whose tools steps can call, in the format that other MCP clients use.

use super::fields::{Fields, fault, needed, object};
use super::read::header;
use super::{Secret, shown, values};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use stepwell_core::time::Millis;

/// Maximum length of a server's name, which prefixes the names of its tools.
const NAME: usize = 32;
const TIMEOUT: Millis = Millis::from_secs(30);

/// An MCP server whose tools steps can call.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct McpServer {
    #[serde(flatten)]
    pub transport: McpTransport,
    /// The organisation that owns it, by name. Defaults to the first one.
    pub organisation: Option<String>,
    /// Its tools keep their names, without the server's prefix.
    #[serde(rename = "plainNames")]
    pub plain_names: bool,
    /// Timeout for connecting and for listing its tools.
    #[serde(serialize_with = "shown")]
    pub timeout: Millis,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum McpTransport {
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, Secret>, cwd: Option<PathBuf> },
    Http { url: String, headers: BTreeMap<String, Secret> },
}

pub fn read(fields: &mut Fields<'_>) -> BTreeMap<String, McpServer> {
    let mut servers = BTreeMap::new();
    fields.named("mcpServers", |name, value, path| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > NAME || !name.chars().all(plain) || name.contains("__") {
            let wrong = format!("a server is named with at most {NAME} letters, digits, - and _, without __");
            return vec![fault(path, &wrong)];
        }
        let mut disabled = false;
        let mut found = None;
        let faults = object(value, path, |fields| {
            fields.set("disabled", &mut disabled, values::flag);
            found = server(fields);
        });
        if !disabled && let Some(found) = found {
            servers.insert(name.to_string(), found);
        }
        faults
    });
    servers
}

fn server(fields: &mut Fields<'_>) -> Option<McpServer> {
    // Optional: the presence of `command` or `url` implies it.
    let kind = fields.take("type", |value| match value.as_str() {
        Some(kind @ ("stdio" | "http" | "streamable-http" | "streamableHttp")) => Ok(kind.to_string()),
        Some("sse") => {
            Err("the legacy transport sse is not supported; most servers offer streamable HTTP, at /mcp".into())
        }
        _ => Err("stdio or http is needed here; or leave it out".into()),
    });
    let command = fields.take("command", values::text);
    let url = fields.take("url", url);
    let args = fields.list("args", text);
    let env = texts(fields, "env", |_, value| text(value).map(Secret::new));
    let cwd = fields.take("cwd", values::text).map(PathBuf::from);
    let headers = texts(fields, "headers", header);
    let organisation = fields.take("organisation", values::text);
    let (mut plain_names, mut timeout) = (false, TIMEOUT);
    fields.set("plainNames", &mut plain_names, values::flag);
    fields.set("timeout", &mut timeout, values::positive_length);
    let transport = match (command, url) {
        (Some(command), None) if kind.as_deref().is_none_or(|kind| kind == "stdio") => {
            McpTransport::Stdio { command, args, env, cwd }
        }
        (None, Some(url)) if kind.as_deref() != Some("stdio") => McpTransport::Http { url, headers },
        (None, None) => {
            // If one of them was invalid, the error has been reported.
            if fields.get("command").is_none() && fields.get("url").is_none() {
                fields.fault("command", "this or `url` is needed here; a program to start, or an address");
            }
            return None;
        }
        _ => {
            fields.fault("type", "either `command` for stdio or `url` for http is needed here, not both");
            return None;
        }
    };
    Some(McpServer { transport, organisation, plain_names, timeout })
}

/// Any text. Empty arguments and variables are valid.
fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(needed("text", other)),
    }
}

/// The URL may contain secret references, so it is not parsed here.
fn url(value: &Value) -> Result<String, String> {
    let text = values::text(value)?;
    match text.starts_with("http://") || text.starts_with("https://") {
        true => Ok(text),
        false => Err("this is not a URL; write one that begins with https:// or http://".into()),
    }
}

fn texts(
    fields: &mut Fields<'_>,
    name: &'static str,
    read: impl Fn(&str, &Value) -> Result<Secret, String>,
) -> BTreeMap<String, Secret> {
    let mut texts = BTreeMap::new();
    fields.named(name, |name, value, path| match read(name, value) {
        Ok(value) => {
            texts.insert(name.to_string(), value);
            Vec::new()
        }
        Err(wrong) => vec![fault(path, &wrong)],
    });
    texts
}
