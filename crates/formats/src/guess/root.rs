//! The fields around the steps: where they are, what starts a run, the shape of its input.

use super::steps::{self, Written};
use super::words::{Names, duration, slug};
use super::{Object, add, n8n, states, step, take, take_object, take_text};
use crate::vocabulary::WORKFLOW;
use serde_json::{Value as Json, json};
use stepwell_core::nearest::nearest;

/// Objects that contain the whole definition.
const WRAPPERS: [&str; 12] = [
    "main",
    "workflow",
    "definition",
    "dag",
    "spec",
    "pipeline",
    "automation",
    "document",
    "template",
    "process",
    "graph",
    "body",
];
/// Fields that contain the steps.
const STEPS: [&str; 17] = [
    "tasks",
    "flow",
    "steps",
    "jobs",
    "actions",
    "activities",
    "stages",
    "do",
    "sequence",
    "states",
    "pipeline",
    "workflow",
    "nodes",
    "action",
    "operations",
    "plan",
    "dag",
];

/// The root as Stepwell would have it. `None` if no steps can be found.
pub fn convert(mut root: Object) -> Option<Object> {
    unwrap(&mut root);
    if root.contains_key("connections") {
        let (written, trigger) = n8n::convert(&mut root)?;
        trigger.into_iter().for_each(|trigger| add(&mut root, "trigger", trigger));
        return Some(with_tasks(root, written, Names::default()));
    }
    if root.get("nodes").is_some_and(|nodes| root.contains_key("edges") || super::canvas::is_known(nodes)) {
        super::canvas::convert(&mut root);
        return Some(around(root));
    }
    if root.contains_key("States") || root.contains_key("StartAt") {
        let flow = states::convert(&mut root)?;
        return Some(finish(root, "flow", flow));
    }
    misspelt(&mut root);
    if let Some(Json::Object(flow)) = root.get("flow").cloned()
        && !root.contains_key("tasks")
    {
        root.shift_remove("flow");
        return Some(finish(root, "flow", self::flow(flow)));
    }
    let name = STEPS.into_iter().find(|name| root.get(*name).is_some_and(holds_steps));
    let Some(name) = name else {
        let written = gitlab(&mut root)?;
        return Some(with_tasks(root, written, Names::default()));
    };
    let value = root.shift_remove(name)?;
    let written = match (name, &value) {
        ("jobs" | "stages", _) => jobs(&value),
        // One that is written as here keeps running in parallel.
        ("tasks", Json::Object(_)) => steps::collect(&value),
        (_, Json::Object(map)) => {
            let list: Vec<Json> = map.iter().map(|(name, body)| json!({name.as_str(): body})).collect();
            steps::collect(
                &if list.iter().all(|item| item.as_object().is_some_and(|o| o.values().all(Json::is_object))) {
                    Json::Array(list)
                } else {
                    value.clone()
                },
            )
        }
        _ => steps::collect(&value),
    };
    Some(with_tasks(root, written, Names::default()))
}

/// `taks` and the like.
fn misspelt(root: &mut Object) {
    if STEPS.iter().any(|name| root.contains_key(*name)) {
        return;
    }
    if root.get("start").is_some_and(Json::is_object) {
        let steps = |value: &Json| {
            value.as_object().is_some_and(|fields| super::kind::is_step(fields) || fields.contains_key("next"))
        };
        let names: Vec<String> = root.iter().filter(|(_, value)| steps(value)).map(|(name, _)| name.clone()).collect();
        let found: Object =
            names.into_iter().filter_map(|name| Some((name.clone(), root.shift_remove(&name)?))).collect();
        root.insert("flow".into(), Json::Object(found));
        return;
    }
    let near = |name: &String| Some((name.clone(), nearest(name, ["tasks", "flow", "steps"])?));
    let found = root.iter().filter(|(_, value)| value.is_object() || value.is_array()).find_map(|(name, _)| near(name));
    if let Some((written, name)) = found
        && let Some(value) = root.shift_remove(&written)
    {
        root.insert(name.into(), value);
    }
}

/// An object, or a list that is not only of names.
fn holds_steps(value: &Json) -> bool {
    value.is_object()
        || value.as_array().is_some_and(|items| {
            items.is_empty() || !items.iter().all(|item| item.as_str().is_some_and(|text| !text.contains([' ', ':'])))
        })
}

