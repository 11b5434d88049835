//! The log of a run, fact by fact.

use super::Instant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stepwell_core::time::Time;
use stepwell_engine::commands::EventView;
use stepwell_store::StoredLog;
use utoipa::ToSchema;

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
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The other fields of the fact; payloads are referenced by number.
    #[serde(flatten)]
    #[schema(ignore)]
    pub fact: Map<String, Value>,
}

/// Fields that are instants. The log has them as numbers.
const INSTANTS: [&str; 4] = ["expires", "due", "until", "escalate"];
/// Fields with other names in the log: durations are named after their unit, and `version` is the version of the run.
const RENAMED: [(&str, &str); 2] = [("max_duration", "max_duration_ms"), ("version", "workflow_version")];
const RENAMED_IN_FAILURE: (&str, &str) = ("retry_after", "retry_after_ms");

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.shift_remove(from) {
        fields.insert(to.into(), value);
    }
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

    /// The fact as the log stores it.
    pub fn stored(&self) -> Value {
        let mut fact = Map::from_iter([("type".to_string(), Value::from(self.kind.clone()))]);
        fact.extend(self.step.iter().map(|step| ("step".to_string(), Value::from(step.clone()))));
        fact.extend(self.fact.clone());
        for (stored, shown) in RENAMED {
            rename(&mut fact, shown, stored);
        }
        for name in INSTANTS {
            if let Some(at) = fact.get_mut(name)
                && let Some(time) = at.as_str().and_then(Time::parse)
            {
                *at = time.0.into();
            }
        }
        if let Some(Value::Object(failure)) = fact.get_mut("failure") {
            rename(failure, RENAMED_IN_FAILURE.1, RENAMED_IN_FAILURE.0);
        }
        Value::Object(fact)
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
        for (stored, shown) in RENAMED {
            rename(&mut fact, stored, shown);
        }
        for name in INSTANTS {
            if let Some(at) = fact.get_mut(name)
                && let Some(time) = at.as_i64()
            {
                *at = Value::String(Time(time).to_string());
            }
        }
        if let Some(Value::Object(failure)) = fact.get_mut("failure") {
            rename(failure, RENAMED_IN_FAILURE.0, RENAMED_IN_FAILURE.1);
        }
        Event { run_id: self.run.to_string(), workflow: self.workflow.to_string(), version, at, kind, step, fact }
    }
}
