//! Errors of parsing and of evaluating an expression.

use std::fmt;
use std::ops::Range;

/// A byte range in the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// Sources are far shorter than 4 GB ([`super::MAX_SOURCE`], and the limit on a definition).
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The same range in a text with `offset` more bytes before it.
    pub fn shifted(self, offset: u32) -> Span {
        Span { start: self.start + offset, end: self.end + offset }
    }
}

/// Why a text is not a valid expression.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct SyntaxError {
    pub at: Span,
    pub message: String,
    pub hint: Option<String>,
}

impl SyntaxError {
    pub(super) fn new(at: Span, message: impl Into<String>) -> SyntaxError {
        SyntaxError { at, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> SyntaxError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Why an expression has no value. Spans are in the expression's source.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Missing {
    /// `path` is as written.
    #[error("Failed to resolve {{{{{path}}}}}")]
    Path { path: String, at: Span },
    #[error("Cannot read '{field}' because the response from '{step}' exceeded the 256KB limit and was truncated")]
    Truncated { step: String, field: String },
    #[error("`{function}` needs {needs}, but got {got}")]
    Type { function: &'static str, needs: &'static str, got: &'static str, at: Span },
    /// `written` is the calculation.
    #[error("{{{{{written}}}}}: `{sign}` needs {needs}, but got {got}")]
    Calculation { written: String, sign: &'static str, needs: &'static str, got: &'static str, at: Span },
    /// The engine never sees a secret's value, so nothing can be computed from one.
    #[error("`{path}` must stand alone in a template, as {{{{{path}}}}}")]
    Secret { path: String, at: Span },
    /// A value would make a request go to another path.
    #[error(
        "{{{{{path}}}}} makes a segment of the URL `{segment}`, which leads to another path; write {{{{raw(\u{2026})}}}} to allow it"
    )]
    Segment { path: String, segment: String },
    /// A value would make a request go to another host.
    #[error(
        "{{{{{path}}}}} puts {found:?} into the host of the URL, which leads elsewhere; write {{{{raw(\u{2026})}}}} to allow it"
    )]
    Host { path: String, found: char },
    #[error("the result exceeds {limit}")]
    TooLarge { limit: &'static str },
}
