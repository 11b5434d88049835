//! Which steps an expression reads: `tasks.NAME` and `tasks["NAME"]`.

use serde_json::Value;

/// The steps that expressions in a field read, in the order in which they are read.
pub(super) fn reads(key: &str, value: &Value) -> impl Iterator<Item = String> + use<> {
    let mut found = Vec::new();
    collect(key, value, &mut found);
    found.into_iter()
}

fn collect(key: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| collect(key, value, found)),
        Value::Array(list) => list.iter().for_each(|value| collect("", value, found)),
        Value::String(text) if key == "if" => found.extend(reads_expression(text)),
        Value::String(text) => {
            let templates = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
            templates.for_each(|(template, _)| found.extend(reads_expression(template)));
        }
        _ => {}
    }
}

/// The steps that one expression reads.
pub(super) fn reads_expression(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("tasks") {
        let before = text[..at].chars().next_back();
        // A part of a longer name, or a field of that name.
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) {
            continue;
        }
        let rest = &text[at + "tasks".len()..];
        if let Some(rest) = rest.strip_prefix('.') {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))).unwrap_or(rest.len());
            found.extend(Some(rest[..end].to_string()).filter(|name| is_plain(name)));
        } else if let Some(rest) = rest.strip_prefix('[') {
            // The JSON text that begins here; what follows it does not matter.
            let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            found.extend(texts.next().and_then(Result::ok));
        }
    }
    found
}

/// Whether a name can follow a dot.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_are_found_where_expressions_are() {
        let check =
            |value: Value, expected: &[&str]| assert_eq!(reads("x", &value).collect::<Vec<_>>(), expected, "{value}");
        check(json!("{{tasks.a.body}} and {{ tasks[\"b c\"].body + tasks.d-e.x }}"), &["a", "b c", "d-e"]);
        check(json!({"if": "tasks.a.status == 'x'", "text": "tasks.b is prose"}), &["a"]);
        check(json!(["{{my_tasks.a}}", {"deep": "{{input.tasks.b}}{{tasks.c}}"}]), &["c"]);
        check(json!("{{tasks[0]}} {{tasks}} {{ unfinished"), &[]);
    }
}
