//! A complete workflow definition: the graph, its triggers and its settings.

use crate::graph::Graph;
use crate::template::Template;
use crate::time::{Millis, Time};
use serde::Serialize;
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

/// What starts runs. The engine stores its JSON to notice when a new version changes it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    Api,
    Webhook(Webhook),
    Cron(Cron),
    /// Runs once. The input is null if none is given.
    At {
        at: Time,
        input: Value,
    },
}

/// A schedule as written, after validation; `formats` computes when it fires.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cron {
    pub expression: String,
    /// A name in the time zone database; `None` means UTC.
    pub timezone: Option<String>,
    /// Null if none is given.
    pub input: Value,
    pub skipped: Skipped,
    pub repeated: Repeated,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
}

/// What to do with a wall-clock time that a clock change skips.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// Fires at the first instant after the gap, once for all times in the gap.
    #[default]
    Run,
    Skip,
}

/// What to do with a wall-clock time that occurs twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeated {
    /// Fires twice if the hour field contains `*`, because such a schedule counts hours rather than naming them;
    /// otherwise once.
    #[default]
    ByHour,
    /// Fires only the first time.
    Once,
    Twice,
}

/// What to do if the run of an earlier tick has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    Allow,
    /// The new tick starts nothing.
    Skip,
    /// The earlier run is cancelled.
    Cancel,
}

/// What to do with ticks missed during downtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    None,
    #[default]
    Last,
    /// The newest [`CatchUp::MOST`] missed ticks.
    All,
}

impl CatchUp {
    pub const MOST: usize = 100;
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Webhook {
    pub verify: Option<Verify>,
    pub dedupe: Option<Dedupe>,
}

/// How a call is authenticated: an HMAC-SHA256 with a shared secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verify {
    /// The name of the secret, never the secret itself.
    pub secret: String,
    pub scheme: Scheme,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`.
    Standard,
    /// The signature of the body, in a header, after a fixed prefix. The header name is stored in lower case.
    Header { header: String, prefix: String, encoding: Encoding },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    #[default]
    Hex,
    Base64,
}

/// The deduplication key: calls with the same value start one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedupe {
    /// A header name, in lower case.
    Header(String),
    /// The path of a value in a JSON body.
    Body(Vec<String>),
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
