//! Digests that bind an approval to the request that was shown to the approver, and the request as text.
//!
//! A digest is SHA-256 over canonical JSON: keys sorted, no spaces, numbers in their usual form. Secrets appear by
//! name, so comparing digests does not require their values.

use crate::template::SecretSlot;
use crate::time::Time;
use crate::value::Payload;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The digest of one call: its kind and arguments. It is the same when the call is shown and when it is made.
pub fn call_digest(kind: &str, input: &Value) -> String {
    digest(&serde_json::json!({"kind": kind, "input": input}))
}

pub fn digest(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing into a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The field of a request that allows approvers to change the held call.
pub const ALLOW_CHANGES: &str = "allow_changes";
/// The field that lists what the call was before it was changed, and who changed it.
pub const CHANGED: &str = "changed";

/// Whether approvers may change the held call.
pub fn allows_changes(ask: &Map<String, Value>) -> bool {
    ask.get(ALLOW_CHANGES).and_then(Value::as_bool).unwrap_or_default()
}

/// Checks that a changed input still calls the same thing, with the same secrets in the same places.
pub fn check_change(kind: &str, before: &Payload, input: &Value) -> Result<(), String> {
    let fixed: &[&str] = match kind {
        "tool" => &["tool"],
        "http" => &["method"],
        "query" => &["connection", "sql", "query", "write"],
        // Code is reviewed with the definition, and its context is that of the run.
        _ => return Err(format!("a call of kind {kind} cannot be changed")),
    };
    let old = &*before.value;
    if !input.is_object() {
        return Err("the input of a call is an object".into());
    }
    if let Some(name) = fixed.iter().find(|name| old.get(**name) != input.get(**name)) {
        return Err(format!("`{name}` says what is called, and stays as it is"));
    }
    let urls = |value: &Value| -> [Option<String>; 2] {
        ["/url", "/args/url"].map(|at| Some(origin(value.pointer(at)?.as_str()?).to_owned()))
    };
    // The host decides which policies apply, so another one is another call.
    let calls_url = kind == "http" || old["tool"] == "http_request";
    if calls_url && urls(old) != urls(input) {
        return Err("the host of `url` stays as it is".into());
    }
    if old["tool"] == "http_request" && old.pointer("/args/method") != input.pointer("/args/method") {
        return Err("`args.method` says what is called, and stays as it is".into());
    }
    let kept = |slot: &SecretSlot| input.pointer(&slot.pointer) == old.pointer(&slot.pointer);
    if let Some(slot) = before.secrets.iter().find(|slot| !kept(slot)) {
        return Err(format!("{} contains a secret, and stays as it is", slot.pointer));
    }
    Ok(())
}

/// The scheme, host and port of a URL. All of it, if it is written in a way that hides them.
fn origin(url: &str) -> &str {
    let Some(from) = url.find("://").map(|at| at + 3) else { return url };
    let end = url[from..].find(['/', '?', '#', '\\']).map_or(url.len(), |at| from + at);
    if end == from { url } else { &url[..end] }
}

/// The calls of a request, a line each: those that an approval allows, then those that may follow a denial. Arguments are
/// cut after `most` characters, and marked.
pub fn call_lines(ask: &Value, most: usize) -> Vec<String> {
    let list = |name: &str| ask[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<String> = list("calls").iter().map(|call| call_line(call, most)).collect();
    // Older requests only say that there are more.
    match &ask["more_calls"] {
        Value::Null => {}
        Value::Number(more) => lines.push(format!("and {more} more calls, which are not covered")),
        _ => lines.push("and more calls, which are not covered".into()),
    }
    lines.extend(list("on_denial").iter().map(|call| format!("if denied: {}", call_line(call, most))));
    if let Value::Number(more) = &ask["more_on_denial"] {
        lines.push(format!("if denied: and {more} more calls"));
    }
    lines
}

/// The step of a call, its kind, and the tool or workflow that it calls: `pay: tool mail.send`.
pub fn call_name(call: &Value) -> String {
    let text = |field: &str| call[field].as_str();
    let name = text("workflow").or_else(|| text("tool")).map(|name| format!(" {name}")).unwrap_or_default();
    format!("{}: {}{name}", text("step").unwrap_or_default(), text("kind").unwrap_or_default())
}

/// Why an approval does not cover a call that is listed, if it does not.
pub fn not_covered(call: &Value) -> Option<String> {
    if call.get("too_large_to_show").is_some() {
        return Some("too large to show, and not covered".into());
    }
    call.get("not_yet_known")?;
    let unknown: Vec<&str> = call["unknown"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Some(match (call.get("input"), unknown.as_slice()) {
        (None, _) => "with arguments that are not yet known and not covered".into(),
        (Some(_), []) => "how often it is made is not yet known, so it is not covered".into(),
        (Some(_), unknown) => format!("not yet known, so the call is not covered: {}", unknown.join(", ")),
    })
}

fn call_line(call: &Value, most: usize) -> String {
    let mut line = call_name(call);
    if let Some(input) = call.get("input") {
        let text = input.to_string();
        line += &match text.char_indices().nth(most) {
            Some((end, _)) => format!(" {}… ({} bytes)", &text[..end], text.len()),
            None => format!(" {text}"),
        };
    }
    if let Some(why) = not_covered(call) {
        line += &format!(", {why}");
    }
    if call.get("also_if_approved").is_some() {
        line += " (also made if approved)";
    }
    line
}

/// Whether a request shows every call with its arguments, as far as they are known.
pub fn shows_all(ask: &Value) -> bool {
    let mut calls = ["calls", "on_denial"].into_iter().filter_map(|list| ask[list].as_array()).flatten();
    let more = ["more_calls", "more_on_denial"].into_iter().any(|more| ask.get(more).is_some());
    !more && calls.all(|call| call.get("too_large_to_show").is_none())
}

/// What happens to a request without an answer.
pub fn without_answer(until: Option<Time>, on_timeout: Option<&str>) -> String {
    let Some(until) = until else { return "Without an answer it waits as long as the run lasts.".into() };
    let word = if on_timeout == Some("approve") { "approved" } else { "denied" };
    format!("Without an answer by {until} it counts as {word}.")
}

/// The recursion is bounded because the depth of templates and results is.
fn canonical(value: &Value, to: &mut String) {
    match value {
        Value::Object(fields) => object(fields, to),
        Value::Array(items) => {
            to.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    to.push(',');
                }
                canonical(item, to);
            }
            to.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(to, "{value}");
        }
    }
}

fn object(fields: &Map<String, Value>, to: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    to.push('{');
    for (n, (key, field)) in sorted.into_iter().enumerate() {
        if n > 0 {
            to.push(',');
        }
        let _ = write!(to, "{}:", Value::String(key.clone()));
        canonical(field, to);
    }
    to.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_lists_each_call_and_says_what_is_not_covered() {
        let ask = json!({
            "calls": [
                {"step": "pay", "kind": "tool", "tool": "pay", "input": {"sum": 3}, "digest": "d"},
                {"step": "tell", "kind": "http", "input": {"url": "{{x}}"}, "not_yet_known": true, "unknown": ["/url"]},
                {"step": "old", "kind": "http", "not_yet_known": true},
                {"step": "each[*].a", "kind": "workflow", "workflow": "w", "input": {}, "not_yet_known": true},
                {"step": "big", "kind": "tool", "tool": "t", "too_large_to_show": true},
            ],
            "more_calls": 5,
            "on_denial": [{"step": "no", "kind": "tool", "tool": "t", "input": {}, "also_if_approved": true}],
        });
        let expected = [
            r#"pay: tool pay {"sum":3}"#,
            r#"tell: http {"url":"{{x}}"}, not yet known, so the call is not covered: /url"#,
            "old: http, with arguments that are not yet known and not covered",
            "each[*].a: workflow w {}, how often it is made is not yet known, so it is not covered",
            "big: tool t, too large to show, and not covered",
            "and 5 more calls, which are not covered",
            "if denied: no: tool t {} (also made if approved)",
        ];
        assert_eq!(call_lines(&ask, usize::MAX), expected);
        assert_eq!(call_lines(&ask, 3)[0], r#"pay: tool pay {"s… (9 bytes)"#);
        assert!(!shows_all(&ask) && shows_all(&json!({"calls": [ask["calls"][0], ask["on_denial"][0]]})));
    }

    #[test]
    fn a_change_keeps_what_is_called_and_the_secrets() {
        let check = |kind: &str, old: Value, new: Value, expected: &str| {
            let slot = |pointer: &str| SecretSlot { pointer: pointer.into(), start: 0, end: 13, name: "K".into() };
            let mut before = Payload::from(old);
            before.secrets = before.value.pointer("/args/key").map(|_| slot("/args/key")).into_iter().collect();
            assert_eq!(check_change(kind, &before, &new).err().unwrap_or_default(), expected, "{new}");
        };
        let tool = |args: Value| json!({"tool": "pay", "args": args});
        check("tool", tool(json!({"sum": 3})), tool(json!({"sum": 2, "note": "x"})), "");
        check(
            "tool",
            tool(json!({})),
            json!({"tool": "other", "args": {}}),
            "`tool` says what is called, and stays as it is",
        );
        let secret = "/args/key contains a secret, and stays as it is";
        check("tool", tool(json!({"key": "{{secrets.K}}"})), tool(json!({"key": "{{secrets.K}}", "a": 1})), "");
        check("tool", tool(json!({"key": "{{secrets.K}}"})), tool(json!({"key": "mine"})), secret);
        check("tool", tool(json!({"key": "{{secrets.K}}"})), tool(json!({"at": "{{secrets.K}}"})), secret);
        let http = |url: &str| json!({"url": url, "method": "POST", "body": 1});
        check("http", http("https://a.x/1?b"), http("https://a.x/2"), "");
        for other in ["https://a.x.evil/1", "http://a.x/1", "https://a.x:8/1", "https://a.x@evil/1", "x"] {
            check("http", http("https://a.x/1"), http(other), "the host of `url` stays as it is");
        }
        check("http", http("u"), json!({"url": "u"}), "`method` says what is called, and stays as it is");
        let request = |url: &str| json!({"tool": "http_request", "args": {"url": url}});
        check("tool", request("https://a.x/1"), request("https://b.x/1"), "the host of `url` stays as it is");
        check("javascript", json!({}), json!({}), "a call of kind javascript cannot be changed");
        check("tool", tool(json!({})), json!(7), "the input of a call is an object");
    }

    #[test]
    fn silence_is_said_in_words() {
        let at = Some(Time(0));
        assert_eq!(without_answer(None, None), "Without an answer it waits as long as the run lasts.");
        assert!(without_answer(at, Some("approve")).ends_with("1970-01-01T00:00:00.000Z it counts as approved."));
        assert!(without_answer(at, Some("deny")).ends_with("it counts as denied."));
    }

    #[test]
    fn digest_ignores_key_order_and_nothing_else() {
        let same = |a: Value, b: Value, expected| assert_eq!(digest(&a) == digest(&b), expected, "{a} {b}");
        same(json!({"a": 1, "b": [1, {"x": null, "y": "z"}]}), json!({"b": [1, {"y": "z", "x": null}], "a": 1}), true);
        same(json!({"a": 1}), json!({"a": "1"}), false);
        same(json!([1, 2]), json!([2, 1]), false);
        same(json!({"a": {}}), json!({"a": []}), false);
        same(json!({"a\":1,\"b": 2}), json!({"a": 1, "b": 2}), false);
        // printf '{"a":1,"b":"ä"}' | sha256sum
        let known = "f5300ffcfd6fd3fc2de46d700be90d43fd799cd9eb69da4737201006143d48a1";
        assert_eq!(digest(&json!({"b": "ä", "a": 1})), known);
    }
}
