//! The failures of queries. No message contains a connection's URL or any part that may be secret.

use crate::egress::Refused;
use crate::text::quoted;
use stepwell_core::event::{Failure, FailureKind};
use stepwell_core::limits;

pub fn bad_query(message: String) -> Failure {
    Failure::new("bad_query", message)
}

pub fn bad_param(name: &str, why: &str) -> Failure {
    Failure::new("bad_param", format!("the parameter {name} does not fit: {why}"))
}

pub fn wrong_param_count(wanted: usize, given: usize) -> Failure {
    let parameters = if wanted == 1 { "parameter" } else { "parameters" };
    bad_query(format!("the statement has {wanted} {parameters}, but `params` has {given}"))
}

pub fn missing_param(name: &str) -> Failure {
    bad_query(format!("the statement has a parameter `:{name}`, but `params` has no {}", quoted(name)))
}

pub fn refused_statement(word: &str) -> Failure {
    let why = "a step runs one statement in its own transaction, on a pooled connection";
    bad_query(format!("a statement that begins with {word} is not allowed: {why}"))
}

pub fn multiple_statements() -> Failure {
    bad_query("there is more than one statement; use one step for each".into())
}

pub fn unknown_connection(name: &str) -> Failure {
    Failure::new("unknown_connection", format!("there is no connection {}", quoted(name)))
}

pub fn unknown_scheme(name: &str) -> Failure {
    let forms = "postgres://user:password@host/database or sqlite:/path/to/file";
    bad_connection(name, &format!("its URL has an unknown scheme; known: {forms}"))
}

pub fn bad_connection(name: &str, why: &str) -> Failure {
    Failure::new("bad_connection", format!("the connection {} cannot be used: {why}", quoted(name)))
}

pub fn egress_refused(name: &str, why: &Refused) -> Failure {
    Failure::new("egress_refused", format!("the connection {} was not made: {why}", quoted(name)))
}

pub fn connect_failed(name: &str, why: &str) -> Failure {
    let message = format!("no connection to {}: {why}", quoted(name));
    Failure { kind: FailureKind::Network, ..Failure::retryable("connect_failed", message) }
}

pub fn lost(why: &str, may_have_happened: bool) -> Failure {
    let message = match may_have_happened {
        true => format!("the connection was lost during the commit, so the change may have been made: {why}"),
        false => format!("the connection was lost and nothing was changed: {why}"),
    };
    let kind = FailureKind::Network;
    Failure { kind, may_have_happened, ..Failure::retryable("connection_lost", message) }
}

pub fn may_not_write(name: &str) -> Failure {
    Failure::new("read_only", format!("the connection {} does not allow writing", quoted(name)))
}

pub fn read_only(why: &str) -> Failure {
    let hint = "set `write: true` on a step that writes";
    Failure::new("read_only", format!("the statement would make changes, but this step only reads ({why}); {hint}"))
}

pub fn too_many_rows(max: u32) -> Failure {
    let hint =
        format!("narrow the statement or set `max_rows` (at most {}, or the connection's limit)", limits::MAX_ROWS);
    Failure::new("too_many_rows", format!("there are more than {max} rows; {hint}"))
}

pub fn too_large() -> Failure {
    let max = limits::MAX_PAYLOAD_BYTES;
    Failure::new("too_large", format!("the rows exceed {max} bytes; select fewer rows or columns"))
}

pub fn timed_out() -> Failure {
    let message = "the statement exceeded its timeout and was stopped; nothing was changed";
    Failure { kind: FailureKind::Timeout, ..Failure::retryable("timeout", message) }
}

pub fn unreadable(column: &str, why: &str) -> Failure {
    bad_query(format!("the column {} cannot be read: {why}; cast it to text", quoted(column)))
}