/// Takes the definition out of an object around it.
fn unwrap(root: &mut Object) {
    for _ in 0..3 {
        if STEPS
            .iter()
            .any(|name| root.get(*name).is_some_and(|v| v.is_array()) || *name == "tasks" && root.contains_key("tasks"))
        {
            return;
        }
        let holds = |value: &Json| {
            value
                .as_object()
                .is_some_and(|inner| STEPS.iter().chain(&["States", "templates"]).any(|name| inner.contains_key(*name)))
        };
        let Some(name) = WRAPPERS.into_iter().find(|name| root.get(*name).is_some_and(holds)) else { return };
        let Some(inner) = take_object(root, &[name]) else { return };
        for (name, value) in inner {
            root.entry(name).or_insert(value);
        }
    }
}

fn with_tasks(root: Object, written: Vec<Written>, mut names: Names) -> Object {
    let tasks = steps::tasks(written, &mut names);
    let mut root = root;
    if let Some(output) = take(&mut root, &["output", "outputs", "result"]) {
        root.insert("output".into(), names.value(&output));
    }
    finish(root, "tasks", tasks)
}

fn finish(root: Object, dialect: &str, steps: Object) -> Object {
    let mut out = around(root);
    for other in STEPS {
        out.shift_remove(other);
    }
    out.insert(dialect.into(), Json::Object(steps));
    out
}

/// Jobs with steps of their own run beside each other; each of their steps runs after the one before.
fn jobs(value: &Json) -> Vec<Written> {
    let mut found: Vec<Written> = Vec::new();
    let jobs = steps::collect(value);
    let single = jobs.len() == 1;
    let mut last: Vec<(Vec<String>, String)> = Vec::new();
    for job in jobs {
        let Some(fields) = job.body.as_object() else {
            found.push(job);
            continue;
        };
        let inner = ["steps", "jobs", "tasks", "actions"].iter().find_map(|name| fields.get(*name));
        let Some(inner) = inner.filter(|inner| inner.is_array() || inner.is_object()) else {
            last.push((job.names.clone(), job.names[0].clone()));
            found.push(job);
            continue;
        };
        if let Some(inner) = fields.get("jobs").filter(|_| !fields.contains_key("steps")) {
            found.extend(self::jobs(inner));
            continue;
        }
        let mut own = fields.clone();
        let needs = take(&mut own, &["needs", "depends_on", "dependsOn", "requires"]);
        let mut needs = needs.map(|needs| super::names_in(&needs)).unwrap_or_default();
        needs.extend(job.after.iter().cloned());
        let needs: Vec<String> = needs
            .iter()
            .map(|need| {
                last.iter().find(|(names, _)| names.contains(need)).map_or_else(|| need.clone(), |(_, end)| end.clone())
            })
            .collect();
        let condition = take_text(&mut own, &["if", "when"]).and_then(|text| Names::default().condition(&text));
        let mut before: Option<String> = None;
        for mut step in steps::collect(inner) {
            let name = step.names[0].clone();
            step.names.insert(0, if single { slug(&name) } else { format!("{}-{}", slug(&job.names[0]), slug(&name)) });
            if !single {
                // Steps of other jobs may have the same name.
                step.names.truncate(1);
                step.names.push(format!("{}.{name}", job.names[0]));
            }
            step.after = before.take().map_or_else(|| needs.clone(), |before| vec![before]);
            if step.after == needs {
                step.condition.clone_from(&condition);
            }
            before = Some(step.names[0].clone());
            found.push(step);
        }
        if let Some(end) = before {
            if let Some(step) = found.last_mut() {
                step.names.extend(job.names.iter().filter(|_| !single).cloned());
            }
            last.push((job.names.clone(), end));
        }
    }
    found
}

/// Jobs beside the other fields, each with a `script`, in the order of their `stages`.
fn gitlab(root: &mut Object) -> Option<Vec<Written>> {
    let stages = super::names_in(&take(root, &["stages"]).unwrap_or_default());
    let is_job = |value: &Json| {
        value.as_object().is_some_and(|job| {
            ["script", "stage", "url", "tool", "http", "run", "uses"].iter().any(|name| job.contains_key(*name))
        })
    };
    let names: Vec<String> = root.iter().filter(|(_, value)| is_job(value)).map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return None;
    }
    let stage =
        |job: &Json| job.get("stage").and_then(Json::as_str).and_then(|name| stages.iter().position(|one| one == name));
    let jobs: Vec<(String, Json)> =
        names.into_iter().filter_map(|name| Some((name.clone(), root.shift_remove(&name)?))).collect();
    let mut found = Vec::new();
    for (name, job) in &jobs {
        let mut written = Written::new(name, job.clone());
        let before =
            stage(job).and_then(|own| jobs.iter().filter_map(|(_, other)| stage(other)).filter(|at| *at < own).max());
        if job.get("needs").is_none() && before.is_some() {
            written.after =
                jobs.iter().filter(|(_, other)| stage(other) == before).map(|(name, _)| name.clone()).collect();
        }
        found.push(written);
    }
    Some(found)
}

