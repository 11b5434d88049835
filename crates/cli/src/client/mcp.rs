//! Forwards MCP messages to a server unchanged.

use super::Client;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use stepwell_client::reqwest::header::{ACCEPT, CONTENT_TYPE};
use stepwell_client::reqwest::{Error, Method, Response};

/// The headers of an MCP message: the protocol version, and the method and name that intermediaries route by.
#[derive(Clone, Default, Debug)]
pub struct McpHeaders {
    pub version: Option<String>,
    pub method: String,
    pub name: Option<String>,
}

impl Client {
    pub async fn send_mcp(&self, head: &McpHeaders, message: &Value) -> Result<Response, Error> {
        let mut request = self.0.request(Method::POST, "/mcp").header(CONTENT_TYPE, "application/json");
        request = request.header(ACCEPT, "application/json, text/event-stream");
        if let Some(version) = &head.version {
            request = request.header("mcp-protocol-version", version).header("mcp-method", &head.method);
        }
        if let Some(name) = &head.name {
            request = request.header("mcp-name", encoded(name));
        }
        request.body(message.to_string()).send().await
    }
}

/// Encodes a name that a header cannot contain as base64.
fn encoded(name: &str) -> String {
    let plain =
        name.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) && name.trim() == name && !name.starts_with("=?");
    if plain { name.to_string() } else { format!("=?base64?{}?=", STANDARD.encode(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_headers_cannot_contain_are_sent_as_base64() {
        assert_eq!(encoded("workflow_start"), "workflow_start");
        assert_eq!(encoded("größe"), "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(encoded(" a"), "=?base64?IGE=?=");
        assert_eq!(encoded("=?x"), "=?base64?PT94?=");
    }
}
