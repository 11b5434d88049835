//! Faults of a document, for people and for programs.

use crate::source::{Flaw, Span};
use serde::Serialize;
use std::fmt;
use stepwell_core::limits;

/// Whether a fault stops a definition from being accepted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    #[default]
    Error,
    /// Accepted, but probably not what its author means.
    Warning,
}

impl Severity {
    fn is_error(&self) -> bool {
        *self == Severity::Error
    }
}

/// A correction that a program can apply: the value at `path`, a JSON Pointer, is replaced. An empty path is the whole
/// document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fix {
    pub path: String,
    pub value: serde_json::Value,
}

/// One fault. `path` is its position in the document's values; line and column (from 1, in characters) are its position
/// in the text, if the document came as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column just after the last character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    pub code: &'static str,
    #[serde(skip_serializing_if = "Severity::is_error")]
    pub severity: Severity,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A correction, which may also correct other faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

impl Fault {
    pub(crate) fn place(mut self, path: String, span: Option<Span>) -> Fault {
        self.path = path;
        self.line = span.map(|s| s.start.line);
        self.column = span.map(|s| s.start.column);
        self.end_line = span.map(|s| s.end.line);
        self.end_column = span.map(|s| s.end.column);
        self
    }

    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Fault {
        let message = message.into();
        let (line, column, end_line, end_column) = (None, None, None, None);
        let severity = Severity::Error;
        Fault {
            path: String::new(),
            line,
            column,
            end_line,
            end_column,
            code,
            severity,
            message,
            hint: None,
            fix: None,
        }
    }

    /// The same as a warning: the definition is valid.
    pub fn warning(mut self) -> Fault {
        self.severity = Severity::Warning;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Fault {
        self.hint = hint;
        self
    }
}

impl Fault {
    /// A fault that another check found in a step of a definition that could be read.
    pub fn of(code: &'static str, path: String, message: String) -> Fault {
        Fault::new(code, message).place(path, None)
    }
}

impl From<Flaw> for Fault {
    fn from(flaw: Flaw) -> Fault {
        Fault::new(flaw.code, flaw.message).maybe_hint(flaw.hint).place(flaw.path, flaw.span)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// All faults, in the order of the document. Never empty: warnings alone are no error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Faults {
    pub list: Vec<Fault>,
    /// How many more faults there are beyond [`limits::MAX_FAULTS`].
    pub more: usize,
    /// What is suspicious beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Fault>,
}

impl Faults {
    pub fn of(mut list: Vec<Fault>, more: usize) -> Faults {
        list.sort_by_key(|fault| (fault.line, fault.column));
        list.dedup();
        let more = more + list.len().saturating_sub(limits::MAX_FAULTS);
        list.truncate(limits::MAX_FAULTS);
        Faults { list, more, warnings: Vec::new() }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.list.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Faults {}
