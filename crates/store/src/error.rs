//! What can go wrong with a store, told apart by what the caller can do about it.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not known whether the write happened: reconcile, then try again.
    #[error("the store did not answer: {0}")]
    Unavailable(String),
    /// There is no room. Nothing was written; it may be tried again later.
    #[error("the disk is full: {0}")]
    Full(String),
    /// The data cannot be used as it is. Nothing is changed; a person must look.
    #[error("{0}")]
    Unusable(String),
}

impl Error {
    /// The same, with the place where it happened.
    pub(crate) fn of(self, place: &str) -> Error {
        match self {
            Error::Unavailable(why) => Error::Unavailable(format!("{place}: {why}")),
            Error::Full(why) => Error::Full(format!("{place}: {why}")),
            Error::Unusable(why) => Error::Unusable(format!("{place}: {why}")),
        }
    }
}
