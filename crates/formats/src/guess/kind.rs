//! What a step does: the words that other systems have for it, and the fields that go with them.

use super::http::SETTINGS;
use super::step::{arguments, as_arguments, flatten, leftovers};
use super::words::{Names, duration};
use super::{Object, add, http, names_in, steps, take, take_object, take_text};
use crate::kinds::TYPES;
use serde_json::{Value as Json, json};

/// Fields that say of what type a step is.
const TYPE_FIELDS: [&str; 13] = [
    "type",
    "kind",
    "step_type",
    "stepType",
    "taskType",
    "task_type",
    "nodeType",
    "action",
    "operator",
    "call",
    "provider",
    "activity",
    "uses",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Http,
    Gate,
    Sleep,
    Code,
    Query,
    Each,
    Child,
    Condition,
    Webhook,
    Tool,
}

fn type_of(word: &str) -> Option<Type> {
    let word = word.rsplit_once("n8n-nodes-base.").map_or(word, |(_, word)| word);
    let word: String = word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_ascii_lowercase();
    let any = |words: &[&str]| words.contains(&word.as_str());
    Some(match () {
        () if any(&[
            "webhookwait",
            "waitforwebhook",
            "waitforevent",
            "waitforsignal",
            "callback",
            "event",
            "signal",
        ]) =>
        {
            Type::Webhook
        }
        () if word.contains("http")
            || any(&["request", "api", "apicall", "rest", "fetch", "webhook", "url", "get", "post"]) =>
        {
            Type::Http
        }
        () if word.contains("approv")
            || word.contains("human")
            || any(&["manual", "gate", "usertask", "confirm", "review"]) =>
        {
            Type::Gate
        }
        () if any(&["sleep", "wait", "delay", "timer", "pause", "waituntil"]) => Type::Sleep,
        () if any(&[
            "javascript",
            "js",
            "code",
            "function",
            "transform",
            "node",
            "set",
            "inline",
            "eval",
            "lambda",
            "map",
        ]) || word.contains("javascript") =>
        {
            Type::Code
        }
        () if any(&["sql", "query", "database", "postgres", "sqlite", "mysql", "db", "dataquery", "dbquery"]) => {
            Type::Query
        }
        () if any(&["foreach", "loop", "iterator", "each", "splitinbatches", "iterate"]) => Type::Each,
        () if any(&[
            "workflow",
            "subworkflow",
            "childworkflow",
            "callworkflow",
            "runworkflow",
            "subflow",
            "executeworkflow",
        ]) =>
        {
            Type::Child
        }
        () if any(&["condition", "if", "switch", "branch", "choice", "decision", "router", "conditional"]) => {
            Type::Condition
        }
        () if any(&[
            "tool",
            "mcp",
            "mcptool",
            "functioncall",
            "toolcall",
            "task",
            "action",
            "step",
            "calltool",
            "run",
        ]) =>
        {
            Type::Tool
        }
        () => return None,
    })
}

/// Whether the step chooses, so that its `condition` is not one for the step itself.
pub fn is_condition(fields: &Object) -> bool {
    let word = TYPE_FIELDS.iter().find_map(|name| fields.get(*name)?.as_str());
    word.and_then(type_of) == Some(Type::Condition)
}

/// Reads what a step does from the fields left of it.
pub fn convert(mut fields: Object, out: &mut Object, names: &Names) {
    // A method is only written where one of another system is left out: here it is POST.
    let native = fields.contains_key("url") && TYPE_FIELDS.iter().all(|name| !fields.contains_key(*name));
    // `http: {url: …}`, `delay: 5m`: a type as the name of a field.
    named(&mut fields);
    let given = TYPES.iter().any(|name| fields.contains_key(*name));
    let word = TYPE_FIELDS.iter().find(|name| fields.get(**name).is_some_and(Json::is_string)).copied();
    let word = word.filter(|name| !(given && *name == "action")).and_then(|name| take_text(&mut fields, &[name]));
    let kind = match &word {
        Some(word) if word.starts_with("http://") || word.starts_with("https://") => {
            fields.insert("url".into(), word.clone().into());
            Some(Type::Http)
        }
        Some(word) => type_of(word),
        None => None,
    };
    let http = ["url", "uri", "endpoint", "api_url", "httpMethod"].iter().any(|name| fields.contains_key(*name));
    let kind = match kind {
        Some(Type::Code) if fields.contains_key("for_each") => Some(Type::Each),
        Some(Type::Sleep)
            if ["sleep", "until", "seconds", "duration"].iter().all(|n| !fields.contains_key(*n))
                && ["event", "webhook", "signal"].iter().any(|n| fields.contains_key(*n)) =>
        {
            Some(Type::Webhook)
        }
        Some(Type::Tool) | None => by_fields(&fields, http).or(kind),
        known => known,
    };
    match kind {
        Some(Type::Http) => http::convert(&mut fields, out, names, native),
        Some(Type::Gate) => gate(&mut fields, out, names),
        Some(Type::Sleep) => sleep(&mut fields, out, names),
        Some(Type::Code) => code(&mut fields, out, names),
        Some(Type::Query) => query(&mut fields, out, names),
        Some(Type::Each) => each(&mut fields, out, names),
        Some(Type::Child) => child(&mut fields, out, names),
        Some(Type::Condition) => condition(&mut fields, out, names),
        Some(Type::Webhook) => webhook(&mut fields, out),
        Some(Type::Tool) | None => return tool(fields, out, names, word.as_deref(), kind),
    }
    leftovers(&mut fields, out);
}

