//! A mail server with or without `STARTTLS` that records what it is told in the clear and what under TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use stepwell_testing::Identity;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    StartTls,
    /// As if somebody on the way had removed the offer.
    Stripped,
    /// TLS from the first byte.
    Wrapped,
}

pub struct Postbox {
    pub address: SocketAddr,
    heard: Arc<Mutex<Heard>>,
}

#[derive(Clone, Default)]
pub struct Heard {
    pub clear: Vec<String>,
    pub encrypted: Vec<String>,
}

impl Postbox {
    pub async fn start(offer: Offer, identity: &Identity) -> Postbox {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, acceptor) = (listener.local_addr().unwrap(), identity.acceptor());
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let log = heard.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, offer, (acceptor.clone(), log.clone())));
            }
        });
        Postbox { address, heard }
    }

    pub fn heard(&self) -> Heard {
        self.heard.lock().unwrap().clone()
    }
}

async fn serve(mut client: TcpStream, offer: Offer, (acceptor, log): (TlsAcceptor, Arc<Mutex<Heard>>)) -> Option<()> {
    if offer != Offer::Wrapped {
        client.write_all(b"220 postbox\r\n").await.ok()?;
        let note = |line: &str| log.lock().unwrap().clear.push(line.to_owned());
        let extensions = if offer == Offer::StartTls { &["STARTTLS"][..] } else { &["AUTH PLAIN LOGIN"] };
        client = converse(client, extensions, note).await?;
    }
    let mut client = acceptor.accept(client).await.ok()?;
    if offer == Offer::Wrapped {
        client.write_all(b"220 postbox\r\n").await.ok()?;
    }
    let note = |line: &str| log.lock().unwrap().encrypted.push(line.to_owned());
    converse(client, &["AUTH PLAIN LOGIN"], note).await.map(|_| ())
}

/// Talks until the client leaves, or returns the connection when TLS is to begin.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(client: S, extensions: &[&str], note: impl Fn(&str)) -> Option<S> {
    let mut client = BufReader::new(client);
    let mut in_message = false;
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        note(line);
        let word = line.split([' ', ':']).next()?.to_ascii_uppercase();
        let reply = match word.as_str() {
            _ if in_message && line != "." => continue,
            _ if in_message => "250 kept".to_owned(),
            "EHLO" => format!("250-postbox\r\n250 {}", extensions.join("\r\n250 ")),
            "AUTH" => "235 welcome".to_owned(),
            "DATA" => "354 go on".to_owned(),
            "STARTTLS" if extensions.contains(&"STARTTLS") => "220 begin".to_owned(),
            "STARTTLS" => "502 not here".to_owned(),
            "QUIT" => "221 bye".to_owned(),
            _ => "250 fine".to_owned(),
        };
        in_message = word == "DATA" && !in_message;
        client.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
        match reply.as_str() {
            "220 begin" => return Some(client.into_inner()),
            "221 bye" => return None,
            _ => {}
        }
    }
}
