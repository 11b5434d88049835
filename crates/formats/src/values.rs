//! Reads and checks values of fields: text, numbers, durations, names, expressions, templates. An invalid value is
//! reported and treated as absent.

use crate::code;
use crate::draft::{Draft, Place};
use crate::fault::Fault;
use crate::fields::{Field, Fields, quoted};
use crate::source::{Node, Value, join_key};
use serde_json::{Map, Value as Json};
use std::ops::{Range, RangeInclusive};
use stepwell_core::expr::{Expr, Grammar};
use stepwell_core::limits;
use stepwell_core::template::{Template, TemplateFault};
use stepwell_core::time::Millis;

/// The unit of a bare number that is used as a duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Seconds,
    Millis,
}

/// What a duration limits, which decides what is plausible for a bare number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// A request, a query, code.
    Call,
    /// A child workflow.
    Child,
    /// Until somebody or something answers.
    Answer,
}

impl Lasts {
    /// The shortest and the longest plausible duration.
    fn plausible(self) -> (Millis, Millis) {
        let (minute, year) = (Millis::from_secs(60), Millis(366 * Millis::DAY.0));
        match self {
            Lasts::Call => (Millis::SECOND, Millis::DAY),
            Lasts::Child => (Millis::SECOND, year),
            Lasts::Answer => (minute, year),
        }
    }
}

/// A longer one that is written as a number of whole thousands was probably meant in milliseconds.
const LONGEST_PLAUSIBLE: Millis = Millis(10 * Millis::DAY.0);

/// Whether a number of seconds was probably meant in milliseconds. Whole days up to a year, such as 2592000, are usual.
fn is_rather_millis(found: Millis) -> bool {
    let whole_days = found.0.is_multiple_of(Millis::DAY.0) && found.0 <= 366 * Millis::DAY.0;
    found > LONGEST_PLAUSIBLE && found.0.is_multiple_of(1_000_000) && !whole_days
}

impl<'d> Draft<'d> {
    /// A duration of at least a millisecond. A bare number that was probably meant in another unit gets a warning.
    pub fn timeout(&mut self, field: &Field<'d>, unit: Unit, lasts: Lasts) -> Option<Millis> {
        let found = self.duration(field, unit)?;
        self.positive(field, found)?;
        let (least, most) = lasts.plausible();
        // 86400 and 604800 are a day and a week, in seconds.
        let odd = lasts == Lasts::Answer && found < Millis::from_secs(3_600) && !found.0.is_multiple_of(1_000);
        let suspicious = match unit {
            Unit::Millis => found < least || odd,
            Unit::Seconds => is_rather_millis(found),
        };
        if found > most || suspicious {
            self.warn_of_unit(field, found, unit);
        }
        Some(found)
    }

    /// How long something lasts, such as a sleep. A bare number is in seconds, and gets a warning if it was probably
    /// meant in milliseconds.
    pub fn lasting(&mut self, field: &Field<'d>) -> Option<Millis> {
        let found = self.duration(field, Unit::Seconds)?;
        if is_rather_millis(found) {
            self.warn_of_unit(field, found, Unit::Seconds);
        }
        Some(found)
    }

    /// The same for something that takes time at all, such as a run.
    pub fn positive_lasting(&mut self, field: &Field<'d>) -> Option<Millis> {
        let found = self.lasting(field)?;
        self.positive(field, found)
    }

    /// The pause before a retry, where a bare number such as 500 or 30000 was probably meant in milliseconds.
    pub fn pause(&mut self, field: &Field<'d>) -> Option<Millis> {
        let found = self.duration(field, Unit::Seconds)?;
        let seconds = found.0 / 1_000;
        let is_round = seconds.is_multiple_of(3_600) || seconds.is_multiple_of(60) && seconds <= 3_600;
        if seconds >= 500 && seconds.is_multiple_of(100) && !is_round {
            self.warn_of_unit(field, found, Unit::Seconds);
        }
        Some(found)
    }

    /// Spells out what a bare number means, and what it would mean in the other unit.
    pub fn warn_of_unit(&mut self, field: &Field<'d>, found: Millis, unit: Unit) {
        let written = match &field.node.value {
            Value::Number(number) => number.to_string(),
            Value::String(text) if text.trim().parse::<f64>().is_ok() => text.trim().to_owned(),
            _ => return,
        };
        let (here, there, other) = match unit {
            Unit::Millis => ("milliseconds", "seconds", found.0.saturating_mul(1_000)),
            Unit::Seconds => ("seconds", "milliseconds", found.0 / 1_000),
        };
        let message = format!("{written} is {found}, because a bare number is in {here} here");
        let hint = match Some(Millis(other)).filter(|other| (Millis(1)..=Millis::MAX).contains(other)) {
            Some(other) => format!("write {other} if you mean {written} {there}, or {found} to keep it"),
            None => format!("write {found} to keep it"),
        };
        self.warn(&field.place, Fault::new(code::SUSPICIOUS_DURATION, message).hint(hint));
    }

