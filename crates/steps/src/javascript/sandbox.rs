//! One evaluation inside a worker: runs the code as the body of an async function in a fresh QuickJS runtime, and its
//! jobs until the promise settles. No state is kept.
//!
//! The interrupt handler stops loops at the deadline, and the runtime's limits stop most resource exhaustion. Native
//! loops that cannot be interrupted are left to the server, which kills the process.

use super::protocol::{Failed, FetchResponse, Job, MAX_OUTPUT};
use rquickjs::context::EvalOptions;
use rquickjs::{Array, CatchResultExt, CaughtError, Context, Ctx, Function, Object, Promise, Runtime, Value};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

const PRELUDE: &str = include_str!("prelude.js");
/// The code becomes the body of this function, on the same line to preserve line numbers.
const BEFORE: &str = "(async (ctx) => {";
const AFTER: &str = "\n})";
/// Code that is only checked stands behind this statement, so that nothing of it runs.
const NEVER: &str = "throw 1;";
/// A second form for checks. What ends the function of one form early, to go on outside it, is an error in the other.
const DECLARED: [&str; 2] = ["async function step(ctx) {", "\n}"];
/// The file name in stack traces.
const FILE: &str = "step.js";
const MAX_STACK: usize = 1 << 20;
/// Maximum length of an error message, in bytes.
const MAX_ERROR: usize = 4_000;

/// The worker's services for an evaluation.
pub trait Host {
    fn log(&self, level: String, text: String);
    fn fetch(&self, id: u32, request: String);
    /// Waits for the response to any open request.
    fn next_response(&self) -> (u32, Result<FetchResponse, String>);
}

pub fn evaluate(job: &Job, host: &Rc<impl Host + 'static>) -> Result<Box<RawValue>, Failed> {
    let runtime = Runtime::new().map_err(|_| out_of_memory(job))?;
    runtime.set_memory_limit(usize::try_from(job.memory).unwrap_or(usize::MAX));
    runtime.set_max_stack_size(MAX_STACK);
    // Delays the first garbage collection until memory is short, which `wasShort` of the prelude relies on.
    runtime.set_gc_threshold(usize::try_from(job.memory / 4 * 3).unwrap_or(usize::MAX));
    let late = Rc::new(Cell::new(false));
    let deadline = Instant::now() + Duration::from_millis(job.timeout_ms);
    let clock = late.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || {
        let over = Instant::now() >= deadline;
        clock.set(clock.get() || over);
        over
    })));
    let context = Context::full(&runtime).map_err(|_| out_of_memory(job))?;
    let result = context.with(|ctx| match Evaluation::start(job, host, &ctx)? {
        Some(evaluation) => evaluation.settle(&late),
        None => Ok(RawValue::NULL.to_owned()),
    });
    if late.get() { Err(timed_out(job.timeout_ms)) } else { result }
}

pub fn timed_out(timeout_ms: u64) -> Failed {
    let seconds = timeout_ms as f64 / 1_000.0;
    Failed::new("timeout", format!("the code did not finish within {seconds} s; set a longer `timeout`"))
}

fn out_of_memory(job: &Job) -> Failed {
    let megabytes = job.memory >> 20;
    Failed::new("memory_limit", format!("the code needs more than {megabytes} MB; set a higher `memory`"))
}

struct Evaluation<'a, 'js, H> {
    job: &'a Job,
    host: &'a H,
    ctx: &'a Ctx<'js>,
    prelude: Object<'js>,
    promise: Promise<'js>,
    /// Requests without a response.
    open: Rc<Cell<usize>>,
}

