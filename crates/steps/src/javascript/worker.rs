//! The worker process: evaluates one command from standard input at a time, until the server is gone.

use super::confine;
use super::log::Log;
use super::protocol::{self, FetchResponse, FromWorker, Line, MAX_OPEN, ToWorker};
use super::sandbox::{self, Host};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

/// Runs the `stepwell javascript-worker` command.
pub fn work() -> io::Result<()> {
    let confined = confine::start();
    protocol::write_event(&mut io::stdout(), &FromWorker::Ready { missing: confined.missing.clone() })?;
    while let Some(command) = protocol::read_command(&mut io::stdin())? {
        // Ignore a response that arrives after the code has ended.
        let ToWorker::Evaluate(job) = command else { continue };
        confined.limit(&job);
        let host = Rc::new(PipeHost::default());
        let event = match sandbox::evaluate(&job, &host) {
            Ok(result) => FromWorker::Done(result),
            Err(failed) => FromWorker::Failed(failed),
        };
        protocol::write_event(&mut io::stdout(), &event)?;
    }
    Ok(())
}

#[derive(Default)]
struct PipeHost {
    log: RefCell<Log>,
    /// Open requests without a response.
    open: Cell<usize>,
    /// Responses that the code has not consumed yet.
    received: RefCell<VecDeque<Fetched>>,
}

/// The id of a request and its response.
type Fetched = (u32, Result<FetchResponse, String>);

impl PipeHost {
    /// Exits if the server is gone.
    fn send(&self, event: &FromWorker) {
        if protocol::write_event(&mut io::stdout(), event).is_err() {
            std::process::exit(1);
        }
    }

    fn receive(&self) -> Fetched {
        loop {
            match protocol::read_command(&mut io::stdin()) {
                Ok(Some(ToWorker::Fetched { id, response })) => {
                    self.open.set(self.open.get() - 1);
                    return (id, response);
                }
                Ok(Some(ToWorker::Evaluate(_))) => {}
                Ok(None) | Err(_) => std::process::exit(1),
            }
        }
    }
}

impl Host for PipeHost {
    fn log(&self, level: String, text: String) {
        if let Some(line) = self.log.borrow_mut().take(Line { level, text }) {
            self.send(&FromWorker::Log(line));
        }
    }

    fn fetch(&self, id: u32, request: String) {
        if let Ok(request) = RawValue::from_string(request) {
            while self.open.get() >= MAX_OPEN {
                let fetched = self.receive();
                self.received.borrow_mut().push_back(fetched);
            }
            self.open.set(self.open.get() + 1);
            self.send(&FromWorker::Fetch { id, request });
        }
    }

    fn next_response(&self) -> Fetched {
        let received = self.received.borrow_mut().pop_front();
        received.unwrap_or_else(|| self.receive())
    }
}
