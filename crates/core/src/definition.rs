//! A whole workflow definition: the graph and what surrounds it.

use crate::graph::Graph;
use crate::template::Template;
use crate::time::{Millis, Time};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    pub description: Option<String>,
    pub triggers: Vec<Trigger>,
    pub max_duration: Millis,
    pub retention: Millis,
    pub concurrency: Option<Concurrency>,
    pub input_schema: Option<Value>,
    pub enabled: bool,
    pub expose_as_tool: bool,
    pub allow_hosts: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub graph: Graph,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Trigger {
    Api,
    /// Options are checked by the surface that receives the call.
    Webhook {
        options: Value,
    },
    Cron {
        expression: String,
        timezone: Option<String>,
        options: Value,
    },
    At(Time),
}

#[derive(Clone, Debug)]
pub struct Concurrency {
    pub limit: u32,
    /// Runs with the same key share the limit. May read only the input.
    pub key: Option<Template>,
    pub when_full: WhenFull,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    Queue,
    Skip,
    CancelOldest,
}
