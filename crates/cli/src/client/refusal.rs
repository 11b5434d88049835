//! Why a command was refused, with its exit code: one type for the server's problems and the engine's errors.

use crate::commands::Exit;
use std::fmt;
use stepwell_engine::Error;
use stepwell_server::view::{FaultView, ProblemView};

#[derive(Debug)]
pub struct Refusal {
    pub exit: Exit,
    /// A stable word for programs.
    code: String,
    text: String,
    /// The same request may succeed later.
    transient: bool,
    faults: Vec<FaultView>,
}

impl Refusal {
    pub fn new(exit: Exit, text: impl Into<String>) -> Refusal {
        let code = if exit == Exit::BadInput { "invalid" } else { "failed" };
        Refusal::coded(exit, code, text)
    }

    pub fn coded(exit: Exit, code: &str, text: impl Into<String>) -> Refusal {
        Refusal { exit, code: code.into(), text: text.into(), transient: false, faults: Vec::new() }
    }

    /// No server answered.
    pub fn unreachable(text: impl Into<String>) -> Refusal {
        Refusal { transient: true, ..Refusal::coded(Exit::Failed, "unreachable", text) }
    }

    pub fn is_transient(error: &anyhow::Error) -> bool {
        error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.transient)
    }

    /// Whether a command failed because something it names does not exist.
    pub fn is_missing(error: &anyhow::Error) -> bool {
        Refusal::has_code(error, "not-found")
    }

    pub fn has_code(error: &anyhow::Error, code: &str) -> bool {
        error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == code)
    }

    /// What is wrong with the request, one by one.
    pub fn faults(error: &anyhow::Error) -> &[FaultView] {
        error.downcast_ref::<Refusal>().map(|refusal| refusal.faults.as_slice()).unwrap_or_default()
    }

    pub fn code(&self) -> &str {
        &self.code
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

/// [`Exit::Failed`] means that the command could have succeeded at another time or for another user; [`Exit::BadInput`]
/// means that its input is wrong.
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
        Refusal::coded(exit, stepwell_server::code_of(&error), error.to_string())
    }
}

impl From<ProblemView> for Refusal {
    fn from(problem: ProblemView) -> Refusal {
        let exit = match (problem.status, problem.code.as_str()) {
            (400 | 401 | 404 | 413 | 421 | 422, _) | (409, "exists" | "idempotency-key-reused") => Exit::BadInput,
            _ => Exit::Failed,
        };
        let transient = matches!(problem.status, 429 | 500..);
        let mut text = problem.detail.clone();
        // The detail may already contain the message.
        let more = problem.errors.iter().filter(|fault| !problem.detail.contains(&fault.message));
        more.for_each(|fault| text.push_str(&format!("\n  {}", line(fault))));
        if let Some(now) = problem.status_now {
            text.push_str(&format!(" (it is {now})"));
        }
        if let (500.., Some(request)) = (problem.status, problem.request_id) {
            text.push_str(&format!(" (request {request} in the server's log)"));
        }
        Refusal { exit, code: problem.code, text, transient, faults: problem.errors }
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
    fn bad_input_and_temporary_refusals_have_different_exit_codes() {
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
