//! Classifies errors of the server and of the connection.

use super::super::failure;
use super::StatementError;
use super::bind::TextParam;
use stepwell_core::event::Failure;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// An error during preparation or execution. The transaction was not committed, so nothing was changed.
pub fn statement_failed(error: &Error) -> StatementError {
    match server_error(error) {
        Some(response) => StatementError { failure: from_response(response), reusable: true },
        None => StatementError { failure: failure::lost(&root_cause(error), false), reusable: false },
    }
}

/// An error during the commit. An error response means that it did not commit; a lost connection leaves it unknown.
pub fn commit_failed(error: &Error) -> StatementError {
    match server_error(error) {
        Some(response) => StatementError { failure: from_response(response), reusable: true },
        None => StatementError { failure: failure::lost(&root_cause(error), true), reusable: false },
    }
}

/// A value could not be parsed as the expected type. The server's message quotes it, which identifies the parameter.
pub fn bind_failed(error: &Error, values: &[TextParam]) -> StatementError {
    let Some(response) = server_error(error) else { return statement_failed(error) };
    let quoted = |value: &&TextParam| {
        value.text.as_ref().is_some_and(|text| response.message().contains(&format!("\"{text}\"")))
    };
    match values.iter().find(quoted) {
        Some(value) => failure::bad_param(&value.name, response.message()).into(),
        None => StatementError { failure: from_response(response), reusable: true },
    }
}

pub fn connect_failed(name: &str, error: &Error) -> Failure {
    match error.as_db_error() {
        // The user, database or schema is wrong; a retry would fail as well.
        Some(response) if ["28", "3D", "3F", "42"].contains(&class(response)) => {
            failure::bad_connection(name, response.message())
        }
        Some(response) => failure::connect_failed(name, response.message()),
        None => failure::connect_failed(name, &root_cause(error)),
    }
}

/// The server's error, if the session continues after it.
fn server_error(error: &Error) -> Option<&DbError> {
    let response = error.as_db_error()?;
    let ends = matches!(response.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    (!ends).then_some(response)
}

fn from_response(response: &DbError) -> Failure {
    let code = response.code();
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        return failure::read_only(response.message());
    }
    if *code == SqlState::QUERY_CANCELED && response.message().contains("statement timeout") {
        return failure::timed_out();
    }
    if *code == SqlState::SYNTAX_ERROR && response.message().contains("multiple commands") {
        return failure::multiple_statements();
    }
    let hint = response.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = format!("{} (SQLSTATE {}){hint}", response.message(), code.code());
    // Serialization failures, deadlocks, resources, operator intervention or a lock timeout: a retry may succeed.
    let retryable = ["08", "40", "53", "57"].contains(&class(response)) || *code == SqlState::LOCK_NOT_AVAILABLE;
    Failure { retryable, ..Failure::new(&format!("sql_{}", code.code()), message) }
}

fn class(response: &DbError) -> &str {
    response.code().code().get(..2).unwrap_or_default()
}

/// The message of the root cause.
pub fn root_cause(error: &Error) -> String {
    if let Some(response) = error.as_db_error() {
        return response.message().to_owned();
    }
    let mut root: &dyn std::error::Error = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    root.to_string()
}
