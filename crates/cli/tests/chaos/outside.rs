//! The services that workflows call: an HTTP server on loopback that records every request and lets some fail.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Requests that a path beginning with `/flaky` refuses before it takes one.
pub const REFUSALS: usize = 2;
/// How long an answer takes at the least and at the most: long enough that there is something to interrupt.
const WORK: [u64; 2] = [20, 900];

#[derive(Clone, Debug)]
pub struct Request {
    /// `run_…:path`, the same for every attempt of a step.
    pub key: String,
    pub body: Value,
    pub begun: Instant,
    /// Just before it was answered.
    pub ended: Option<Instant>,
}

pub struct Outside {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Outside {
    pub fn start() -> Outside {
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let of_all = seen.clone();
        let url = stepwell_testing::listen(move |request| answer(&of_all, request));
        Outside { url, seen }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Request>> {
        self.seen.lock().unwrap()
    }

    /// Those after the first so many.
    pub fn since(&self, known: usize) -> Vec<Request> {
        self.seen()[known..].to_vec()
    }

    /// All that came, by key.
    pub fn by_key(&self) -> BTreeMap<String, Vec<Request>> {
        let mut all: BTreeMap<String, Vec<Request>> = BTreeMap::new();
        for request in self.seen().iter() {
            all.entry(request.key.clone()).or_default().push(request.clone());
        }
        all
    }
}

/// Notes a request, works for a while, and answers it.
fn answer(seen: &Mutex<Vec<Request>>, asked: stepwell_testing::Request) -> (&'static str, String) {
    let body = serde_json::from_slice(&asked.body).unwrap_or_default();
    let request = Request { key: asked.key.clone(), body, begun: Instant::now(), ended: None };
    let (number, times) = {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        (seen.len() - 1, seen.iter().filter(|request| request.key == asked.key).count())
    };
    let [least, most] = WORK;
    std::thread::sleep(Duration::from_millis(least + number as u64 * 139 % (most - least)));
    seen.lock().unwrap()[number].ended = Some(Instant::now());
    let refused = asked.path.starts_with("/flaky") && times <= REFUSALS;
    (if refused { "503 Not Now" } else { "200 OK" }, "{\"ok\":true}".into())
}
