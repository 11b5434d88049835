//! `stepwell mcp`: MCP on standard input and output, for a client that starts this process.
//!
//! Messages are forwarded to the `/mcp` endpoint of a server, so that MCP has one implementation. The server is a
//! running one, or one that this process starts. The bridge adds what sessionless HTTP cannot do for older clients:
//! unsolicited notifications, and questions in the middle of a call.

mod bridge;
mod elicitation;
mod host;

use super::Exit;
use crate::client::Target;
use crate::{embedded, logging, signals};
use bridge::Bridge;
use host::Host;
use std::io::BufRead;
use tokio::sync::mpsc;

/// Maximum bytes of one message; far more than a server accepts.
const MAX_MESSAGE: u64 = 64 * 1024 * 1024;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: Target,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    // Logs go to standard error: standard output is for messages only.
    logging::start();
    embedded::runtime()?.block_on(async {
        let mut stop = std::pin::pin!(signals::asked_to_stop()?);
        let host = Host::new(args.at);
        // Fail now rather than at the first message.
        host.client().await?;
        let (bridge, mut lines) = (Bridge::new(host), lines());
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => bridge.take(&line),
                    None => break,
                },
                () = &mut stop => break,
            }
        }
        bridge.end().await;
        Ok(Exit::Success)
    })
}

/// Lines of standard input, read on a separate thread because a blocking read cannot be cancelled.
fn lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = std::io::Read::take(&mut input, MAX_MESSAGE).read_until(b'\n', &mut line);
            if !read.is_ok_and(|length| length > 0) {
                return;
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            if !line.trim().is_empty() && send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receive
}
