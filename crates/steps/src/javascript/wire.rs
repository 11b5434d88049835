//! What the server and a worker say to each other over the worker's standard input and output: JSON, each message with its
//! length before it. A worker runs code of strangers, so the server bounds whatever it reads from one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::{self, Read, Write};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a result.
pub const MAX_OUTPUT: usize = 4 << 20;
/// Requests of an evaluation whose answers the worker has not taken yet. A worker that has as many takes one before it
/// asks again, so that what waits is in its own memory.
pub const MAX_OPEN: usize = 16;
/// Bytes of one message of a worker: a result, or a request with its body.
const MAX_MESSAGE: usize = MAX_OUTPUT + (1 << 20);

/// What a worker is told.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    Evaluate(Job),
    /// What came of a request that the code made.
    Fetched {
        id: u32,
        answer: Result<Answer, String>,
    },
}

/// One evaluation.
#[derive(Serialize, Deserialize)]
pub struct Job {
    pub code: String,
    pub ctx: Box<RawValue>,
    pub timeout_ms: u64,
    /// Bytes.
    pub memory: u64,
    /// Whether `fetch` is there; placeholders of secrets begin with this.
    pub fetch: Option<String>,
    /// Only whether the code can be read is asked.
    pub check: bool,
}

#[derive(Serialize, Deserialize)]
pub struct Answer {
    pub status: u16,
    pub headers: Value,
    pub text: String,
}

/// What a worker says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It has started; what could not be taken away from it, if anything.
    Ready {
        lacks: Option<String>,
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

/// A message as it goes over the pipe.
pub fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(|_| io::Error::other("a message is too long"))?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The next word of a worker.
pub async fn listen(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Word> {
    let length = from.read_u32_le().await? as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::other("the worker says too much"));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The next order; none once the server is gone.
pub fn obey(from: &mut impl Read) -> io::Result<Option<Order>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

/// A worker's word, told at once.
pub fn say(to: &mut impl Write, word: &Word) -> io::Result<()> {
    to.write_all(&frame(word)?)?;
    to.flush()
}
