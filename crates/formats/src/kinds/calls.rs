//! Tool calls, javascript and queries.

use super::{ParsedKind, Rules};
use crate::code;
use crate::draft::Draft;
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::Value;
use crate::values::Input;
use serde_json::json;
use stepwell_core::graph::{Call, Kind};
use stepwell_core::limits;
use stepwell_core::template::Template;

/// `tool, args`. The name is constant, because permissions and policies depend on it.
pub fn tool<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let mut input = Input::default();
    match fields.take_one(&["tool", "toolName"], draft) {
        Some((_, field)) => {
            if let Some(name) = draft.constant_text(&field) {
                input.constant("tool", name);
            }
        }
        None => missing(draft, fields, "tool"),
    }
    match fields.take("args") {
        Some(field) => {
            if !is_object_or_template(&field) {
                draft.wrong_type(&field, "an object");
            }
            input.put("args", field);
        }
        None => input.constant("args", json!({})),
    }
    let input = input.parse(draft, rules.grammar);
    ParsedKind::of(Kind::Call { call: Call::Tool, input })
}

/// The code is never a template: it reads `ctx` itself.
pub fn javascript<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, code_field: &'static str) -> ParsedKind<'d> {
    let mut input = serde_json::Map::new();
    match fields.take(code_field) {
        Some(field) => {
            if let Some(text) = draft.text(&field) {
                if text.trim().is_empty() {
                    draft.fault(&field.place, Fault::new(code::BAD_VALUE, "the code is empty"));
                }
                input.insert("code".into(), text.into());
            }
        }
        None => missing(draft, fields, code_field),
    }
    if let Some(field) = fields.take("memory")
        && let Some(bytes) = bytes(draft, &field)
    {
        input.insert("memory".into(), bytes.into());
    }
    ParsedKind::of(Kind::Call { call: Call::Javascript, input: Template::constant(input.into()) })
}

/// `connection, sql, params`, or a saved query by its id. Parameters are bound, so the SQL itself is never a template.
pub fn query<'d>(draft: &mut Draft<'d>, fields: &mut Fields<'d>, rules: &Rules) -> ParsedKind<'d> {
    let mut input = Input::default();
    let saved = fields.take_one(&["saved", "dataQueryID"], draft);
    let connection = fields.take("connection");
    let sql = fields.take("sql");
    if let Some((name, field)) = &saved {
        if let Some(id) = draft.constant_text(field) {
            input.constant("saved", id);
        }
        for (other, given) in [("connection", &connection), ("sql", &sql)] {
            if let Some(given) = given {
                let message = format!("`{other}` defines a query here, but `{name}` refers to a saved one");
                draft.fault(&given.place, Fault::new(code::NOT_ALLOWED, message).hint("keep one of the two"));
            }
        }
    } else {
        for (name, given) in [("connection", &connection), ("sql", &sql)] {
            let Some(field) = given else {
                missing(draft, fields, name);
                continue;
            };
            let text = if name == "sql" { draft.text(field) } else { draft.constant_text(field) };
            match text {
                Some(text) if text.trim().is_empty() => {
                    draft.fault(&field.place, Fault::new(code::BAD_VALUE, "this must not be empty"));
                }
                Some(text) => input.constant(name, text),
                None => {}
            }
        }
    }
    if let Some((_, field)) = fields.take_one(&["params", "inputValues"], draft) {
        if !matches!(field.node.value, Value::List(_)) && !is_object_or_template(&field) {
            draft.wrong_type(&field, "a list or an object");
        }
        input.put("params", field);
    }
    if let Some(field) = fields.take("write")
        && let Some(write) = draft.boolean(&field)
    {
        input.constant("write", write);
    }
    if let Some(field) = fields.take("max_rows")
        && let Some(rows) = draft.integer(&field, 1..=limits::MAX_ROWS)
    {
        input.constant("max_rows", rows);
    }
    let input = input.parse(draft, rules.grammar);
    ParsedKind::of(Kind::Call { call: Call::Query, input })
}

fn is_object_or_template(field: &Field<'_>) -> bool {
    match &field.node.value {
        Value::Map(_) => true,
        Value::String(text) => text.trim_start().starts_with("{{"),
        _ => false,
    }
}

pub fn missing(draft: &mut Draft<'_>, fields: &Fields<'_>, name: &str) {
    draft.fault(&fields.place, Fault::new(code::MISSING_FIELD, format!("`{name}` is missing")));
}

/// A number of bytes, or text such as `64MB`.
fn bytes<'d>(draft: &mut Draft<'d>, field: &Field<'d>) -> Option<u64> {
    const LEAST: u64 = 1 << 20;
    const MOST: u64 = 4 << 30;
    let size = match &field.node.value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let text = text.trim();
            let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let scale = match text[split..].trim().to_ascii_lowercase().as_str() {
                "" | "b" => Some(1),
                "k" | "kb" | "kib" => Some(1 << 10),
                "m" | "mb" | "mib" => Some(1 << 20),
                "g" | "gb" | "gib" => Some(1u64 << 30),
                _ => None,
            };
            text[..split].parse::<u64>().ok().zip(scale).and_then(|(n, scale)| n.checked_mul(scale))
        }
        _ => {
            draft.wrong_type(field, "a number of bytes");
            return None;
        }
    };
    if size.is_none_or(|size| !(LEAST..=MOST).contains(&size)) {
        let shown = field.node.as_str().map_or_else(|| "this".to_owned(), quoted);
        let fault = Fault::new(code::BAD_NUMBER, format!("{shown} is not a size from 1MB to 4GB"));
        draft.fault(&field.place, fault.hint("write 64MB, or a number of bytes"));
        return None;
    }
    size
}
