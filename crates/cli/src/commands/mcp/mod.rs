//! `stepwell mcp`: MCP on standard input and output, for a program that starts this one.
//!
//! Messages are carried to a server's `/mcp` and back, so that there is one implementation of everything they ask for.
//! The server is the one that runs already, or else one that this process starts for itself. What HTTP without sessions
//! cannot do for older clients is done here: notices that nobody asked for, and questions in the middle of a call.

mod bridge;
mod host;
mod question;

use super::Exit;
use crate::client::At;
use crate::{embedded, logging, signals};
use bridge::Bridge;
use host::Host;
use std::io::BufRead;
use tokio::sync::mpsc;

/// Bytes of one message: as many as a server takes by far.
const LONGEST: u64 = 64 * 1024 * 1024;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: At,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    // Standard output is for messages only.
    logging::start();
    embedded::runtime()?.block_on(async {
        let mut stop = std::pin::pin!(signals::asked_to_stop()?);
        let host = Host::new(args.at);
        // What cannot work is said at once, not with the first message.
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

/// Lines of standard input, read on a thread of their own: nothing else can wait for them and be stopped.
fn lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = std::io::Read::take(&mut input, LONGEST).read_until(b'\n', &mut line);
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
