//! What can happen to a run, as the reference hears of it.

use serde_json::Value;

/// What happened outside, in the order in which it was committed.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The running attempt succeeded; the output is its `body` (`result` in flow).
    Done {
        path: String,
        output: Value,
    },
    Failed {
        path: String,
        retryable: bool,
    },
    TimedOut {
        path: String,
    },
    /// The running attempt is not made before somebody approves it.
    Held {
        path: String,
    },
    /// The running attempt is made later.
    Deferred {
        path: String,
    },
    /// The node of the running attempt died.
    Lost {
        path: String,
    },
    /// The timer of this step is due: sleep, backoff, webhook wait or gate.
    Fire {
        path: String,
    },
    /// May come early.
    Webhook {
        path: String,
        body: Value,
    },
    Answer {
        path: String,
        approve: bool,
    },
    Child {
        path: String,
        ok: bool,
    },
    Cancel,
    Expire,
    /// R7, on the same version.
    Retry,
}
