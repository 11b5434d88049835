//! Responses wrap what they return in `data`. The macros repeat the wrapped schema in each wrapper; here it is referred to.

use super::{reference, schemas};
use serde_json::{Map, Value};

/// Names of wrappers.
const WRAPPERS: [&str; 2] = ["Data_", "Page_"];

/// Makes every wrapper refer to the schema that it wraps.
pub fn unwrap(api: &mut Value) {
    let schemas = schemas(api);
    let wrappers: Vec<String> =
        schemas.keys().filter(|name| WRAPPERS.iter().any(|start| name.starts_with(start))).cloned().collect();
    for name in wrappers {
        let inner = name[WRAPPERS[0].len()..].to_string();
        if inner == "String" {
            continue;
        }
        let data = &mut schemas[&name]["properties"]["data"];
        let place = if data["type"] == "array" { &mut data["items"] } else { data };
        let found = std::mem::replace(place, reference(&inner));
        if found.get("$ref").is_none() {
            schemas.entry(inner).or_insert(found);
        }
    }
}

/// Names that say more than the Rust type without its suffix.
const NAMES: [(&str, &str); 9] = [
    // A class `Anchor` with a field `anchor` is more than a generator for Python can tell apart.
    ("AnchorView", "AuditAnchor"),
    ("ErrorView", "StepError"),
    ("TestView", "TestResult"),
    ("WarningsView", "CheckResult"),
    ("EffectName", "PolicyEffect"),
    ("ModeName", "PolicyMode"),
    ("PolicyVerdictName", "PolicyVerdict"),
    ("UnknownName", "UnknownOutcome"),
    ("VerdictName", "VerdictChoice"),
];

/// Names schemas after the thing, not after the Rust type that views it.
pub fn rename(api: &mut Value) {
    let old = std::mem::take(schemas(api));
    *schemas(api) = old.into_iter().map(|(name, schema)| (new_name(&name), schema)).collect::<Map<_, _>>();
    refer(api);
}

fn new_name(name: &str) -> String {
    if let Some(wrapper) = WRAPPERS.iter().find(|start| name.starts_with(**start)) {
        return format!("{wrapper}{}", new_name(&name[wrapper.len()..]));
    }
    match NAMES.iter().find(|(old, _)| *old == name) {
        Some((_, new)) => new.to_string(),
        None => name.strip_suffix("View").filter(|short| !short.is_empty()).unwrap_or(name).to_string(),
    }
}

/// The recursion is as deep as the description.
fn refer(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str().and_then(|text| text.strip_prefix("#/components/schemas/")) {
                    Some(to) if name == "$ref" => *field = format!("#/components/schemas/{}", new_name(to)).into(),
                    _ => refer(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
