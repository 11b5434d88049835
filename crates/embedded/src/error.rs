//! Errors, by what a caller can do about them.

use std::fmt;

/// Why the engine did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A definition or an input is wrong. The text names every fault.
    Invalid(String),
    /// There is no such run, workflow or step.
    NotFound(String),
    /// It is not possible now, such as cancelling a run that has ended.
    Refused(String),
    /// The store does not respond, or the engine is stopping: try again.
    Unavailable(String),
    /// The store cannot be opened, or its data cannot be read.
    Broken(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(text)
            | Error::NotFound(text)
            | Error::Refused(text)
            | Error::Unavailable(text)
            | Error::Broken(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<stepwell_engine::Error> for Error {
    fn from(error: stepwell_engine::Error) -> Error {
        use stepwell_engine::Error as Engine;
        let text = error.to_string();
        match error {
            Engine::Definition(_) | Engine::Input { .. } | Engine::Inputs(_) => Error::Invalid(text),
            Engine::NotFound { .. } => Error::NotFound(text),
            Engine::Unauthorised(_)
            | Engine::Forbidden { .. }
            | Engine::NotNow(_)
            | Engine::Changed(_)
            | Engine::Refused(_)
            | Engine::Conflict(_)
            | Engine::KeyReused(_)
            | Engine::Exists { .. }
            | Engine::Limit { .. }
            | Engine::Full
            | Engine::Disabled(_) => Error::Refused(text),
            Engine::Unavailable(_) => Error::Unavailable(text),
            Engine::Broken(_) => Error::Broken(text),
        }
    }
}

impl From<stepwell_store::Error> for Error {
    fn from(error: stepwell_store::Error) -> Error {
        Error::from(stepwell_engine::Error::from(error))
    }
}
