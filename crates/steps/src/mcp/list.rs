//! Lists a server's tools, within limits.

use super::connect::describe;
use super::upstream::{KnownTool, Link, Upstream};
use crate::text::quoted;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ToolAnnotations};
use serde_json::Value;
use std::time::Duration;
use stepwell_engine::upstream::Offered;

const MAX_TOOLS: usize = 1_000;
const MAX_PAGES: usize = 200;
/// Maximum size of one tool with its schemas, in bytes.
const MAX_TOOL: usize = 1 << 20;
const MAX_NAME: usize = 128;

pub struct Listing {
    pub tools: Vec<KnownTool>,
    /// How long the server says this list is valid.
    pub ttl: Option<Duration>,
}

/// Reads all pages. A tool that is not acceptable is left out, and the reason is logged.
pub async fn list(upstream: &Upstream, link: &Link) -> Result<Listing, String> {
    let (mut listing, mut cursor) = (Listing { tools: Vec::new(), ttl: None }, None);
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request =
            ListToolsRequest { method: Default::default(), params: Some(params), extensions: Default::default() };
        // Not the SDK's own method: it caches, and one tool that it cannot parse would fail the whole list.
        let page =
            link.peer.send_request(ClientRequest::ListToolsRequest(request)).await.map_err(|error| describe(&error))?;
        let mut page = serde_json::to_value(page).unwrap_or_default();
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err("its list of tools is invalid".into());
        };
        for tool in tools {
            if listing.tools.len() == MAX_TOOLS {
                tracing::warn!(server = upstream.name(), "more than {MAX_TOOLS} tools; the rest are ignored");
                return Ok(listing);
            }
            match offered(upstream, tool) {
                Ok(mut tool) => {
                    hide(link, &mut tool);
                    listing.tools.push(KnownTool::new(tool));
                }
                Err(why) => tracing::warn!(server = upstream.name(), %why, "a tool is ignored"),
            }
        }
        let ttl = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
        listing.ttl = [listing.ttl, ttl].into_iter().flatten().min();
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            return Ok(listing);
        }
    }
    tracing::warn!(server = upstream.name(), "more than {MAX_PAGES} pages of tools; the rest are ignored");
    Ok(listing)
}

fn hide(link: &Link, tool: &mut Offered) {
    tool.description = link.mask.shown(&tool.description).into_owned();
    tool.title = tool.title.take().map(|title| link.mask.shown(&title).into_owned());
    link.mask.value(&mut tool.input_schema);
    tool.output_schema.iter_mut().for_each(|schema| link.mask.value(schema));
}

fn offered(upstream: &Upstream, mut tool: Value) -> Result<Offered, String> {
    let text = |tool: &Value, name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = text(&tool, "name").ok_or("it has no name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        let shown: String = name.chars().take(60).collect();
        return Err(format!("{} is not a valid tool name: 1 to {MAX_NAME} of A-Z a-z 0-9 _ . - /", quoted(&shown)));
    }
    if tool.to_string().len() > MAX_TOOL {
        return Err(format!("{name} has more than {} KB of description and schemas", MAX_TOOL / 1024));
    }
    let input_schema = tool.get_mut("inputSchema").map(Value::take).filter(Value::is_object);
    let input_schema = input_schema.ok_or_else(|| format!("{name} has no input schema"))?;
    // Normalised through the SDK's type, so that the digest does not depend on how the list was read.
    let annotations =
        tool.get("annotations").and_then(|hints| serde_json::from_value::<ToolAnnotations>(hints.clone()).ok());
    Ok(Offered {
        name: upstream.full_name(&name),
        title: text(&tool, "title"),
        description: text(&tool, "description").unwrap_or_default(),
        output_schema: tool.get_mut("outputSchema").map(Value::take).filter(Value::is_object),
        annotations: annotations.and_then(|hints| serde_json::to_value(hints).ok()),
        input_schema,
        tool: name,
    })
}
