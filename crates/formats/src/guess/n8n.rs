//! Nodes with connections, as n8n exports them.

use super::steps::Written;
use super::words::Names;
use super::{Object, take};
use serde_json::{Value as Json, json};

/// The steps, and the trigger. `None` if these are not nodes with connections.
pub fn convert(root: &mut Object) -> Option<(Vec<Written>, Option<Json>)> {
    if !root.get("connections").is_some_and(Json::is_object) {
        return None;
    }
    let nodes = take(root, &["nodes"])?;
    let connections = take(root, &["connections"]).unwrap_or_default();
    for name in ["settings", "active", "meta", "pinData", "staticData", "versionId"] {
        root.shift_remove(name);
    }
    let (mut steps, mut trigger, mut starts) = (Vec::new(), None, Vec::new());
    for node in nodes.as_array()?.iter().filter_map(Json::as_object) {
        let name = node.get("name").or_else(|| node.get("id"))?.as_str()?;
        let kind = node.get("type").and_then(Json::as_str).unwrap_or_default();
        let short = kind.rsplit_once('.').map_or(kind, |(_, short)| short);
        let parameters = node.get("parameters").and_then(Json::as_object).cloned().unwrap_or_default();
        if short.ends_with("rigger") || matches!(short, "webhook" | "start" | "cron") {
            starts.push(name.to_owned());
            trigger = trigger.or_else(|| Some(triggered(short, &parameters)));
            continue;
        }
        steps.push(step(name, short, parameters));
    }
    for (from, outputs) in connections.as_object()?.iter().filter(|(from, _)| !starts.contains(from)) {
        let test =
            steps.iter().find(|step: &&Written| step.names[0] == **from).and_then(|step| step.body.get("condition"));
        let chooses = test.is_some();
        for (n, targets) in outputs.get("main").and_then(Json::as_array).into_iter().flatten().enumerate() {
            for target in targets.as_array().into_iter().flatten().filter_map(|target| target.get("node")?.as_str()) {
                let Some(step) = steps.iter_mut().find(|step| step.names[0] == target) else { continue };
                step.after.push(from.clone());
                if chooses {
                    let name = super::words::slug(from);
                    step.condition = Some(format!("tasks.{name}.body == '{}'", if n == 0 { "true" } else { "false" }));
                }
            }
        }
    }
    Some((steps, trigger))
}

fn triggered(kind: &str, parameters: &Object) -> Json {
    match kind {
        "webhook" | "formTrigger" => "webhook".into(),
        "scheduleTrigger" | "cron" => {
            let text = Json::Object(parameters.clone()).to_string();
            let expression = text.split('"').find(|part| {
                part.split(' ').count() == 5 && part.starts_with(|c: char| c == '*' || c.is_ascii_digit())
            });
            json!({"cron": expression.unwrap_or("0 * * * *")})
        }
        _ => "api".into(),
    }
}

fn step(name: &str, kind: &str, mut parameters: Object) -> Written {
    let body = match kind {
        "httpRequest" => {
            for (list, field) in
                [("headerParameters", "headers"), ("queryParameters", "query"), ("bodyParameters", "body")]
            {
                if let Some(Json::Object(inner)) = parameters.shift_remove(list) {
                    let items = inner.get("parameters").and_then(Json::as_array).cloned().unwrap_or_default();
                    let entry =
                        |item: &Json| Some((item.get("name")?.as_str()?.to_owned(), item.get("value")?.clone()));
                    let map: Object = items.iter().filter_map(entry).collect();
                    parameters.insert(field.into(), Json::Object(map));
                }
            }
            parameters.retain(|name, _| !name.starts_with("send") && name != "options" && name != "responseFormat");
            parameters.insert("type".into(), "http".into());
            Json::Object(parameters)
        }
        "if" | "switch" | "filter" => {
            let test = test(&Json::Object(parameters)).unwrap_or_else(|| "true".into());
            json!({"condition": [{"id": "true", "if": test}, {"id": "false"}]})
        }
        "code" | "function" | "functionItem" => {
            let code = take(&mut parameters, &["jsCode", "functionCode", "code"]).unwrap_or_default();
            json!({"javascript": code})
        }
        "wait" => {
            let (amount, unit) = (parameters.get("amount").cloned(), parameters.get("unit").cloned());
            json!({"type": "sleep", "duration": amount.unwrap_or(json!(1)), "unit": unit.unwrap_or("minutes".into())})
        }
        _ => json!({"tool": kind, "args": parameters}),
    };
    Written::new(name, body)
}

/// The first comparison in the parameters of an IF node.
fn test(value: &Json) -> Option<String> {
    match value {
        Json::Object(fields) => {
            let sides = fields
                .get("leftValue")
                .or_else(|| fields.get("value1"))
                .zip(fields.get("rightValue").or_else(|| fields.get("value2")));
            if let Some((left, right)) = sides {
                let operation =
                    fields.get("operator").or_else(|| fields.get("operation")).map(Json::to_string).unwrap_or_default();
                let sign = match operation.as_str() {
                    text if text.contains("notEqual") => "!=",
                    text if text.contains("largerEqual") || text.contains("gte") => ">=",
                    text if text.contains("smallerEqual") || text.contains("lte") => "<=",
                    text if text.contains("larger") || text.contains("gt") => ">",
                    text if text.contains("smaller") || text.contains("lt") => "<",
                    _ => "==",
                };
                let left = left.as_str().unwrap_or_default();
                let left = Names::default().condition(left)?;
                return Some(format!("{left} {sign} {right}"));
            }
            fields.values().find_map(test)
        }
        Json::Array(items) => items.iter().find_map(test),
        _ => None,
    }
}
