//! The inputs of the reference: what can happen to a run.

use serde_json::Value;

/// An external event, in the order of commits.
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
    /// Rights or a policy forbid the call.
    Refused {
        path: String,
    },
    TimedOut {
        path: String,
    },
    /// The running attempt is held for an approval.
    Held {
        path: String,
    },
    /// The running attempt is deferred.
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
    /// May arrive early.
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
    /// The next transition of a run whose last one was cut by its budget.
    Continue,
    /// R7, under the same version.
    Retry,
}
