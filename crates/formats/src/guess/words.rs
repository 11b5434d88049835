//! Templates, conditions and durations as other systems write them.

use super::Object;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Step names as their author wrote them, and as they are here.
#[derive(Default)]
pub struct Names {
    steps: BTreeMap<String, String>,
    /// What the author calls the item of a `for_each`.
    pub items: Vec<String>,
}

/// The names that begin a path.
const KNOWN: [&str; 16] = [
    "input", "trigger", "tasks", "steps", "ctx", "result", "wait", "item", "index", "vars", "run", "now", "secrets",
    "true", "false", "null",
];
const INPUTS: [&str; 17] = [
    "inputs",
    "params",
    "parameters",
    "payload",
    "event",
    "args",
    "data",
    "request",
    "body",
    "json",
    "github",
    "variables",
    "workflow",
    "context",
    "state",
    "arguments",
    "dag_run",
];
/// Parts that follow the names above and mean the input as a whole.
const THROUGH: [&str; 11] =
    ["input", "inputs", "event", "client_payload", "params", "parameters", "conf", "body", "json", "data", "arguments"];

impl Names {
    pub fn add(&mut self, written: &str, name: &str) {
        self.steps.entry(written.to_owned()).or_insert_with(|| name.to_owned());
    }

    pub fn find(&self, written: &str) -> Option<&str> {
        self.steps.get(written).or_else(|| self.steps.get(&slug(written))).map(String::as_str)
    }

    /// The same names, for the body of a loop.
    pub fn inner(&self) -> Names {
        Names { steps: self.steps.clone(), items: self.items.clone() }
    }

