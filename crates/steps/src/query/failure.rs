//! What goes wrong with a query, in words. No message has a connection's URL in it, nor any part that may be secret.

use crate::egress::Refused;
use stepwell_core::event::{Failure, FailureKind};
use stepwell_core::limits;

pub fn bad_query(message: String) -> Failure {
    Failure::new("bad_query", message)
}

pub fn bad_param(name: &str, why: &str) -> Failure {
    Failure::new("bad_param", format!("the parameter {name} does not fit: {why}"))
}

pub fn count_of_params(wanted: usize, given: usize) -> Failure {
    bad_query(format!("the statement has {wanted} parameters and `params` has {given}"))
}

pub fn missing_param(name: &str) -> Failure {
    bad_query(format!("the statement has a parameter `:{name}`, and `params` has no {name:?}"))
}

pub fn refused_statement(word: &str) -> Failure {
    let why = "a step is one statement in a transaction of its own, on a connection that others use afterwards";
    bad_query(format!("a statement that begins with {word} cannot be a step: {why}"))
}

pub fn many_statements() -> Failure {
    bad_query("there is more than one statement; make a step of each".into())
}

pub fn unknown_connection(name: &str) -> Failure {
    Failure::new("unknown_connection", format!("there is no connection {name:?}"))
}

pub fn unknown_scheme(name: &str) -> Failure {
    let forms = "postgres://user:password@host/database or sqlite:/path/to/file";
    bad_connection(name, &format!("its URL is of no known sort; known: {forms}"))
}

pub fn bad_connection(name: &str, why: &str) -> Failure {
    Failure::new("bad_connection", format!("the connection {name:?} cannot be used: {why}"))
}

pub fn egress_refused(name: &str, why: &Refused) -> Failure {
    Failure::new("egress_refused", format!("the connection {name:?} was not made: {why}"))
}

pub fn connect_failed(name: &str, why: &str) -> Failure {
    let message = format!("no connection to {name:?}: {why}");
    Failure { kind: FailureKind::Network, ..Failure::retryable("connect_failed", message) }
}

pub fn lost(why: &str, may_have_happened: bool) -> Failure {
    let message = match may_have_happened {
        true => format!("the connection was lost while the change was being committed, and it may have been: {why}"),
        false => format!("the connection was lost, and nothing was changed: {why}"),
    };
    let kind = FailureKind::Network;
    Failure { kind, may_have_happened, ..Failure::retryable("connection_lost", message) }
}

pub fn may_not_write(name: &str) -> Failure {
    Failure::new("read_only", format!("the connection {name:?} does not allow writing"))
}

pub fn read_only(why: &str) -> Failure {
    let hint = "a step that writes says `write: true`";
    Failure::new("read_only", format!("the statement would change something, and this step only reads ({why}); {hint}"))
}

pub fn too_many_rows(most: u32) -> Failure {
    let hint =
        format!("narrow the statement or set `max_rows` (at most {}, or what the connection allows)", limits::MAX_ROWS);
    Failure::new("too_many_rows", format!("there are more than {most} rows; {hint}"))
}

pub fn too_large() -> Failure {
    let most = limits::MAX_PAYLOAD_BYTES;
    Failure::new("too_large", format!("the rows are more than {most} bytes; select fewer rows or columns"))
}

pub fn too_slow() -> Failure {
    let message = "the statement took longer than it may and was stopped; nothing was changed";
    Failure { kind: FailureKind::Timeout, ..Failure::retryable("timeout", message) }
}

pub fn unreadable(column: &str, why: &str) -> Failure {
    bad_query(format!("the column {column:?} cannot be read: {why}; cast it to text"))
}