fn by_fields(fields: &Object, http: bool) -> Option<Type> {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    Some(match () {
        () if has(&["for_each", "foreach", "forEach", "with_items", "ItemsPath"]) => Type::Each,
        () if http => Type::Http,
        () if has(&["approval"]) => Type::Gate,
        () if has(&["sleep", "until"]) => Type::Sleep,
        () if has(&["javascript"]) || has(&["code"]) => Type::Code,
        () if has(&["query", "sql"]) => Type::Query,
        () if has(&["workflow"]) => Type::Child,
        () if has(&["wait_for_webhook"]) => Type::Webhook,
        () if fields.get("condition").is_some_and(Json::is_array) || has(&["cases"]) => Type::Condition,
        () if has(&["method", "headers"]) && !has(&["tool"]) => Type::Http,
        () => return None,
    })
}

/// Moves the content of a field that names a type to the field that does so here.
fn named(fields: &mut Object) {
    const NAMED: [(&str, &str); 32] = [
        ("http", "http"),
        ("http_request", "http"),
        ("httpRequest", "http"),
        ("request", "http"),
        ("fetch", "http"),
        ("webhook", "http"),
        ("api", "http"),
        ("uri", "http.get"),
        ("get", "http.get"),
        ("post", "http.post"),
        ("approve", "approval"),
        ("human_approval", "approval"),
        ("manual_approval", "approval"),
        ("gate", "approval"),
        ("human", "approval"),
        ("wait", "sleep"),
        ("delay", "sleep"),
        ("pause", "sleep"),
        ("timer", "sleep"),
        ("js", "javascript"),
        ("foreach", "for_each"),
        ("forEach", "for_each"),
        ("loop", "for_each"),
        ("each", "for_each"),
        ("with_items", "for_each"),
        ("subworkflow", "workflow"),
        ("sub_workflow", "workflow"),
        ("child_workflow", "workflow"),
        ("call_workflow", "workflow"),
        ("mcp", "tool"),
        ("mcp_tool", "tool"),
        ("wait_for_event", "wait_for_webhook"),
    ];
    for (name, here) in NAMED {
        if fields.contains_key("type") && !matches!(here, "for_each" | "approval" | "sleep")
            || (name != here && fields.contains_key(here))
        {
            continue;
        }
        let Some(value) = fields.get(name).cloned() else { continue };
        match (here, value) {
            ("http", Json::Object(inner)) => {
                fields.shift_remove(name);
                inner.into_iter().for_each(|(name, value)| add(fields, &name, value));
            }
            ("http", Json::String(url)) | ("http.get", Json::String(url)) | ("http.post", Json::String(url)) => {
                fields.shift_remove(name);
                let (method, url) = match url.split_once(' ') {
                    Some((method, url)) if method.chars().all(|c| c.is_ascii_uppercase()) => {
                        (method.to_owned(), url.to_owned())
                    }
                    _ => (if here == "http.post" { "POST" } else { "GET" }.to_owned(), url),
                };
                fields.entry("method").or_insert(method.into());
                fields.insert("url".into(), url.into());
            }
            ("http" | "http.get" | "http.post", _) => {}
            (_, value) => {
                fields.shift_remove(name);
                fields.insert(here.into(), value);
            }
        }
    }
}

