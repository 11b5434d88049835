//! A client of the MCP server, over HTTP, of the newest revision.

use crate::harness::{Answer, Api, eventually};
use serde_json::{Value, json};

const META: &str = "io.modelcontextprotocol";

/// A client of the newest revision, and what it can do.
pub struct Agent {
    pub api: Api,
    pub capabilities: Value,
}

impl Agent {
    pub fn plain(api: &Api) -> Agent {
        Agent { api: api.clone(), capabilities: json!({}) }
    }

    /// It knows tasks and puts questions to its user.
    pub fn able(api: &Api) -> Agent {
        let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        Agent { api: api.clone(), capabilities }
    }

    pub fn send(&self, method: &str, mut params: Value) -> Answer {
        params["_meta"] = json!({format!("{META}/protocolVersion"): "2026-07-28",
            format!("{META}/clientCapabilities"): self.capabilities,
            format!("{META}/clientInfo"): {"name": "bot", "version": "1.0"}});
        let name = ["name", "uri", "taskId"].iter().find_map(|field| params[field].as_str()).map(str::to_string);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", name.as_deref().unwrap_or_default()),
        ];
        self.api.send("POST", "/mcp", &headers, Some(body.to_string().into()))
    }

    #[track_caller]
    pub fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.send(method, params).is(200).json();
        assert!(answer.get("error").is_none(), "{answer:#}");
        answer["result"].clone()
    }

    #[track_caller]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// What a call gives that works.
    #[track_caller]
    pub fn done(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result:#}");
        result["structuredContent"].clone()
    }

    /// What a call says that does not.
    #[track_caller]
    pub fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result:#}");
        result["content"][0]["text"].as_str().unwrap().to_string()
    }

    #[track_caller]
    pub fn tools(&self) -> Vec<String> {
        let tools = self.ask("tools/list", json!({}))["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect()
    }

    /// The task once it has this status.
    #[track_caller]
    pub fn task(&self, id: &str, status: &str) -> Value {
        let look = || Some(self.ask("tasks/get", json!({"taskId": id}))).filter(|task| task["status"] == status);
        eventually(status, look)
    }
}
