//! Bytes on a socket, for requests that an HTTP client would not send.

use crate::harness::PATIENCE;
use std::io::{Read, Write};
use std::net::TcpStream;

pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    pub fn open(address: &str) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Raw { stream }
    }

    /// An error if the other side has gone.
    pub fn send(&mut self, text: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(text.as_ref())
    }

    /// Everything until the other side closes; what came before a reset counts.
    pub fn rest(&mut self) -> String {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = self.stream.read(&mut part) {
            all.extend_from_slice(&part[..count]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// The head of an answer.
    pub fn head(&mut self) -> String {
        let (mut all, mut byte) = (Vec::new(), [0]);
        while !all.ends_with(b"\r\n\r\n") && matches!(self.stream.read(&mut byte), Ok(1)) {
            all.push(byte[0]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// The whole answer to one request that asks for the connection to be closed.
pub fn ask(address: &str, request: &str) -> String {
    let mut raw = Raw::open(address);
    raw.send(request).unwrap();
    raw.rest()
}

/// The status of an answer.
pub fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
}

impl Raw {
    /// Everything up to and with these words.
    #[track_caller]
    pub fn until(&mut self, words: &str) -> String {
        let (mut all, mut byte) = (Vec::new(), [0]);
        while !all.ends_with(words.as_bytes()) {
            let count = self.stream.read(&mut byte);
            assert!(matches!(count, Ok(1)), "no {words:?} in {}", String::from_utf8_lossy(&all));
            all.push(byte[0]);
        }
        String::from_utf8_lossy(&all).into_owned()
    }

    /// A text as one frame of a WebSocket, masked with nothing.
    pub fn frame(&mut self, text: &str) {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 126).expect("a short text");
        let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        self.send(frame).unwrap();
    }
}