impl<'a, 'js, H: Host + 'static> Evaluation<'a, 'js, H> {
    /// `None` if the code is only checked.
    fn start(job: &'a Job, host: &'a Rc<H>, ctx: &'a Ctx<'js>) -> Result<Option<Self>, Failed> {
        let open = Rc::new(Cell::new(0));
        let globals = Globals { host, open: &open, placeholder: job.fetch.as_deref() };
        let prelude = prelude(ctx, globals).catch(ctx).map_err(|error| failed(job, None, error))?;
        let failed = |error| failed(job, Some(&prelude), error);
        if job.check {
            return check(ctx, &job.code, failed).map(|()| None);
        }
        let body = ctx.eval_with_options::<Function, _>(format!("{BEFORE}{}{AFTER}", job.code), options());
        let body = body.catch(ctx).map_err(|error| syntax_error(failed(error)))?;
        let begun = || body.call((ctx.json_parse(job.ctx.get())?,));
        let promise: Promise = begun().catch(ctx).map_err(failed)?;
        Ok(Some(Evaluation { job, host, ctx, prelude, promise, open }))
    }

    fn settle(self, late: &Cell<bool>) -> Result<Box<RawValue>, Failed> {
        let failed = |error| failed(self.job, Some(&self.prelude), error);
        let value: Value = loop {
            if late.get() {
                return Err(timed_out(self.job.timeout_ms));
            }
            if let Some(result) = self.promise.result() {
                break result.catch(self.ctx).map_err(failed)?;
            }
            if self.ctx.execute_pending_job() {
                continue;
            }
            if self.open.get() == 0 {
                let message = "the code waits for a promise that nothing will ever settle";
                return Err(Failed::new("never_finished", message));
            }
            self.open.set(self.open.get() - 1);
            self.deliver().catch(self.ctx).map_err(failed)?;
        };
        let written = || -> rquickjs::Result<(String, String)> {
            let result: Array = self.prelude.get::<_, Function>("result")?.call((value,))?;
            Ok((result.get(0)?, result.get(1)?))
        };
        let (verdict, text) = written().catch(self.ctx).map_err(failed)?;
        if verdict != "good" {
            return Err(Failed::new("bad_result", format!("the result cannot be represented as JSON: {text}")));
        }
        if text.len() > MAX_OUTPUT {
            let message = format!("the result has {} bytes of JSON; at most {MAX_OUTPUT} are allowed", text.len());
            return Err(Failed::new("output_too_large", message));
        }
        RawValue::from_string(text).map_err(|error| Failed::new("bad_result", error.to_string()))
    }

    fn deliver(&self) -> rquickjs::Result<()> {
        let (id, response) = self.host.next_response();
        let response = serde_json::to_string(&response).unwrap_or_default();
        self.prelude.get::<_, Function>("fetched")?.call((id, response))
    }
}

fn options() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(FILE.into());
    options
}

/// Parses the code as the body of a function and runs none of it.
fn check<'js>(ctx: &Ctx<'js>, code: &str, failed: impl Fn(CaughtError<'js>) -> Failed) -> Result<(), Failed> {
    let parse = |[before, after]: [&str; 2]| {
        let parsed = ctx.eval_with_options::<Value, _>(format!("{NEVER}{before}{code}{after}"), options());
        match parsed.catch(ctx) {
            // Parsed completely, then stopped before the code.
            Ok(_) => Ok(()),
            Err(CaughtError::Value(thrown)) if thrown.as_int() == Some(1) => Ok(()),
            Err(error) => Err(syntax_error(failed(error))),
        }
    };
    parse([BEFORE, AFTER])?;
    parse(DECLARED).map_err(|_| Failed::new("syntax_error", "a `}` closes the function that the code is the body of"))
}

fn syntax_error(failed: Failed) -> Failed {
    match failed {
        Failed { code, message } if code == "javascript_error" => Failed::new("syntax_error", message),
        limit => limit,
    }
}

/// What the prelude builds the globals from.
struct Globals<'a, H> {
    host: &'a Rc<H>,
    /// Counts the requests without a response.
    open: &'a Rc<Cell<usize>>,
    /// The prefix of secret placeholders if `fetch` is available.
    placeholder: Option<&'a str>,
}