    pub fn wrong_type(&mut self, field: &Field<'d>, wanted: &str) {
        let message = format!("{wanted} is needed here, not {}", field.node.describe());
        let fault = Fault::new(code::WRONG_TYPE, message);
        let fault = match field.node.as_str() {
            Some("yes" | "on" | "Yes" | "On") if wanted.starts_with("true") => fault.hint("write true"),
            Some("no" | "off" | "No" | "Off") if wanted.starts_with("true") => fault.hint("write false"),
            _ => fault,
        };
        self.fault(&field.place, fault);
    }

    pub fn text(&mut self, field: &Field<'d>) -> Option<&'d str> {
        let text = field.node.as_str();
        if text.is_none() {
            self.wrong_type(field, "text");
        }
        text
    }

    /// Text without a template: it must be known when the workflow is defined.
    pub fn constant_text(&mut self, field: &Field<'d>) -> Option<&'d str> {
        let text = self.text(field)?;
        if text.trim().is_empty() {
            self.fault(&field.place, Fault::new(code::BAD_VALUE, "this must not be empty"));
            return None;
        }
        if let Some(at) = text.find("{{") {
            let place = Place { span: field.node.within(at, text.len()), ..field.place.clone() };
            let message = "a template is not allowed here: the value must be known when the workflow is defined";
            self.fault(&place, Fault::new(code::NOT_CONSTANT, message));
            return None;
        }
        Some(text)
    }

    pub fn boolean(&mut self, field: &Field<'d>) -> Option<bool> {
        match field.node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.wrong_type(field, "true or false");
                None
            }
        }
    }

    pub fn flag(&mut self, fields: &mut Fields<'d>, name: &'static str, default: bool) -> bool {
        fields.take(name).and_then(|field| self.boolean(&field)).unwrap_or(default)
    }