fn gate(fields: &mut Object, out: &mut Object, names: &Names) {
    let written = take(fields, &["approval"]);
    let mut inner = match written {
        Some(Json::Object(inner)) => inner,
        Some(Json::String(text)) if !["required", "manual", "true"].contains(&text.as_str()) => {
            Object::from_iter([("message".to_string(), Json::String(text))])
        }
        Some(Json::Array(people)) => Object::from_iter([("approvers".to_string(), Json::Array(people))]),
        _ => Object::new(),
    };
    flatten(fields, &SETTINGS);
    for (name, value) in std::mem::take(fields) {
        inner.entry(name).or_insert(value);
    }
    let mut made = Object::new();
    const MESSAGE: [&str; 9] =
        ["message", "prompt", "text", "question", "instructions", "reason", "title", "description", "subject"];
    if let Some(message) = MESSAGE.iter().find_map(|name| take_text(&mut inner, &[name])) {
        made.insert("message".into(), names.text(&message).into());
    }
    let people = take(
        &mut inner,
        &[
            "approvers",
            "approver",
            "assignees",
            "assignee",
            "reviewers",
            "reviewer",
            "users",
            "who",
            "from",
            "by",
            "required_approvers",
            "required_reviewers",
        ],
    );
    if let Some(people) = people {
        made.insert(
            "approvers".into(),
            if people.as_str().is_some_and(|text| !text.contains(',')) { people } else { json!(names_in(&people)) },
        );
    }
    let escalates = inner.shift_remove("escalate_to");
    if let Some(timeout) = take(&mut inner, &["timeout", "expires_in", "deadline", "expires", "timeout_seconds"]) {
        made.insert("timeout".into(), duration(&timeout, "s").map_or(timeout, Json::String));
    }
    if let Some(hours) = take(&mut inner, &["timeout_hours", "timeoutHours"]).and_then(|value| duration(&value, "h")) {
        made.insert("timeout".into(), hours.into());
    }
    if let Some(then) = take_text(&mut inner, &["on_timeout", "onTimeout", "default", "timeout_action"]) {
        let then = then.to_ascii_lowercase();
        let then = if then.starts_with("approv") || then == "continue" { "approve" } else { "deny" };
        made.insert("on_timeout".into(), then.into());
    }
    if let Some(escalates) = escalates.filter(|_| made.contains_key("timeout")) {
        made.insert("escalate_to".into(), escalates);
        made.shift_remove("on_timeout");
    }
    let count = take(&mut inner, &["approvals", "min_approvals", "required_approvals", "minApprovals", "required"]);
    if let Some(count) = count.filter(Json::is_u64) {
        made.insert("approvals".into(), count);
    }
    for name in ["form", "allow_self", "notify", "escalate_after"] {
        if let Some(value) = inner.shift_remove(name) {
            made.insert(name.into(), value);
        }
    }
    out.insert("approval".into(), if made.is_empty() { true.into() } else { Json::Object(made) });
}

fn sleep(fields: &mut Object, out: &mut Object, names: &Names) {
    flatten(fields, &SETTINGS);
    flatten(fields, &["sleep"]);
    if let Some(until) = take_text(fields, &["until", "Timestamp", "timestamp", "datetime"]) {
        return drop(out.insert("until".into(), names.text(&until).into()));
    }
    const NAMED: [(&str, &str); 13] = [
        ("sleep", "s"),
        ("duration", "s"),
        ("seconds", "s"),
        ("minutes", "m"),
        ("hours", "h"),
        ("days", "d"),
        ("for", "s"),
        ("delay", "s"),
        ("amount", "s"),
        ("duration_seconds", "s"),
        ("Seconds", "s"),
        ("milliseconds", "ms"),
        ("durationMs", "ms"),
    ];
    let unit = take_text(fields, &["unit"]);
    for (name, here) in NAMED {
        let Some(value) = fields.shift_remove(name) else { continue };
        let unit = unit.as_deref().and_then(|unit| unit.get(..1)).unwrap_or(here);
        let text = value.as_str().filter(|text| text.contains('{') || text.contains('$')).map(|text| names.text(text));
        let length = text.or_else(|| duration(&value, unit)).map_or(value, Json::String);
        out.insert("sleep".into(), length);
        return;
    }
}

fn code(fields: &mut Object, out: &mut Object, names: &Names) {
    flatten(fields, &SETTINGS);
    flatten(fields, &["javascript", "code", "function"]);
    let python = take_text(fields, &["language", "lang", "runtime"]).is_some_and(|language| language.starts_with("py"));
    let code = take_text(
        fields,
        &["javascript", "code", "jsCode", "functionCode", "script", "source", "expression", "body", "run"],
    );
    match code {
        Some(code) if python => {
            out.insert("tool".into(), "run_python".into());
            out.insert("args".into(), json!({"code": code}));
        }
        Some(code) => {
            let code =
                if code.contains("return") { code } else { format!("return {};", code.trim().trim_end_matches(';')) };
            out.insert("javascript".into(), code.into());
        }
        None => {
            let values =
                take(fields, &["values", "set", "assignments", "output", "Result", "input"]).unwrap_or_default();
            out.insert("tool".into(), "echo".into());
            let values = if values.is_object() { values } else { json!({"value": values}) };
            out.insert("args".into(), names.value(&values));
        }
    }
    if let Some(memory) = fields.shift_remove("memory") {
        out.insert("memory".into(), memory);
    }
}

