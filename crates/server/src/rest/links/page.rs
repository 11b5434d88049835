//! The HTML pages behind a link: one card, as in the dashboard's inbox. They work without scripts; all foreign text is
//! escaped.

use super::Faults;
use super::form::{Field, Sent, Sort, WHOLE, fields};
use super::words::{calls, if_approved, if_denied};
use serde_json::Value;
use std::fmt::Write;
use stepwell_core::time::Time;
use stepwell_engine::commands::{Approval, Linked};

pub fn asked(linked: &Linked, asks: &Approval, wrong: Option<(&Sent, &Faults)>) -> String {
    let mut to = String::new();
    let _ = write!(to, "<p class=\"soft\">{} · step {}</p>", escape(&linked.workflow), escape(&linked.step));
    let message = asks.asks.get("message").and_then(Value::as_str).unwrap_or("Do you approve?");
    let _ = write!(to, "<h1>{}</h1>", escape(message));
    wrong.iter().flat_map(|(_, faults)| *faults).for_each(|(path, message)| {
        let _ = write!(to, "<p class=\"fault\">{}: {}</p>", escape(path), escape(message));
    });
    silence(asks, &mut to);
    outcomes(asks, &mut to);
    facts(linked, asks, &mut to);
    answer(asks, wrong.map(|(sent, _)| sent), &mut to);
    whole("Approval", &to)
}

pub fn taken(linked: &Linked, approve: bool) -> String {
    let word = if approve { "approved" } else { "denied" };
    let mut to = String::new();
    let _ = write!(
        to,
        "<h1>Thank you</h1><p class=\"given {word}\">You have {word}.</p>\
         <p>The answer is final, and the link cannot be used again.</p>"
    );
    about(linked, &mut to);
    whole("Thank you", &to)
}

pub fn over(linked: &Linked, words: &str) -> String {
    let mut to = String::new();
    let said = escape(words);
    let _ = write!(
        to,
        "<h1>No longer asked</h1><p class=\"given\">{said}</p><p>This link can no longer be used to answer.</p>"
    );
    about(linked, &mut to);
    whole("No longer asked", &to)
}

pub fn words(words: &str) -> String {
    whole("Stepwell", &format!("<h1>Stepwell</h1><p>{}</p>", escape(words)))
}

fn row(what: &str, is: &str) -> String {
    format!("<div><dt>{what}</dt><dd>{}</dd></div>", escape(is))
}

fn about(linked: &Linked, to: &mut String) {
    let Linked { workflow, run, step, caller, .. } = linked;
    let rows = [row("Workflow", workflow), row("Run", run), row("Step", step), row("You are", &caller.name)].concat();
    let _ = write!(to, "<dl class=\"facts\">{rows}</dl>");
}

/// What happens without an answer. Approval by silence must not be overlooked.
fn silence(asks: &Approval, to: &mut String) {
    let Some(until) = asks.until else {
        to.push_str("<p class=\"silence\">Without an answer it waits as long as the run lasts.</p>");
        return;
    };
    let (class, word) = match asks.on_timeout {
        Some("approve") => ("silence alarm", "approved"),
        _ => ("silence", "denied"),
    };
    let at = instant(until);
    let _ = write!(to, "<p class=\"{class}\">Without an answer by {at} it counts as <strong>{word}</strong>.</p>");
}

/// An instant, which a script shows in the reader's time zone.
fn instant(at: Time) -> String {
    let full = at.to_string();
    let short = full.get(..16).map_or_else(|| full.clone(), |minutes| format!("{} UTC", minutes.replace('T', " ")));
    format!("<time datetime=\"{full}\">{short}</time>")
}

fn outcomes(asks: &Approval, to: &mut String) {
    let parts = [
        ("outcome", "If it is approved", if_approved(asks), "calls", "more_calls", " An approval does not cover them."),
        ("outcome bad", "If it is denied", if_denied(asks), "on_denial", "more_on_denial", ""),
    ];
    to.push_str("<div class=\"outcomes\">");
    for (class, title, says, list, more, covered) in parts {
        let _ = write!(to, "<section class=\"{class}\"><h2>{title}</h2><p>{}</p>", escape(&says));
        calls(&asks.asks, list, to);
        if asks.asks.get(more).is_some() {
            let _ = write!(to, "<p class=\"unsure\">There are more calls than are listed here.{covered}</p>");
        }
        to.push_str("</section>");
    }
    to.push_str("</div>");
    let mut listed = ["calls", "on_denial"].iter().filter_map(|list| asks.asks[*list].as_array()).flatten();
    if listed.any(|call| call["input"].to_string().contains("{{secrets.")) {
        to.push_str(
            "<p class=\"soft\">Secrets appear by name. Their values are filled in when a call is made, and may change \
             until then.</p>",
        );
    }
}

fn facts(linked: &Linked, asks: &Approval, to: &mut String) {
    let mut rows = vec![row("Who asks", &asks.asked_by.to_string()), row("You are", &linked.caller.name)];
    if asks.approvals > 1 {
        let given = asks.approved_by.len();
        let by = if given > 0 { format!(": {}", asks.approved_by.join(", ")) } else { String::new() };
        rows.push(row("Has approved", &format!("{given} of {}{by}", asks.approvals)));
    }
    rows.push(row("Run", &linked.run));
    let _ = write!(to, "<dl class=\"facts\">{}</dl>", rows.concat());
    for warning in &asks.warnings {
        let _ = write!(to, "<p class=\"warning\">Warning: {}.</p>", escape(warning));
    }
}

fn answer(asks: &Approval, sent: Option<&Sent>, to: &mut String) {
    let digest = escape(asks.digest.as_deref().unwrap_or_default());
    // The first button of a form is what the Enter key presses: one that does nothing.
    let _ = write!(
        to,
        "<form method=\"post\"><button hidden disabled></button>\
         <input type=\"hidden\" name=\"digest\" value=\"{digest}\">"
    );
    if let Some(schema) = asks.asks.get("form") {
        filled(schema, sent, to);
    }
    let comment = sent.and_then(|sent| sent.first("comment")).unwrap_or_default();
    let _ = write!(
        to,
        "<label for=\"comment\">Comment (optional)</label><textarea id=\"comment\" name=\"comment\">{}</textarea>\
         <div class=\"decide\">\
         <details name=\"decide\"><summary>Approve</summary><div><p>You approve what is shown above. Once given, the \
         answer is final.</p><button name=\"decision\" value=\"approve\">Yes, approve</button></div></details>\
         <details name=\"decide\" class=\"no\"><summary>Deny</summary><div><p>You deny it. Once given, the answer is \
         final.</p><button name=\"decision\" value=\"deny\" formnovalidate>Yes, deny</button></div></details>\
         </div></form><details class=\"soft\"><summary>Digest of all this</summary><code>{digest}</code></details>",
        escape(comment)
    );
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
         content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title><link rel=\"stylesheet\" href=\"/docs/approve.css\">\
         <script type=\"module\" src=\"/docs/approve.js\"></script></head>\
         <body><main><p class=\"brand\">Stepwell</p><div class=\"card\">{body}</div></main></body></html>"
    )
}

/// Escapes text, also for attribute values.
pub fn escape(text: &str) -> String {
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
