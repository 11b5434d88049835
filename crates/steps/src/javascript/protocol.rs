//! Messages between the server and a worker over the worker's standard input and output: JSON with a length prefix. A
//! worker runs untrusted code, so the server bounds everything it reads from one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::{self, Read, Write};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum size of a result, in bytes.
pub const MAX_OUTPUT: usize = 4 << 20;
/// Requests of an evaluation whose responses the worker has not read. At this limit a worker reads a response before it
/// makes another request, so that the backlog stays in its own memory.
pub const MAX_OPEN: usize = 16;
/// Maximum size of a worker's message, in bytes: a result, or a request with its body.
const MAX_MESSAGE: usize = MAX_OUTPUT + (1 << 20);

/// A message to a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    Evaluate(Job),
    /// The response to a request of the code.
    Fetched {
        id: u32,
        response: Result<FetchResponse, String>,
    },
}

/// One evaluation.
#[derive(Serialize, Deserialize)]
pub struct Job {
    pub code: String,
    pub ctx: Box<RawValue>,
    pub timeout_ms: u64,
    /// In bytes.
    pub memory: u64,
    /// The prefix of secret placeholders if `fetch` is available.
    pub fetch: Option<String>,
    /// Only check the syntax.
    pub check: bool,
}

#[derive(Serialize, Deserialize)]
pub struct FetchResponse {
    pub status: u16,
    pub headers: Value,
    pub text: String,
    /// The bytes in base64, if they are not text.
    pub base64: Option<String>,
}

/// A message from a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// It has started; `missing` lists restrictions that could not be applied.
    Ready {
        missing: Option<String>,
    },
    Log(Line),
    Fetch {
        id: u32,
        request: Box<RawValue>,
    },
    Done(Box<RawValue>),
    Failed(Failed),
}

#[derive(Serialize, Deserialize)]
pub struct Line {
    pub level: String,
    pub text: String,
}

/// Why there is no result.
#[derive(Serialize, Deserialize)]
pub struct Failed {
    pub code: String,
    pub message: String,
}

impl Failed {
    pub fn new(code: &str, message: impl Into<String>) -> Failed {
        Failed { code: code.into(), message: message.into() }
    }
}

/// Encodes a message with its length prefix.
pub fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(|_| io::Error::other("the message is too long"))?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Reads a worker's next event.
pub async fn read_event(from: &mut (impl AsyncRead + Unpin)) -> io::Result<FromWorker> {
    let length = from.read_u32_le().await? as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::other("the worker's message is too long"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Reads the server's next command; `None` if the server is gone.
pub fn read_command(from: &mut impl Read) -> io::Result<Option<ToWorker>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// Writes an event to the server and flushes it.
pub fn write_event(to: &mut impl Write, event: &FromWorker) -> io::Result<()> {
    to.write_all(&frame(event)?)?;
    to.flush()
}