/// A flow whose first step has another name, and whose steps have other fields.
fn flow(mut flow: Object) -> Object {
    let first = flow.keys().next().cloned().filter(|_| !flow.contains_key("start"));
    if let Some(first) = first
        && let Some(mut body) = flow.shift_remove(&first)
    {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("name".into(), first.clone().into());
        }
        let mut renamed = Object::from_iter([("start".to_string(), body)]);
        renamed.extend(flow);
        flow = renamed;
    }
    let mut names = Names::default();
    for (name, body) in &flow {
        names.add(name, body.get("name").and_then(Json::as_str).unwrap_or(name));
    }
    flow.iter().map(|(name, body)| (name.clone(), step::convert(body, &names, true))).collect()
}

/// The fields around the steps, under their names here.
pub fn around(mut root: Object) -> Object {
    let mut out = Object::new();
    let metadata = take_object(&mut root, &["metadata", "document"]).unwrap_or_default();
    let name = ["name", "title", "workflow_name", "workflowName", "id", "alias", "dag_id", "workflow", "slug", "key"];
    let name = name.iter().find_map(|name| take_text(&mut root, &[name]));
    let name = name.or_else(|| metadata.get("name").and_then(Json::as_str).map(str::to_owned));
    let name: String = name
        .unwrap_or_else(|| "my-workflow".into())
        .chars()
        .map(|c| if "/\\?#%\"<>".contains(c) || c.is_control() { '-' } else { c })
        .collect();
    let name = name.trim().trim_start_matches("wf_");
    out.insert("name".into(), if name.is_empty() { "my-workflow" } else { name }.into());
    if let Some(about) = take_text(&mut root, &["description", "Comment", "comment", "summary", "notes"]) {
        out.insert("description".into(), about.into());
    }
    let mut schema = None;
    if let Some(trigger) = trigger(&mut root, &mut schema) {
        out.insert("trigger".into(), trigger);
    }
    const INPUTS: [&str; 8] =
        ["inputs", "input_schema", "inputSchema", "parameters", "params", "input", "arguments", "args"];
    if let Some(inputs) = take(&mut root, &INPUTS).or(schema).as_ref().and_then(self::schema) {
        out.insert("input_schema".into(), inputs);
    }
    let vars = take(&mut root, &["vars", "variables", "env", "environment"]);
    if let Some(Json::Object(vars)) = vars {
        out.insert("vars".into(), Names::default().value(&Json::Object(vars)));
    }
    const LENGTHS: [(&str, &str); 7] = [
        ("timeout", "s"),
        ("timeout-minutes", "m"),
        ("timeout_minutes", "m"),
        ("timeout_seconds", "s"),
        ("TimeoutSeconds", "s"),
        ("timeoutSeconds", "s"),
        ("execution_timeout", "s"),
    ];
    for (name, unit) in LENGTHS {
        if let Some(length) = root.shift_remove(name).and_then(|value| duration(&value, unit)) {
            out.insert("max_duration".into(), length.into());
        }
    }
    concurrency(&mut root, &mut out);
    rest(root, &mut out);
    out
}

/// Fields that exist here stay, misspelt ones are renamed, and others go.
fn rest(root: Object, out: &mut Object) {
    let known: Vec<&str> = WORKFLOW.fields.iter().flat_map(|def| def.names()).collect();
    for (name, value) in root {
        let here =
            if known.contains(&name.as_str()) { Some(name.as_str()) } else { nearest(&name, known.iter().copied()) };
        match here {
            Some("labels") if !value.is_object() => {}
            Some("defaults") if value.get("run").is_some() => {}
            Some(here) if !out.contains_key(here) => drop(out.insert(here.into(), value)),
            _ => {}
        }
    }
}

