//! A whole workflow definition: the graph and what surrounds it.

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
    /// Once. The input is null when none is given.
    At {
        at: Time,
        input: Value,
    },
}

/// A schedule, as it was written and checked; `formats` works out when it fires.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cron {
    pub expression: String,
    /// A name in the time zone database; without one the schedule is in UTC.
    pub timezone: Option<String>,
    /// Null when none is given.
    pub input: Value,
    pub skipped: Skipped,
    pub repeated: Repeated,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
}

/// A wall-clock time that a clock change leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skipped {
    /// At the first instant after the gap, once however many times fell into it.
    #[default]
    Run,
    Skip,
}

/// A wall-clock time that comes twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeated {
    /// Twice if the hour field has a `*`: such a schedule counts hours rather than naming them. Otherwise once.
    #[default]
    ByHour,
    /// Only the first.
    Once,
    Twice,
}

/// What to do when the run of an earlier tick has not ended.
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

/// Ticks missed while nothing ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    None,
    #[default]
    Last,
    /// The newest [`CatchUp::MOST`] of them.
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

/// How a call proves where it comes from: an HMAC-SHA256 under a shared secret.
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
    /// The signature of the body in a header, in lower case here, after a fixed prefix.
    Header { header: String, prefix: String, encoding: Encoding },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    #[default]
    Hex,
    Base64,
}

/// What tells one delivery from another: calls with the same value start one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedupe {
    /// A header, in lower case.
    Header(String),
    /// The way to a value in a JSON body.
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
