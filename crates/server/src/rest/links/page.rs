//! The HTML pages behind a link. Plain HTML without scripts; all foreign text is escaped.

use super::Faults;
use super::form::{Field, Sent, Sort, WHOLE, fields};
use serde_json::Value;
use std::fmt::Write;
use stepwell_core::approval::{call_name, not_covered, without_answer};
use stepwell_engine::commands::{Approval, Linked};

pub fn asked(linked: &Linked, asks: &Approval, wrong: Option<(&Sent, &Faults)>) -> String {
    let mut to = String::new();
    about(linked, &mut to);
    wrong.iter().flat_map(|(_, faults)| *faults).for_each(|(path, message)| {
        let _ = write!(to, "<p class=\"fault\">{}: {}</p>", escape(path), escape(message));
    });
    let message = asks.asks.get("message").and_then(Value::as_str).unwrap_or("Do you approve?");
    let _ = write!(to, "<h2>{}</h2>", escape(message));
    calls(&asks.asks, APPROVAL, &mut to);
    calls(&asks.asks, DENIAL, &mut to);
    others(asks, &mut to);
    let digest = asks.digest.as_deref().unwrap_or_default();
    let _ = write!(to, "<form method=\"post\"><input type=\"hidden\" name=\"digest\" value=\"{}\">", escape(digest));
    let sent = wrong.map(|(sent, _)| sent);
    if let Some(schema) = asks.asks.get("form") {
        filled(schema, sent, &mut to);
    }
    let comment = sent.and_then(|sent| sent.first("comment")).unwrap_or_default();
    let _ = write!(
        to,
        "<label for=\"comment\">Comment</label><textarea id=\"comment\" name=\"comment\">{}</textarea>\
         <button name=\"decision\" value=\"approve\">Approve</button>\
         <button name=\"decision\" value=\"deny\" formnovalidate>Deny</button></form>\
         <p class=\"soft\">Digest of all this: <code>{}</code></p>",
        escape(comment),
        escape(digest)
    );
    whole("Approval", &to)
}

pub fn taken(linked: &Linked, approve: bool) -> String {
    let mut to = String::new();
    about(linked, &mut to);
    let word = if approve { "approved" } else { "denied" };
    let _ = write!(to, "<p><strong>You have {word}.</strong> The link cannot be used again.</p>");
    whole("Thank you", &to)
}

pub fn over(linked: &Linked, words: &str) -> String {
    let mut to = String::new();
    about(linked, &mut to);
    let _ = write!(to, "<p><strong>{}</strong> This link can no longer be used to answer.</p>", escape(words));
    whole("No longer asked", &to)
}

pub fn words(words: &str) -> String {
    whole("Stepwell", &format!("<p>{}</p>", escape(words)))
}

fn about(linked: &Linked, to: &mut String) {
    let Linked { workflow, run, step, caller, .. } = linked;
    let row = |what: &str, is: &str| format!("<tr><th>{what}</th><td>{}</td></tr>", escape(is));
    let rows = [row("Workflow", workflow), row("Run", run), row("Step", step), row("You are", &caller.name)].concat();
    let _ = write!(to, "<table>{rows}</table>");
}