/// Runs the prelude, which defines the globals.
fn prelude<'js, H: Host + 'static>(ctx: &Ctx<'js>, globals: Globals<'_, H>) -> rquickjs::Result<Object<'js>> {
    let (logger, fetcher, open) = (globals.host.clone(), globals.host.clone(), globals.open.clone());
    let log = Function::new(ctx.clone(), move |level: String, text: String| logger.log(level, text))?;
    let fetch = Function::new(ctx.clone(), move |id: u32, request: String| {
        open.set(open.get() + 1);
        fetcher.fetch(id, request);
    })?;
    let mut options = EvalOptions::default();
    options.filename = Some("prelude.js".into());
    let make: Function = ctx.eval_with_options(PRELUDE, options)?;
    make.call((log, fetch, globals.placeholder))
}

/// Whether memory was almost exhausted at some point. Assumed if even this call fails.
fn was_short(prelude: Option<&Object<'_>>) -> bool {
    let fetches = prelude.map(|prelude| prelude.get::<_, Function>("wasShort")?.call::<_, bool>(()));
    !matches!(fetches, Some(Ok(false)))
}

/// Describes a thrown value and its location in the code.
fn failed<'js>(job: &Job, prelude: Option<&Object<'js>>, error: CaughtError<'js>) -> Failed {
    let (ctx, thrown) = match error {
        CaughtError::Exception(exception) => (exception.ctx().clone(), exception.into_value()),
        // QuickJS throws null if there is no memory left for an error. Code may throw null as well, without running out
        // of memory.
        CaughtError::Value(value) if value.is_null() && was_short(prelude) => return out_of_memory(job),
        CaughtError::Value(value) => (value.ctx().clone(), value),
        // The code contains a NUL character, or a host function got an unexpected argument.
        CaughtError::Error(error) => return Failed::new("javascript_error", error.to_string()),
    };
    let described = || -> rquickjs::Result<[String; 3]> {
        let Some(prelude) = prelude else { return Ok(Default::default()) };
        let parts: Array = prelude.get::<_, Function>("describe")?.call((thrown,))?;
        Ok([parts.get(0)?, parts.get(1)?, parts.get(2)?])
    };
    let Ok([name, message, stack]) = described().catch(&ctx) else { return out_of_memory(job) };
    match (name.as_str(), message.as_str()) {
        ("InternalError", "out of memory") => return out_of_memory(job),
        ("RangeError", "Maximum call stack size exceeded") | ("InternalError", "stack overflow") => {
            let message = format!("the code calls itself too deep{}", place(&stack, BEFORE.len()));
            return Failed::new("stack_limit", message);
        }
        ("ReferenceError", missing @ ("fetch is not defined" | "secrets is not defined")) if job.fetch.is_none() => {
            let what = "to make requests, list their hosts in the workflow, such as `allow_hosts: [api.example.com]`";
            let message = format!("{name}: {missing}{}; {what}", place(&stack, BEFORE.len()));
            return Failed::new("javascript_error", message);
        }
        _ => {}
    }
    let mut message = if name.is_empty() { message } else { format!("{name}: {message}") };
    message.truncate(message.floor_char_boundary(MAX_ERROR));
    let before = if job.check { NEVER.len() + BEFORE.len() } else { BEFORE.len() };
    Failed::new("javascript_error", message + &place(&stack, before))
}

/// Formats the location of the innermost frame in the user's code as ` (line:column)`. `before` is the length of what
/// precedes the code on its first line.
fn place(stack: &str, before: usize) -> String {
    let found = stack.split(FILE).skip(1).find_map(|rest| {
        let mut numbers = rest.strip_prefix(':')?.split(|c: char| !c.is_ascii_digit());
        let line: usize = numbers.next()?.parse().ok()?;
        let column: usize = numbers.next()?.parse().ok()?;
        Some((line, if line == 1 { column.saturating_sub(before).max(1) } else { column }))
    });
    found.map(|(line, column)| format!(" ({line}:{column})")).unwrap_or_default()
}
