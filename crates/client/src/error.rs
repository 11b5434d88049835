//! Errors of the API and of the way to it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Why a call failed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server refused it.
    Problem(Box<Problem>),
    /// There is no connection to the server, or it broke.
    ConnectionFailed {
        /// The server's address.
        url: String,
        /// What went wrong.
        cause: String,
        /// Whether the request may have reached the server, so that its outcome is unknown.
        sent: bool,
    },
    /// No server is named and none is known on this machine.
    NoServer(String),
    /// The answer is not one of a Stepwell server of this version.
    Unexpected(String),
    /// The request cannot be sent as it is.
    Invalid(String),
    /// The run has not ended in time. It goes on.
    TimedOut,
    /// A request was not signed with the secret, or not recently.
    InvalidSignature(String),
    /// A definition in code refers to a step that is not there, or has a step twice.
    Build(String),
    /// A simulation or a throw-away server did not do what was asked.
    Testing(String),
}

impl Error {
    /// The problem, if the server refused the call.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// Whether the server refused the call with this code.
    pub fn has_code(&self, code: &str) -> bool {
        self.problem().is_some_and(|problem| problem.code == code)
    }

    /// Whether the same call may succeed later without a change.
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::ConnectionFailed { .. } => true,
            Error::Problem(problem) => problem.is_temporary(),
            _ => false,
        }
    }

    /// Whether a lost server may come back: it does not answer, or something between says so.
    pub(crate) fn may_recover(&self) -> bool {
        self.is_temporary() || self.problem().is_some_and(|problem| problem.status >= 500)
    }

    pub(crate) fn connection(url: &reqwest::Url, error: &reqwest::Error) -> Error {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Error::ConnectionFailed { url: url.to_string(), cause: cause.to_string(), sent: !error.is_connect() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Problem(problem) => problem.fmt(f),
            Error::ConnectionFailed { url, cause, sent: false } => {
                write!(f, "no server answers at {url} ({cause}); `stepwell serve` starts one")
            }
            Error::ConnectionFailed { url, cause, sent: true } => {
                write!(f, "the server at {url} did not answer ({cause}); the request may or may not have taken effect")
            }
            Error::TimedOut => f.write_str("the run has not ended in time"),
            Error::NoServer(text)
            | Error::Unexpected(text)
            | Error::Invalid(text)
            | Error::InvalidSignature(text)
            | Error::Build(text)
            | Error::Testing(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// An error that the server returned (RFC 9457).
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// Stable, for programs.
    pub code: String,
    /// For people.
    pub detail: String,
    /// Everything that is wrong with the request.
    pub errors: Vec<Fault>,
    /// What is suspicious in a definition beside its errors.
    pub warnings: Vec<Fault>,
    /// The status of the run, if the call came too late.
    pub status_now: Option<String>,
    /// Identifies the request in the server's log.
    pub request_id: Option<String>,
    /// When to try again, as the server said.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// Whether the same call may succeed later without a change.
    pub fn is_temporary(&self) -> bool {
        matches!(self.status, 408 | 429 | 502..=504)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        // The detail may already contain the message.
        for fault in self.errors.iter().filter(|fault| !self.detail.contains(&fault.message)) {
            write!(f, "\n  {fault}")?;
        }
        if let Some(now) = &self.status_now {
            write!(f, " (it is {now})")?;
        }
        match &self.request_id {
            Some(request) if self.status >= 500 => write!(f, " (request {request} in the server's log)"),
            _ => Ok(()),
        }
    }
}

/// One thing that is wrong with a request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Fault {
    /// Where it is, such as `tasks.send.needs[0]`.
    pub path: String,
    /// The same place as a JSON Pointer, such as `/tasks/send/needs/0`.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// Stable, for programs.
    pub code: Option<String>,
    /// How to fix it.
    pub hint: Option<String>,
    /// A correction that a program can apply.
    pub fix: Option<Fix>,
    /// The line of the definition.
    pub line: Option<u32>,
    /// The column of that line.
    pub column: Option<u32>,
}

/// A value to replace in a definition.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Fix {
    /// A JSON Pointer; empty for the whole definition.
    pub path: String,
    /// What to put there.
    pub value: Value,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "{line}:{column}: ")?,
            (Some(line), None) => write!(f, "{line}: ")?,
            (None, _) => {}
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        if let Some(code) = &self.code {
            write!(f, " [{code}]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_listed() {
        let body = r#"{"status": 422, "code": "invalid-definition", "detail": "no", "errors": [
            {"path": "a.b", "message": "bad", "code": "x", "line": 3, "column": 3}, {"path": "", "message": "worse"}]}"#;
        let problem: Problem = serde_json::from_str(body).unwrap();
        assert_eq!(Error::Problem(problem.into()).to_string(), "no\n  3:3: a.b: bad [x]\n  worse");
    }

    #[test]
    fn what_waiting_may_fix_is_temporary() {
        let problem = |status, code: &str| Problem { status, code: code.into(), ..Problem::default() };
        assert!(problem(429, "plan-limit").is_temporary() && problem(503, "unavailable").is_temporary());
        assert!(!problem(403, "plan-limit").is_temporary() && !problem(409, "run-finished").is_temporary());
    }
}