    /// A value with all templates in it rewritten.
    pub fn value(&self, value: &Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.text(text)),
            Json::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Json::Object(fields) => {
                let entry = |(name, value): (&String, &Json)| match (name.strip_suffix(".$"), value) {
                    // Step Functions marks fields that hold a path.
                    (Some(name), Json::String(path)) => (name.to_owned(), Json::String(self.text(path))),
                    _ => (name.clone(), self.value(value)),
                };
                Json::Object(fields.iter().map(entry).collect::<Object>())
            }
            other => other.clone(),
        }
    }

    pub fn text(&self, text: &str) -> String {
        let trimmed = text.trim();
        if trimmed == "$" || trimmed.starts_with("$.") && !trimmed.contains(' ') {
            return format!("{{{{{}}}}}", self.expr(trimmed));
        }
        let text = trimmed.strip_prefix('=').filter(|rest| rest.contains("{{")).unwrap_or(text);
        let (mut out, mut rest) = (String::new(), text);
        while let Some((at, open, close)) = next_hole(rest) {
            out.push_str(&rest[..at]);
            let inner = &rest[at + open.len()..];
            let Some(end) = inner.find(close) else { break };
            out.push_str(&format!("{{{{{}}}}}", self.expr(&inner[..end])));
            rest = &inner[end + close.len()..];
        }
        out + rest
    }

    /// A condition, which may be wrapped as a template. `None` if it says nothing.
    pub fn condition(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let text = text.strip_prefix('=').unwrap_or(text);
        let inner = [("${{", "}}"), ("{{", "}}"), ("${", "}"), ("<%", "%>")].into_iter().find_map(|(open, close)| {
            text.strip_prefix(open)?.strip_suffix(close).filter(|inner| !inner.contains(open))
        });
        let expr = self.expr(inner.unwrap_or(text));
        match expr.as_str() {
            "" | "success()" => None,
            "always()" | "!cancelled()" => Some("true".into()),
            _ => Some(expr),
        }
    }

    /// An expression with its operators and paths as they are here.
    pub fn expr(&self, text: &str) -> String {
        let text = text.trim().replace("===", "==").replace("!==", "!=");
        let text = text.strip_prefix("$.").map_or(text.clone(), |path| format!("input.{path}"));
        let text = if text == "$" { "input".to_owned() } else { text };
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            if c == '\'' || c == '"' {
                let end = rest[1..].find(c).map_or(rest.len(), |at| at + 2);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            } else if c.is_alphabetic() || c == '_' || c == '$' {
                let end = path_end(rest);
                let call = rest[end..].starts_with('(') && !rest.starts_with('$');
                out.push_str(&if call { rest[..end].to_owned() } else { self.path(&rest[..end]) });
                rest = &rest[end..];
            } else if c.is_ascii_digit() {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            } else if c == '|' && !rest.starts_with("||") && !out.ends_with('|') {
                let (filter, after) = filter(rest);
                out = out.trim_end().to_owned() + &filter;
                rest = after;
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        out.trim().to_owned()
    }

    fn path(&self, path: &str) -> String {
        match path {
            "and" | "AND" => return "&&".into(),
            "or" | "OR" => return "||".into(),
            "not" | "NOT" => return "!".into(),
            "True" => return "true".into(),
            "False" => return "false".into(),
            "None" | "nil" | "undefined" => return "null".into(),
            _ => {}
        }
        if let Some(rest) = path.strip_prefix("$node[").or_else(|| path.strip_prefix("$(")) {
            let rest = rest.trim_start_matches(['\'', '"']);
            let name = rest.split(['\'', '"']).next().unwrap_or_default();
            let tail = rest.split_once([']', ')']).map_or("", |(_, tail)| tail);
            let tail = tail.strip_prefix(".item").or_else(|| tail.strip_prefix(".first()")).unwrap_or(tail);
            return format!(
                "tasks.{}.body{}",
                self.find(name).unwrap_or(name),
                tail.strip_prefix(".json").unwrap_or(tail)
            );
        }
        let path = path.trim_start_matches('$').trim_start_matches('.');
        let (first, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
        let rest = rest.replace("['", ".").replace("']", "").replace("[\"", ".").replace("\"]", "");
        match first {
            _ if self.items.iter().any(|item| item == first) => format!("item{rest}"),
            "each" | "loop" | "matrix" if !self.steps.contains_key(first) => {
                format!("item{}", rest.strip_prefix(".value").or_else(|| rest.strip_prefix(".item")).unwrap_or(&rest))
            }
            "secret" | "credentials" | "env" => format!("secrets{rest}"),
            "needs" | "jobs" | "nodes" | "task" | "step" | "activities" | "outputs" => self.result_of(&rest),
            "tasks" | "steps" if is_native(&rest) => path.to_owned(),
            "tasks" | "steps" => self.result_of(&rest),
            "trigger" => {
                let (field, after) =
                    rest.split_at(rest[rest.len().min(1)..].find(['.', '[']).map_or(rest.len(), |at| at + 1));
                match field {
                    "" | ".body" | ".headers" | ".query" => path.to_owned(),
                    ".payload" | ".data" | ".input" | ".event" | ".json" => format!("trigger.body{after}"),
                    _ => format!("trigger.body{rest}"),
                }
            }
            "input" => format!("input{rest}"),
            _ if KNOWN.contains(&first) => path.to_owned(),
            _ if self.find(first).is_some() => self.result_of(&format!(".{path}")),
            _ if INPUTS.contains(&first) => {
                let mut rest = rest.as_str();
                while let Some(part) = THROUGH.iter().find_map(|part| {
                    let after = rest.strip_prefix('.')?.strip_prefix(part)?;
                    (after.is_empty() || after.starts_with('.')).then_some(after)
                }) {
                    rest = part;
                }
                format!("input{rest}")
            }
            _ => format!("input.{first}{rest}"),
        }
    }

    /// `.NAME.outputs.x` of a step.
    fn result_of(&self, rest: &str) -> String {
        let rest = rest.trim_start_matches('.');
        let (name, rest) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        let name = self.find(name).unwrap_or(name);
        let (field, after) = rest.split_at(rest[rest.len().min(1)..].find(['.', '[']).map_or(rest.len(), |at| at + 1));
        let field = match field {
            "" | ".outputs" | ".output" | ".result" | ".results" | ".response" | ".data" | ".json" | ".outcome" => {
                ".body"
            }
            ".conclusion" | ".state" => ".status",
            ".statusCode" => ".status_code",
            ".body" | ".status" | ".status_code" | ".headers" | ".error" => field,
            _ => return format!("tasks.{name}.body{rest}"),
        };
        let after = after.strip_prefix(".body").filter(|_| rest.starts_with(".res")).unwrap_or(after);
        format!("tasks.{name}{field}{after}")
    }
}

/// Whether `.NAME.field…` names a field that steps have.
fn is_native(rest: &str) -> bool {
    let field = rest[rest.len().min(1)..].split_once('.').map_or("", |(_, field)| field);
    let field = field.split(['.', '[']).next().unwrap_or_default();
    ["body", "result", "output", "status", "status_code", "headers", "error"].contains(&field)
}

/// A filter of Jinja or Liquid: a default is `??`, others are left out.
fn filter(rest: &str) -> (String, &str) {
    let inner = rest[1..].trim_start();
    let end = inner.find('|').unwrap_or(inner.len());
    let (filter, after) = inner.split_at(end);
    let value = filter.trim().strip_prefix("default").map(|value| value.trim_matches([' ', ':', '(', ')']));
    (value.map(|value| format!(" ?? {value}")).unwrap_or_default(), after)
}

fn path_end(text: &str) -> usize {
    let (mut end, mut open) = (0, None);
    for (at, c) in text.char_indices() {
        match (open, c) {
            (Some(close), c) if c == close => open = None,
            (Some(_), _) => {}
            (None, '[') => open = Some(']'),
            (None, '(') if text.starts_with("$(") => open = Some(')'),
            (None, c) if c.is_alphanumeric() || matches!(c, '_' | '.' | '$') => {}
            // A hyphen belongs to a name only inside of it.
            (None, '-') if text[at + 1..].starts_with(|c: char| c.is_alphanumeric()) => {}
            _ => break,
        }
        end = at + c.len_utf8();
    }
    end
}

fn next_hole(text: &str) -> Option<(usize, &'static str, &'static str)> {
    [("${{", "}}"), ("{{", "}}"), ("${", "}"), ("$(", ")"), ("<<", ">>"), ("<%", "%>")]
        .into_iter()
        .filter_map(|(open, close)| Some((text.find(open)?, open, close)))
        .min_by_key(|(at, open, _)| (*at, usize::MAX - open.len()))
}

/// The paths of steps that a value reads.
pub fn steps_read(value: &Json, found: &mut Vec<String>) {
    match value {
        Json::String(text) => {
            for prefix in ["tasks.", "steps."] {
                for (at, _) in text.match_indices(prefix) {
                    let name = &text[at + prefix.len()..];
                    let end =
                        name.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).unwrap_or(name.len());
                    if !found.iter().any(|known| *known == name[..end]) {
                        found.push(name[..end].to_owned());
                    }
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| steps_read(item, found)),
        Json::Object(fields) => fields.values().for_each(|field| steps_read(field, found)),
        _ => {}
    }
}

/// A name that a step can have.
pub fn slug(name: &str) -> String {
    let plain: String =
        { name.trim().chars() }.map(|c| if c.is_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let mut short = String::new();
    for c in plain.trim_matches('-').chars() {
        if c != '-' || !short.ends_with('-') {
            short.push(c);
        }
    }
    short.chars().take(60).collect()
}

/// A duration such as `10 minutes`, `PT5M` or `{seconds: 10}`, in the form `10m`. A bare number is in `unit`.
pub fn duration(value: &Json, unit: &str) -> Option<String> {
    match value {
        Json::Number(number) => Some(format!("{number}{unit}")),
        Json::Object(fields) => {
            let parts = fields.iter().filter_map(|(name, value)| Some(format!("{value}{}", unit_of(name)?)));
            Some(parts.collect::<String>()).filter(|text| !text.is_empty())
        }
        Json::String(text) => {
            let text = text.trim();
            if let Ok(number) = text.parse::<f64>() {
                return Some(format!("{number}{unit}"));
            }
            if let Some(iso) = text.strip_prefix('P') {
                let (days, time) = iso.split_once('T').unwrap_or((iso, ""));
                return Some(days.to_lowercase() + &time.to_lowercase()).filter(|text| !text.is_empty());
            }
            if let Some(parts) = text.split(':').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<u32>>>()
                && let [hours, minutes, seconds] = parts[..]
            {
                return Some(format!("{}s", hours * 3_600 + minutes * 60 + seconds));
            }
            let (number, word) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
            match unit_of(word.trim()) {
                Some(unit) if !number.is_empty() => Some(format!("{number}{unit}")),
                _ => None,
            }
        }
        _ => None,
    }
}

fn unit_of(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ms" | "millis" | "milliseconds" | "millisecond" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        "w" | "week" | "weeks" => "w",
        _ => return None,
    })
}