    /// A whole number in a range, which must be that of the field; editors may write it as text.
    pub fn integer(&mut self, field: &Field<'d>, range: RangeInclusive<u32>) -> Option<u32> {
        debug_assert!(field.shape.is_unknown() || field.shape.range() == range, "{}", field.place.path);
        let number = match &field.node.value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse::<u32>().ok().map(f64::from),
            _ => None,
        };
        let Some(number) = number else {
            self.wrong_type(field, "a whole number");
            return None;
        };
        if number.fract() != 0.0 || number < f64::from(*range.start()) || number > f64::from(*range.end()) {
            let message = format!("a whole number from {} to {} is needed here", range.start(), range.end());
            self.fault(&field.place, Fault::new(code::BAD_NUMBER, message));
            return None;
        }
        Some(number as u32)
    }

    pub fn duration(&mut self, field: &Field<'d>, unit: Unit) -> Option<Millis> {
        debug_assert!(field.shape.is_unknown() || field.shape.unit() == unit, "{}", field.place.path);
        let mut too_long = false;
        let found = match &field.node.value {
            Value::Number(number) => number.as_f64().and_then(|n| {
                too_long = n > 0.0;
                Millis::from_secs_f64(if unit == Unit::Seconds { n } else { n / 1_000.0 })
            }),
            Value::String(text) if unit == Unit::Millis && text.trim().parse::<f64>().is_ok() => None,
            Value::String(text) => {
                too_long = is_length(text);
                Millis::parse(text)
            }
            _ => {
                self.wrong_type(field, "a duration");
                return None;
            }
        };
        if found.is_none() && too_long {
            self.too_long(&field.place);
        } else if found.is_none() {
            let fault = Fault::new(code::BAD_DURATION, "this is not a duration");
            let number = if unit == Unit::Seconds { "seconds" } else { "milliseconds" };
            let hint = format!("write 30s, 5m, 2h or 1d, or a number of {number}");
            self.fault(&field.place, fault.hint(hint));
        }
        found
    }

    pub fn too_long(&mut self, place: &Place) {
        let message = format!("this is longer than {}, the longest duration allowed", Millis::MAX);
        self.fault(place, Fault::new(code::BAD_DURATION, message));
    }

    fn positive(&mut self, field: &Field<'d>, found: Millis) -> Option<Millis> {
        if found == Millis(0) {
            self.fault(&field.place, Fault::new(code::BAD_DURATION, "this must be longer than zero"));
            return None;
        }
        Some(found)
    }

    /// One of several choices, which must be those of the field.
    pub fn choice<T: Copy>(&mut self, field: &Field<'d>, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(field)?;
        let same = || choices.iter().map(|(name, _)| *name).eq(field.shape.choices().iter().copied());
        debug_assert!(field.shape.is_unknown() || same(), "{}", field.place.path);
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*choice);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let fault = Fault::new(code::BAD_VALUE, format!("{} is not one of {}", quoted(text), names.join(", ")));
        let near = self.near(text, names.iter().copied());
        self.fault(&field.place, fault.maybe_hint(near));
        None
    }

    pub fn items(&mut self, field: &Field<'d>) -> Vec<Field<'d>> {
        let Value::List(items) = &field.node.value else {
            self.wrong_type(field, "a list");
            return Vec::new();
        };
        let place = |n: usize, node: &Node| Place { path: format!("{}[{n}]", field.place.path), span: node.span };
        items
            .iter()
            .enumerate()
            .map(|(n, node)| Field { node, place: place(n, node), shape: field.shape.inner() })
            .collect()
    }

    /// A list, or a single string that stands for a list of one.
    pub fn one_or_more(&mut self, field: &Field<'d>) -> Vec<Field<'d>> {
        match field.node.value {
            Value::String(_) => vec![field.clone()],
            _ => self.items(field),
        }
    }

    /// The items; if there are too many, a fault and the first `most`.
    pub fn at_most(&mut self, mut items: Vec<Field<'d>>, most: usize) -> Vec<Field<'d>> {
        if let Some(first) = items.get(most) {
            let place = first.place.clone();
            self.too_many(&place, items.len(), most);
            items.truncate(most);
        }
        items
    }

    pub fn too_many(&mut self, place: &Place, count: usize, most: usize) {
        let fault = Fault::new(code::BAD_VALUE, format!("{count} entries; at most {most} are allowed"));
        self.fault(place, fault);
    }

    /// Reports a name that is not valid for a step.
    pub fn step_name(&mut self, name: &str, place: &Place) {
        if let Some(fault) = name_fault(name) {
            self.fault(place, fault);
        }
    }

    pub fn unknown_step<'n>(&mut self, name: &str, place: &Place, known: impl IntoIterator<Item = &'n str>) {
        let fault = Fault::new(code::UNKNOWN_STEP, format!("no step named {}", quoted(name)));
        let near = self.near(name, known);
        self.fault_in_shape(place, fault.maybe_hint(near));
    }

    /// A condition. YAML reads a bare `true` or `false` as a boolean.
    pub fn expr(&mut self, field: &Field<'d>, grammar: Grammar) -> Option<Expr> {
        let text = match field.node.value {
            Value::Bool(true) => "true",
            Value::Bool(false) => "false",
            _ => self.text(field)?,
        };
        let trimmed = text.trim();
        // Some authors write a condition as a template; its braces add nothing.
        let inner = trimmed.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
        let source = inner.filter(|t| !t.contains("{{") && !t.contains("}}")).unwrap_or(text);
        let offset = source.as_ptr() as usize - text.as_ptr() as usize;
        Expr::parse(source, grammar)
            .map_err(|error| {
                let (start, end) = (error.at.start as usize + offset, error.at.end as usize + offset);
                let place = Place { span: field.node.within(start, end), ..field.place.clone() };
                self.fault(&place, Fault::new(code::BAD_EXPRESSION, error.message).maybe_hint(error.hint));
            })
            .ok()
    }

    pub fn template(&mut self, field: &Field<'d>, grammar: Grammar) -> Option<Template> {
        let (template, faults) = Template::parse_lenient(&field.node.to_json(), grammar);
        self.template_faults(field, faults);
        Some(template)
    }

    fn template_faults(&mut self, field: &Field<'d>, faults: Vec<TemplateFault>) {
        for fault in faults {
            let segments = fault.pointer.split('/').skip(1);
            let place = inside(field, segments, fault.span.range());
            self.fault(&place, Fault::new(code::BAD_TEMPLATE, fault.message).maybe_hint(fault.hint));
        }
    }
}

/// A step as written, without its description: changing a description does not change the step.
pub fn written(node: &Node) -> Json {
    let mut json = node.to_json();
    // Bodies are nested no deeper than documents.
    let mut todo = vec![&mut json];
    while let Some(step) = todo.pop() {
        if let Some(fields) = step.as_object_mut() {
            fields.remove("description");
            todo.extend(
                fields.get_mut("tasks").and_then(Json::as_object_mut).into_iter().flat_map(|body| body.values_mut()),
            );
        }
    }
    json
}

/// Whether the text has the form of a duration, however long: it would be valid if its digits were all zeros.
fn is_length(text: &str) -> bool {
    let zeros: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    !text.trim().starts_with('-') && Millis::parse(&zeros).is_some()
}

/// The fault of a name that is not valid for a step: dots, brackets and colons would make paths ambiguous.
pub fn name_fault(name: &str) -> Option<Fault> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let message = if name.is_empty() {
        "a step's name must not be empty".to_owned()
    } else if name.len() > limits::MAX_NAME_BYTES {
        format!("a step's name has at most {} bytes", limits::MAX_NAME_BYTES)
    } else if name.trim() != name {
        format!("the name {} begins or ends with a space", quoted(name))
    } else {
        let odd = name.chars().find(|&c| !plain(c))?;
        let fault =
            Fault::new(code::BAD_NAME, format!("the name {} contains {}", quoted(name), quoted(&odd.to_string())));
        return Some(fault.hint("use letters, digits, `_`, `-` and spaces"));
    };
    Some(Fault::new(code::BAD_NAME, message))
}

