//! What a caller of the engine can be told, by what they can do about it.

use stepwell_core::event::Ignored;
use stepwell_formats::Faults;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The definition cannot be used; everything that is wrong with it.
    #[error("{0}")]
    Definition(Faults),
    /// Some other input is wrong: where, and what.
    #[error("{path}: {message}")]
    Input { path: String, message: String },
    #[error("there is no {what} {name:?}")]
    NotFound { what: &'static str, name: String },
    /// Nobody knows who asks.
    #[error("{0}")]
    Unauthorised(String),
    #[error("{who} may not do this: the right {right} is missing")]
    Forbidden { who: String, right: &'static str },
    /// Several parts of an input are wrong: where, and what.
    #[error("{}", .0.iter().map(|(path, message)| format!("{path}: {message}")).collect::<Vec<_>>().join("; "))]
    Inputs(Vec<(String, String)>),
    /// It cannot be done as things are.
    #[error("{0}")]
    NotNow(String),
    /// Somebody else changed it at the same time.
    #[error("the {0} was changed by someone else at the same time: look again")]
    Changed(&'static str),
    /// Not this person, whatever their rights.
    #[error("{0}")]
    Refused(String),
    /// It cannot be done now: the run or step has moved on.
    #[error("{0}")]
    Conflict(#[from] Ignored),
    /// The same idempotency key came with another request.
    #[error("the idempotency key {0:?} was used for another request")]
    KeyReused(String),
    #[error("there is a {what} {name:?} already")]
    Exists { what: &'static str, name: String },
    /// More than the organisation's plan allows.
    #[error("{message}")]
    Limit { limit: &'static str, message: String },
    #[error("the workflow has as many runs as it may have at a time")]
    Full,
    #[error("the workflow {0:?} is disabled")]
    Disabled(String),
    /// The engine is stopping, or storage does not answer: try again.
    #[error("{0}")]
    Unavailable(String),
    /// What is stored cannot be read. A person must look.
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
