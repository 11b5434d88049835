//! Parses `text/event-stream`, as far as the server uses it.

/// One server-sent event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Frame {
    /// Where to resume.
    pub id: String,
    /// The name of the event.
    pub event: String,
    /// What it says.
    pub data: String,
}

/// Turns pieces of a stream into events.
#[derive(Default)]
pub struct Parser {
    bytes: Vec<u8>,
    frame: Frame,
}

impl Parser {
    /// Adds a piece, however the stream was split.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete event.
    #[expect(clippy::should_implement_trait, reason = "more may follow `None`")]
    pub fn next(&mut self) -> Option<Frame> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                let frame = std::mem::take(&mut self.frame);
                if !frame.data.is_empty() {
                    return Some(frame);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_string();
            match field {
                "id" => self.frame.id = value,
                "event" => self.frame.event = value,
                "data" => self.frame.data = value,
                // Comments keep the connection alive.
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed_however_the_bytes_are_split() {
        let text =
            "id: 1.0\nevent: created\ndata: {\"a\":\"é\"}\n\n: quiet\n\nid: 2.0\r\nevent: end\r\ndata: {}\r\n\r\nid: 3";
        let frame = |id: &str, event: &str, data: &str| Frame { id: id.into(), event: event.into(), data: data.into() };
        let expected = [frame("1.0", "created", "{\"a\":\"é\"}"), frame("2.0", "end", "{}")];
        for size in 1..text.len() {
            let (mut parser, mut found) = (Parser::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                parser.push(piece);
                found.extend(std::iter::from_fn(|| parser.next()));
            }
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }
}