fn concurrency(root: &mut Object, out: &mut Object) {
    match root.shift_remove("concurrency") {
        Some(Json::Object(mut fields)) if !fields.contains_key("limit") => {
            let limit = take(&mut fields, &["max", "max_runs", "maxConcurrency", "count", "slots"]);
            let mut made = Object::from_iter([("limit".to_string(), limit.filter(Json::is_u64).unwrap_or(json!(1)))]);
            if fields.get("cancel-in-progress") == Some(&json!(true)) {
                made.insert("when_full".into(), "cancel_oldest".into());
            }
            out.insert("concurrency".into(), Json::Object(made));
        }
        Some(Json::String(_)) => drop(out.insert("concurrency".into(), json!({"limit": 1}))),
        Some(other) => drop(out.insert("concurrency".into(), other)),
        None => {}
    }
    if let Some(limit) =
        take(root, &["max_concurrent_runs", "maxConcurrentRuns", "max_active_runs"]).filter(Json::is_u64)
    {
        out.insert("concurrency".into(), json!({"limit": limit}));
    }
}

/// What starts a run. The inputs of a manual start become `schema`.
fn trigger(root: &mut Object, schema: &mut Option<Json>) -> Option<Json> {
    let beside = ["cron", "cron_expression", "at"].iter().any(|name| root.contains_key(*name));
    let given = take(root, &["on", "trigger", "triggers"]);
    let schedule = take(root, &["schedule", "schedule_interval", "every", "interval"]);
    if let Some(Json::String(word)) = &given
        && beside
    {
        return Some(word.clone().into());
    }
    let zone = take_text(root, &["timezone", "tz", "time_zone"]);
    let mut found: Vec<Json> = Vec::new();
    match given {
        Some(Json::Array(items)) => items.iter().for_each(|item| one(item, &mut found, schema)),
        Some(other) => one(&other, &mut found, schema),
        None => {}
    }
    if let Some(cron) = schedule.as_ref().and_then(cron) {
        found.retain(|trigger| trigger != "api" && trigger != "cron");
        found.push(json!({"cron": cron}));
    }
    found.dedup();
    for trigger in found.iter_mut().filter_map(Json::as_object_mut).filter(|trigger| trigger.contains_key("cron")) {
        zone.iter().for_each(|zone| add(trigger, "timezone", zone.clone().into()));
    }
    if let (Some(zone), true) = (zone, found.is_empty()) {
        root.insert("timezone".into(), zone.into());
    }
    match found.len() {
        0 => None,
        1 => found.pop(),
        _ => Some(Json::Array(found)),
    }
}

fn one(given: &Json, found: &mut Vec<Json>, schema: &mut Option<Json>) {
    match given {
        Json::String(word) => found.push(word_of(word, given)),
        Json::Object(fields) => {
            let kind =
                ["type", "kind", "event", "platform", "source"].iter().find_map(|name| fields.get(*name)?.as_str());
            let at = fields.get("at").filter(|at| at.is_string());
            let inner = ["config", "parameters", "with", "settings"].iter().find_map(|name| fields.get(*name));
            if let Some(cron) = cron(given).or_else(|| inner.and_then(cron)) {
                let mut made = Object::from_iter([("cron".to_string(), cron.into())]);
                for name in ["timezone", "input", "overlap", "catch_up"] {
                    let value = fields.get(name).or_else(|| inner?.get(name));
                    made.extend(value.map(|value| (name.to_string(), value.clone())));
                }
                return found.push(Json::Object(made));
            }
            if let (Some(at), None) = (at, kind) {
                return found.push(json!({"at": at}));
            }
            if let Some(kind) = kind {
                return found.push(word_of(kind, given));
            }
            if fields.get("webhook").is_some_and(|value| value.get("secret").is_some() || value.get("verify").is_some())
            {
                return found.push(given.clone());
            }
            for (name, value) in fields {
                match name.as_str() {
                    "schedule" | "cron" => {
                        let items = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                        found.extend(items.iter().filter_map(cron).map(|cron| json!({"cron": cron})));
                    }
                    "inputs" => *schema = Some(value.clone()),
                    "branches" | "paths" | "types" | "path" | "method" => {}
                    _ => {
                        if let Some(inputs) = value.get("inputs") {
                            *schema = Some(inputs.clone());
                        }
                        found.push(word_of(name, value));
                    }
                }
            }
        }
        _ => {}
    }
}

