//! Why a command was refused, with its exit code: one type for the server's problems and the engine's errors.

use crate::commands::Exit;
use std::fmt;
use stepwell_client::{Fault, Problem};
use stepwell_engine::Error;
use stepwell_server::view::{FaultView, FixView};

#[derive(Debug)]
pub struct Refusal {
    pub exit: Exit,
    /// A stable word for programs.
    code: String,
    text: String,
    faults: Vec<FaultView>,
}

impl Refusal {
    pub fn new(exit: Exit, text: impl Into<String>) -> Refusal {
        let code = if exit == Exit::BadInput { "invalid" } else { "failed" };
        Refusal::coded(exit, code, text)
    }

    pub fn coded(exit: Exit, code: &str, text: impl Into<String>) -> Refusal {
        Refusal { exit, code: code.into(), text: text.into(), faults: Vec::new() }
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

impl From<stepwell_client::Error> for Refusal {
    fn from(error: stepwell_client::Error) -> Refusal {
        use stepwell_client::Error as Client;
        let text = error.to_string();
        match error {
            Client::Problem(problem) => {
                let faults = problem.errors.iter().map(fault).collect();
                Refusal { faults, ..Refusal::coded(exit(&problem), &problem.code, text) }
            }
            Client::ConnectionFailed { .. } => Refusal::coded(Exit::Failed, "unreachable", text),
            Client::Invalid(_) => Refusal::new(Exit::BadInput, text),
            _ => Refusal::new(Exit::Failed, text),
        }
    }
}

fn exit(problem: &Problem) -> Exit {
    match (problem.status, problem.code.as_str()) {
        (400 | 401 | 404 | 413 | 421 | 422, _) | (409, "exists" | "idempotency-key-reused") => Exit::BadInput,
        _ => Exit::Failed,
    }
}

fn fault(fault: &Fault) -> FaultView {
    FaultView {
        path: fault.path.clone(),
        pointer: fault.pointer.clone(),
        message: fault.message.clone(),
        code: fault.code.clone(),
        hint: fault.hint.clone(),
        fix: fault.fix.as_ref().map(|fix| FixView { path: fix.path.clone(), value: fix.value.clone() }),
        line: fault.line,
        column: fault.column,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_and_temporary_refusals_have_different_exit_codes() {
        let check = |status: u16, code: &str, expected| {
            let body = serde_json::json!({"status": status, "code": code, "detail": "no"});
            assert_eq!(exit(&serde_json::from_value(body).unwrap()), expected, "{code}");
        };
        check(404, "not-found", Exit::BadInput);
        check(422, "invalid-input", Exit::BadInput);
        check(409, "exists", Exit::BadInput);
        check(409, "run-finished", Exit::Failed);
        check(403, "forbidden", Exit::Failed);
        check(503, "unavailable", Exit::Failed);
    }
}
