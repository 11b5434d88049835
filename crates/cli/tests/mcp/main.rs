//! Third-party MCP servers behind the real binary: their tools in workflows and offered to agents, under rights and
//! policies.
//!
//! `scripts/mcp-install.sh` installs what they are made with.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../server/agent.rs"]
mod agent;
mod pins;
mod privilege;
mod proxied;
// Shared with the server's own suite, which uses more of it.
#[allow(dead_code)]
#[path = "../server/harness.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../server/outside.rs"]
mod outside;
mod seeds;
mod shadowing;
mod waits;

use harness::{Api, Installation, Server, eventually};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The interpreter that has the official SDK.
pub fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let python = target.join("mcp-python/bin/python");
    assert!(python.exists(), "{} is not there: run scripts/mcp-install.sh", python.display());
    python
}

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/mcp").join(name)
}

/// A server of the configuration that is started as a program.
pub fn program(name: &str, more: Value) -> Value {
    let mut server = json!({"command": python(), "args": [script(name)]});
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server
}

/// The real server with these MCP servers, once it is connected to all of them.
pub fn serve(servers: &Value) -> (Installation, Server) {
    let place = Installation::new().config(&json!({"mcpServers": servers}).to_string());
    let server = again(&place, servers);
    (place, server)
}

/// The same once more, on what is there.
pub fn again(place: &Installation, servers: &Value) -> Server {
    let server = place.serve();
    servers.as_object().unwrap().keys().for_each(|name| connected(&server.api, name));
    server
}

#[track_caller]
pub fn connected(api: &Api, name: &str) {
    eventually(&format!("{name} connected"), || {
        let known = api.get(&format!("/api/v1/mcp-servers/{name}")).is(200).data();
        (known["state"] == "ready").then_some(())
    });
}

/// How each tool of a server stands.
#[track_caller]
pub fn standing(api: &Api, server: &str, tool: &str) -> String {
    let known = api.get(&format!("/api/v1/mcp-servers/{server}")).is(200).data();
    let tools = known["tools"].as_array().unwrap();
    let found = tools.iter().find(|known| known["tool"] == tool).unwrap_or_else(|| panic!("{tool} in {known:#}"));
    found["standing"].as_str().unwrap().to_string()
}

/// A workflow of one call.
pub fn calling(name: &str, tool: &str, args: Value) -> Value {
    json!({"name": name, "tasks": {"call": {"tool": tool, "args": args, "retries": 0}}})
}