fn query(fields: &mut Object, out: &mut Object, names: &Names) {
    let params = take(fields, &["params", "parameters", "inputValues", "values", "args"]);
    flatten(fields, &SETTINGS);
    flatten(fields, &["query"]);
    let mut made = Object::new();
    let connection =
        take_text(fields, &["connection", "database", "db", "datasource", "credentials", "connection_id", "source"]);
    if let Some(saved) = take_text(fields, &["saved", "dataQueryID"]) {
        made.insert("saved".into(), saved.into());
    } else {
        made.extend(connection.map(|connection| ("connection".to_string(), connection.into())));
        let sql = take_text(fields, &["sql", "query", "statement"]);
        made.extend(sql.map(|sql| ("sql".to_string(), sql.into())));
    }
    if let Some(params) = params.or_else(|| take(fields, &["params", "parameters", "args"])) {
        made.insert("params".into(), names.value(&params));
    }
    for name in ["write", "max_rows"] {
        if let Some(value) = fields.shift_remove(name) {
            made.insert(name.into(), value);
        }
    }
    out.insert("query".into(), Json::Object(made));
}

fn each(fields: &mut Object, out: &mut Object, names: &Names) {
    flatten(fields, &SETTINGS);
    let items = match fields.shift_remove("for_each") {
        Some(Json::Object(mut inner)) => {
            let items = take(&mut inner, &["items", "in", "list", "over", "collection", "values"]);
            inner.into_iter().for_each(|(name, value)| add(fields, &name, value));
            items
        }
        other => other,
    };
    let items = items
        .or_else(|| take(fields, &["items", "in", "over", "collection", "list", "values", "ItemsPath", "itemsPath"]));
    let mut inner = names.inner();
    const ITEM: [&str; 8] = ["as", "item", "var", "item_name", "itemVariable", "item_variable", "iterator", "loop_var"];
    inner.items.extend(take_text(fields, &ITEM));
    let items = match items.unwrap_or_default() {
        Json::String(text) if text.contains("{{") || text.contains('$') => names.text(&text).into(),
        Json::String(text) => format!("{{{{{}}}}}", names.expr(&text)).into(),
        other => names.value(&other),
    };
    out.insert("for_each".into(), items);
    let body = take(
        fields,
        &["tasks", "steps", "do", "actions", "body", "step", "task", "activities", "Iterator", "ItemProcessor"],
    );
    let body = match body {
        Some(body) => body,
        // The step itself is what is repeated.
        None if fields.is_empty() => return,
        None => json!({"run": std::mem::take(fields)}),
    };
    out.insert("tasks".into(), Json::Object(steps::nested(&body, inner)));
    if let Some(output) = fields.shift_remove("output") {
        out.insert("output".into(), output);
    }
}

fn child(fields: &mut Object, out: &mut Object, names: &Names) {
    if let Some(Json::Object(mut inner)) = fields.get("workflow").cloned() {
        fields.shift_remove("workflow");
        if let Some(name) = take(&mut inner, &["name", "id", "workflow"]) {
            fields.insert("workflow".into(), name);
        }
        inner.into_iter().for_each(|(name, value)| add(fields, &name, value));
    }
    let name = take_text(
        fields,
        &["workflow", "workflow_name", "workflowName", "workflow_id", "workflowId", "ref", "flowId", "target"],
    );
    let input = arguments(fields, names);
    let from_input = input.as_ref().and_then(|input| input.get("workflow")?.as_str().map(str::to_owned));
    out.insert("workflow".into(), name.or(from_input).unwrap_or_default().into());
    if let Some(input) = input {
        out.insert("input".into(), input);
    }
}

