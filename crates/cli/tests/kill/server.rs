//! An HTTP server on loopback that records run, step and idempotency key of every request.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use stepwell_testing::listen;

pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub run: String,
    pub step: String,
    pub key: String,
}

impl Server {
    pub fn start() -> Server {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = seen.clone();
        let url = listen(move |request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let text = |name: &str| body[name].as_str().unwrap_or_default().to_string();
            notes.lock().unwrap().push(Request { run: text("run"), step: text("step"), key: request.key });
            ("200 OK", "{\"ok\":true}".into())
        });
        Server { url: format!("{url}/"), seen }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// How often a step of a run was sent.
    pub fn count(&self, run: &str, path: &str) -> usize {
        // The key holds the path: steps inside a scope have the same name in every item.
        let wanted = format!("{run}:{path}");
        self.seen.lock().unwrap().iter().filter(|request| request.key == wanted).count()
    }

    /// Steps outside of scopes that were sent with more than one idempotency key.
    pub fn with_several_keys(&self) -> Vec<String> {
        let mut keys: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for request in self.requests().into_iter().filter(|request| !request.key.contains('[')) {
            keys.entry((request.run, request.step)).or_default().insert(request.key);
        }
        keys.into_iter().filter(|(_, keys)| keys.len() > 1).map(|((run, step), _)| format!("{run} {step}")).collect()
    }
}