/// Follows a JSON pointer into a field.
fn inside<'p>(field: &Field<'_>, segments: impl Iterator<Item = &'p str>, bytes: Range<usize>) -> Place {
    let mut node = field.node;
    let mut path = field.place.path.clone();
    for segment in segments {
        let key = segment.replace("~1", "/").replace("~0", "~");
        let next = match &node.value {
            Value::List(items) => key.parse().ok().and_then(|n: usize| items.get(n)),
            _ => node.get(&key),
        };
        path = match node.value {
            Value::List(_) => format!("{path}[{key}]"),
            _ => join_key(&path, &key),
        };
        match next {
            Some(next) => node = next,
            None => return Place { path, span: node.span },
        }
    }
    Place { path, span: node.within(bytes.start, bytes.end).or(node.span).or(field.place.span) }
}

/// The input of a call: one template made from several fields.
#[derive(Default)]
pub struct Input<'d> {
    object: Map<String, Json>,
    parts: Vec<(&'static str, Field<'d>)>,
}

impl<'d> Input<'d> {
    pub fn put(&mut self, name: &'static str, field: Field<'d>) {
        self.object.insert(name.into(), field.node.to_json());
        self.parts.push((name, field));
    }

    /// Adds a value that was made from a field and others. Only faults in the field are reported.
    pub fn put_as(&mut self, name: &'static str, field: Option<Field<'d>>, value: Json) {
        self.object.insert(name.into(), value);
        self.parts.extend(field.map(|field| (name, field)));
    }

    /// Adds a value in which `{{` is literal text.
    pub fn constant(&mut self, name: &'static str, value: impl Into<Json>) {
        let value = match value.into() {
            Json::String(text) => Json::String(escaped(&text)),
            other => other,
        };
        self.object.insert(name.into(), value);
    }

    pub fn parse(self, draft: &mut Draft<'d>, grammar: Grammar) -> Template {
        let (template, faults) = Template::parse_lenient(&Json::Object(self.object), grammar);
        for mut fault in faults {
            let mut pointer = fault.pointer.splitn(3, '/').skip(1);
            let name = pointer.next().unwrap_or_default();
            let rest = pointer.next().map(|rest| format!("/{rest}")).unwrap_or_default();
            if let Some((_, field)) = self.parts.iter().find(|(part, _)| *part == name) {
                fault.pointer = rest;
                draft.template_faults(field, vec![fault]);
            }
        }
        template
    }
}

/// Escapes text so that a template resolves to it unchanged.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let plain = rest[..at].trim_end_matches('\\');
        out.push_str(plain);
        out.push_str(&"\\".repeat(2 * (at - plain.len()) + 1));
        out.push_str("{{");
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_constant_resolves_to_itself() {
        for text in ["", "plain", "'{{1,2},{3,4}}'::int[]", r"\{{", r"a\\{{b}}", "{{{{"] {
            let template = Template::parse(&Json::String(escaped(text)), Grammar::Standard).expect(text);
            assert_eq!(template.as_constant(), Some(&Json::String(text.into())));
        }
    }
}
