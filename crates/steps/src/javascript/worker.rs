//! The worker's end: takes evaluations from standard input, one at a time, until the server is gone.

use super::confine;
use super::log::Log;
use super::sandbox::{self, Host};
use super::wire::{self, Answer, Line, MAX_OPEN, Order, Word};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

/// What `stepwell javascript-worker` does.
pub fn work() -> io::Result<()> {
    let confined = confine::start();
    wire::say(&mut io::stdout(), &Word::Ready { lacks: confined.lacks.clone() })?;
    while let Some(order) = wire::obey(&mut io::stdin())? {
        // An answer that comes after the code has ended is nobody's.
        let Order::Evaluate(job) = order else { continue };
        confined.limit(&job);
        let host = Rc::new(Pipe::default());
        let word = match sandbox::evaluate(&job, &host) {
            Ok(result) => Word::Done(result),
            Err(failed) => Word::Failed(failed),
        };
        wire::say(&mut io::stdout(), &word)?;
    }
    Ok(())
}

#[derive(Default)]
struct Pipe {
    log: RefCell<Log>,
    /// Requests that the server has not answered yet.
    open: Cell<usize>,
    /// Answers that the code has not come to yet.
    taken: RefCell<VecDeque<Fetched>>,
}

/// The number of a request and its answer.
type Fetched = (u32, Result<Answer, String>);

impl Pipe {
    /// Without the server there is nobody to work for.
    fn say(&self, word: &Word) {
        if wire::say(&mut io::stdout(), word).is_err() {
            std::process::exit(1);
        }
    }

    fn take(&self) -> Fetched {
        loop {
            match wire::obey(&mut io::stdin()) {
                Ok(Some(Order::Fetched { id, answer })) => {
                    self.open.set(self.open.get() - 1);
                    return (id, answer);
                }
                Ok(Some(Order::Evaluate(_))) => {}
                Ok(None) | Err(_) => std::process::exit(1),
            }
        }
    }
}

impl Host for Pipe {
    fn log(&self, level: String, text: String) {
        if let Some(line) = self.log.borrow_mut().take(Line { level, text }) {
            self.say(&Word::Log(line));
        }
    }

    fn ask(&self, id: u32, request: String) {
        if let Ok(request) = RawValue::from_string(request) {
            while self.open.get() >= MAX_OPEN {
                let fetched = self.take();
                self.taken.borrow_mut().push_back(fetched);
            }
            self.open.set(self.open.get() + 1);
            self.say(&Word::Fetch { id, request });
        }
    }

    fn answer(&self) -> Fetched {
        let taken = self.taken.borrow_mut().pop_front();
        taken.unwrap_or_else(|| self.take())
    }
}
