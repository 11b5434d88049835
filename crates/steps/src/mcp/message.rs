//! Reads one message of a server, within limits, and finds out which call an unreadable one belongs to.

use super::limits::MAX_VALUES;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// The error code under which the transport reports an unreadable response to the call that waits for it. Not one that
/// JSON-RPC or MCP defines.
pub const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);

pub enum Incoming {
    Message(Box<ServerJsonRpcMessage>),
    /// A response that cannot be read, and the id of its request, if that can be.
    Unreadable {
        id: Option<RequestId>,
        why: String,
    },
    /// Output that is not a message, or a notification that this client does not know.
    Ignored,
    /// More values than a message may have.
    TooLarge,
}

pub fn read(text: &[u8]) -> Incoming {
    if values(text) > MAX_VALUES {
        return Incoming::TooLarge;
    }
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(text) {
        Ok(message) => return Incoming::Message(Box::new(message)),
        Err(error) => error,
    };
    match serde_json::from_slice::<Value>(text) {
        Ok(message) if message.get("method").is_some() => Incoming::Ignored,
        Ok(message) => match message.get("id").and_then(id) {
            Some(id) => Incoming::Unreadable { id: Some(id), why: "it is neither a result nor an error".into() },
            None if message.get("jsonrpc").is_some() => Incoming::Unreadable { id: None, why: error.to_string() },
            None => Incoming::Ignored,
        },
        // Servers print all kinds of text; only messages contain this.
        Err(_) if !contains(text, b"\"jsonrpc\"") => Incoming::Ignored,
        Err(error) => Incoming::Unreadable { id: id_in(text), why: error.to_string() },
    }
}

/// The message that stands for an unreadable response.
pub fn unreadable(id: Option<RequestId>, why: &str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(UNREADABLE, why.to_owned(), None), id)
}

/// An upper bound of the number of values, without building them.
fn values(text: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

fn id(value: &Value) -> Option<RequestId> {
    match value {
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        _ => None,
    }
}

/// The first numeric `id` in text that is not valid JSON. All ids that this client uses are numbers.
fn id_in(text: &[u8]) -> Option<RequestId> {
    let at = text.windows(4).position(|part| part == b"\"id\"")?;
    let rest = text[at + 4..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = &rest[..rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len())];
    std::str::from_utf8(digits).ok()?.parse().ok().map(RequestId::Number)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match read(text.as_bytes()) {
            Incoming::Message(_) => "message".to_owned(),
            Incoming::Unreadable { id, .. } => {
                format!("unreadable {}", id.map_or_else(|| "-".into(), |id| id.to_string()))
            }
            Incoming::Ignored => "ignored".to_owned(),
            Incoming::TooLarge => "too large".to_owned(),
        };
        assert_eq!(found, expected, "{}", &text[..text.len().min(80)]);
    }

    #[test]
    fn an_unreadable_response_names_its_call_and_other_output_is_ignored() {
        check(r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#, "message");
        check(r#"{"jsonrpc": "2.0", "id": 1}"#, "unreadable 1");
        check(r#"{"jsonrpc": "2.0", "id": 12, "result": {"a": "#, "unreadable 12");
        check(r#"{"jsonrpc": "2.0", "result": {"a": "#, "unreadable -");
        check(r#"{"jsonrpc": "2.0"}"#, "unreadable -");
        check(r#"{"jsonrpc": "2.0", "method": "notifications/progress", "params": 7}"#, "ignored");
        check("Welcome!", "ignored");
        check("{", "ignored");
        check("[1,2]", "ignored");
    }

    #[test]
    fn a_message_of_many_small_values_is_not_parsed() {
        let many = format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": [{}0]}}"#, "0,".repeat(MAX_VALUES));
        check(&many, "too large");
        let text = format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {{"text": "{}"}}}}"#, "\\\",".repeat(MAX_VALUES));
        check(&text, "message");
    }
}
