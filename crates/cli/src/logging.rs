//! Engine warnings and the output of `log` steps, on standard error. While progress is redrawn in place, lines are held
//! here and the screen prints them above it.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use stepwell_server::config::{self, Log, LogFormat};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;

static OVER: AtomicBool = AtomicBool::new(false);
static HELD: Mutex<Option<String>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<String>> {
    HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Starts logging for a command. Call once per process.
pub fn start() {
    let wanted = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("stepwell_steps::tools", Level::INFO)
        .with_target("rmcp", LevelFilter::OFF);
    let format = tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_target(false);
    let _ = tracing_subscriber::registry().with(format.with_writer(Lines).with_filter(wanted)).try_init();
}

/// Starts a server's log on standard error. Call once per process.
pub fn start_server(log: Log) {
    let level = match log.level {
        config::Level::Error => LevelFilter::ERROR,
        config::Level::Warn => LevelFilter::WARN,
        config::Level::Info => LevelFilter::INFO,
        config::Level::Debug => LevelFilter::DEBUG,
        config::Level::Trace => LevelFilter::TRACE,
    };
    // Below warnings, libraries log only their internals.
    let wanted = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("stepwell", level);
    // rmcp logs every disconnected client as an error.
    let wanted = wanted.with_target("rmcp", LevelFilter::OFF);
    let wanted = ["core", "engine", "formats", "server", "steps", "store"]
        .iter()
        .fold(wanted, |wanted, part| wanted.with_target(format!("stepwell_{part}"), level));
    let registry = tracing_subscriber::registry();
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(std::io::stderr);
    let _ = match log.format {
        LogFormat::Human => registry.with(layer.with_filter(wanted)).try_init(),
        LogFormat::Json => registry.with(layer.json().flatten_event(true).with_filter(wanted)).try_init(),
    };
}

/// Holds lines until [`take`] collects them.
pub fn hold() {
    held().get_or_insert_with(String::new);
}

/// Takes the lines held since the last call.
pub fn take() -> String {
    held().as_mut().map(std::mem::take).unwrap_or_default()
}

/// Drops all further lines: the work is over, and tasks that are cut off would only log noise.
pub fn end() {
    OVER.store(true, Ordering::SeqCst);
}

/// Writes held lines to standard error and stops holding.
pub fn release() {
    if let Some(text) = held().take() {
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

struct Lines;

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line
    }
}

struct Line;

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match held().as_mut() {
            _ if OVER.load(Ordering::SeqCst) => {}
            Some(text) => text.push_str(&String::from_utf8_lossy(bytes)),
            // A closed standard error is no reason to stop working.
            None => drop(std::io::stderr().write_all(bytes)),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
