//! Messages over the standard input and output of a process, one per line. Unlike the SDK's transport, it reports
//! unreadable responses to their calls, and ends the connection if the process sends too much or does not read.

use super::limits::{MAX_MESSAGE, MAX_STALL, Verdict};
use super::message::{self, Incoming};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;

pub struct Pipes<R, W> {
    from: R,
    /// The beginning of a line. Kept here because `receive` may be dropped at any time.
    line: Vec<u8>,
    /// Whether the rest of the current line is skipped.
    skipping: bool,
    to: Arc<Mutex<Option<W>>>,
    verdict: Arc<Verdict>,
}

impl<R: AsyncBufRead + Unpin, W> Pipes<R, W> {
    pub fn new(from: R, to: W, verdict: Arc<Verdict>) -> Pipes<R, W> {
        Pipes { from, line: Vec::new(), skipping: false, to: Arc::new(Mutex::new(Some(to))), verdict }
    }

    /// Reads to the end of a line. False at the end of the output, or if the line is too long for a message.
    async fn read_line(&mut self) -> bool {
        loop {
            let Ok(found) = self.from.fill_buf().await else { return false };
            if found.is_empty() {
                return false;
            }
            let end = found.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(found.len(), |end| end + 1);
            if !self.skipping {
                self.line.extend_from_slice(&found[..count]);
            }
            self.from.consume(count);
            if self.line.len() > MAX_MESSAGE {
                if self.line.trim_ascii_start().starts_with(b"{") {
                    self.verdict.end(format!("it sent a message of more than {} MB", MAX_MESSAGE >> 20));
                    return false;
                }
                // Not a message.
                self.line = Vec::new();
                self.skipping = true;
            }
            if end.is_some() {
                if !std::mem::take(&mut self.skipping) {
                    return true;
                }
                self.line.clear();
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Pipes<R, W>
where
    R: AsyncBufRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (to, verdict) = (self.to.clone(), self.verdict.clone());
        async move {
            // Serialised only when it is its turn, so that waiting messages are not held twice.
            let mut to = to.lock().await;
            let Some(to) = to.as_mut() else { return Err(io::ErrorKind::NotConnected.into()) };
            let mut text = serde_json::to_vec(&message)?;
            drop(message);
            text.push(b'\n');
            let sent = write(to, &text).await;
            if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
                verdict.end(format!("it has not read its input for {} s", MAX_STALL.as_secs()));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while self.read_line().await {
            let read = message::read(&self.line);
            // Keeps no large buffer for small messages.
            self.line = Vec::new();
            match read {
                Incoming::Message(message) => return Some(*message),
                Incoming::Unreadable { id, why } => return Some(message::unreadable(id, &why)),
                Incoming::Ignored => {}
                Incoming::TooLarge => {
                    self.verdict.end(format!("it sent a message of more than {} values", super::limits::MAX_VALUES));
                    return None;
                }
            }
        }
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        // A message that the process does not read must not delay the end.
        if let Ok(mut to) = self.to.try_lock() {
            drop(to.take());
        }
        Ok(())
    }
}

/// Writes everything. The time limit is per part that the process takes.
async fn write(to: &mut (impl AsyncWrite + Unpin), mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        let count = tokio::time::timeout(MAX_STALL, to.write(text)).await??;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        text = &text[count..];
    }
    tokio::time::timeout(MAX_STALL, to.flush()).await?
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn received(output: Vec<u8>) -> (usize, Option<String>) {
        let verdict = Arc::new(Verdict::default());
        let mut pipes = Pipes::new(BufReader::new(&output[..]), tokio::io::sink(), verdict.clone());
        let mut count = 0;
        while Transport::receive(&mut pipes).await.is_some() {
            count += 1;
        }
        (count, verdict.why().map(str::to_owned))
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_connection_only_if_it_is_a_message() {
        let answer = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}\n";
        let long = |first: u8| [&[first][..], &vec![b'y'; MAX_MESSAGE + 10], b"\n", &answer[..]].concat();
        assert_eq!(received(long(b'y')).await, (1, None));
        assert_eq!(received(long(b'{')).await, (0, Some("it sent a message of more than 16 MB".into())));
    }
}
