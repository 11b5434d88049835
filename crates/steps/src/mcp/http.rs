//! Servers behind a URL: the SDK's transport on a client that enforces the egress rules.

use super::client::BoundedClient;
use crate::egress::Egress;
use crate::http::builder;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use url::Url;

/// Headers that the transport sets itself.
const RESERVED: [&str; 7] =
    ["accept", "content-type", "content-length", "host", "last-event-id", "mcp-session-id", "mcp-protocol-version"];
/// Maximum size of a server's message, in bytes.
pub const MAX_MESSAGE: usize = 16 << 20;

pub fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    egress: Egress,
    connect_timeout: Duration,
) -> Result<StreamableHttpClientTransport<BoundedClient>, String> {
    let url = Url::parse(url).map_err(|error| format!("its URL is invalid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its URL must begin with http:// or https://".into());
    }
    egress.check_url(&url).map_err(|refused| refused.to_string())?;
    // Redirects are not followed, least of all with headers that hold secrets.
    let client = builder(egress, connect_timeout).redirect(Policy::none()).build();
    let client = client.map_err(|error| format!("the HTTP client cannot be built: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = read(headers)?;
    config.max_sse_event_size = MAX_MESSAGE;
    Ok(StreamableHttpClientTransport::with_client(BoundedClient(client), config))
}

fn read(headers: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let read = |(name, value): (&String, &String)| {
        let bad = || format!("its header {name} is invalid or reserved");
        let read = HeaderName::try_from(name).ok().filter(|name| !RESERVED.contains(&name.as_str()));
        let read = read.ok_or_else(bad)?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| bad())?;
        value.set_sensitive(true);
        Ok((read, value))
    };
    headers.iter().map(read).collect()
}
