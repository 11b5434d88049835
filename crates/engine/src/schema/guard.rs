//! Keeps the check of one value within its time and its stack.
//!
//! The validator cannot be interrupted from outside. So a keyword of our own comes before every schema that can apply: it
//! is called for each part of the value, looks at the clock and the stack, and unwinds out of the validator when either is
//! used up.

use super::{Error, Fault, bounds, rewrite};
use jsonschema::{Keyword, PatternOptions, ValidationError, Validator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Time for checking one value.
pub const DEADLINE: Duration = Duration::from_millis(100);
/// Stack that checking a value may use, and the stack of the threads that do it.
const MAX_STACK: usize = 8 * 1024 * 1024;
pub const THREAD_STACK: usize = 2 * MAX_STACK;
/// Bytes of one compiled regular expression, and of its cache.
const PATTERN_BYTES: usize = 512 * 1024;
/// Memory of a simple regular expression, per byte of its text.
const MEMORY_PER_BYTE: usize = 200;
/// Bytes of a text that is matched against a `pattern` or a `format`.
const MAX_TEXT: usize = 16 * 1024;
/// Bytes of an object's names, times the number of patterns they are matched against.
const MAX_NAMES: usize = 256 * 1024;
/// Work to find all faults of a value. If it takes more, only the first fault is reported.
const MAX_WORK: u64 = 10_000;
/// Work to find the first fault. If it takes more, the place of the fault is not reported.
const MAX_WORK_FIRST: u64 = 100_000;
/// Bytes of a message, which may quote the value.
const MAX_MESSAGE: usize = 1_000;
/// The name of our keyword.
const NAME: &str = "x-stepwell-guard";

/// Approximate memory of a compiled regular expression. One with counted repetitions or classes of Unicode may be large.
pub fn pattern_memory(pattern: &str) -> usize {
    match pattern.contains(['{', 'p']) {
        true => PATTERN_BYTES,
        false => pattern.len() * MEMORY_PER_BYTE,
    }
}

/// Compiles a schema within the bounds.
pub fn compile(source: &Value) -> Result<Validator, Error> {
    jsonschema::meta::validate(source).map_err(|error| invalid(error.instance_path().to_string(), &error))?;
    let guarded = rewrite::guarded(source, |schema| json!({NAME: Guard::new(schema)}))?;
    build(&guarded).map_err(|error| {
        // The path of this error is one of the rewritten schema. Apart from patterns, the original was checked above.
        let patterns = bounds::patterns(source);
        let bad = patterns.iter().find(|(pattern, _)| build(&json!({"pattern": pattern})).is_err());
        invalid(bad.map(|(_, path)| path.clone()).unwrap_or_default(), &error)
    })
}

fn build(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let options = jsonschema::options().with_pattern_options(patterns).with_keyword(NAME, |_, guard, _| {
        let guard = Guard::deserialize(guard).map_err(|error| ValidationError::custom(error.to_string()))?;
        let guard: Box<dyn for<'i> Keyword<'i>> = Box::new(guard);
        Ok(guard)
    });
    options.build(schema)
}

fn invalid(path: String, error: &ValidationError<'_>) -> Error {
    Error::Invalid { path, message: shorten(error.to_string()) }
}

/// At most `most` faults of a value.
pub fn faults(validator: &Validator, value: &Value, most: usize) -> Result<Vec<Fault>, Error> {
    let deadline = Instant::now() + DEADLINE;
    if limited(deadline, u64::MAX, || validator.is_valid(value)).map_err(Error::from)? {
        return Ok(Vec::new());
    }
    let fault =
        |error: ValidationError| Fault { path: error.instance_path().to_string(), message: shorten(error.to_string()) };
    let all = || validator.iter_errors(value).take(most).map(fault).collect();
    let first = || validator.validate(value).err().map(fault).into_iter().collect();
    let unknown = || vec![Fault { path: String::new(), message: "does not match the schema".into() }];
    let found = limited(deadline, MAX_WORK, all).or_else(|_| limited(deadline, MAX_WORK_FIRST, first));
    // It took less than the deadline to find that the value is invalid.
    Ok(found.unwrap_or_else(|_| unknown()))
}

fn shorten(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
        message.truncate(end);
        message.push('…');
    }
    message
}

/// Why a check was stopped.
#[derive(Clone, Copy)]
enum Stop {
    Time,
    Stack,
    Work,
    Text,
    Names,
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Error {
        Error::Costly(match stop {
            Stop::Time | Stop::Work => {
                format!("checking it against the schema takes more than {} ms", DEADLINE.as_millis())
            }
            Stop::Stack => "it is nested too deeply for the schema".into(),
            Stop::Text => format!("a text of more than {MAX_TEXT} bytes cannot be checked against a pattern or format"),
            Stop::Names => "an object has too many names for the patterns of the schema".into(),
        })
    }
}

#[derive(Clone, Copy)]
struct Limits {
    deadline: Instant,
    /// Address of the stack when the check began.
    stack: usize,
    work: u64,
}

thread_local! {
    /// The limits of the check that this thread makes.
    static LIMITS: Cell<Option<Limits>> = const { Cell::new(None) };
}

/// Runs a check within limits.
fn limited<T>(deadline: Instant, work: u64, check: impl FnOnce() -> T) -> Result<T, Stop> {
    LIMITS.set(Some(Limits { deadline, stack: stack_address(), work }));
    let checked = catch_unwind(AssertUnwindSafe(check));
    LIMITS.set(None);
    checked.map_err(|panic| match panic.downcast::<Stop>() {
        Ok(stop) => *stop,
        Err(panic) => resume_unwind(panic),
    })
}

#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// Our keyword in one schema.
#[derive(Serialize, Deserialize)]
struct Guard {
    work: u64,
    /// The schema has a `pattern` or a `format`.
    matches: bool,
    /// How many patterns the names of an object are matched against.
    patterns: usize,
}

impl Guard {
    fn new(schema: &Map<String, Value>) -> Guard {
        let entries = |value: &Value| match value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 1,
        };
        Guard {
            work: schema.values().map(entries).sum::<usize>() as u64,
            matches: schema.contains_key("pattern") || schema.contains_key("format"),
            patterns: schema.get("patternProperties").map_or(0, entries),
        }
    }

    fn check(&self, value: &Value) {
        let Some(mut limits) = LIMITS.get() else { return };
        let stop = |why: Stop| resume_unwind(Box::new(why));
        match value {
            Value::String(text) if self.matches && text.len() > MAX_TEXT => stop(Stop::Text),
            Value::Object(map) if self.patterns > 0 => {
                let bytes: usize = map.keys().map(|name| name.len() + 1).sum();
                if bytes.saturating_mul(self.patterns) > MAX_NAMES {
                    stop(Stop::Names);
                }
            }
            _ => {}
        }
        if limits.stack.abs_diff(stack_address()) > MAX_STACK {
            stop(Stop::Stack);
        }
        if Instant::now() >= limits.deadline {
            stop(Stop::Time);
        }
        match limits.work.checked_sub(self.work) {
            Some(left) => limits.work = left,
            None => stop(Stop::Work),
        }
        LIMITS.set(Some(limits));
    }
}

impl<'i> Keyword<'i> for Guard {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        self.check(value);
        Ok(())
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.check(value);
        true
    }
}
