//! A question in words: what each call does, which of its values are known, and what an answer leads to. The dashboard
//! says the same of the same question.

use super::page::escape;
use serde_json::Value;
use std::fmt::Write;
use stepwell_engine::commands::Approval;

/// Values of a call that are listed; its JSON shows all.
const SHOWN_VALUES: usize = 14;
/// Calls of one list that are shown open, and then in total.
const SHOWN_CALLS: usize = 5;

/// A value of a call: its name, its text, and whether it is known.
#[derive(PartialEq, Debug)]
struct Shown {
    name: String,
    text: String,
    unknown: bool,
}

/// What an approval leads to.
pub fn if_approved(asks: &Approval) -> String {
    let needed = asks.approvals as usize;
    let given = asks.approved_by.len();
    let turn = match needed {
        0 | 1 => String::new(),
        _ if given + 1 >= needed => format!("This is the last of {needed} approvals. "),
        _ => format!("This is approval {} of {needed}; nothing happens until all are given. ", given + 1),
    };
    if asks.asks["policy"].is_string() {
        return format!("{turn}The call that waits is made, exactly as shown.");
    }
    let calls = list(&asks.asks, "calls");
    let open = calls.iter().filter(|call| is_open(call)).count();
    let exact = match calls.len() - open {
        0 if calls.is_empty() => "The run continues. No call waits for this answer.".to_string(),
        0 => String::new(),
        1 => "One call is made exactly as shown. ".into(),
        n => format!("{n} calls are made exactly as shown. "),
    };
    let unsure = match open {
        0 => String::new(),
        1 => "One call may follow that is not covered, because not all of it is known.".into(),
        n => format!("{n} calls may follow that are not covered, because not all of them is known."),
    };
    format!("{turn}{exact}{unsure}").trim_end().to_string()
}

/// What a denial leads to.
pub fn if_denied(asks: &Approval) -> String {
    let enough = if asks.approvals > 1 { "One denial is enough. " } else { "" };
    let then = if !list(&asks.asks, "on_denial").is_empty() {
        "The workflow handles it. These calls may be made:"
    } else if asks.asks["policy"].is_string() {
        "The call is not made, and its step fails."
    } else if list(&asks.asks, "calls").is_empty() {
        "Unless the workflow handles a denial, its run ends as cancelled."
    } else {
        "None of these calls is made. Unless the workflow handles a denial, its run ends as cancelled."
    };
    format!("{enough}{then}")
}

/// The calls of one list, as HTML.
pub fn calls(asks: &Value, name: &str, to: &mut String) {
    let calls = list(asks, name);
    if calls.is_empty() {
        return;
    }
    let (shown, rest) = calls.split_at(calls.len().min(SHOWN_CALLS));
    to.push_str("<ol>");
    shown.iter().for_each(|call| one(call, to));
    to.push_str("</ol>");
    if !rest.is_empty() {
        let from = SHOWN_CALLS + 1;
        let _ = write!(to, "<details><summary>The other {} calls</summary><ol start=\"{from}\">", rest.len());
        rest.iter().for_each(|call| one(call, to));
        to.push_str("</ol></details>");
    }
}

fn one(call: &Value, to: &mut String) {
    let step = call["step"].as_str().unwrap_or_default();
    let says = escape(&sentence(call));
    let _ = write!(to, "<li><p class=\"call\">{says} <small>step {}</small></p>", escape(step));
    let note = |to: &mut String, text: &str| write!(to, "<p class=\"unsure\">{text}</p>");
    if call.get("also_if_approved").is_some() {
        let _ = note(to, "It may also happen if it is approved.");
    }
    if call.get("too_large_to_show").is_some() {
        let _ = note(to, "Its arguments are too long to show, so an approval does not cover it.");
    }
    let values = values(call);
    if call.get("not_yet_known").is_some() && values.iter().all(|value| !value.unknown) {
        let _ = match values.is_empty() {
            true => note(to, "Its arguments are not known yet, so an approval does not cover it."),
            false => note(to, "How often it is made is not known yet, so an approval does not cover it."),
        };
    }
    if !values.is_empty() {
        to.push_str("<dl class=\"values\">");
        for value in values.iter().take(SHOWN_VALUES) {
            let name = if value.name.is_empty() { "value" } else { &value.name };
            let (class, mark) = match value.unknown {
                true => (" class=\"open\"", "<span class=\"mark\">not known yet</span>"),
                false => ("", ""),
            };
            let text = escape(&value.text);
            let _ = write!(to, "<div{class}><dt>{}</dt><dd>{mark}{text}</dd></div>", escape(name));
        }
        to.push_str("</dl>");
    }
    if let Some(input) = call.get("input") {
        let all = match values.len() > SHOWN_VALUES {
            true => format!("All {} values", values.len()),
            false => "As JSON".into(),
        };
        let text = escape(&format!("{input:#}"));
        let _ = write!(to, "<details class=\"soft\"><summary>{all}</summary><pre>{text}</pre></details>");
    }
    to.push_str("</li>");
}

fn list<'a>(asks: &'a Value, name: &str) -> &'a [Value] {
    asks.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn is_open(call: &Value) -> bool {
    call.get("not_yet_known").is_some() || call.get("too_large_to_show").is_some()
}

