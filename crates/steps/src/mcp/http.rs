//! Servers behind a URL: the SDK's transport on a client that enforces the egress rules.

use super::client::BoundedClient;
use super::limits::{MAX_MESSAGE, Verdict};
use crate::egress::Egress;
use crate::http::builder;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use stepwell_store::tls::Authorities;
use url::Url;

/// Headers that the transport sets itself.
const RESERVED: [&str; 7] =
    ["accept", "content-type", "content-length", "host", "last-event-id", "mcp-session-id", "mcp-protocol-version"];

pub struct Endpoint<'a> {
    pub url: &'a str,
    pub headers: &'a BTreeMap<String, String>,
    pub connect_timeout: Duration,
    pub authorities: &'a Authorities,
}

pub fn transport(
    server: Endpoint<'_>,
    egress: Egress,
    verdict: Arc<Verdict>,
) -> Result<StreamableHttpClientTransport<BoundedClient>, String> {
    let url = Url::parse(server.url).map_err(|error| format!("its URL is invalid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("its URL must begin with http:// or https://".into());
    }
    egress.check_url(&url).map_err(|refused| refused.to_string())?;
    // Redirects are not followed, least of all with headers that hold secrets.
    let client = builder(egress, server.connect_timeout, server.authorities).redirect(Policy::none()).build();
    let client = client.map_err(|error| format!("the HTTP client cannot be built: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = read(server.headers)?;
    config.max_sse_event_size = MAX_MESSAGE;
    Ok(StreamableHttpClientTransport::with_client(BoundedClient { http: client, verdict }, config))
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