fn word_of(word: &str, given: &Json) -> Json {
    match word {
        "api" | "manual" | "workflow_dispatch" | "workflow_call" | "on_demand" | "form" | "call" | "start" => {
            "api".into()
        }
        "cron" | "schedule" | "scheduled" | "time" | "time_pattern" | "timer" | "interval" => {
            cron(given).map_or_else(|| given.clone(), |cron| json!({"cron": cron}))
        }
        word if word.split_whitespace().count() == 5 => json!({"cron": word}),
        // A misspelt word is that word; any other is an event of another system.
        word => nearest(word, ["api", "manual"]).unwrap_or("webhook").into(),
    }
}

/// A cron expression from a schedule, an interval or a word.
fn cron(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => {
            let text = text.trim();
            let inner = text
                .strip_prefix("cron(")
                .or_else(|| text.strip_prefix("rate("))
                .and_then(|text| text.strip_suffix(')'));
            let text = inner.unwrap_or(text);
            let text = text.strip_prefix("every ").unwrap_or(text);
            if (5..=6).contains(&text.split_whitespace().count()) {
                return Some(text.split_whitespace().take(5).collect::<Vec<_>>().join(" ").replace('?', "*"));
            }
            match text.trim_start_matches('@') {
                "hourly" | "hour" => Some("0 * * * *".into()),
                "daily" | "day" => Some("0 0 * * *".into()),
                "weekly" | "week" => Some("0 0 * * 0".into()),
                "monthly" | "month" => Some("0 0 1 * *".into()),
                "minute" => Some("* * * * *".into()),
                _ => {
                    let length = duration(&text.into(), "s")?;
                    let (number, unit) = length.split_at(length.len() - 1);
                    let number: u32 = number.parse().ok().filter(|number| *number > 0)?;
                    match unit {
                        "m" if number < 60 => Some(format!("*/{number} * * * *")),
                        "h" if number < 24 => Some(format!("0 */{number} * * *")),
                        "d" => Some(format!("0 0 */{number} * *")),
                        _ => None,
                    }
                }
            }
        }
        Json::Object(fields) => {
            const NAMES: [&str; 8] =
                ["cron", "cron_expression", "expression", "schedule", "cronExpression", "interval", "every", "pattern"];
            NAMES.iter().find_map(|name| cron(fields.get(*name)?))
        }
        Json::Array(items) => items.iter().find_map(cron),
        _ => None,
    }
}

/// A JSON Schema from a map or list of inputs.
fn schema(inputs: &Json) -> Option<Json> {
    const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "array"];
    let kind = |word: &str| match word.to_ascii_lowercase().as_str() {
        "str" | "text" | "choice" | "secret" | "environment" | "date" | "email" => "string",
        "int" => "integer",
        "float" | "decimal" | "double" => "number",
        "bool" => "boolean",
        "list" => "array",
        "dict" | "map" | "json" => "object",
        word => TYPES.into_iter().find(|known| *known == word).unwrap_or("string"),
    };
    let mut required: Vec<String> = Vec::new();
    let mut properties = Object::new();
    let mut property = |name: &str, about: &Json| {
        let mut made = Object::new();
        match about {
            Json::String(word) => drop(made.insert("type".into(), kind(word).into())),
            Json::Object(fields) => {
                let word = fields.get("type").and_then(Json::as_str).unwrap_or("string");
                made.insert("type".into(), kind(word).into());
                for name in ["description", "default", "enum"] {
                    made.extend(fields.get(name).map(|value| (name.to_string(), value.clone())));
                }
                let options = fields.get("options").filter(|options| options.is_array());
                made.extend(options.map(|options| ("enum".to_string(), options.clone())));
                if fields.get("required") == Some(&json!(true)) {
                    required.push(name.to_owned());
                }
            }
            _ => {}
        }
        properties.insert(name.to_owned(), Json::Object(made));
    };
    match inputs {
        Json::Bool(_) => return Some(inputs.clone()),
        Json::Object(fields)
            if fields.contains_key("properties") || fields.get("type").is_some_and(|kind| kind == "object") =>
        {
            return Some(inputs.clone());
        }
        Json::Object(fields) => fields.iter().for_each(|(name, about)| property(name, about)),
        Json::Array(items) => {
            for item in items {
                let name = item.as_str().or_else(|| item.get("name").or_else(|| item.get("id"))?.as_str());
                name.into_iter().for_each(|name| property(name, item.as_object().map_or(&Json::Null, |_| item)));
            }
        }
        _ => return None,
    }
    let mut made = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        made["required"] = json!(required);
    }
    Some(made)
}
