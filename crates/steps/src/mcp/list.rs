//! Lists a server's tools, within limits.

use super::connect::describe;
use super::limits::{MAX_DESCRIPTION, MAX_HELD, MAX_LIST, MAX_PAGES, MAX_SCHEMA, MAX_TITLE, MAX_TOOL, MAX_TOOLS};
use super::upstream::{KnownTool, Link, Upstream};
use crate::text::quoted;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ToolAnnotations};
use serde_json::Value;
use std::time::Duration;
use stepwell_core::unseen::escaped;
use stepwell_engine::upstream::{Held, Offered};

const MAX_NAME: usize = 128;

#[derive(Default)]
pub struct Listing {
    pub tools: Vec<KnownTool>,
    /// Tools that are not acceptable.
    pub held: Vec<Held>,
    /// How long the server says this list is valid.
    pub ttl: Option<Duration>,
    bytes: usize,
}

impl Listing {
    /// Adds a tool to those that cannot be called, with the reason.
    pub fn hold(&mut self, upstream: &Upstream, tool: &str, why: String) {
        tracing::warn!(server = upstream.name(), tool, %why, "a tool is held");
        if self.held.len() < MAX_HELD {
            self.held.push(Held { name: upstream.full_name(tool), tool: tool.to_owned(), why });
        }
    }

    fn add(&mut self, upstream: &Upstream, link: &Link, tool: Value) -> Result<(), String> {
        let size = tool.to_string().len();
        self.bytes += size;
        if self.tools.len() + self.held.len() >= MAX_TOOLS {
            return Err(format!("it offers more than {MAX_TOOLS} tools"));
        }
        if self.bytes > MAX_LIST {
            return Err(format!("its list of tools is larger than {} MB", MAX_LIST >> 20));
        }
        let shown: String = tool.get("name").and_then(Value::as_str).unwrap_or_default().chars().take(60).collect();
        match offered(upstream, tool, size) {
            Ok(mut tool) => {
                hide(link, &mut tool);
                self.tools.push(KnownTool::new(tool));
            }
            Err(why) => self.hold(upstream, &escaped(&shown), why),
        }
        Ok(())
    }
}

/// Reads all pages. A tool that is not acceptable is held, with the reason; a list over its limits is an error.
pub async fn list(upstream: &Upstream, link: &Link) -> Result<Listing, String> {
    let (mut listing, mut cursor) = (Listing::default(), None);
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
            listing.add(upstream, link, tool)?;
        }
        let ttl = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis);
        listing.ttl = [listing.ttl, ttl].into_iter().flatten().min();
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            return Ok(listing);
        }
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages"))
}

fn hide(link: &Link, tool: &mut Offered) {
    tool.description = link.mask.shown(&tool.description).into_owned();
    tool.title = tool.title.take().map(|title| link.mask.shown(&title).into_owned());
    link.mask.value(&mut tool.input_schema);
    tool.output_schema.iter_mut().for_each(|schema| link.mask.value(schema));
}

fn offered(upstream: &Upstream, mut tool: Value, size: usize) -> Result<Offered, String> {
    let text = |tool: &Value, name: &str| tool.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = text(&tool, "name").ok_or("it has no name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        let shown: String = name.chars().take(60).collect();
        let shown = quoted(&escaped(&shown));
        return Err(format!("{shown} is not a valid tool name: 1 to {MAX_NAME} of A-Z a-z 0-9 _ . - /"));
    }
    let input_schema = tool.get_mut("inputSchema").map(Value::take).filter(Value::is_object);
    let input_schema = input_schema.ok_or("it has no input schema")?;
    let output_schema = tool.get_mut("outputSchema").map(Value::take).filter(Value::is_object);
    let (title, description) = (text(&tool, "title"), text(&tool, "description").unwrap_or_default());
    let length = |schema: &Value| schema.to_string().len();
    let parts = [
        ("title", title.as_deref().map_or(0, str::len), MAX_TITLE),
        ("description", description.len(), MAX_DESCRIPTION),
        ("input schema", length(&input_schema), MAX_SCHEMA),
        ("output schema", output_schema.as_ref().map_or(0, length), MAX_SCHEMA),
        ("definition", size, MAX_TOOL),
    ];
    if let Some((part, size, limit)) = parts.into_iter().find(|(_, size, limit)| size > limit) {
        return Err(format!("its {part} has {size} bytes; the limit is {limit}"));
    }
    // Normalised through the SDK's type, so that the digest does not depend on how the list was read.
    let annotations =
        tool.get("annotations").and_then(|hints| serde_json::from_value::<ToolAnnotations>(hints.clone()).ok());
    Ok(Offered {
        name: upstream.full_name(&name),
        title,
        description,
        output_schema,
        annotations: annotations.and_then(|hints| serde_json::to_value(hints).ok()),
        input_schema,
        tool: name,
    })
}