/// `Sends POST https://bank.example/pay`, `Calls the tool mail.send`.
fn sentence(call: &Value) -> String {
    let input = |name: &str| call["input"][name].as_str();
    let about = call["tool"].as_str().or_else(|| call["workflow"].as_str());
    match (call["kind"].as_str().unwrap_or_default(), about) {
        ("http", _) => match input("url") {
            Some(url) => format!("Sends {} {url}", input("method").unwrap_or("GET")),
            None => "Sends an HTTP request".into(),
        },
        ("tool", Some(tool)) => format!("Calls the tool {tool}"),
        ("workflow", Some(workflow)) => format!("Starts the workflow {workflow}"),
        ("query", _) => match input("connection") {
            Some(connection) => format!("Queries the database {connection}"),
            None => "Queries a database".into(),
        },
        ("javascript", _) => "Runs code, which may call services".into(),
        (kind, _) => format!("Runs {kind}"),
    }
}

/// The arguments as a flat list, without what the sentence says already.
fn values(call: &Value) -> Vec<Shown> {
    let Some(input) = call.get("input") else { return Vec::new() };
    let unknown: Vec<&str> = list(call, "unknown").iter().filter_map(Value::as_str).collect();
    let mut found = Vec::new();
    flatten(input, ("", ""), &unknown, &mut found);
    let (said, wrapped): (&[&str], &str) = match call["kind"].as_str() {
        Some("http") => (&["url", "method"], ""),
        Some("tool") => (&["tool"], "args."),
        Some("workflow") => (&["workflow"], "input."),
        Some("query") => (&["connection"], ""),
        _ => (&[], ""),
    };
    found.retain(|value| value.unknown || !said.contains(&&*value.name));
    for value in &mut found {
        value.name = value.name.strip_prefix(wrapped).unwrap_or(&value.name).to_string();
    }
    found
}

/// `at`: the name and the JSON Pointer of the value. Arguments have a bounded depth.
fn flatten(value: &Value, at: (&str, &str), unknown: &[&str], to: &mut Vec<Shown>) {
    let (name, pointer) = at;
    let shown = |text: String, unknown| Shown { name: name.to_string(), text, unknown };
    if unknown.contains(&pointer) {
        return to.push(shown(plain(value), true));
    }
    let inside = unknown.iter().any(|one| one.strip_prefix(pointer).is_some_and(|rest| rest.starts_with('/')));
    match value {
        Value::Array(items) if items.is_empty() => to.push(shown("an empty list".into(), false)),
        Value::Array(items) if !inside && items.len() <= 10 && items.iter().all(is_plain) => {
            to.push(shown(items.iter().map(plain).collect::<Vec<_>>().join(", "), false));
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                flatten(item, (&format!("{name}[{n}]"), &format!("{pointer}/{n}")), unknown, to);
            }
        }
        Value::Object(fields) if fields.is_empty() => to.push(shown("nothing".into(), false)),
        Value::Object(fields) => {
            for (key, field) in fields {
                let path = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                let escaped = key.replace('~', "~0").replace('/', "~1");
                flatten(field, (&path, &format!("{pointer}/{escaped}")), unknown, to);
            }
        }
        _ => to.push(shown(plain(value), false)),
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flat(call: Value) -> Vec<(String, String, bool)> {
        values(&call).into_iter().map(|value| (value.name, value.text, value.unknown)).collect()
    }

    #[test]
    fn values_are_listed_flat_and_unknown_ones_are_marked() {
        let call = json!({"kind": "http", "not_yet_known": true, "unknown": ["/body/a~1b", "/headers"],
            "input": {"url": "https://x", "method": "POST", "headers": {"x": "{{h}}"},
                "body": {"a/b": "{{tasks.a.body}}", "sum": 3, "tags": ["x", 1], "list": [{"n": null}], "none": {}}}});
        let row = |name: &str, text: &str, unknown| (name.to_string(), text.to_string(), unknown);
        let mut found = flat(call);
        found.sort();
        let mut expected = vec![
            row("headers", "{\"x\":\"{{h}}\"}", true),
            row("body.a/b", "{{tasks.a.body}}", true),
            row("body.sum", "3", false),
            row("body.tags", "x, 1", false),
            row("body.list[0].n", "null", false),
            row("body.none", "nothing", false),
        ];
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_call_is_a_sentence() {
        let says = |call: Value| sentence(&call);
        assert_eq!(says(json!({"kind": "tool", "tool": "mail.send"})), "Calls the tool mail.send");
        assert_eq!(says(json!({"kind": "workflow", "workflow": "w"})), "Starts the workflow w");
        assert_eq!(says(json!({"kind": "http", "input": {"url": "https://x"}})), "Sends GET https://x");
        assert_eq!(says(json!({"kind": "query", "input": {"connection": "crm"}})), "Queries the database crm");
        assert_eq!(says(json!({"kind": "javascript"})), "Runs code, which may call services");
    }

    #[test]
    fn foreign_text_in_calls_is_escaped() {
        let mut to = String::new();
        let asks = json!({"calls": [{"kind": "tool", "tool": "<t>", "step": "<s>", "input": {"<k>": "<v>"}}]});
        calls(&asks, "calls", &mut to);
        assert!(["<t>", "<s>", "<k>", "<v>"].iter().all(|raw| !to.contains(raw)), "{to}");
    }
}
