//! Events as a tagged union: one schema for each type of fact. Facts are stored by the planner, which knows no schemas,
//! so a test compares this table with a sample of each fact.

use super::{operations, reference, schemas};
use serde_json::{Map, Value, json};

/// A fact: its type, when it happens, and its fields as `name:type`, with `?` for those that may be missing.
type Fact = (&'static str, &'static str, &'static str);

const FACTS: [Fact; 22] = [
    (
        "created",
        "The run was created",
        "input:value headers?:value query?:value by:text client?:text seed:count max_duration_ms:count",
    ),
    ("scheduled", "The run begins at `due`", "due:instant"),
    ("due", "The time of a scheduled run has come", ""),
    ("started", "The run left the queue", "expires:instant vars?:value"),
    (
        "entered",
        "The step was entered and waits for something",
        "step:text attempt:count input?:value wait:WaitKind until?:maybe-instant escalate?:maybe-instant count?:maybe-count",
    ),
    (
        "retrying",
        "An attempt ended without success; another follows at `due`",
        "step:text attempt:count due:instant failure:EventFailure output?:EventOutput note?:value",
    ),
    ("again", "Another attempt begins", "step:text attempt:count reason:AgainReason until?:instant"),
    (
        "held",
        "The call is not made, or does not continue, until someone approves it",
        "step:text attempt:count ask:value until?:instant note?:value",
    ),
    ("unsure", "Whether the call happened is unknown; a person decides", "step:text attempt:count"),
    ("opened", "A loop started a pass, or a for_each an item", "step:text index:count"),
    ("closed", "A pass or an item ended", "step:text index:count end:EndStatus result?:value"),
    (
        "finished",
        "The step ended",
        "step:text attempt:count status:StepStatus exit:text output?:EventOutput variable?:value failure?:EventFailure",
    ),
    ("skipped", "The step was skipped", "step:text exit:text reason:SkipReason"),
    ("kept", "A message arrived before its step was entered", "step:text message:value truncated?:flag"),
    ("approved", "One of several people approved", "step:text by:text answer:value"),
    ("changed", "An approver changed a held call; the request is a new one", "step:text by:text ask:value input:value"),
    ("escalated", "The gate asks further people", "step:text until?:instant"),
    ("overridden", "A user set the result of the step", "step:text attempt:count by:text comment?:text"),
    ("ended", "The run ended", "status:RunStatus output?:value failure?:EventFailure by?:text"),
    (
        "retried",
        "The run continues after its end",
        "by:text acts?:text expires:instant reset:steps reopened:steps vars?:value",
    ),
    (
        "adopted",
        "The run continues under a newer version",
        "by:text acts?:text expires:instant workflow_version:count max_duration_ms:count stands:steps vars?:value",
    ),
    ("end", "The last event of a stream: the run has ended", "status:RunStatus"),
];

/// The event that streams end with. It is no fact, so the log does not have it.
const END: &str = "end";

pub fn add(api: &mut Value) {
    let schemas = schemas(api);
    for (kind, about, fields) in FACTS {
        schemas.insert(schema_name(kind), fact(kind, about, fields));
    }
    let failure =
        "kind:FailureKind code:text message:text retryable?:flag may_have_happened?:flag retry_after_ms?:count";
    schemas.insert("EventFailure".into(), object("Why an attempt failed", failure));
    let output = "body:value headers?:value status_code?:count truncated?:flag log?:value";
    schemas.insert("EventOutput".into(), object("The result of a call; payloads are referenced by number", output));
    let set = |names: Vec<&str>, about: &str| json!({"type": "string", "description": about, "enum": names});
    let kinds = FACTS.iter().map(|(kind, ..)| *kind).filter(|kind| *kind != END).collect();
    schemas.insert("EventType".into(), set(kinds, "Type of an event"));
    for (name, all) in sets() {
        schemas.insert(name.into(), set(all.split(' ').collect(), ""));
    }
    schemas.insert("Event".into(), union("One fact of a run's log", |kind| kind != END));
    schemas.insert("StreamEvent".into(), union("An event of a stream: a fact, or the end of the run", |_| true));
    for (_, one) in operations(api) {
        let streamed = one["responses"].pointer_mut("/200/content/text~1event-stream/schema");
        if let Some(schema) = streamed {
            *schema = reference("StreamEvent");
        }
    }
}

/// Sets that only events use.
fn sets() -> [(&'static str, &'static str); 5] {
    [
        ("WaitKind", "executor sleep webhook gate child scope"),
        ("AgainReason", "retry worker_lost worker_stopped asked approved deferred"),
        ("EndStatus", "success denied failed"),
        ("SkipReason", "condition not_taken upstream_failed"),
        ("FailureKind", "error network timeout"),
    ]
}

fn schema_name(kind: &str) -> String {
    let (first, rest) = kind.split_at(1);
    if kind == END { "StreamEndEvent".into() } else { format!("{}{rest}Event", first.to_ascii_uppercase()) }
}

fn union(about: &str, wanted: impl Fn(&str) -> bool) -> Value {
    let kinds: Vec<&str> = FACTS.iter().map(|(kind, ..)| *kind).filter(|kind| wanted(kind)).collect();
    let mapping: Map<String, Value> =
        kinds.iter().map(|kind| (kind.to_string(), reference(&schema_name(kind))["$ref"].take())).collect();
    json!({
        "description": about,
        "oneOf": kinds.iter().map(|kind| reference(&schema_name(kind))).collect::<Vec<_>>(),
        "discriminator": {"propertyName": "type", "mapping": mapping},
    })
}

fn fact(kind: &str, about: &str, fields: &str) -> Value {
    let place = if kind == END { "" } else { " at:instant" };
    let mut schema = object(about, &format!("run_id:text workflow?:text version:count{place} type:text {fields}"));
    schema["properties"]["type"] = json!({"type": "string", "const": kind});
    schema
}

fn object(about: &str, fields: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, kind) in fields.split(' ').filter_map(|field| field.split_once(':')) {
        let plain = name.trim_end_matches('?');
        if plain == name {
            required.push(plain);
        }
        properties.insert(plain.into(), typed(kind));
    }
    json!({"type": "object", "description": about, "properties": properties, "required": required})
}

