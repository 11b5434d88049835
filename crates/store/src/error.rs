//! Store errors, distinguished by what the caller can do about them.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is unknown whether the write happened: reconcile, then retry.
    #[error("the store did not answer: {0}")]
    Unavailable(String),
    /// There is no free space. Nothing was written; the write may be retried later.
    #[error("the disk is full: {0}")]
    Full(String),
    /// The data cannot be used as it is. Nothing was changed; an operator must intervene.
    #[error("{0}")]
    Unusable(String),
}

impl Error {
    /// Prefixes the message with the location of the store.
    pub(crate) fn at(self, location: &str) -> Error {
        match self {
            Error::Unavailable(why) => Error::Unavailable(format!("{location}: {why}")),
            Error::Full(why) => Error::Full(format!("{location}: {why}")),
            Error::Unusable(why) => Error::Unusable(format!("{location}: {why}")),
        }
    }
}
