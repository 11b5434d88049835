//! Messages of MCP to a server, as they are.

use super::Client;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, Url};
use serde_json::Value;

/// Beside the message itself: its revision of the protocol, and what intermediaries go by.
#[derive(Clone, Default, Debug)]
pub struct Envelope {
    pub version: Option<String>,
    pub method: String,
    pub name: Option<String>,
}

impl Client {
    pub async fn message(&self, head: &Envelope, message: &Value) -> Result<Response, reqwest::Error> {
        let mut url: Url = self.base();
        url.set_path("/mcp");
        let mut request = self.http.post(url).header(CONTENT_TYPE, "application/json");
        request = request.header(ACCEPT, "application/json, text/event-stream");
        if let Some(version) = &head.version {
            request = request.header("mcp-protocol-version", version).header("mcp-method", &head.method);
        }
        if let Some(name) = &head.name {
            request = request.header("mcp-name", encoded(name));
        }
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        request.body(message.to_string()).send().await
    }
}

/// A name that a header cannot hold is sent as base64.
fn encoded(name: &str) -> String {
    let plain =
        name.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && name.trim() == name && !name.starts_with("=?");
    if plain { name.to_string() } else { format!("=?base64?{}?=", STANDARD.encode(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_header_cannot_hold_is_sent_in_another_form() {
        assert_eq!(encoded("workflow_start"), "workflow_start");
        assert_eq!(encoded("größe"), "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(encoded(" a"), "=?base64?IGE=?=");
        assert_eq!(encoded("=?x"), "=?base64?PT94?=");
    }
}
