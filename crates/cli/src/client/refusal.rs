//! What a command was refused, in words and with an exit code: the same for a server's problem and for the engine's error.

use crate::commands::Exit;
use std::fmt;
use stepwell_engine::Error;
use stepwell_server::view::{FaultView, ProblemView};

#[derive(Debug)]
pub struct Refusal {
    pub exit: Exit,
    text: String,
    missing: bool,
    /// It may be otherwise in a moment, whatever was given.
    passing: bool,
}

impl Refusal {
    pub fn new(exit: Exit, text: impl Into<String>) -> Refusal {
        Refusal { exit, text: text.into(), missing: false, passing: false }
    }

    /// Nobody answered.
    pub fn silence(text: impl Into<String>) -> Refusal {
        Refusal { passing: true, ..Refusal::new(Exit::Failed, text) }
    }

    pub fn is_passing(error: &anyhow::Error) -> bool {
        error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.passing)
    }

    /// Whether a command failed because what it names is not there.
    pub fn is_missing(error: &anyhow::Error) -> bool {
        error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.missing)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

/// Told apart from a mistake in what was given: it could have been done at another time, or by another.
impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let exit = match error {
            Error::Conflict(_)
            | Error::Refused(_)
            | Error::Forbidden { .. }
            | Error::Limit { .. }
            | Error::Full
            | Error::NotNow(_)
            | Error::Changed(_)
            | Error::Disabled(_) => Exit::Failed,
            Error::Definition(_)
            | Error::Input { .. }
            | Error::Inputs(_)
            | Error::NotFound { .. }
            | Error::Unauthorised(_)
            | Error::KeyReused(_)
            | Error::Exists { .. }
            | Error::Unavailable(_)
            | Error::Broken(_) => Exit::BadInput,
        };
        Refusal::new(exit, error.to_string())
    }
}

impl From<ProblemView> for Refusal {
    fn from(problem: ProblemView) -> Refusal {
        let exit = match (problem.status, problem.code.as_str()) {
            (400 | 401 | 404 | 413 | 421 | 422, _) | (409, "exists" | "idempotency-key-reused") => Exit::BadInput,
            _ => Exit::Failed,
        };
        let passing = matches!(problem.status, 429 | 500..);
        let missing = problem.code == "not-found";
        let mut text = problem.detail.clone();
        // The detail may say it already.
        let more = problem.errors.iter().filter(|fault| !problem.detail.contains(&fault.message));
        more.for_each(|fault| text.push_str(&format!("\n  {}", line(fault))));
        if let Some(now) = problem.status_now {
            text.push_str(&format!(" (it is {now})"));
        }
        if let (500.., Some(request)) = (problem.status, problem.request_id) {
            text.push_str(&format!(" (request {request} in the server's log)"));
        }
        Refusal { exit, text, missing, passing }
    }
}

fn line(fault: &FaultView) -> String {
    let place = match (fault.line, fault.column) {
        (Some(line), Some(column)) => format!("{line}:{column}: "),
        (Some(line), None) => format!("{line}: "),
        (None, _) => String::new(),
    };
    let path = if fault.path.is_empty() { String::new() } else { format!("{}: ", fault.path) };
    let hint = fault.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let code = fault.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
    format!("{place}{path}{}{hint}{code}", fault.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, code: &str) -> ProblemView {
        ProblemView { status, code: code.into(), detail: "no".into(), ..ProblemView::default() }
    }

    #[test]
    fn what_was_given_is_told_apart_from_what_cannot_be_now() {
        let check = |status, code: &str, exit| assert_eq!(Refusal::from(problem(status, code)).exit, exit, "{code}");
        check(404, "not-found", Exit::BadInput);
        check(422, "invalid-input", Exit::BadInput);
        check(409, "exists", Exit::BadInput);
        check(409, "run-finished", Exit::Failed);
        check(403, "forbidden", Exit::Failed);
        check(503, "unavailable", Exit::Failed);
    }

    #[test]
    fn every_fault_is_listed() {
        let fault = |path: &str, line| FaultView {
            path: path.into(),
            message: "bad".into(),
            code: Some("x".into()),
            line,
            column: line,
            ..FaultView::default()
        };
        let errors = vec![fault("a.b", Some(3)), fault("", None)];
        let text = Refusal::from(ProblemView { errors, ..problem(422, "invalid-definition") }).to_string();
        assert_eq!(text, "no\n  3:3: a.b: bad [x]\n  bad [x]");
    }
}
