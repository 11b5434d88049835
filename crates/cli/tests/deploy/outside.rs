//! What workflows call. Calls to `/held` get no answer until it is told to let them go.

use std::sync::{Arc, Condvar, Mutex};
use stepwell_testing::listen;

pub struct Outside {
    pub url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    let_go: bool,
    /// Idempotency keys of the calls to `/held`.
    held: Vec<String>,
}

impl Outside {
    pub fn start() -> Outside {
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let of_all = shared.clone();
        let url = listen(move |request| {
            if request.path == "/held" {
                let mut state = of_all.0.lock().unwrap();
                state.held.push(request.key);
                drop(of_all.1.wait_while(state, |state| !state.let_go).unwrap());
            }
            ("200 OK", "{}".into())
        });
        Outside { url, shared }
    }

    pub fn held(&self) -> Vec<String> {
        self.shared.0.lock().unwrap().held.clone()
    }

    /// Answers those who wait, and all who come later.
    pub fn let_go(&self) {
        self.shared.0.lock().unwrap().let_go = true;
        self.shared.1.notify_all();
    }
}
