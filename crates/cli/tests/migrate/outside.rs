//! What workflows call. What is sent to `/tell` is written down, `/missing` is not found, and calls of `/held` get no answer
//! until they are let go.

use serde_json::Value;
use std::sync::{Arc, Condvar, Mutex};
use stepwell_testing::listen;

pub struct Outside {
    pub url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    let_go: bool,
    held: usize,
    told: Vec<Value>,
}

impl Outside {
    pub fn start() -> Outside {
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let of_all = shared.clone();
        let url = listen(move |request| {
            let mut state = of_all.0.lock().unwrap();
            match request.path.as_str() {
                "/tell" => state.told.push(serde_json::from_slice(&request.body).unwrap()),
                "/held" => {
                    state.held += 1;
                    drop(of_all.1.wait_while(state, |state| !state.let_go).unwrap());
                }
                _ => {}
            }
            (if request.path == "/missing" { "404 Not Found" } else { "200 OK" }, "{}".into())
        });
        Outside { url, shared }
    }

    /// How many calls of `/held` there were.
    pub fn held(&self) -> usize {
        self.shared.0.lock().unwrap().held
    }

    pub fn told(&self) -> Option<Value> {
        self.shared.0.lock().unwrap().told.last().cloned()
    }

    /// Answers those who wait, and all who come later.
    pub fn let_go(&self) {
        self.shared.0.lock().unwrap().let_go = true;
        self.shared.1.notify_all();
    }
}