/// A list of calls: its name, the name of its remainder, its title, and a note on the remainder.
type List = [&'static str; 4];
const APPROVAL: List = ["calls", "more_calls", "Your approval allows these calls:", "And further calls, not covered."];
const DENIAL: List = ["on_denial", "more_on_denial", "If you deny, these calls may be made:", "And further calls."];

fn calls(asks: &Value, [list, more, title, further]: List, to: &mut String) {
    let calls = asks.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if calls.is_empty() {
        return;
    }
    let _ = write!(to, "<h3>{title}</h3>");
    for call in calls {
        let note = not_covered(call).map(|why| format!(" ({why})")).unwrap_or_default();
        let also = if call.get("also_if_approved").is_some() { " (also made if you approve)" } else { "" };
        let _ = write!(to, "<p>{}{}{also}</p>", escape(&call_name(call)), escape(&note));
        if let Some(input) = call.get("input") {
            let _ = write!(to, "<pre>{}</pre>", escape(&format!("{input:#}")));
        }
    }
    if asks.get(more).is_some() {
        let _ = write!(to, "<p>{further}</p>");
    }
    if calls.iter().any(|call| call["input"].to_string().contains("{{secrets.")) {
        let _ = write!(
            to,
            "<p class=\"soft\">Secrets appear by name. Their values are filled in when a call is made, and may change until then.</p>"
        );
    }
}

fn others(asks: &Approval, to: &mut String) {
    let _ = write!(to, "<p class=\"soft\">Asked by a run of {}", escape(&asks.created_by));
    if !asks.approved_by.is_empty() {
        let _ = write!(to, "; approved so far by {}", escape(&asks.approved_by.join(", ")));
    }
    let _ = write!(to, ".</p><p><strong>{}</strong></p>", without_answer(asks.until, asks.on_timeout));
    for warning in &asks.warnings {
        let _ = write!(to, "<p class=\"soft\">Warning: {}</p>", escape(warning));
    }
}

fn filled(schema: &Value, sent: Option<&Sent>, to: &mut String) {
    let Some(fields) = fields(schema) else {
        let text = sent.and_then(|sent| sent.first(WHOLE)).unwrap_or_default();
        let _ = write!(
            to,
            "<label for=\"form\">Data, as JSON</label><p>It must fit this schema:</p><pre>{}</pre>\
             <textarea id=\"form\" name=\"{WHOLE}\">{}</textarea>",
            escape(&format!("{schema:#}")),
            escape(text)
        );
        return;
    };
    fields.iter().for_each(|field| one(field, sent, to));
}

fn one(field: &Field<'_>, sent: Option<&Sent>, to: &mut String) {
    let key = escape(&field.key());
    let label = escape(field.label);
    let given = match (sent, field.default) {
        (Some(sent), _) => sent.first(&field.key()).map(str::to_string),
        (None, Some(Value::String(text))) => Some(text.clone()),
        (None, Some(value)) => Some(value.to_string()),
        (None, None) => None,
    };
    let required = if field.required { " required" } else { "" };
    let value = escape(given.as_deref().unwrap_or_default());
    let _ = match &field.sort {
        Sort::Boolean => {
            let ticked = given.is_some_and(|given| !matches!(&*given, "" | "false"));
            let ticked = if ticked { " checked" } else { "" };
            write!(to, "<label class=\"box\"><input type=\"checkbox\" name=\"{key}\"{ticked}> {label}</label>")
        }
        Sort::Choice(choices) => {
            let _ = write!(to, "<label for=\"{key}\">{label}</label><select id=\"{key}\" name=\"{key}\"{required}>");
            let _ = write!(to, "<option value=\"\"></option>");
            for (n, choice) in choices.iter().enumerate() {
                let is = if sent.is_some() { value == n.to_string() } else { field.default == Some(choice) };
                let is = if is { " selected" } else { "" };
                let text = choice.as_str().map_or_else(|| choice.to_string(), str::to_string);
                let _ = write!(to, "<option value=\"{n}\"{is}>{}</option>", escape(&text));
            }
            write!(to, "</select>")
        }
        Sort::Text => {
            let named = format!("<label for=\"{key}\">{label}</label>");
            write!(to, "{named}<input id=\"{key}\" name=\"{key}\" value=\"{value}\"{required}>")
        }
        Sort::Number | Sort::Integer => {
            let step = if matches!(field.sort, Sort::Integer) { "1" } else { "any" };
            let named = format!("<label for=\"{key}\">{label}</label>");
            write!(
                to,
                "{named}<input type=\"number\" step=\"{step}\" id=\"{key}\" name=\"{key}\" value=\"{value}\"{required}>"
            )
        }
    };
    if let Some(help) = field.help {
        let _ = write!(to, "<p class=\"soft\">{}</p>", escape(help));
    }
}

fn whole(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/docs/reference.css\"><link rel=\"stylesheet\" href=\"/docs/approve.css\">\
         </head><body><main><h1>{title}</h1>{body}</main></body></html>"
    )
}

/// Escapes text, also for attribute values.
fn escape(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            c => to.push(c),
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped() {
        assert_eq!(escape("<b a=\"x\" c='y'>&"), "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;");
    }
}
