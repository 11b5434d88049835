//! The log of a run, fact by fact.

use super::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stepwell_core::time::Time;
use stepwell_engine::commands::EventView;
use stepwell_store::StoredLog;
use utoipa::ToSchema;

/// Fields of facts that are instants.
const TIMES: [&str; 4] = ["due", "until", "expires", "escalate"];

/// One fact of a run's log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    pub run_id: String,
    /// Name of the workflow.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub workflow: String,
    /// The commit that contains it.
    pub version: i64,
    pub at: Instant,
    /// created, scheduled, due, started, entered, retrying, again, finished, skipped, ended, …
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The other fields of the fact; payloads are referenced by number.
    #[serde(flatten)]
    #[schema(ignore)]
    pub fact: Map<String, Value>,
}

/// The run that an event is about.
#[derive(Clone, Copy)]
pub struct OfRun<'a> {
    pub run: &'a str,
    /// The name of its workflow.
    pub workflow: &'a str,
}

impl Event {
    pub fn new(run: &str, event: EventView) -> Event {
        let EventView { workflow, version, at, fact } = event;
        OfRun { run, workflow: &workflow }.event(version, at.into(), fact)
    }

    /// All facts of a log row.
    pub fn of_row(of: OfRun<'_>, log: &StoredLog) -> Vec<Event> {
        let facts: Vec<Value> = serde_json::from_str(&log.row.facts).unwrap_or_default();
        facts.into_iter().map(|fact| of.event(log.version.0, log.row.at.into(), fact)).collect()
    }
}

impl OfRun<'_> {
    fn event(self, version: i64, at: Instant, fact: Value) -> Event {
        let mut fact = match fact {
            Value::Object(fact) => fact,
            _ => Map::new(),
        };
        let mut text = |name: &str| fact.shift_remove(name).and_then(|value| Some(value.as_str()?.to_string()));
        let (kind, step) = (text("type").unwrap_or_default(), text("step"));
        for name in TIMES {
            if let Some(millis) = fact.get(name).and_then(Value::as_i64) {
                fact.insert(name.into(), Time(millis).to_string().into());
            }
        }
        // Here, `version` is the version of the run.
        if let Some(version) = fact.shift_remove("version") {
            fact.insert("workflow_version".into(), version);
        }
        Event { run_id: self.run.to_string(), workflow: self.workflow.to_string(), version, at, kind, step, fact }
    }
}
