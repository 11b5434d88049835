//! What the server said, or that it says nothing any more.

use super::super::failure;
use super::Failed;
use super::bind::Text;
use stepwell_core::event::Failure;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// While the statement was prepared or executed. Nothing of a transaction stands that was not committed.
pub fn failed(error: &Error) -> Failed {
    match spoken(error) {
        Some(said) => Failed { failure: of(said), sound: true },
        None => Failed { failure: failure::lost(&innermost(error), false), sound: false },
    }
}

/// The server has been asked to commit. A refusal is its word that it did not; silence is not.
pub fn not_committed(error: &Error) -> Failed {
    match spoken(error) {
        Some(said) => Failed { failure: of(said), sound: true },
        None => Failed { failure: failure::lost(&innermost(error), true), sound: false },
    }
}

/// A value could not be read as what the statement expects. Which one, the server tells by quoting it.
pub fn not_bound(error: &Error, values: &[Text]) -> Failed {
    let Some(said) = spoken(error) else { return failed(error) };
    let quoted =
        |value: &&Text| value.text.as_ref().is_some_and(|text| said.message().contains(&format!("\"{text}\"")));
    match values.iter().find(quoted) {
        Some(value) => failure::bad_param(&value.name, said.message()).into(),
        None => Failed { failure: of(said), sound: true },
    }
}

pub fn not_connected(name: &str, error: &Error) -> Failure {
    match error.as_db_error() {
        // Who, or what, it was asked for is wrong, and will be the next time.
        Some(said) if ["28", "3D", "3F", "42"].contains(&class(said)) => failure::bad_connection(name, said.message()),
        Some(said) => failure::connect_failed(name, said.message()),
        None => failure::connect_failed(name, &innermost(error)),
    }
}

/// What the server said about the statement, if it goes on talking.
fn spoken(error: &Error) -> Option<&DbError> {
    let said = error.as_db_error()?;
    let ends = matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    (!ends).then_some(said)
}

fn of(said: &DbError) -> Failure {
    let code = said.code();
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        return failure::read_only(said.message());
    }
    if *code == SqlState::QUERY_CANCELED && said.message().contains("statement timeout") {
        return failure::too_slow();
    }
    if *code == SqlState::SYNTAX_ERROR && said.message().contains("multiple commands") {
        return failure::many_statements();
    }
    let hint = said.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = format!("{} (SQLSTATE {}){hint}", said.message(), code.code());
    // Serialization and deadlocks, resources, an operator, a lock that was not to be had: another time it may go well.
    let retryable = ["08", "40", "53", "57"].contains(&class(said)) || *code == SqlState::LOCK_NOT_AVAILABLE;
    Failure { retryable, ..Failure::new(&format!("sql_{}", code.code()), message) }
}

fn class(said: &DbError) -> &str {
    said.code().code().get(..2).unwrap_or_default()
}

/// The reason behind the reasons.
pub fn innermost(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}
