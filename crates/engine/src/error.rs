//! Errors of the engine, by how a caller can react to them.

use stepwell_core::event::Ignored;
use stepwell_formats::Faults;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The definition is invalid. Holds all its faults.
    #[error("{0}")]
    Definition(Faults),
    /// Another input is invalid.
    #[error("{path}: {message}")]
    Input { path: String, message: String },
    #[error("there is no {what} {name:?}")]
    NotFound { what: &'static str, name: String },
    /// The caller is not authenticated.
    #[error("{0}")]
    Unauthorised(String),
    #[error("{who} may not do this: the right {right} is missing")]
    Forbidden { who: String, right: &'static str },
    /// Several parts of an input are invalid: paths and messages.
    #[error("{}", .0.iter().map(|(path, message)| format!("{path}: {message}")).collect::<Vec<_>>().join("; "))]
    Inputs(Vec<(String, String)>),
    /// Impossible in the current state.
    #[error("{0}")]
    NotNow(String),
    /// A concurrent request changed it.
    #[error("the {0} was changed at the same time by another request: read it again and retry")]
    Changed(&'static str),
    /// Refused to this caller, regardless of rights.
    #[error("{0}")]
    Refused(String),
    /// The run or step has already moved on.
    #[error("{0}")]
    Conflict(#[from] Ignored),
    /// The idempotency key was used with a different request.
    #[error("the idempotency key {0:?} was used for another request")]
    KeyReused(String),
    #[error("the {what} {name:?} already exists")]
    Exists { what: &'static str, name: String },
    /// The organisation's plan does not allow it.
    #[error("{message}")]
    Limit { limit: &'static str, message: String },
    #[error("the workflow has reached its limit of concurrent runs")]
    Full,
    #[error("the workflow {0:?} is disabled")]
    Disabled(String),
    /// The engine is stopping, or the store does not respond: retry.
    #[error("{0}")]
    Unavailable(String),
    /// Stored data cannot be read. An operator must intervene.
    #[error("{0}")]
    Broken(String),
}

impl From<stepwell_store::Error> for Error {
    fn from(error: stepwell_store::Error) -> Error {
        match error {
            stepwell_store::Error::Unusable(_) => Error::Broken(error.to_string()),
            stepwell_store::Error::Full(_) | stepwell_store::Error::Unavailable(_) => {
                Error::Unavailable(error.to_string())
            }
        }
    }
}