fn typed(kind: &str) -> Value {
    match kind {
        "text" => json!({"type": "string"}),
        "flag" => json!({"type": "boolean"}),
        "count" => json!({"type": "integer", "format": "int64", "minimum": 0}),
        "maybe-count" => json!({"type": ["integer", "null"], "format": "int64", "minimum": 0}),
        "value" => json!({"type": "integer", "format": "int64", "description": "Number of a payload", "minimum": 0}),
        "instant" => reference("Instant"),
        "maybe-instant" => json!({"oneOf": [{"type": "null"}, reference("Instant")]}),
        "steps" => json!({"type": "array", "items": {"type": "string"}, "description": "Paths of steps"}),
        name => reference(name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::description;
    use super::*;
    use crate::view::{Event, OfRun};
    use std::collections::BTreeSet;
    use stepwell_core::run::StoredFact;
    use stepwell_core::time::Time;
    use stepwell_store::{LogRow, Position, StoredLog, Version};

    /// A sample of each fact with every field, as the log stores it.
    const SAMPLES: [&str; 25] = [
        r#"{"type":"created","input":0,"headers":1,"query":2,"by":"ann","client":"bot 1","seed":7,"max_duration":1000}"#,
        r#"{"type":"scheduled","due":5}"#,
        r#"{"type":"due"}"#,
        r#"{"type":"started","expires":5,"vars":3}"#,
        r#"{"type":"entered","step":"a","attempt":1,"input":4,"wait":"executor"}"#,
        r#"{"type":"entered","step":"a","attempt":1,"wait":"sleep","until":5}"#,
        r#"{"type":"entered","step":"a","attempt":1,"wait":"gate","until":null,"escalate":6}"#,
        r#"{"type":"entered","step":"a","attempt":1,"wait":"webhook","until":null}"#,
        r#"{"type":"entered","step":"a","attempt":1,"wait":"scope","count":2}"#,
        r#"{"type":"retrying","step":"a","attempt":1,"due":5,"failure":{"kind":"network","code":"x","message":"y",
            "retryable":true,"may_have_happened":true,"retry_after":3},"output":{"body":1,"headers":2,"status_code":500,
            "truncated":true,"log":3},"note":4}"#,
        r#"{"type":"again","step":"a","attempt":2,"reason":"worker_lost","until":5}"#,
        r#"{"type":"held","step":"a","attempt":1,"ask":5,"until":6,"note":7}"#,
        r#"{"type":"unsure","step":"a","attempt":1}"#,
        r#"{"type":"opened","step":"a","index":0}"#,
        r#"{"type":"closed","step":"a","index":0,"end":"denied","result":3}"#,
        r#"{"type":"finished","step":"a","attempt":1,"status":"template_error","exit":"error","output":{"body":1},
            "variable":2,"failure":{"kind":"error","code":"x","message":"y"}}"#,
        r#"{"type":"skipped","step":"a","exit":"untaken","reason":"not_taken"}"#,
        r#"{"type":"kept","step":"a","message":1,"truncated":true}"#,
        r#"{"type":"approved","step":"a","by":"ann","answer":1}"#,
        r#"{"type":"changed","step":"a","by":"ann","ask":5,"input":6}"#,
        r#"{"type":"escalated","step":"a","until":5}"#,
        r#"{"type":"overridden","step":"a","attempt":1,"by":"ann","comment":"c"}"#,
        r#"{"type":"ended","status":"failed","output":1,"failure":{"kind":"timeout","code":"x","message":"y"},"by":"ann"}"#,
        r#"{"type":"retried","by":"ann","acts":"bob","expires":5,"reset":["a"],"reopened":["b"],"vars":1}"#,
        r#"{"type":"adopted","by":"ann","acts":"bob","expires":5,"version":2,"max_duration":6,"stands":["a"],"vars":1}"#,
    ];

    /// A fact without a type here does not compile: add it to the table, and a sample.
    fn placed(fact: &StoredFact) -> &'static str {
        match fact {
            StoredFact::Created { .. } => "created",
            StoredFact::Scheduled { .. } => "scheduled",
            StoredFact::Due => "due",
            StoredFact::Started { .. } => "started",
            StoredFact::Entered { .. } => "entered",
            StoredFact::Retrying { .. } => "retrying",
            StoredFact::Again { .. } => "again",
            StoredFact::Held { .. } => "held",
            StoredFact::Unsure { .. } => "unsure",
            StoredFact::Opened { .. } => "opened",
            StoredFact::Closed { .. } => "closed",
            StoredFact::Finished { .. } => "finished",
            StoredFact::Skipped { .. } => "skipped",
            StoredFact::Kept { .. } => "kept",
            StoredFact::Approved { .. } => "approved",
            StoredFact::Changed { .. } => "changed",
            StoredFact::Escalated { .. } => "escalated",
            StoredFact::Overridden { .. } => "overridden",
            StoredFact::Ended { .. } => "ended",
            StoredFact::Retried { .. } => "retried",
            StoredFact::Adopted { .. } => "adopted",
        }
    }

    /// The fields of an object and of the objects in it, without optional steps in between.
    fn fields(value: &Value) -> BTreeSet<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn each_fact_has_the_fields_that_its_schema_lists() {
        let schemas = &description()["components"]["schemas"];
        let mut seen: std::collections::BTreeMap<&str, BTreeSet<String>> = Default::default();
        for sample in SAMPLES {
            let stored: StoredFact = serde_json::from_str(sample).unwrap();
            // Every field of the sample is one that the planner knows.
            let again = serde_json::to_value(&stored).unwrap();
            assert_eq!(fields(&again), fields(&serde_json::from_str(sample).unwrap()), "{sample}");
            let row = LogRow { at: Time(0), facts: format!("[{again}]"), payloads: String::new(), hash: [0; 32] };
            let log = StoredLog { version: Version(3), position: Position::new(0, 70), row };
            let event = &Event::of_row(OfRun { run: "run_1", workflow: "w" }, &log)[0];
            assert_eq!(event.stored(), again, "it is read back as it was stored");
            let event = serde_json::to_value(event).unwrap();
            let schema = &schemas[schema_name(placed(&stored))];
            let known = fields(&schema["properties"]);
            assert!(fields(&event).is_subset(&known), "{event:#} {known:?}");
            for required in schema["required"].as_array().unwrap() {
                assert!(event.get(required.as_str().unwrap()).is_some(), "{required} of {event:#}");
            }
            for time in ["expires", "due", "until", "escalate"] {
                assert!(event.get(time).is_none_or(|at| at.is_null() || at.is_string()), "{event:#}");
            }
            for (part, name) in [("failure", "EventFailure"), ("output", "EventOutput")] {
                let known = fields(&schemas[name]["properties"]);
                assert!(!event[part].is_object() || fields(&event[part]).is_subset(&known), "{event:#}");
            }
            seen.entry(placed(&stored)).or_default().extend(fields(&event));
        }
        for (kind, _, _) in FACTS.iter().filter(|(kind, ..)| *kind != END) {
            assert_eq!(
                seen[kind],
                fields(&schemas[schema_name(kind)]["properties"]),
                "{kind}: samples and table differ"
            );
        }
    }
}