/// A step that only chooses: the id of the entry that holds is its result.
fn condition(fields: &mut Object, out: &mut Object, names: &Names) {
    flatten(fields, &SETTINGS);
    let entries =
        take(fields, &["condition", "conditions", "cases", "branches", "rules", "choices", "expression", "if"]);
    let made: Vec<Json> = match &entries {
        Some(Json::Array(items)) => {
            let entry = |(n, item): (usize, &Json)| {
                let test =
                    ["if", "when", "condition", "expression", "case"].iter().find_map(|name| item.get(*name)?.as_str());
                let id = ["id", "name", "label", "then", "next"].iter().find_map(|name| item.get(*name)?.as_str());
                let id = id.map_or_else(|| format!("case-{}", n + 1), str::to_owned);
                match test.and_then(|test| names.condition(test)) {
                    Some(test) => json!({"id": id, "if": test}),
                    None => json!({"id": id}),
                }
            };
            items.iter().enumerate().map(entry).collect()
        }
        Some(Json::String(test)) => {
            vec![
                json!({"id": "true", "if": names.condition(test).unwrap_or_else(|| "true".into())}),
                json!({"id": "false"}),
            ]
        }
        _ => vec![json!({"id": "default"})],
    };
    out.insert("condition".into(), Json::Array(made));
}

fn webhook(fields: &mut Object, out: &mut Object) {
    flatten(fields, &SETTINGS);
    let inner = fields.shift_remove("wait_for_webhook").unwrap_or_default();
    let timeout = inner.get("timeout").cloned().or_else(|| take(fields, &["timeout"]));
    let timeout = timeout.and_then(|timeout| duration(&timeout, "s"));
    out.insert("wait_for_webhook".into(), timeout.map_or(json!(true), |timeout| json!({"timeout": timeout})));
}

/// A tool, which is also what everything unknown becomes.
fn tool(mut fields: Object, out: &mut Object, names: &Names, word: Option<&str>, kind: Option<Type>) {
    if let Some(inner) = take_object(&mut fields, &["tool"]) {
        inner
            .into_iter()
            .for_each(|(name, value)| add(&mut fields, if name == "name" { "tool" } else { &name }, value));
    }
    let word = word.filter(|_| kind.is_none());
    if let Some(Json::String(name)) =
        take_object(&mut fields, &["taskRef", "ref"]).and_then(|mut inner| take(&mut inner, &["name"]))
    {
        fields.insert("tool".into(), name.into());
    }
    let named = ["tool", "tool_name", "toolName"].iter().any(|name| fields.contains_key(*name));
    let server = if named { take_text(&mut fields, &["server", "mcp_server", "service"]) } else { None };
    const NAMES: [&str; 11] = [
        "tool",
        "tool_name",
        "toolName",
        "function",
        "task",
        "uses",
        "plugin",
        "Resource",
        "service",
        "template",
        "name",
    ];
    let usual = if word.is_some() && kind.is_none() { &NAMES[..8] } else { &NAMES };
    if kind.is_none() {
        fields.shift_remove("name");
    }
    let shell = ["run", "script", "command", "shell", "cmd", "commands", "bash", "entrypoint"];
    let named = take_text(&mut fields, usual).or_else(|| word.map(str::to_owned));
    if (named.is_none() || word.is_some_and(|word| shell.contains(&word)))
        && let Some(command) = take(&mut fields, &shell)
    {
        let command = match &command {
            Json::Array(lines) => lines.iter().filter_map(Json::as_str).collect::<Vec<_>>().join("\n").into(),
            other => other.clone(),
        };
        // Nothing here runs commands by itself: a tool has to.
        out.insert("tool".into(), "run_command".into());
        out.insert("args".into(), json!({"command": names.value(&command)}));
        return leftovers(&mut fields, out);
    }
    let Some(name) = named else { return leftovers(&mut fields, out) };
    let name = server.filter(|_| !name.contains("__")).map_or(name.clone(), |server| format!("{server}__{name}"));
    out.insert("tool".into(), name.into());
    let misspelt = kind == Some(Type::Tool) || word.is_none();
    let arguments = arguments(&mut fields, names);
    match arguments {
        Some(arguments) => drop(out.insert("args".into(), arguments)),
        None if !misspelt => {
            let rest = as_arguments(&mut fields);
            if !rest.is_empty() {
                out.insert("args".into(), names.value(&Json::Object(rest)));
            }
        }
        None => {}
    }
    leftovers(&mut fields, out);
}

/// Whether an object is a step rather than a map of steps.
pub fn is_step(fields: &Object) -> bool {
    let typed = |name: &&str| fields.get(*name).is_some_and(Json::is_string);
    TYPE_FIELDS.iter().any(typed)
        || TYPES.iter().any(|name| fields.contains_key(*name))
        || ["http", "run", "endpoint", "script", "code"].iter().any(|name| fields.contains_key(*name))
}
